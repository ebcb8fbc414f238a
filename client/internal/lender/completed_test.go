package lender

import (
	"testing"
	"time"

	"sublet/wire"
)

// Completing behind a command loads what completes its words into the shell, functions of which the next borrower knows
// nothing.
func TestWhatCompletionLoadsIsNobodysChange(t *testing.T) {
	b := openBash(t)
	b.lend(1)
	b.execute(1, "a", `load() { eval "_of_$1() { COMPREPLY=(word); }"; complete -F "_of_$1" "$1"; return 124; }; complete -D -F load`)
	b.completed()
	b.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref(1), Reason: "completed"})
	b.await("ShellLeaseReleased")
	for end := time.Now().Add(20 * time.Second); ; { // it is given up after 500 ms, which a busy machine may need
		_, cs, err := b.l.Complete(t.Context(), "tool w", 6)
		if err != nil {
			t.Fatal(err)
		}
		if len(cs) > 0 || time.Now().After(end) {
			break
		}
	}
	b.lend(2)
	b.execute(2, "b", "declare -F _of_tool")
	if done := b.completed(); string(done.Output) != "_of_tool\n" {
		t.Fatalf("nothing was loaded: %+v", done)
	}
	if changed := b.changedBy("b"); changed != "" {
		t.Errorf("told as the borrower's: %s", changed)
	}
}
