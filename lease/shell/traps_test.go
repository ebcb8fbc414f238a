package shell

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// T1a: the end of the shell shows as a wait status, with the exit code; T1g: also while a child keeps the terminal open.
func TestDeathWithChildren(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	began := time.Now()
	r := do(t, s, user("trap '' HUP; sleep 30 & disown; exit 4"))
	if r.Status != "shell_exited" || exit(r) != 4 || time.Since(began) > 20*time.Second {
		t.Errorf("got %s, exit %d after %v", r.Status, exit(r), time.Since(began))
	}
}

// T1g: children that keep the terminal after the command ended do not hold its end back, and what they print later
// belongs to no command.
func TestBackgroundOutput(t *testing.T) {
	t.Parallel()
	var un collector
	s := start(t, func(o *Options) { o.Unowned = un.add })
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	r := do(t, s, leased(fmt.Sprintf("(read x < %s; echo LATE-$x) & echo now", gate)))
	if string(r.Output) != "now\n" {
		t.Errorf("got %q", r.Output)
	}
	f, err := os.OpenFile(gate, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "text")
	f.Close()
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(un.String(), "LATE-text"); {
		if time.Now().After(deadline) {
			t.Fatalf("unowned: got %q", un.String())
		}
		time.Sleep(time.Millisecond) // Unowned tells, but a poll is shorter than its plumbing
	}
	// Bash 5.3 tells that the job is done right behind the next command, not at the prompt: there it is that command's.
	r = do(t, s, user("echo clean"))
	if got, _, _ := strings.Cut(string(r.Output), "[1]+  Done"); got != "clean\n" {
		t.Errorf("the next result holds %q", r.Output)
	}
}

// T1: marks that a program prints do not end a command: none, old and guessed nonces, the fixed line's own text.
func TestForgedMarks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, leased("true"))
	for _, text := range []string{
		`printf '\e]7701;E;%s\a' 00000000000000000000000000000000`,
		`printf '\e]7701;2;%s\a' 00000000000000000000000000000000`,
		`printf '\e]7701;E;'`,
		`printf 'E 00000000000000000000000000000000 0 1\n/forged\0' > ` + s.folder + `/fifo`,
		`printf 'R 00000000000000000000000000000000\0' > ` + s.folder + `/fifo`,
		`printf 'garbage\0\0\0E\0E x\0Q\0' > ` + s.folder + `/fifo`,
		`declare -p | cat`,
		`set | head -1000`,
		`env`,
		`__sublet_e 0 2>/dev/null; true`,
	} {
		r := do(t, s, leased(text+"; sleep 0.02; echo still-here; (exit 7)"))
		if strings.Contains(text, "__sublet_e") { // code of the same user: out of scope (docs/security.md), but nothing hangs
			continue
		}
		unfinished := strings.HasSuffix(text, `E;'`) // a terminal shows nothing of an unfinished sequence
		if exit(r) != 7 || !strings.HasSuffix(string(r.Output), "still-here\n") && !unfinished {
			t.Errorf("%s: got exit %d, %q", text, exit(r), r.Output)
		}
		if s.Dir() == "/forged" {
			t.Errorf("%s: forged a directory", text)
		}
		if r := do(t, s, user("echo next")); string(r.Output) != "next\n" {
			t.Errorf("%s: then got %q", text, r.Output)
		}
	}
}

// T1e: no descriptor of ours is open in the shell, so no child inherits one.
func TestNoDescriptorsLeft(t *testing.T) {
	t.Parallel()
	const list = `python3 -c 'import os; print(sorted(int(f) for f in os.listdir("/dev/fd")))'`
	inherited, err := exec.Command("sh", "-c", list+" </dev/null 2>&1").Output() // of whoever started the tests
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, nil)
	for _, u := range []bool{true, false} {
		r := do(t, s, Command{Text: list, User: u})
		if string(r.Output) != string(inherited) {
			t.Errorf("user %v: a child has %s, one of ours %s", u, r.Output, inherited)
		}
	}
	do(t, s, leased("cd /; x=1"))
	if _, err := s.State(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.proc.awaitRead(time.Second) // at its prompt
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	if err != nil {
		return // not Linux
	}
	for _, e := range fds {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", s.PID(), e.Name()))
		if strings.Contains(to, s.folder) || strings.HasPrefix(to, "/dev/ptmx") {
			t.Errorf("the shell has %s open as %s", to, e.Name())
		}
	}
}

// T1f: what was printed just before the end is in the result, every time; 1000 quick commands in a row.
func TestThousandCommands(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for i := range 1000 {
		text := fmt.Sprintf("printf 'line %d'", i)
		if i%5 == 0 {
			text += "; (exit 3)"
		}
		r := do(t, s, Command{Text: text, User: i%3 == 0})
		if want := fmt.Sprintf("line %d", i); string(r.Output) != want || exit(r) != map[bool]int{true: 3}[i%5 == 0] {
			t.Fatalf("command %d: got %q, exit %d", i, r.Output, exit(r))
		}
	}
}

