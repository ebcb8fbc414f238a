package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A store that cannot be written ends the turn in words, for `ask` and for the window, which used to wait for ever; once it
// can be written again both go on.
func TestStoreThatCannotBeWritten(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	w := newWorld(t, "", script{
		{Match: "hello", Steps: []step{{Text: "hello to you"}}},
		{Match: "wait", Steps: []step{{WaitFile: gate, Text: "waited"}}},
	})
	term := w.openShell()
	term.ask("wait for me")
	w.await("the turn", func() bool { return w.status()["turns"] == float64(1) })
	db := filepath.Join(w.state, "sublet.db")
	if err := os.Rename(db, db+".away"); err != nil {
		t.Fatal(err)
	}
	w.write(gate, "")
	term.see("the session cannot be written")
	w.await("the turn to be over", func() bool { return idle(w.status()) })
	if out, errs, status := w.sublet("ask", "hello"); status != 1 || out != "" || !strings.Contains(errs, "removed or replaced") {
		t.Errorf("ask: exit %d, %q, %q", status, out, errs)
	}
	_ = os.Remove(db) // a connection to the store may have made a new one meanwhile
	if err := os.Rename(db+".away", db); err != nil {
		t.Fatal(err)
	}
	term.ask("hello")
	term.see("hello to you")
	if out, errs, status := w.sublet("ask", "hello"); status != 0 || !strings.Contains(out, "hello to you") {
		t.Errorf("mended: exit %d, %q, %q", status, out, errs)
	}
}
