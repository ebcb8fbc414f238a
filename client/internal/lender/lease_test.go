package lender

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// Rows I1 to I7 and M7 of docs/conformance.md.
func TestLeaseFromAcquireToRelease(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		got := d.take("ShellLeaseAcquired")[0].(*wire.ShellLeaseAcquired)
		if got.Cwd != "/home/u" || got.State != "d0" || got.Fence != 1 {
			t.Errorf("got %+v, want cwd /home/u, state d0, fence 1", got)
		}
		d.execute(1, "x1", "make")
		d.take("CommandStarted")
		d.sh.print("hello ")
		synctest.Wait()
		d.sh.print("world")
		live := d.take("CommandOutput", "CommandOutput")
		if o := live[1].(*wire.CommandOutput); o.Offset != 6 || string(o.Data) != "world" {
			t.Errorf("got output at %d %q, want at 6 world", o.Offset, o.Data)
		}
		changed := shell.State{Dir: "/home/u/src", Digest: "d1", Vars: map[string]string{"HOME": "/home/u", "FOO": "1", "API_TOKEN": "hush"}}
		d.sh.finish(3, changed)
		sent := d.take("CommandCompleted", "ShellState") // the result first: the comparison costs it no latency
		done := sent[0].(*wire.CommandCompleted)
		if *done.ExitCode != 3 || done.Cwd != "/home/u/src" || string(done.Output) != "out" || done.ExecutionID != "x1" {
			t.Errorf("got %+v, want exit 3 in /home/u/src", done)
		}
		state := sent[1].(*wire.ShellState)
		if state.Digest != "d1" || state.Env.Set["FOO"] != "1" || len(state.Env.Set) != 1 {
			t.Errorf("got %+v, want digest d1 and FOO set", state)
		}
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
		d.release(1, "completed")
		d.take("ShellLeaseReleased") // idempotent
		if n := d.l.Lending(); n.Holder != "" {
			t.Errorf("got holder %q, want none", n.Holder)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		ended := latest[LeasedEnded](d)
		if ended == nil || ended.Changed != "moved to ~/src, set FOO" {
			t.Errorf("got end %+v, want: moved to ~/src, set FOO", ended)
		}
	})
}

func TestNothingIsLentWhileTheUserRuns(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.types("vim\n")
		time.Sleep(2 * time.Second)
		if q := d.queued(1); q.Holder != "user" || q.HeldMS != 2050 || q.Why != "vim is running" {
			t.Errorf("got %+v, want holder user for 2050 ms, who runs vim", q)
		}
		d.sh.ends(shell.State{})
		d.take("ShellLeaseAcquired")
	})
}

// After the user's command the daemon learns the new state before it gets the shell, so that it judges by what is there.
func TestStateIsToldBeforeTheShellIsLent(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.types("alias ls=rm\n")
		d.queued(1)
		d.sh.ends(shell.State{Dir: "/", Digest: "d1", Aliases: map[string]string{"ls": "rm"}})
		sent := d.take("ShellState", "ShellLeaseAcquired")
		if a := sent[1].(*wire.ShellLeaseAcquired); a.State != "d1" || a.Cwd != "/" {
			t.Errorf("got %+v, want state d1 in /", a)
		}
		if s := sent[0].(*wire.ShellState); s.Aliases["ls"] != "rm" {
			t.Errorf("got aliases %v, want ls=rm", s.Aliases)
		}
	})
}

func TestReleaseOfAQueuedLeaseLeavesNoGhost(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.types("vim\n")
		d.queued(1)
		d.release(1, "cancelled")
		d.take("ShellLeaseReleased")
		d.sh.ends(shell.State{})
		d.take()
		d.release(7, "cancelled") // never heard of: answered all the same
		d.take("ShellLeaseReleased")
		d.acquire(7) // and over when it comes
		d.take("ShellLeaseReleased")
		d.acquire(8)
		d.take("ShellLeaseAcquired")
		d.acquire(1) // late, with an old fence
		d.take("ShellLeaseReleased")
		if n := d.l.Lending(); n.Holder != "agent-8" {
			t.Errorf("got holder %q, want agent-8", n.Holder)
		}
	})
}

// What the daemon offered before is over when it offers to the next, though nothing has said so; it is not lent later,
// under a fence that has gone down.
func TestOlderOffersAreOver(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.types("vim\n")
		d.queued(1)
		d.acquire(3)
		over := d.take("ShellLeaseReleased", "ShellLeaseQueued")[0].(*wire.ShellLeaseReleased)
		if over.LeaseRef != ref(1) {
			t.Errorf("got %+v told as over, want %+v", over.LeaseRef, ref(1))
		}
		d.acquire(2)
		d.take("ShellLeaseReleased")
		d.sh.ends(shell.State{})
		if got := d.take("ShellLeaseAcquired")[0].(*wire.ShellLeaseAcquired); got.LeaseRef != ref(3) {
			t.Errorf("lent %+v, want %+v", got.LeaseRef, ref(3))
		}
		d.release(3, "completed")
		d.take("ShellLeaseReleased")
	})
}