// T1h: the terminal begins with the settings of the caller's.
func TestTermios(t *testing.T) {
	t.Parallel()
	_, slave, err := openTerminal(Size{}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	modes, err := getModes(slave)
	if err != nil {
		t.Fatal(err)
	}
	modes.Cc[unix.VERASE] = 8
	modes.Iflag &^= unix.IXON
	modes.Lflag &^= unix.ECHO | unix.ICANON // raw already: mended
	s := start(t, func(o *Options) { o.Termios = modes })
	r := do(t, s, user("stty -a"))
	for _, want := range []string{"erase = ^H", "-ixon", " echo ", " icanon"} {
		if !strings.Contains(strings.ReplaceAll(string(r.Output), "\n", " "), want) {
			t.Errorf("no %q in %s", want, r.Output)
		}
	}
	p := start(t, func(o *Options) { o.Private = true })
	if r := do(t, p, leased("stty -a")); !strings.Contains(string(r.Output), "-onlcr") {
		t.Errorf("private: got %s", r.Output)
	}
}

// A client started with signals ignored (by nohup, or & in a script) must not hand that on (perf-limits.md section 2), nor
// where it has heard them in between: then Go takes them for default, and the kernel goes on ignoring them.
func TestIgnoredSignals(t *testing.T) {
	t.Parallel()
	if !ignoring(t) {
		return
	}
	if !signal.Ignored(syscall.SIGINT) {
		t.Fatal("SIGINT is not ignored")
	}
	t.Run("as it began", cancelsByINT)
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGINT)
	signal.Stop(heard)
	t.Run("heard in between", cancelsByINT)
}

func cancelsByINT(t *testing.T) {
	s := start(t, nil)
	r, took := cancelled(t, s, leased("sleep 100"))
	if r.Status != "cancelled" || exit(r) != 130 || took > time.Second {
		t.Errorf("got %s, exit %d after %v", r.Status, exit(r), took)
	}
	if r := do(t, s, leased("trap -p INT QUIT HUP TERM PIPE TSTP TTIN TTOU CHLD; grep SigIgn /proc/self/status")); strings.Contains(string(r.Output), "trap --") {
		t.Errorf("got %q", r.Output)
	}
}

