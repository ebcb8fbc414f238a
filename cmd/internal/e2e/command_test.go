package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// prompt is the user's own, as newWorld's start-up file sets it.
const prompt = `^project\$( |$)`

// run types a line at the prompt of command mode and waits for what it prints.
func (term *terminal) run(line, want string) {
	term.t.Helper()
	term.atPrompt()
	term.send(line, enter)
	term.see(want)
}

// atPrompt waits until the cursor stands behind the prompt: what is typed before belongs to the command that runs.
func (term *terminal) atPrompt() {
	term.t.Helper()
	term.w.await("the prompt", func() bool { return strings.HasSuffix(term.cursorLine(), "$") })
}

// The user's shell is theirs: start-up file, aliases, functions, hooks, directory, environment, here-documents, pipes.
func TestCommandModeIsTheUsersBash(t *testing.T) {
	w := newWorld(t, `
alias greet='echo alias-here'
fn() { echo "function $1"; }
PROMPT_COMMAND='HOOKED=$((HOOKED+1))'
export FROM_RC=yes
`, nil)
	w.write(filepath.Join(w.project, "notes.txt"), "b\na\n")
	term := w.open()
	term.see(prompt)
	term.run("greet; fn works; echo rc=$FROM_RC", `^alias-here\nfunction works\nrc=yes$`)
	term.run("test $HOOKED -gt 0 && echo hook ran", `^hook ran$`)
	term.run("sort < notes.txt | tr a-z A-Z | paste -sd+", `^A\+B$`)
	term.run("export X=kept; cd /; pwd", `^/$`)
	term.see(`^/\$( |$)`)
	term.run(`echo "X=$X in $PWD"; cd - >/dev/null`, `^X=kept in /$`)
	term.atPrompt()
	term.send("cat <<EOF", enter)
	term.send("here $((6*7))", enter, "EOF", enter)
	term.see(`^here 42$`)
	term.atPrompt()
	term.send("cat <<'EOF'", enter)
	term.send("as $((it)) is", enter, enter, enter, "EOF", enter)
	term.see(`^as \$\(\(it\)\) is$`)
	term.run("false", prompt)
	term.run("echo status=$?", `^status=1$`)
	term.run(`printf 'no newline'`, `no newline`)
	term.run("echo next line", `^next line$`)
	term.atPrompt()
	term.send("exit 7", enter)
	if got := term.wait(); got != 7 {
		t.Errorf("exit status %d, want the 7 of `exit 7`", got)
	}
	// Native scrollback: nothing of an ordinary session may use the alternate screen.
	if strings.Contains(term.bytes(), "\x1b[?1049h") {
		t.Error("the alternate screen was used")
	}
}

// A prompt that takes longer than the screen waits for it is shown once it is there, and keeps no command waiting.
func TestSlowPrompt(t *testing.T) {
	w := newWorld(t, `PS1='$(sleep ${SLOW-0.8})at \W$ '`, nil)
	term := w.open()
	term.see(`^at project\$`)
	term.send("cd /usr", enter)
	term.see(`^at usr\$`)
	term.run("SLOW=1000; cd /", `^/\$`) // one that stands in for it
	for _, word := range []string{"one", "two"} {
		term.run("echo "+word, `^/\$ echo `+word+`\n`+word+`\n/\$`)
	}
	term.run("SLOW=0", `^at /\$`)
}

