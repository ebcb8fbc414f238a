package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// H3, H5: "always" shows what it would cover before it is taken, and the same command runs unasked from then on; a refusal
// with a comment reaches the model; a file that a tool would change is shown as a diff first, and stays as it was.
func TestAlwaysAndBecause(t *testing.T) {
	w := newWorld(t, "", script{
		{Match: "^remove", Steps: []step{{ToolCalls: []call{bash("rm -r old && touch ran")}}, {Text: "First done."}}},
		{Match: "^once more", Steps: []step{{ToolCalls: []call{bash("rm -r old && touch ran")}}, {Text: "Second done."}}},
		{Match: "^ship", Steps: []step{{ToolCalls: []call{bash("git push --force")}}, {Text: "Third done."}}},
		{Match: "^change", Steps: []step{
			{ToolCalls: []call{{"read", map[string]any{"path": "notes.txt"}}}},
			{ToolCalls: []call{{"edit", map[string]any{"path": "notes.txt", "old": "blue", "new": "green"}}}},
			{Text: "Fourth done."},
		}},
	})
	exists := func(path string) bool { _, err := os.Stat(filepath.Join(w.project, path)); return err == nil }
	w.write(filepath.Join(w.project, "old", "file"), "x")
	w.write(filepath.Join(w.project, "notes.txt"), "the sky is blue\n")
	term := w.openShell()

	term.ask("change the sky")
	term.see(`-.*the sky is blue`)
	term.see(`\+.*the sky is green`)
	term.answer(enter, func() bool { return term.sees(`Fourth done\.`) })
	if b, err := os.ReadFile(filepath.Join(w.project, "notes.txt")); err != nil || string(b) != "the sky is blue\n" {
		t.Errorf("a refused edit: %q, %v", b, err)
	}

	term.ask("remove old")
	term.see(`\[a\] always`)
	term.answer("a", func() bool { return term.sees(`(?i)from now on|this session|project`) && !term.sees(`\[a\] always`) })
	if exists("ran") {
		t.Fatal("it ran before the grant was taken")
	}
	term.answer(enter, func() bool { return term.sees(`allowed from now on`) }) // what is for good is to be read first
	term.see(`First done\.`)
	if exists("old") || !exists("ran") {
		t.Error("what was allowed did not run whole")
	}

	w.write(filepath.Join(w.project, "old", "file"), "x")
	term.ask("once more")
	term.see(`Second done\.`)
	if exists("old") {
		t.Error("what is always allowed did not run")
	}

	term.ask("ship it")
	term.see(`\[c\] no, because`)
	term.answer("c", func() bool { return !term.sees(`\[c\] no, because`) })
	term.send(ctrlU, "the branch is protected", enter)
	term.see(`Third done\.`)
	out, _, _ := w.sublet("session", "show", "--json", w.lastSession())
	told := false
	for line := range strings.Lines(out) {
		told = told || strings.Contains(line, `"kind":"CommandResult"`) && strings.Contains(line, "the branch is protected")
	}
	if !told {
		t.Error("the comment did not reach the model")
	}
}

// I5: who holds the shell longer than their time loses it: the command is gone and the shell is the user's.
func TestLeaseHeldTooLong(t *testing.T) {
	w := newWorld(t, "", nil)
	term := w.open()
	w.awaitWindows(1)
	_, errs, code := w.sublet("lease", "run", "--timeout", "500ms", "--", "trap '' TERM; sleep 4000")
	if code != 124 {
		t.Errorf("got exit %d, %q; want 124", code, errs)
	}
	w.await("the command to be gone", func() bool { return !strings.Contains(w.processes(), "sleep 4000") })
	w.await("the shell to be free", func() bool { return idle(w.status()) })
	term.run("echo mine", `^mine$`)
}

// What an agent's command changed in the shell can be accepted from another terminal, as it is shown there.
func TestAcceptFromAnotherTerminal(t *testing.T) {
	w := newWorld(t, "", script{{Match: "^change", Steps: []step{{ToolCalls: []call{bash(". ./x.sh")}}, {Text: "It is done."}}}})
	w.write(filepath.Join(w.project, "x.sh"), "export PAGER=/tmp/pager\n")
	term := w.openShell()
	term.ask("change it")
	term.see(`\[y\] yes`)
	term.answer("y", func() bool { return term.sees(`It is done\.`) })
	w.await("the change to be listed", func() bool {
		out, _, _ := w.sublet("policy", "suspects")
		return out == "PAGER\n"
	})
	for _, want := range []string{"accepted: PAGER\n", "nothing to accept\n"} {
		if out, errs, code := w.sublet("policy", "accept"); out != want || code != 0 {
			t.Errorf("got exit %d, %q and %q, want %q", code, out, errs, want)
		}
	}
}

// On a terminal ask asks. No is the default, and what was typed before the question stood there is no answer.
func TestAskAsksOnATerminal(t *testing.T) {
	w := newWorld(t, "", script{{Match: "make", Steps: []step{{ToolCalls: []call{bash("touch made")}}, {Text: "that was it"}}}})
	made := filepath.Join(w.project, "made")
	for _, c := range []struct {
		name, ahead, answer string
		status              int
		runs                bool
	}{
		{"no", "", "n" + enter, 3, false},
		{"Enter", "", enter, 3, false},
		{"yes typed ahead", "y" + enter + "yes" + enter, enter, 3, false},
		{"a comment", "", "use make clean" + enter, 3, false},
		{"interrupted", "", ctrlC, 130, false},
		{"yes", "", "y" + enter, 0, true},
	} {
		term := w.open("ask", "make", "it")
		term.send(c.ahead)
		term.see(`risk: (?s:.)*touch made(?s:.)*Allow this once\? \[y/N\]`)
		term.send(c.answer)
		if got := term.wait(); got != c.status {
			t.Errorf("%s: exit status: got %d, want %d; screen:\n%s", c.name, got, c.status, term.text())
		}
		if _, err := os.Stat(made); (err == nil) != c.runs {
			t.Errorf("%s: ran: got %v, want %v", c.name, err == nil, c.runs)
		}
	}
}