// So do shells that are started at the same moment: the first to be done must not have the next inherit what is ignored.
func TestIgnoredSignalsOfMany(t *testing.T) {
	t.Parallel()
	if !ignoring(t) {
		return
	}
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for range 3 {
				s, err := Start(t.Context(), Options{RC: NoRC, Folder: t.TempDir(), Env: testEnv(t), Path: os.Getenv(envBash)})
				if err != nil {
					t.Error(err)
					return
				}
				r, err := s.Run(t.Context(), leased("sh -c 'kill -INT $$; echo deaf'"))
				if err != nil || exit(r) != 130 {
					t.Errorf("got %q, exit %d, %v", r.Output, exit(r), err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
}

// History is bash's: our lines are not in it, the user's are, by bash's rules, and a borrower's are not.
func TestHistory(t *testing.T) {
	t.Parallel()
	cases := []struct {
		rc   string
		want []string
	}{
		{"", []string{"echo one", "echo one", " echo spaced", "echo 'multi\nline'", "# comment", "echo last"}},
		{"HISTCONTROL=ignoreboth", []string{"echo one", "echo 'multi\nline'", "# comment", "echo last"}},
		{"HISTCONTROL=ignorespace:erasedups", []string{"echo one", "echo 'multi\nline'", "# comment", "echo last"}},
		{"HISTIGNORE='echo one:# *'", []string{" echo spaced", "echo 'multi\nline'", "echo last"}},
		{"HISTSIZE=3", // our line takes one place for a moment
			[]string{"# comment", "echo last"}},
		{"set +o history", nil},
		{"HISTTIMEFORMAT='%F '", []string{"echo one", "echo one", " echo spaced", "echo 'multi\nline'", "# comment", "echo last"}},
	}
	for _, c := range cases {
		t.Run(c.rc, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			s := start(t, func(o *Options) {
				o.RC = rcFile(t, c.rc)
				o.Env = append(withoutEnv(o.Env, "HOME"), "HOME="+home)
			})
			for _, cmd := range []Command{
				user("echo one"), leased("echo borrowed"), user("echo one"), user(" echo spaced"), leased("set -e; true"),
				user("echo 'multi\nline'"), leased("x=1; cd ."), user("# comment"), user("echo last"), leased("true"),
			} {
				do(t, s, cmd)
				if _, err := s.Prompt(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.History(t.Context())
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			file, _ := os.ReadFile(filepath.Join(home, ".bash_history"))
			if strings.Contains(string(file), "sublet") || c.want != nil && !strings.Contains(string(file), "echo last") {
				t.Errorf("history file: %q", file)
			}
		})
	}
	// A private shell keeps none.
	home := t.TempDir()
	s := start(t, func(o *Options) { o.Private = true; o.Env = append(withoutEnv(o.Env, "HOME"), "HOME="+home) })
	do(t, s, leased("echo x; y=1"))
	if got, err := s.History(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("private: got %q, %v", got, err)
	}
	s.Close()
	if _, err := os.Stat(filepath.Join(home, ".bash_history")); err == nil {
		t.Error("a private shell wrote a history file")
	}
}

// T1c: history expansion works for a person's line, never for a borrower's, and one that fails is told.
func TestHistoryExpansion(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("echo first"))
	for _, c := range []struct {
		cmd  Command
		want string
		exit int
	}{
		{user("!!"), "echo first\nfirst\n", 0}, // bash shows what it made of the line
		{user("echo again !$"), "echo again first\nagain first\n", 0},
		{user("^again^once more^"), "echo once more first\nonce more first\n", 0},
		{user("^again^no"), "bash: :s^again^no: substitution failed\n", 1},
		{user("!nosuch"), "bash: !nosuch: event not found\n", 1},
		{user("echo \"wow!bang\""), "bash: !bang: event not found\n", 1},
		{user("echo 'single!quoted'"), "single!quoted\n", 0},
		{leased("echo \"wow!bang\""), "wow!bang\n", 0},
		{leased("echo !!"), "!!\n", 0},
		{user("set +H"), "", 0},
		{user("echo \"wow!bang\""), "wow!bang\n", 0},
	} {
		r := do(t, s, c.cmd)
		if string(r.Output) != c.want || exit(r) != c.exit {
			t.Errorf("%q (user %v): got %q, exit %d, want %q", c.cmd.Text, c.cmd.User, r.Output, exit(r), c.want)
		}
	}
}

// Under histverify what history expansion made of a line is not run: it is the person's to look at, in their editor. Bash
// without one drops it without a word.
func TestHistoryVerified(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, c := range []struct{ text, out, unread string }{
		{"shopt -s histverify", "", ""},
		{"echo 'a b'", "a b\n", ""},
		{"!!", "", "echo 'a b'"},
		{"!ec && x=1", "", "echo 'a b' && x=1"},
		{"echo 'a!b' \\!", "a!b !\n", ""},
		{"!-2", "", "echo 'a b'"},
		{"!-2:p", "echo 'a b'\n", ""},
		{"echo one\necho two", "one\ntwo\n", ""},
		{"!!", "echo one\necho two\n", ""}, // keys would run the first of two lines
		{"^two^three^", "echo one\necho three\n", ""},
		{"echo x", "x\n", ""},
		{"set +H", "", ""},
		{"echo a!x", "a!x\n", ""},
		{"set -H; shopt -u histverify", "", ""},
		{"!e:p", "echo a!x\n", ""},
	} {
		r := do(t, s, user(c.text))
		if string(r.Output) != c.out || string(r.Unread) != c.unread || r.Status != "ok" {
			t.Errorf("%q: got %q, unread %q, want %q, %q", c.text, r.Output, r.Unread, c.out, c.unread)
		}
	}
}

// Every cancel is told, whenever it strikes (C5; T2a), and the shell is there at once for the next command.
func TestCancelAtAnyTime(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	n := 300
	for i := range n {
		ctx, cancel := context.WithCancel(t.Context())
		delay := time.Duration(i%30) * 50 * time.Microsecond
		timer := time.AfterFunc(delay, cancel) // strikes before, at and after the start, and after the end
		text := []string{"sleep 100", "true", "while :; do :; done", "x=$(sleep 100)", "sleep 100 | cat"}[i%5]
		watch := stopwatch(t)
		r, err := s.Run(ctx, leased(text))
		took := watch()
		timer.Stop()
		cancel()
		if err != nil && err != context.Canceled || took > 4*time.Second || r.Respawned {
			t.Fatalf("%d: %q after %v: %+v, %v (took %v)", i, text, delay, r, err, took)
		}
		if i%10 == 0 {
			if r := do(t, s, leased("echo whole")); string(r.Output) != "whole\n" {
				t.Fatalf("%d: then got %q", i, r.Output)
			}
		}
	}
}

// Leftovers of a cancelled command are listed, the user's own jobs are not (design section 5, cancel).
func TestLeftovers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("sleep 1003 &"))
	time.Sleep(1100 * time.Millisecond) // start times of processes are told to the second of uptime
	for range 10 {                      // the ^C may strike before the last sleep has the terminal
		r, _ := cancelled(t, s, leased("sleep 1004 & nohup sleep 1005 >/dev/null 2>&1 & echo go; sleep 1006"))
		var got []string
		for _, p := range r.Leftovers {
			name := strings.TrimPrefix(p.Command, "nohup ") // which becomes the sleep in a moment
			if name == "sleep" {                            // in that moment it has no arguments
				name = "sleep 1005"
			}
			got = append(got, name)
		}
		slices.Sort(got)
		if !slices.Equal(got, []string{"sleep 1004", "sleep 1005"}) {
			t.Fatalf("got %q", got)
		}
		for _, p := range r.Leftovers {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	do(t, s, user("kill %1"))
}
