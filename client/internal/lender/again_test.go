package lender

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// What is asked for twice is answered twice, done once: an offer, a command, before and after its end.
func TestAskedTwice(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.types("vim\n")
		d.queued(1)
		d.acquire(1)
		d.take("ShellLeaseQueued")
		d.sh.ends(shell.State{})
		d.take("ShellLeaseAcquired")
		d.acquire(1)
		d.take("ShellLeaseAcquired")
		exec := d.execute(1, "x1", "make")
		d.take("CommandStarted")
		d.l.Handle(exec)
		d.take() // it runs: its end is the answer
		d.sh.finish(3, shell.State{})
		want := d.take("CommandCompleted")[0]
		again := func() {
			t.Helper()
			d.l.Handle(exec)
			if got := d.take("CommandCompleted")[0]; got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		again()
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
		again()
		d.acquire(2)
		d.release(2, "completed")
		d.take("ShellLeaseAcquired", "ShellLeaseReleased")
		d.execute(1, "x2", "make install")
		if c := d.take("CommandCompleted")[0].(*wire.CommandCompleted); c.Status != wire.StatusRefused {
			t.Errorf("another command of a lease that is over: %s", c.Status)
		}
		if ran := d.sh.ran(); !slices.Equal(ran, []string{"vim", "make"}) {
			t.Errorf("ran %q", ran)
		}
	})
}

// A command that was asked for before another ran does not run again.
func TestAskedAgainAfterAnother(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		d.take("ShellLeaseAcquired")
		run := func(id, text string) *wire.ExecuteLeasedCommand {
			m := d.execute(1, id, text)
			d.take("CommandStarted")
			d.sh.finish(0, shell.State{})
			d.take("CommandCompleted")
			return m
		}
		first := run("x1", "make")
		run("x2", "make check")
		d.l.Handle(first)
		if done := d.take("CommandCompleted")[0].(*wire.CommandCompleted); done.Status != wire.StatusRefused || len(d.sh.ran()) != 2 {
			t.Errorf("got %s, ran %q, want it refused", done.Status, d.sh.ran())
		}
	})
}

// A message counts for the lease and the command that it names, and no other, whoever waits or has the shell.
func TestMessagesOfOtherLeases(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.types("vim\n")
		d.queued(2)
		d.release(1, "cancelled")
		d.take("ShellLeaseReleased")
		d.sh.ends(shell.State{})
		d.take("ShellLeaseAcquired") // it still waited
		d.release(1, "cancelled")
		d.take("ShellLeaseReleased")
		d.l.Handle(&wire.ExecuteLeasedCommand{LeaseRef: wire.LeaseRef{LeaseID: "lease-2", Fence: 1}, ExecutionID: "x1"})
		d.take("CommandCompleted")
		d.execute(2, "x1", "make") // refused before under another fence: not asked for yet
		d.take("CommandStarted")
		cancel := func(lease int, id string) {
			d.l.Handle(&wire.CancelLeasedCommand{LeaseRef: ref(lease), ExecutionID: wire.ExecutionID(id)})
		}
		cancel(1, "x1")
		cancel(2, "x0")
		d.take()
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		cancel(2, "x0")
		d.take()
		d.release(2, "completed")
		d.take("ShellLeaseReleased")
	})
}

// Why a lease is over is told as it was, also where the daemon's release crosses that.
func TestWhyALeaseIsOver(t *testing.T) {
	for asked, want := range map[string]string{
		"completed": wire.ReleasedReleased, "cancelled": wire.ReleasedReleased, "expired": wire.ReleasedExpired, "disconnected": wire.ReleasedDisconnected,
	} {
		atDesk(t, func(t *testing.T, d *desk) {
			d.acquire(1)
			d.take("ShellLeaseAcquired")
			over := func(want string) {
				t.Helper()
				if got := d.take("ShellLeaseReleased")[0].(*wire.ShellLeaseReleased); got.Reason != want {
					t.Errorf("%s: got %s, want %s", asked, got.Reason, want)
				}
			}
			d.release(1, asked)
			over(want)
			d.release(1, "completed")
			over(want)
			d.acquire(2)
			d.take("ShellLeaseAcquired")
			d.l.TakeBack()
			over(wire.ReleasedByUser)
			d.release(2, asked)
			over(wire.ReleasedByUser)

			d.acquire(3)
			d.take("ShellLeaseAcquired")
			d.sh.types("vim\n")
			over(wire.ReleasedUserFirst)
			d.l.Handle(&wire.ReleaseShellLease{LeaseRef: wire.LeaseRef{LeaseID: ref(3).LeaseID, Fence: 4}, Reason: asked}) // the same, lent anew
			over(want)
		})
	}
}

