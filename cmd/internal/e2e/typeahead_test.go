package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What is typed ahead of a command's end is typed into the prompt once it is back: each line is a command of its own, in
// order, and exit is heard (C2).
func TestTypeAhead(t *testing.T) {
	w := newWorld(t, "", nil)
	term := w.open()
	term.see(prompt)
	term.send("sleep 0.5; echo a-one", enter, "echo b-two", enter, "echo c-three; (exit 4)", enter, "exit", enter)
	if status := term.wait(); status != 4 {
		t.Errorf("got status %d, want that of the last command, 4", status)
	}
	at := 0
	for _, want := range []string{"\na-one\n", "\nb-two\n", "\nc-three\n"} {
		i := strings.Index(term.text()[at:], want)
		if i < 0 {
			t.Fatalf("no %q behind the ones before it:\n%s", want, term.text())
		}
		at += i + 1
	}
}

// A full-screen program that was typed ahead has the keyboard (T6a).
func TestTypeAheadOfAFullScreenProgram(t *testing.T) {
	if _, err := exec.LookPath("less"); err != nil {
		t.Log("less is not on this machine")
		return
	}
	w := newWorld(t, "", nil)
	w.write(filepath.Join(w.project, "page.txt"), strings.Repeat("line\n", 200)+"the last line\n")
	term := w.open()
	term.see(prompt)
	term.send("sleep 0.5", enter, "less page.txt", enter)
	term.see(`^line$`)
	term.send("G")
	term.see(`^the last line$`)
	term.send("q")
	term.atPrompt()
	term.run("echo whole", "^whole$")
	term.send("exit", enter)
	if status := term.wait(); status != 0 {
		t.Errorf("got status %d", status)
	}
}