// Rows I8, I11 and M7 of docs/conformance.md.
func TestCancelEndsTheCommandItself(t *testing.T) {
	for reason, want := range map[string]*wire.CommandCompleted{
		"timeout": {Status: wire.StatusTimeout, Notes: []string{}},
		"stale":   {Status: wire.StatusCancelled, Notes: []string{errLeaseOver.Error()}},
	} {
		atDesk(t, func(t *testing.T, d *desk) {
			d.sh.dies = 3 * time.Second
			d.begin(1, "x1", "sleep 1000")
			began := time.Now()
			cancel := &wire.CancelLeasedCommand{LeaseRef: ref(1), ExecutionID: "x1", Reason: reason}
			d.l.Handle(cancel)
			d.l.Handle(cancel)
			d.take() // no CommandCompleted yet: the command still runs
			time.Sleep(3 * time.Second)
			done := d.take("CommandCompleted")[0].(*wire.CommandCompleted)
			if done.Status != want.Status || !slices.Equal(done.Notes, want.Notes) || time.Since(began) != 3*time.Second {
				t.Errorf("%s: got %s %q after %v, want %s %q after 3s", reason, done.Status, done.Notes, time.Since(began), want.Status, want.Notes)
			}
			d.l.Handle(cancel)
			d.take("CommandCompleted") // it had ended: the same end again, not another
		})
	}
}

func TestUserTakesTheShellBack(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.dies = time.Second
		d.begin(1, "x1", "sleep 1000")
		d.sh.types("ls\n") // typed ahead
		d.l.TakeBack()
		d.acquire(2) // the next agent does not slip in
		time.Sleep(time.Second)
		sent := d.take("ShellLeaseQueued", "CommandCompleted", "ShellLeaseReleased")
		if c := sent[1].(*wire.CommandCompleted); c.Status != wire.StatusCancelled || !slices.Contains(c.Notes, errTakenBack.Error()) {
			t.Errorf("got %s %v, want cancelled, taken back by the user", c.Status, c.Notes)
		}
		if r := sent[2].(*wire.ShellLeaseReleased); r.Reason != wire.ReleasedByUser || r.Fence != 1 {
			t.Errorf("got %+v, want fence 1 revoked_by_user", r)
		}
		if got := d.sh.ran(); !slices.Equal(got, []string{"sleep 1000", "ls"}) {
			t.Errorf("got %v run, want sleep, ls", got)
		}
		time.Sleep(queuedAfter)
		d.take("ShellLeaseQueued")
		d.sh.ends(shell.State{})
		d.take("ShellLeaseAcquired")
	})
}

func TestWhatIsRefused(t *testing.T) {
	refused := func(t *testing.T, d *desk, why string) {
		t.Helper()
		done := d.take("CommandCompleted")[0].(*wire.CommandCompleted)
		if done.Status != wire.StatusRefused || len(done.Notes) != 1 || !strings.Contains(done.Notes[0], why) {
			t.Errorf("got %s %v, want refused: %s", done.Status, done.Notes, why)
		}
		if got := d.sh.ran(); slices.Contains(got, "rm -rf x") {
			t.Error("a refused command ran")
		}
	}
	used := func(d *desk) { // a lease that has run a command; one that has not goes back into the line
		d.acquire(1)
		d.execute(1, "x0", "ls")
		synctest.Wait()
		d.sh.finish(0, shell.State{})
		d.take("ShellLeaseAcquired", "CommandStarted", "CommandCompleted")
	}
	tests := []struct {
		name, why string
		do        func(d *desk)
	}{
		{"no lease", "the lease is over", func(d *desk) { d.execute(1, "x", "rm -rf x") }},
		{"older fence", "the lease is over", func(d *desk) {
			d.acquire(1)
			d.acquire(2)
			d.take("ShellLeaseAcquired", "ShellLeaseReleased", "ShellLeaseAcquired")
			d.execute(1, "x", "rm -rf x")
		}},
		{"fence of another lease", "the lease is over", func(d *desk) {
			d.acquire(1)
			d.take("ShellLeaseAcquired")
			d.l.Handle(&wire.ExecuteLeasedCommand{LeaseRef: wire.LeaseRef{LeaseID: "lease-1", Fence: 9}, Command: "rm -rf x", Cwd: "/home/u", Fingerprint: wire.Fingerprint("rm -rf x", "/home/u", "d0")})
		}},
		{"changed text", "changed since", func(d *desk) {
			d.acquire(1)
			d.take("ShellLeaseAcquired")
			d.l.Handle(&wire.ExecuteLeasedCommand{LeaseRef: ref(1), Command: "rm -rf x", Cwd: "/home/u", Fingerprint: wire.Fingerprint("ls", "/home/u", "d0")})
		}},
		{"no fingerprint", "changed since", func(d *desk) {
			d.acquire(1)
			d.take("ShellLeaseAcquired")
			d.l.Handle(&wire.ExecuteLeasedCommand{LeaseRef: ref(1), Command: "rm -rf x"})
		}},
		{"changed shell", "changed since", func(d *desk) {
			used(d)
			print := wire.Fingerprint("rm -rf x", "/home/u", "d0")
			d.runs("cd /tmp", shell.State{Dir: "/tmp", Digest: "d1"})
			d.l.Handle(&wire.ExecuteLeasedCommand{LeaseRef: ref(1), Command: "rm -rf x", Cwd: "/home/u", Fingerprint: print})
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			d.sent = d.sent[1:] // the ShellState
		}},
		{"user is running", "the user is running", func(d *desk) {
			used(d)
			d.sh.types("vim\n")
			d.execute(1, "x", "rm -rf x")
		}},
		{"a second one at once", "another command", func(d *desk) {
			d.begin(1, "x1", "sleep 9")
			d.execute(1, "x2", "rm -rf x")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := open(t)
				defer d.close()
				tt.do(d)
				refused(t, d, tt.why)
			})
		})
	}
}
