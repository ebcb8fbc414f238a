package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// `sublet lease run` as scripts meet it: words and shell text (P7), exit status, output, folder, time-out (N7), JSON.
func TestLeaseRun(t *testing.T) {
	w := newWorld(t, "alias greet='echo hello from an alias'\nadd() { echo $(($1 + $2)); }\nexport MINE='of the user'", nil)
	term := w.openShell()
	w.awaitWindows(1)
	odd := []string{"a b", "", "it's", `"q"`, "$HOME", "`id`", "x\ny", "*", "~", ";", "|", "&&", "!!", `back\slash`, "é", "#no", "-n", "tab\tend", "(", "a=b"}
	for _, c := range []struct {
		name   string
		flags  []string
		words  []string
		out    string
		status int
		errs   string
	}{
		{"words", nil, append([]string{"printf", `<%s>\n`}, odd...), "<" + strings.Join(odd, ">\n<") + ">\n", 0, ""},
		{"shell text", nil, []string{"cd /usr && echo $PWD | tr / _; cd - >/dev/null"}, "_usr\n", 0, ""},
		{"one word that is no text", nil, []string{"echo 'it''s' \"$MINE\""}, "its of the user\n", 0, ""},
		{"alias", nil, []string{"greet", "you"}, "hello from an alias you\n", 0, ""},
		{"function", nil, []string{"add", "40", "2"}, "42\n", 0, ""},
		{"several lines", nil, []string{"for i in 1 2\ndo\necho $i # no end;\ndone"}, "1\n2\n", 0, ""},
		{"no line end", nil, []string{"printf", "whole"}, "whole", 0, ""},
		{"standard error too", nil, []string{"echo to >&2"}, "to\n", 0, ""},
		{"exit status", nil, []string{"exit 7"}, "", 7, ""},
		{"a signal's", nil, []string{"(kill -9 $BASHPID)"}, "", 137, ""},
		{"not found", nil, []string{"no-such-command"}, "no-such-command: command not found\n", 127, ""},
		{"syntax error", nil, []string{"if"}, "syntax error", 2, ""},
		{"folder", []string{"--cwd", "/usr"}, []string{"pwd"}, "/usr\n", 0, ""},
		{"relative folder", []string{"--cwd", "."}, []string{"pwd"}, w.project + "\n", 0, ""},
		{"no such folder", []string{"--cwd", "/no/such"}, []string{"pwd"}, "", 125, "cannot enter /no/such: no such file or directory\nsublet: error: the command was not run\n"},
		{"time-out", []string{"--timeout", "300ms"}, []string{"echo begun; sleep 5000"}, "begun\n", 124, "took longer"},
		{"its own standard input is not passed on", nil, []string{"read -rt 0.2 line; echo \"[$line]\""}, "[]\n", 0, ""},
		{"no such window", []string{"--client", "1"}, []string{"true"}, "", 125, "hint:"},
		{"no command", nil, nil, "", 2, ""},
		{"a time-out that is none", []string{"--timeout", "-1s"}, []string{"true"}, "", 2, ""},
	} {
		args := append(append([]string{"lease", "run"}, c.flags...), "--")
		cmd := w.command(append(args, c.words...)...)
		var out, errs bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("not read\n"), &out, &errs
		_ = cmd.Run() // the exit status is looked at below
		got := out.String()
		if status := cmd.ProcessState.ExitCode(); status != c.status || !strings.HasSuffix(got, c.out) && !strings.Contains(got, c.out) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%s: got exit %d, %q and %q, want %d, %q and %q", c.name, status, got, errs.String(), c.status, c.out, c.errs)
		}
		if exact := c.status == 0; exact && got != c.out {
			t.Errorf("%s: got %q, want just %q", c.name, got, c.out)
		}
	}
	if strings.Contains(w.processes(), "sleep 5000") {
		t.Error("the command that took too long still runs")
	}

	// JSON: output as it comes, then what became of it.
	out, _, code := w.sublet("lease", "run", "--json", "--", `printf 'a\nb\xff\n'; cd sub 2>/dev/null; exit 3`)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var raw []byte
	for _, line := range lines[:len(lines)-1] {
		var piece struct {
			Data string `json:"data"`
			Raw  []byte `json:"data_base64"`
		}
		if err := json.Unmarshal([]byte(line), &piece); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		raw = append(append(raw, piece.Data...), piece.Raw...)
	}
	var end map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if string(raw) != "a\nb\xff\n" || code != 3 || end["exit_code"] != 3.0 || end["status"] != "ok" || end["cwd"] != w.project || end["truncated"] != nil {
		t.Errorf("got exit %d, output %q, end %v", code, raw, end)
	}
	for _, name := range []string{"output", "duration_ms", "truncated", "notes"} {
		if _, has := end[name]; !has {
			t.Errorf("the result has no %s: %v", name, end)
		}
	}

	// From inside a shell that agents use: refused at once, with a hint.
	term.run(binary+` lease run -- true; echo "inside: $?"`, `^inside: 125$`)
	if !term.sees(`hint: do it in a terminal`) {
		t.Errorf("no hint:\n%s", term.text())
	}
}