// Ctrl-C ends the command and not the program (T6d); Ctrl-Z stops it, and jobs, bg and fg know it.
func TestJobControl(t *testing.T) {
	w := newWorld(t, "", nil)
	term := w.open()
	term.see(prompt)
	term.send("sleep 1000 && echo unreachable", enter)
	w.await("sleep to run", func() bool { return strings.Contains(w.processes(), "sleep 1000") })
	term.send(ctrlC)
	term.run("echo after=$?", `^after=130$`)
	term.atPrompt()
	term.send("sleep 2000", enter)
	w.await("sleep to run", func() bool { return strings.Contains(w.processes(), "sleep 2000") })
	term.send(ctrlZ)
	term.see(`Stopped\s+sleep 2000`)
	term.run("jobs", `\[1\]\+\s+Stopped\s+sleep 2000\n(.*\n)*\[1\]\+\s+Stopped\s+sleep 2000`)
	term.atPrompt()
	term.send("fg", enter)
	w.await("sleep to go on", func() bool { return processState(w, "sleep 2000") == 'S' })
	term.send(ctrlC)
	term.run("echo fg=$?", `^fg=130$`)
	term.run("sleep 0.1 & wait; echo waited", `^waited$`)
	term.atPrompt()
	term.send("exit", enter)
	if got := term.wait(); got != 0 {
		t.Errorf("exit status %d, want 0", got)
	}
}

// processState is the state letter of the world's process whose command line is cmdline, 0 where there is none.
func processState(w *world, cmdline string) byte {
	for line := range strings.Lines(w.processes()) {
		pid, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.TrimSpace(rest) != cmdline {
			continue
		}
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return 0
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		return after[0]
	}
	return 0
}

// Full-screen programs and those that ask have the terminal as ever, and the prompt is back afterwards (T6a).
func TestInteractivePrograms(t *testing.T) {
	w := newWorld(t, "", nil)
	w.write(filepath.Join(w.project, "page.txt"), strings.Repeat("line\n", 200)+"the last line\n")
	// What sudo does: it asks on the terminal with echo off.
	w.write(filepath.Join(w.project, "ask"), "#!/bin/bash\nread -rsp 'Password: ' p </dev/tty; echo; echo \"got ${#p} letters\"\n")
	w.write(filepath.Join(w.project, "repl"), "#!/bin/bash\nwhile read -rp '>>> ' line; do [ \"$line\" = quit ] && break; echo \"= $((line))\"; done\n")
	for _, f := range []string{"ask", "repl"} {
		if err := os.Chmod(filepath.Join(w.project, f), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	term := w.open()
	term.see(prompt)
	term.send("./ask", enter)
	term.see(`^Password:`)
	term.send("hunter2secret", enter)
	term.see(`^got 13 letters$`)
	term.atPrompt()
	term.send("./repl", enter)
	term.see(`^>>>`)
	term.send("6*7", "\n")
	term.see(`^= 42$`)
	term.send("quit", "\n")
	for name, steps := range map[string][][2]string{
		"less": {{"less page.txt\r", `^line$`}, {"G", `^the last line$`}, {"q", prompt}},
		// Its status line, not the echo of what was typed: keys that come before it has the terminal are not its.
		"vi": {{"vi -u NONE page.txt\r", `^"?page\.txt"?:? `}, {":q!\r", prompt}},
	} {
		if _, err := exec.LookPath(name); err != nil {
			t.Logf("%s is not on this machine", name)
			continue
		}
		term.atPrompt()
		for _, step := range steps {
			term.send(step[0])
			term.see(step[1])
		}
		term.run("echo back from "+name, "^back from "+name+"$")
	}
	if strings.Contains(term.bytes(), "hunter2secret") || strings.Contains(w.logTail(), "hunter2secret") {
		t.Error("a password typed with echo off was shown or logged")
	}
	term.atPrompt()
	term.send("exit", enter)
	term.wait()
}

// The first prompt does not wait for the daemon, and a shell without one is still a good shell.
func TestPromptWithoutDaemon(t *testing.T) {
	w := newWorld(t, "", nil)
	// A daemon that takes connections and answers nothing (T5a: wedged).
	wedged, err := net.Listen("unix", w.path("run/daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer wedged.Close()
	start := time.Now()
	term := w.open()
	term.see(prompt)
	t.Logf("first prompt after %v", time.Since(start))
	term.run("echo still a shell", `^still a shell$`)
	term.atPrompt()
	term.send("exit", enter)
	if got := term.wait(); got != 0 {
		t.Errorf("exit status %d, want 0", got)
	}
	if err := wedged.Close(); err != nil { // so that `daemon stop` finds none
		t.Fatal(err)
	}
}