// Who waits behind a borrower's command that is being ended is told whose it is.
func TestWhoIsWaitedFor(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.dies = 2 * time.Second
		d.begin(1, "x1", "make")
		d.release(1, "cancelled")
		time.Sleep(time.Second)
		d.acquire(2)
		if q := d.take("ShellLeaseQueued")[0].(*wire.ShellLeaseQueued); q.Holder != "agent-1" || q.HeldMS != 1000 {
			t.Errorf("got %+v, want agent-1 for 1 s", q)
		}
		if n := d.l.Lending(); n.Holder != "agent-1" || n.Waiting != "agent-2" {
			t.Errorf("shown as %+v, want agent-2 to wait", n)
		}
		time.Sleep(time.Second)
		d.take("CommandCompleted", "ShellLeaseReleased", "ShellLeaseAcquired")
	})
}

// The last lease that is over is remembered for messages that come late.
func TestTheLastLeaseIsRemembered(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		for n := range 3 {
			d.acquire(n + 1)
			d.release(n+1, "completed")
			d.take("ShellLeaseAcquired", "ShellLeaseReleased")
		}
		var s wire.EnvSnapshot
		d.l.Snapshot(&s)
		if len(s.Leases) != 1 || s.Leases[0].LeaseID != ref(3).LeaseID {
			t.Errorf("got %+v, want the third", s.Leases)
		}
	})
}

// A fence is good for wire.LeaseGrace from each loss of the link, however often it is lost or told to be.
func TestEachLossHasItsGrace(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		held := wire.HeldLease{LeaseID: "lease-1", Fence: 1, ExecutionID: "x1"}
		d.begin(1, "x1", "make")
		d.drop()
		time.Sleep(wire.LeaseGrace / 2)
		d.up(held)
		time.Sleep(wire.LeaseGrace / 4)
		d.drop()
		time.Sleep(wire.LeaseGrace / 2)
		d.drop()
		time.Sleep(wire.LeaseGrace/2 - time.Millisecond)
		if synctest.Wait(); !d.sh.runs() {
			t.Error("given up before its grace")
		}
		time.Sleep(time.Millisecond)
		if synctest.Wait(); d.sh.runs() {
			t.Error("not given up")
		}
		d.up()
		d.acquire(2)
		d.take("ShellState", "ShellLeaseAcquired")
		d.drop()
		time.Sleep(wire.LeaseGrace)
		d.take() // the screen knows, too
	})
}

// Both sides name what they believe in: the running command; what the daemon does not name is over, also on the screen, and
// what it offered before the lease that it does name.
func TestWhatBothSidesName(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(5, "x1", "make")
		d.acquire(6)
		d.take("ShellLeaseQueued", "CommandCompleted", "ShellLeaseReleased", "ShellLeaseAcquired")
		d.drop()
		d.up()
		d.take("ShellLeaseReleased")
		held := wire.HeldLease{LeaseID: "lease-8", Fence: 8, ExecutionID: "x2"}
		d.acquire(8)
		d.execute(8, "x2", "make")
		d.take("ShellState", "ShellLeaseAcquired", "CommandStarted")
		var s wire.EnvSnapshot
		if d.l.Snapshot(&s); s.Leases[len(s.Leases)-1] != held {
			t.Errorf("named %+v, want %+v last", s.Leases, held)
		}
		d.drop()
		d.up(held)
		d.acquire(3)
		d.take("ShellLeaseReleased")
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		d.release(8, "completed")
		d.take("ShellLeaseReleased")

		d.sh.types("vim\n")
		d.queued(9)
		d.drop() // nobody waits any more
		d.take()
		d.sh.ends(shell.State{})
		d.up()
		d.take()
	})
}