// Output comes while the command runs; Ctrl-C, SIGTERM and a reader that has gone end the command, provably, and the
// shell is the user's again.
func TestLeaseRunIsEnded(t *testing.T) {
	w := newWorld(t, "", nil)
	term := w.openShell()
	w.awaitWindows(1)
	for _, c := range []struct {
		name   string
		end    func(cmd *exec.Cmd, out io.Closer) error
		status []int
	}{
		{"interrupt", func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGINT) }, []int{130}},
		{"terminate", func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGTERM) }, []int{130}},
		{"kill", func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Kill() }, []int{-1}},
		{"reader gone", func(_ *exec.Cmd, out io.Closer) error { return out.Close() }, []int{-1, 125}}, // as in | head -1
	} {
		cmd := w.command("lease", "run", "--", "while echo live; do sleep 0.01; done; echo not reached")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "live\n" {
			t.Errorf("%s: got %q, %v while it runs, want live", c.name, line, err)
		}
		if err := c.end(cmd, out); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the exit status is looked at
		if got := cmd.ProcessState.ExitCode(); !slices.Contains(c.status, got) {
			t.Errorf("%s: got exit %d, want %d", c.name, got, c.status)
		}
		w.await(c.name+": the shell to be free", func() bool { return idle(w.status()) })
		term.run("echo after "+c.name, `^after `+c.name+`$`)
	}
	if term.sees("│ not reached") {
		t.Error("the rest of a list that was ended ran")
	}
}

// With two windows it is the one typed in last, also while what was typed there still runs; and a call from inside of it fails,
// instead of running in the other.
func TestLeaseRunInTheWindowTypedInLast(t *testing.T) {
	w := newWorld(t, "", nil)
	first, second := w.open(), w.open()
	first.atPrompt()
	second.atPrompt()
	w.awaitWindows(2)
	second.run("WHERE=second; echo set", `^set$`)
	first.run("WHERE=first; echo begun; while [ ! -e gate ]; do sleep 0.02; done", `^begun$`)
	cmd := w.command("lease", "run", "--", "echo in the $WHERE")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.await("the call to wait", func() bool {
		list, _, _ := w.sublet("lease", "ls")
		return strings.Contains(list, "waits")
	})
	w.write(filepath.Join(w.project, "gate"), "")
	if text, err := io.ReadAll(out); err != nil || string(text) != "in the first\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	second.run(binary+" lease run -- 'echo in the $WHERE'; echo status $?", `called from inside a shell.*\n(.*\n)*status 125$`)
	first.run(binary+" lease run --wait 0 -- 'echo in the $WHERE'; echo status $?", `called from inside a shell.*\n(.*\n)*status 125$`)
}

