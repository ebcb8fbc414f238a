package lender

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// A lease that is to end once its command's end is shown takes no other command meanwhile.
func TestALeaseThatEndsTakesNothing(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.slow = time.Millisecond
		d.begin(1, "x1", "make")
		d.sh.finish(0, shell.State{Dir: "/home/u", Digest: "d1"})
		d.take("CommandCompleted", "ShellState")
		d.release(1, "completed")
		d.execute(1, "x2", "make install")
		if done := d.take("CommandCompleted")[0].(*wire.CommandCompleted); done.Status != wire.StatusRefused {
			t.Errorf("got %s, want it refused", done.Status)
		}
		time.Sleep(time.Millisecond)
		d.take("ShellLeaseReleased")
		if ran := d.sh.ran(); !slices.Equal(ran, []string{"make"}) {
			t.Errorf("ran %q", ran)
		}
	})
}

// The user comes before a borrower that holds the shell and has not asked for a command yet, with the first key: its lease
// goes back into the line, and what it asks for under that one is not run.
func TestTheUserComesBeforeACommand(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		d.take("ShellLeaseAcquired")
		d.sh.types("vi")
		if r := d.take("ShellLeaseReleased")[0].(*wire.ShellLeaseReleased); r.Reason != wire.ReleasedUserFirst {
			t.Errorf("got %s, want %s", r.Reason, wire.ReleasedUserFirst)
		}
		d.execute(1, "x1", "ls") // was on its way
		if done := d.take("CommandCompleted")[0].(*wire.CommandCompleted); done.Status != wire.StatusRefused {
			t.Errorf("got %s, want it refused", done.Status)
		}
		again := &wire.AcquireShellLease{LeaseRef: ref(1), Agent: "agent-1"}
		again.Fence = 2
		d.l.Handle(again)
		time.Sleep(queuedAfter)
		if q := d.take("ShellLeaseQueued")[0].(*wire.ShellLeaseQueued); q.Why != "the user is typing" || q.Holder != "user" {
			t.Errorf("got %+v, want that the user is typing", q)
		}
		d.sh.types("vi\n")
		if q := d.take("ShellLeaseQueued")[0].(*wire.ShellLeaseQueued); q.Why != "vi is running" {
			t.Errorf("got %+v, want that vi is running", q)
		}
		d.sh.ends(shell.State{Dir: "/", Digest: "d1"})
		d.take("ShellState", "ShellLeaseAcquired")
		d.l.Handle(&wire.ExecuteLeasedCommand{
			LeaseRef: again.LeaseRef, ExecutionID: "x1", Command: "ls", Cwd: "/", Fingerprint: wire.Fingerprint("ls", "/", "d1"),
		})
		d.take("CommandStarted")
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		d.l.Handle(&wire.ReleaseShellLease{LeaseRef: again.LeaseRef, Reason: "completed"})
		if r := d.take("ShellLeaseReleased")[0].(*wire.ShellLeaseReleased); r.Reason != wire.ReleasedReleased {
			t.Errorf("got %s, want %s", r.Reason, wire.ReleasedReleased)
		}
		if ran := d.sh.ran(); !slices.Equal(ran, []string{"vi", "ls"}) {
			t.Errorf("ran %q", ran)
		}
	})
}

// The user has the shell while a borrower that holds it, and has run one command, has none: the screen shows that.
func TestTheUserIsShownFirst(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "ls")
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		for _, step := range []struct {
			do   func()
			want string
		}{
			{func() {}, "agent-1"},
			{func() { d.sh.types("vim\n") }, "user"},
			{func() { d.sh.ends(shell.State{}) }, "agent-1"},
		} {
			step.do()
			if synctest.Wait(); d.l.Lending().Holder != step.want {
				t.Errorf("shown as lent to %q, want %s", d.l.Lending().Holder, step.want)
			}
		}
	})
}

// The user takes the shell back while the link is down: when it is back, the daemon, which still waits for the command,
// is told its end and why the lease is over.
func TestTakenBackWithoutALink(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "make")
		d.drop()
		d.l.TakeBack()
		synctest.Wait()
		held := wire.HeldLease{LeaseID: "lease-1", Fence: 1, ExecutionID: "x1"}
		var s wire.EnvSnapshot
		d.l.Snapshot(&s)
		if !slices.Equal(s.Leases, []wire.HeldLease{held}) {
			t.Errorf("got leases %+v, want %+v", s.Leases, held)
		}
		d.up(held)
		sent := d.take("CommandCompleted", "ShellLeaseReleased")
		if r := sent[1].(*wire.ShellLeaseReleased); r.Reason != wire.ReleasedByUser {
			t.Errorf("got %s, want %s", r.Reason, wire.ReleasedByUser)
		}
	})
}