// A lease that is released while its command is about to be refused is over with it.
func TestReleasedAsItIsRefused(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		d.take("ShellLeaseAcquired")
		d.sh.looks = time.Second
		d.sh.set(func() { d.sh.stale = true })
		d.l.Handle(&wire.ExecuteLeasedCommand{LeaseRef: ref(1), ExecutionID: "x1", Command: "ls"})
		d.take()
		d.release(1, "completed")
		d.take("CommandCompleted", "ShellLeaseReleased")
	})
}

// A daemon that names the lease under another fence, or with another command, means another one.
func TestAnotherFenceIsAnotherLease(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "make")
		d.drop()
		d.up(wire.HeldLease{LeaseID: "lease-1", Fence: 9, ExecutionID: "x1"})
		sent := d.take("ShellLeaseReleased", "CommandCompleted", "ShellLeaseReleased")
		for i, fence := range map[int]uint64{0: 9, 2: 1} {
			if r := sent[i].(*wire.ShellLeaseReleased); r.Fence != fence {
				t.Errorf("message %d is of fence %d, want %d", i, r.Fence, fence)
			}
		}
		d.execute(1, "x2", "ls")
		d.take("CommandCompleted") // refused

		d.acquire(11)
		d.execute(11, "x3", "ls")
		d.take("ShellState", "ShellLeaseAcquired", "CommandStarted")
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		d.drop()
		d.up(wire.HeldLease{LeaseID: "lease-11", Fence: 11, ExecutionID: "x4"})
		d.take() // not the end of x3, which nobody waits for
	})
}

// Close reports the end of the command that it cancels, refuses later leases, and shows no waiting lease.
func TestCloseReportsTheCommandsEnd(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.dies = time.Second
		d.begin(1, "x1", "cd /tmp")
		d.sh.becomes(shell.State{Dir: "/tmp", Digest: "d1"})
		d.l.mu.Lock() // an offer that comes just before
		d.l.waiting = &wire.AcquireShellLease{LeaseRef: ref(2)}
		d.l.mu.Unlock()
		begun := time.Now()
		d.l.Close()
		if took := time.Since(begun); took != time.Second {
			t.Errorf("closed after %v, want 1 s, when the command has ended", took)
		}
		sent := d.take("ShellLeaseDenied", "CommandCompleted", "ShellLeaseReleased")
		if c := sent[1].(*wire.CommandCompleted); !slices.Equal(c.Notes, []string{errClosing.Error()}) {
			t.Errorf("got notes %q", c.Notes)
		}
		d.acquire(3)
		if m := d.take("ShellLeaseDenied")[0].(*wire.ShellLeaseDenied); m.Reason != wire.DeniedShuttingDown {
			t.Errorf("got %s", m.Reason)
		}
		if n := d.l.Lending(); n.Waiting != "" {
			t.Errorf("shown as waiting: %q", n.Waiting)
		}
		if _, _, err := d.l.UndoShell(t.Context(), false); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

// A second command under a lease, given up while it waits for the user, has not run.
func TestGivenUpBeforeTheShellIsFree(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "make")
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		d.sh.types("half a line")
		d.execute(1, "x2", "make install")
		synctest.Wait()
		d.release(1, "cancelled")
		sent := d.take("CommandCompleted", "ShellLeaseReleased")
		if c := sent[0].(*wire.CommandCompleted); c.Status != wire.StatusCancelled {
			t.Errorf("got %s, want cancelled", c.Status)
		}
		if ran := d.sh.ran(); !slices.Equal(ran, []string{"make"}) {
			t.Errorf("ran %q", ran)
		}
		d.acquire(2)
		time.Sleep(patience)
		d.take("ShellLeaseQueued", "ShellLeaseAcquired")
	})
}