// `lease ls` lists who has the shell, for what, how long, and who waits; `lease revoke` takes it back.
func TestLeaseListAndRevoke(t *testing.T) {
	w := newWorld(t, "", nil)
	if out, _, code := w.sublet("lease", "ls"); code != 0 && code != 4 || strings.Contains(out, "HOLDER") {
		t.Errorf("without a window: exit %d, %q", code, out)
	}
	term := w.openShell()
	w.awaitWindows(1)
	if _, errs, code := w.sublet("lease", "revoke"); code != 1 || !strings.Contains(errs, "nobody holds") {
		t.Errorf("revoke of nothing: exit %d, %q", code, errs)
	}
	term.send("echo mine; sleep 6000\r")
	term.see(`^mine$`)
	if out, _, _ := w.sublet("lease", "ls"); !regexp.MustCompile(`(?m)^\d+ +user +\d+m?s +the user's own command +0`).MatchString(out) {
		t.Errorf("while the user's own command runs: %s", out)
	}
	term.send("\x03")
	term.see(`\^C`)
	w.await("lease ls to show a free shell", func() bool {
		out, _, _ := w.sublet("lease", "ls")
		return strings.Contains(out, "not lent")
	})
	start := func(text string) (*exec.Cmd, *bytes.Buffer) {
		var errs bytes.Buffer
		cmd := w.command("lease", "run", "--", text)
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &errs
	}
	first, errs := start("echo holds; sleep 6000")
	term.see(`│ holds`)
	second, waited := start("echo came second")
	row := func(text string, want ...string) bool {
		return slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
			return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(line, w) })
		})
	}
	w.await("lease ls to show both", func() bool {
		out, _, _ := w.sublet("lease", "ls")
		return row(out, "CLIENT", "HOLDER", "FOR", "TERM", "PURPOSE", "WAITING") && row(out, "lease run", "echo holds; sleep 6000", "s ") &&
			row(out, "lease run", "echo came second", "waits")
	})
	out, _, _ := w.sublet("lease", "ls", "--json")
	var shell struct {
		ClientPID int    `json:"client_pid"`
		LeaseID   string `json:"lease_id"`
		Holder    string `json:"holder"`
		Purpose   string `json:"purpose"`
		HeldMS    *int   `json:"held_ms"`
		TermMS    *int   `json:"term_ms"`
		Queue     []struct {
			LeaseID  string `json:"lease_id"`
			Agent    string `json:"agent"`
			Purpose  string `json:"purpose"`
			WaitedMS *int   `json:"waited_ms"`
		} `json:"queue"`
	}
	if err := json.Unmarshal([]byte(out), &shell); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if shell.ClientPID != term.cmd.Process.Pid || shell.Holder != "lease run" || shell.HeldMS == nil || shell.TermMS == nil ||
		len(shell.Queue) != 1 || shell.Queue[0].Agent != "lease run" || shell.Queue[0].Purpose != "echo came second" || shell.Queue[0].WaitedMS == nil {
		t.Errorf("got %s", out)
	}
	if _, errs, code := w.sublet("lease", "revoke", shell.LeaseID); code != 0 {
		t.Errorf("revoke: exit %d, %q", code, errs)
	}
	_ = first.Wait() // the exit status is looked at
	if got := first.ProcessState.ExitCode(); got != 125 || !strings.Contains(errs.String(), "its lease was revoked") {
		t.Errorf("revoked: got exit %d, %q, want 125 and why", got, errs)
	}
	if strings.Contains(w.processes(), "sleep 6000") {
		t.Error("a revoked lease left its command behind")
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the one that waited: %v", err)
	}
	if got := waited.String(); got != "sublet: waiting for the shell: lease run has it\n" {
		t.Errorf("the one that waited printed %q", got)
	}
	term.see(`│ came second`)
	if _, errs, code := w.sublet("lease", "revoke", "no-such-lease"); code == 0 || errs == "" {
		t.Errorf("revoke of an unknown one: exit %d, %q", code, errs)
	}
}
