package lender

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// The shell is not lent while what the user's last command made of it is still being looked at: the borrower would be judged
// by what was.
func TestNothingIsLentDuringALook(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		done := d.run("alias ls=rm", false)
		d.sh.looks = 10 * time.Millisecond
		d.sh.finish(0, shell.State{Dir: "/", Digest: "d1"})
		<-done
		synctest.Wait()
		d.acquire(1)
		d.take()
		time.Sleep(10 * time.Millisecond)
		sent := d.take("ShellState", "ShellLeaseAcquired")
		if a := sent[1].(*wire.ShellLeaseAcquired); a.State != "d1" {
			t.Errorf("lent in state %s, want d1", a.State)
		}
	})
}

// T3l: a command that comes before the user's last one was looked at is refused by what that changed, after it was told.
func TestALookComesBeforeACommand(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		d.take("ShellLeaseAcquired")
		late := &wire.ExecuteLeasedCommand{
			LeaseRef: ref(1), ExecutionID: "x1", Command: "ls", Cwd: "/home/u", Fingerprint: wire.Fingerprint("ls", "/home/u", "d0"),
		}
		d.l.mu.Lock() // the user's command has just ended
		d.sh.state = shell.State{Dir: "/home/u", Digest: "d1", Aliases: map[string]string{"ls": "rm"}}
		d.l.dirty = true
		d.l.executeLocked(late, false)
		d.l.mu.Unlock()
		sent := d.take("ShellState", "CommandCompleted")
		if done := sent[1].(*wire.CommandCompleted); done.Status != wire.StatusRefused || len(d.sh.ran()) != 0 {
			t.Errorf("got %s, ran %q, want it refused", done.Status, d.sh.ran())
		}
	})
}

// A lease that is to end once its command's change is told takes no other command meanwhile.
func TestALeaseThatEndsTakesNothing(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.looks = time.Millisecond
		d.begin(1, "x1", "make")
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
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

// A cancel ends the command that it names, not the one that happens to run, and its reason is told.
func TestCancelNamesItsCommand(t *testing.T) { // T2e
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "make")
		cancel := func(id string) {
			d.l.Handle(&wire.CancelLeasedCommand{LeaseRef: ref(1), ExecutionID: wire.ExecutionID(id), Reason: "stale"})
		}
		cancel("x0")
		d.take()
		cancel("x1")
		done := d.take("CommandCompleted")[0].(*wire.CommandCompleted)
		if want := []string{errLeaseOver.Error()}; done.Status != wire.StatusCancelled || !slices.Equal(done.Notes, want) {
			t.Errorf("got %s %q, want cancelled %q", done.Status, done.Notes, want)
		}
	})
}

// The user comes before a borrower that holds the shell and has not asked for a command yet: its lease goes back into the
// line, and what it asks for under that one is not run. `lease run` was refused for good.
func TestTheUserComesBeforeACommand(t *testing.T) { // T2d
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		d.take("ShellLeaseAcquired")
		done := d.run("vim", false)
		if r := d.take("ShellLeaseReleased")[0].(*wire.ShellLeaseReleased); r.Reason != wire.ReleasedUserFirst {
			t.Errorf("got %s, want %s", r.Reason, wire.ReleasedUserFirst)
		}
		if n := d.l.Lending(); n.Holder != "user" {
			t.Errorf("shown as lent to %q, want user", n.Holder)
		}
		d.execute(1, "x1", "ls") // was on its way
		if done := d.take("CommandCompleted")[0].(*wire.CommandCompleted); done.Status != wire.StatusRefused {
			t.Errorf("got %s, want it refused", done.Status)
		}
		again := &wire.AcquireShellLease{LeaseRef: ref(1), Agent: "agent-1"}
		again.Fence = 2
		d.l.Handle(again)
		d.take("ShellLeaseQueued")
		d.sh.finish(0, shell.State{Dir: "/", Digest: "d1"})
		<-done
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
		if ran := d.sh.ran(); !slices.Equal(ran, []string{"vim", "ls"}) {
			t.Errorf("ran %q", ran)
		}
	})
}

// The user has the shell while a borrower that holds it, and has run one command, has none: the screen says so.
func TestTheUserIsShownFirst(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		d.execute(1, "x1", "ls")
		synctest.Wait()
		d.sh.finish(0, shell.State{})
		synctest.Wait()
		if n := d.l.Lending(); n.Holder != "" && n.Holder != "agent-1" {
			t.Errorf("shown as lent to %q", n.Holder)
		}
		done := d.run("vim", false)
		if n := d.l.Lending(); n.Holder != "user" {
			t.Errorf("shown as lent to %q, want user", n.Holder)
		}
		d.sh.finish(0, shell.State{})
		<-done
		synctest.Wait()
		if n := d.l.Lending(); n.Holder != "agent-1" {
			t.Errorf("shown as lent to %q, want agent-1", n.Holder)
		}
	})
}

// The user takes the shell back while the link is down: when it is back, the daemon, which still waits for the command,
// is told its end and why the lease is over.
func TestTakenBackWithoutALink(t *testing.T) { // T2c
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
		sent := d.take("CommandCompleted", "ShellLeaseReleased", "ShellState")
		if r := sent[1].(*wire.ShellLeaseReleased); r.Reason != wire.ReleasedByUser {
			t.Errorf("got %s, want %s", r.Reason, wire.ReleasedByUser)
		}
	})
}
