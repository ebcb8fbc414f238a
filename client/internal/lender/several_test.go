package lender

import (
	"strings"
	"testing"

	"sublet/wire"
)

// A lease over several commands, in a real bash: each begins where the one before left the shell, the daemon is told that
// state first, a command that was judged by an older one is refused and costs the lease nothing, and nobody else gets the
// shell in between.
func TestSeveralCommandsUnderOneLease(t *testing.T) {
	b := openBash(t)
	b.lend(1)
	home := b.sh.Dir()
	for i, c := range []struct{ text, out, dir string }{
		{"mkdir -p sub && cd sub && export WHERE=here", "", home + "/sub"},
		{"echo $WHERE; f() { echo in f; }", "here\n", home + "/sub"},
		{"f; unset WHERE; cd ..", "in f\n", home},
		{"echo ${WHERE-gone}; false", "gone\n", home},
	} {
		id := string(rune('a' + i))
		judged := b.sh.Digest()
		b.execute(1, id, c.text)
		done := b.completed()
		if done.Fence != 1 || string(done.ExecutionID) != id || string(done.Output) != c.out || string(done.Cwd) != c.dir {
			t.Fatalf("%q: got %+v, want %q in %s under lease 1", c.text, done, c.out, c.dir)
		}
		if i < 3 {
			told := b.await("ShellState").(*wire.ShellState)
			if told.Digest == judged {
				t.Errorf("%q: the state told is that of before", c.text)
			}
			// What was judged before that does not run.
			b.l.Handle(&wire.ExecuteLeasedCommand{
				LeaseRef: ref(1), ExecutionID: wire.ExecutionID(id + "late"), Command: "echo late", Cwd: done.Cwd,
				Fingerprint: wire.Fingerprint("echo late", done.Cwd, judged),
			})
			if late := b.completed(); late.Status != wire.StatusRefused || !strings.Contains(strings.Join(late.Notes, " "), "changed") {
				t.Errorf("judged by an old state: got %+v, want refused", late)
			}
		}
		if n := b.l.Lending(); n.Holder == "" || n.Holder == "user" {
			t.Fatalf("after %q the shell is lent to %+v, want lease 1", c.text, n)
		}
	}
	b.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref(1), Reason: "completed"})
	b.await("ShellLeaseReleased")
	if n := b.l.Lending(); n.Holder != "" {
		t.Errorf("after its release the shell is lent to %q", n.Holder)
	}
}
