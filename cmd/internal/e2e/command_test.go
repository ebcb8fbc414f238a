package e2e

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Tab alone on an empty line switches to AI mode and back, ? there is for one question, and !command runs in the user's shell
// from AI mode. Every other Tab is the shell's. No line is lost or doubled on the way, and each key goes to who has the screen
// when it is read.
func TestSwitch(t *testing.T) {
	w := newWorld(t, "", script{
		{Match: "^first", Steps: []step{{Text: "The first answer."}}},
		{Match: "^once", Steps: []step{{Text: "The second answer."}}},
		{Match: "^ahead", Steps: []step{{Text: "The third answer."}}},
	})
	w.write(filepath.Join(w.project, "notes.txt"), "of the user\n")
	term := w.openShell()
	term.send("cat no")
	term.see(`^project\$ cat no$`)
	term.send(tab)
	term.see(`^project\$ cat notes.txt$`)
	term.send(enter)
	term.see(`^of the user$`)
	term.ask("first")
	term.see(`^The first answer\.$`)
	term.mode(false)
	term.send("?")
	w.await("AI mode", func() bool { return atAI(term.cursorLine()) })
	term.send("once", enter)
	term.see(`^The second answer\.$`)
	term.run("cd /; echo one", `^one$`) // it came back by itself
	term.mode(true)
	term.send("!echo two in $PWD; export KEPT=yes", enter)
	term.see(`^two in /$`)
	w.await("AI mode to come back", func() bool { return atAI(term.cursorLine()) })
	term.send("ahead", enter)
	term.see(`^> ahead$`)
	term.mode(false)
	term.send("echo three $KEPT", enter)
	term.see(`^three yes$`)
	term.ask("first again")
	w.await("the answer", func() bool { return strings.Count(term.text(), "The first answer.") == 2 })
	term.see(`^The third answer\.$`)
	term.mode(false)
	term.send("exit 7", enter)
	if got := term.wait(); got != 7 {
		t.Errorf("exit status %d, want the 7 of `exit 7`", got)
	}
	term.see(`^exit$`) // its last output, which may be drawn after its end
	for line, want := range map[string]int{
		"project$ cat notes.txt": 1, "of the user": 1, "> first": 1, "> once": 1, "/$ echo two in $PWD; export KEPT=yes": 1,
		"one": 1, "two in /": 1, "> ahead": 1, "/$ echo three $KEPT": 1, "three yes": 1, "/$ exit 7": 1,
	} {
		if got := strings.Count("\n"+term.text()+"\n", "\n"+line+"\n"); got != want {
			t.Errorf("%q is there %d times, want %d:\n%s", line, got, want, term.text())
		}
	}
	// The terminal's own scrollback: nothing here may use the alternate screen.
	if strings.Contains(term.bytes(), "\x1b[?1049h") {
		t.Error("the alternate screen was used")
	}
}

// The first prompt does not wait for the daemon, and a shell without one is still a good shell.
func TestPromptWithoutDaemon(t *testing.T) {
	w := newWorld(t, "", nil)
	// A daemon that takes connections and answers nothing.
	wedged, err := net.Listen("unix", w.path("run/daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer wedged.Close()
	start := time.Now()
	term := w.openShell()
	t.Logf("first prompt after %v", time.Since(start))
	term.run("echo still a sh''ell", `^still a shell$`)
	term.atPrompt()
	term.send("exit", enter)
	if got := term.wait(); got != 0 {
		t.Errorf("exit status %d, want 0", got)
	}
	if err := wedged.Close(); err != nil { // so that `daemon stop` finds none
		t.Fatal(err)
	}
}
