package lender

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// What is asked for twice is answered twice, done once: an offer, a command, before and after its end.
func TestAskedTwice(t *testing.T) { // T2e
	atDesk(t, func(t *testing.T, d *desk) {
		done := d.run("vim", false)
		d.acquire(1)
		d.acquire(1)
		d.take("ShellLeaseQueued", "ShellLeaseQueued")
		d.sh.finish(0, shell.State{})
		<-done
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
		d.acquire(2)
		d.release(2, "completed")
		d.take("ShellLeaseAcquired", "ShellLeaseReleased")
		again()
		d.execute(1, "x2", "make install")
		if c := d.take("CommandCompleted")[0].(*wire.CommandCompleted); c.Status != wire.StatusRefused {
			t.Errorf("another command of a lease that is over: %s", c.Status)
		}
		if ran := d.sh.ran(); !slices.Equal(ran, []string{"vim", "make"}) {
			t.Errorf("ran %q", ran)
		}
	})
}

// A message counts for the lease and the command that it names, and no other, whoever waits or has the shell.
func TestMessagesOfOtherLeases(t *testing.T) { // T2e
	atDesk(t, func(t *testing.T, d *desk) {
		done := d.run("vim", false)
		d.acquire(2)
		d.release(1, "cancelled")
		d.take("ShellLeaseQueued", "ShellLeaseReleased")
		d.sh.finish(0, shell.State{})
		<-done
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
			d.acquire(2)
			d.take("ShellLeaseAcquired")
			d.l.TakeBack()
			over(wire.ReleasedByUser)
			d.release(2, asked)
			over(wire.ReleasedByUser)
			d.release(1, "completed")
			over(want)

			d.acquire(3)
			d.take("ShellLeaseAcquired")
			done := d.run("vim", false)
			if _, err := d.l.Run(t.Context(), "ls", false, nil); !errors.Is(err, ErrBusy) {
				t.Errorf("a second command of the user's: %v", err)
			}
			over(wire.ReleasedUserFirst)
			d.l.Handle(&wire.ReleaseShellLease{LeaseRef: wire.LeaseRef{LeaseID: ref(3).LeaseID, Fence: 4}, Reason: asked}) // the same, lent anew
			over(want)
			d.sh.finish(0, shell.State{})
			<-done
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
		if n := d.l.Lending(); n.Holder != "agent-1" || !slices.Equal(n.Waiting, []string{"agent-2"}) {
			t.Errorf("shown as %+v, want agent-2 to wait", n)
		}
		time.Sleep(time.Second)
		d.take("CommandCompleted", "ShellLeaseReleased", "ShellLeaseAcquired")
	})
}

// Leases that are over are remembered for messages that come late, the last ones.
func TestLeasesThatAreRemembered(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		const all = endedKept + 3
		for n := range all {
			d.acquire(n + 1)
			d.release(n+1, "completed")
			d.take("ShellLeaseAcquired", "ShellLeaseReleased")
		}
		var s wire.EnvSnapshot
		d.l.Snapshot(&s)
		if len(s.Leases) != endedKept || s.Leases[0].LeaseID != ref(all-endedKept+1).LeaseID || s.Leases[endedKept-1].LeaseID != ref(all).LeaseID {
			t.Errorf("got %d leases, %+v", len(s.Leases), s.Leases)
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
		if synctest.Wait(); !d.sh.runs("make") {
			t.Error("given up before its grace")
		}
		time.Sleep(time.Millisecond)
		if synctest.Wait(); d.sh.runs("make") {
			t.Error("not given up")
		}
		d.up()
		d.take("ShellState")
		d.acquire(2)
		d.take("ShellLeaseAcquired")
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
		d.take("ShellLeaseReleased", "ShellState")
		d.acquire(7)
		d.drop()
		d.up()
		d.take("ShellLeaseAcquired", "ShellLeaseReleased", "ShellState")
		held := wire.HeldLease{LeaseID: "lease-8", Fence: 8, ExecutionID: "x2"}
		d.begin(8, "x2", "make")
		var s wire.EnvSnapshot
		if d.l.Snapshot(&s); s.Leases[len(s.Leases)-1] != held {
			t.Errorf("named %+v, want %+v last", s.Leases, held)
		}
		d.drop()
		d.up(held)
		d.acquire(3)
		d.take("ShellLeaseReleased")
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted", "ShellState")
		d.release(8, "completed")
		d.take("ShellLeaseReleased")

		done := d.run("vim", false)
		d.acquire(9)
		d.take("ShellLeaseQueued")
		d.drop() // nobody waits any more
		d.take()
		d.sh.finish(0, shell.State{})
		<-done
		d.up()
		d.take("ShellState")
	})
}

// A lease that is released while its command is about to be refused is over with it.
func TestReleasedAsItIsRefused(t *testing.T) { // T2b
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		d.take("ShellLeaseAcquired")
		d.sh.looks = time.Second
		d.l.mu.Lock()
		d.l.dirty = true
		d.l.mu.Unlock()
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
		sent := d.take("ShellLeaseReleased", "CommandCompleted", "ShellState", "ShellLeaseReleased")
		for i, fence := range map[int]uint64{0: 9, 3: 1} {
			if r := sent[i].(*wire.ShellLeaseReleased); r.Fence != fence {
				t.Errorf("message %d is of fence %d, want %d", i, r.Fence, fence)
			}
		}
		d.execute(1, "x2", "ls")
		d.take("CommandCompleted") // refused

		d.acquire(11)
		d.execute(11, "x3", "ls")
		d.take("ShellLeaseAcquired", "CommandStarted")
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		d.drop()
		d.up(wire.HeldLease{LeaseID: "lease-11", Fence: 11, ExecutionID: "x4"})
		d.take("ShellState") // not the end of x3, which nobody waits for
	})
}

// A borrowed command that the lender's end cuts off has its end told, and what it changed; who comes then is denied, and
// nobody is shown as waiting.
func TestCloseTellsTheCommandsEnd(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.dies = time.Second
		d.begin(1, "x1", "cd /tmp")
		d.sh.mu.Lock()
		d.sh.state = shell.State{Dir: "/tmp", Digest: "d1"}
		d.sh.mu.Unlock()
		d.l.mu.Lock() // an offer that comes just before
		d.l.waiting = append(d.l.waiting, &wire.AcquireShellLease{LeaseRef: ref(2)})
		d.l.mu.Unlock()
		d.l.Close()
		sent := d.take("ShellLeaseDenied", "CommandCompleted", "ShellState", "ShellLeaseReleased")
		if c := sent[1].(*wire.CommandCompleted); !slices.Equal(c.Notes, []string{errClosing.Error()}) {
			t.Errorf("got notes %q", c.Notes)
		}
		d.acquire(3)
		if m := d.take("ShellLeaseDenied")[0].(*wire.ShellLeaseDenied); m.Reason != wire.DeniedShuttingDown {
			t.Errorf("got %s", m.Reason)
		}
		if n := d.l.Lending(); len(n.Waiting) > 0 {
			t.Errorf("shown as waiting: %q", n.Waiting)
		}
	})
}

// A shell that ended a moment ago is not lent, though nobody has looked at it since.
func TestAnEndedShellIsNotLent(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.l.mu.Lock()
		close(d.sh.gone)
		d.l.acquireLocked(&wire.AcquireShellLease{LeaseRef: ref(1)})
		d.l.mu.Unlock()
		if m := d.take("ShellLeaseDenied")[0].(*wire.ShellLeaseDenied); m.Reason != wire.DeniedNoShell {
			t.Errorf("got %s, want %s", m.Reason, wire.DeniedNoShell)
		}
	})
}

// Who gives up while the shell is looked at has not used it, user or borrower, and leaves it free.
func TestGivenUpBeforeTheShellIsFree(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		d.take("ShellLeaseAcquired")
		if err := d.l.take(t.Context()); err != nil { // as a question for the prompt has it
			t.Fatal(err)
		}
		d.execute(1, "x1", "make")
		synctest.Wait()
		d.release(1, "cancelled")
		sent := d.take("CommandCompleted", "ShellLeaseReleased")
		if c := sent[0].(*wire.CommandCompleted); c.Status != wire.StatusCancelled {
			t.Errorf("got %s, want cancelled", c.Status)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := d.l.Run(ctx, "ls", false, nil)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want it cancelled", err)
		}
		d.l.give()
		if ran := d.sh.ran(); len(ran) > 0 {
			t.Errorf("ran %q", ran)
		}
		d.acquire(2)
		d.take("ShellLeaseAcquired")
	})
}

// The screen is told of a borrowed command: its start, its output, that it wants the keyboard, its end; of one that did not
// begin, nothing; of a shell that had to be started anew, whoever's command ended it.
func TestTheScreenIsTold(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.began = func(c shell.Command) {
			if c.Keyboard != nil {
				c.Keyboard("password")
			}
		}
		d.begin(1, "x1", "make")
		d.sh.print("out")
		d.take("CommandOutput")
		d.sh.end <- shell.Result{Status: wire.StatusCancelled, Respawned: true, Why: "gone"}
		d.take("CommandCompleted")
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
		d.sh.fails = errors.New("no such folder")
		d.acquire(2)
		d.execute(2, "x2", "ls")
		if c := d.take("ShellLeaseAcquired", "CommandCompleted")[1].(*wire.CommandCompleted); c.Status != wire.StatusRefused {
			t.Errorf("got %s, want refused", c.Status)
		}
		d.release(2, "completed")
		d.take("ShellLeaseReleased")
		d.sh.fails = nil
		var heard []string
		done := make(chan error, 1)
		go func() {
			_, err := d.l.Run(t.Context(), "exec false", false, func(p []byte) { heard = append(heard, fmt.Sprintf("%q", p)) })
			done <- err
		}()
		synctest.Wait()
		d.sh.print("mine")
		d.sh.end <- shell.Result{Respawned: true, Why: "ended"}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if want := []string{`""`, `"mine"`}; !slices.Equal(heard, want) {
			t.Errorf("the user's command: heard %q, want %q", heard, want)
		}
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		var told []string
		for _, e := range d.events {
			switch e := e.(type) {
			case LeasedStarted:
				told = append(told, fmt.Sprint("start ", e.ExecutionID, e.Agent, e.Command))
			case LeasedOutput:
				told = append(told, fmt.Sprintf("output %s %s", e.ExecutionID, e.Data))
			case LeasedKeyboard:
				told = append(told, "keyboard "+e.Why)
			case LeasedEnded:
				told = append(told, fmt.Sprint("end ", e.ExecutionID, e.Status))
			case Respawned:
				told = append(told, "respawned "+e.Why)
			}
		}
		want := []string{
			"keyboard password", "start x1agent-1make", "output x1 out", "respawned a borrowed command ended it: gone", "end x1cancelled", "respawned ended",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// What is put back is what the last command changed that changed anything; where the shell does not do it, that is told.
func TestWhatIsPutBack(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.acquire(1)
		for i, to := range []shell.State{{Dir: "/tmp", Digest: "d1", Vars: d.sh.state.Vars}, {}} {
			d.execute(1, fmt.Sprint("x", i+1), "cd")
			synctest.Wait()
			d.sh.finish(0, to)
			synctest.Wait()
		}
		d.kinds()
		var kinds []string // sent for the last of them
		restore := func(id string) *wire.CommandCompleted {
			d.l.Handle(&wire.RestoreShellState{LeaseRef: ref(1), ExecutionID: wire.ExecutionID(id), TimeoutMS: 1000})
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			done := d.sent[len(d.sent)-1].(*wire.CommandCompleted)
			kinds = nil
			for _, m := range d.sent {
				kinds = append(kinds, m.Kind())
			}
			d.sent = nil
			return done
		}
		d.sh.fails = errors.New("it is busy")
		if done := restore("x3"); done.Status != wire.StatusRefused || !slices.Equal(done.Notes, []string{"the shell could not run it: it is busy"}) {
			t.Errorf("got %s %q, want refused", done.Status, done.Notes)
		}
		d.sh.fails = nil
		if done := restore("x4"); done.Status != wire.StatusOK || string(done.Output) != "left you in ~" {
			t.Errorf("got %s %q", done.Status, done.Output)
		}
		if want := []string{"CommandStarted", "ShellState", "CommandCompleted"}; !slices.Equal(kinds, want) {
			t.Errorf("sent %q, want %q", kinds, want)
		}
		if done := restore("x5"); done.Status != wire.StatusOK || len(done.Output) > 0 {
			t.Errorf("nothing to put back: got %s %q", done.Status, done.Output)
		}
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
	})
}

// A look that was given up is made before the shell is lent.
func TestALookThatWasGivenUp(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "cd /tmp")
		d.sh.finish(0, shell.State{Dir: "/tmp", Digest: "d1"})
		d.take("CommandCompleted", "ShellState")
		d.release(1, "completed")
		d.take("ShellLeaseReleased")
		d.sh.looks = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _ = d.l.UndoShell(ctx) // what it did is not known
		d.acquire(2)
		d.take()
		time.Sleep(time.Second)
		d.take("ShellState", "ShellLeaseAcquired")
	})
}

// A state that cannot be had keeps nobody from the shell for longer than lookBound: what was known stays known, and is looked
// at again behind the next command.
func TestAStateThatCannotBeHad(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.begin(1, "x1", "cd /tmp")
		d.sh.looks = time.Hour
		d.sh.finish(0, shell.State{Dir: "/tmp", Digest: "d1", Vars: d.sh.state.Vars})
		d.take("CommandCompleted")
		d.release(1, "completed")
		d.acquire(2)
		d.take("ShellLeaseQueued")
		time.Sleep(lookBound)
		d.take("ShellLeaseReleased", "ShellLeaseAcquired")
		d.sh.looks = 0
		d.execute(2, "x2", "ls")
		d.take("CommandStarted")
		d.sh.finish(0, shell.State{})
		if s := d.take("CommandCompleted", "ShellState")[1].(*wire.ShellState); s.Digest != "d1" || s.Cwd != "/tmp" || len(s.Env.Set)+len(s.Env.Unset) > 0 {
			t.Errorf("got %+v", s)
		}
		d.release(2, "completed")
		d.take("ShellLeaseReleased")
		if e := latest[LeasedEnded](d); e.Changed != "left you in /tmp" {
			t.Errorf("told as changed: %q", e.Changed)
		}
	})
}

// What the daemon is told of a command's end, from what the shell and its canceller say.
func TestCompleted(t *testing.T) {
	boom := errors.New("boom")
	big := make([]byte, outputMost+10)
	for i := range big {
		big[i] = byte('a' + i%26)
	}
	for _, c := range []struct {
		name   string
		cause  error
		r      shell.Result
		err    error
		status string
		notes  []string
	}{
		{"its own end", nil, shell.Result{Status: "ok", Notes: []string{"n"}}, nil, "ok", []string{"n"}},
		{"the shell's refusal", nil, shell.Result{}, boom, "refused", []string{"the shell could not run it: boom"}},
		{"a refusal when it was cancelled", errTakenBack, shell.Result{}, boom, "cancelled", []string{"taken back by the user"}},
		{"cancelled for its time", errTooLong, shell.Result{Status: "cancelled"}, nil, "timeout", []string{}},
		{"cancelled by the agent's end", context.Canceled, shell.Result{Status: "cancelled"}, nil, "cancelled", []string{}},
		{"the user's ^C", nil, shell.Result{Status: "cancelled"}, nil, "cancelled", []string{}},
		{"ended as it was cancelled", errTakenBack, shell.Result{Status: "ok"}, nil, "ok", []string{}},
		{"an error beside a status", nil, shell.Result{Status: "ok"}, boom, "ok", []string{}},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if c.cause != nil {
			cancel(c.cause)
		}
		done := completed(&execution{msg: &wire.ExecuteLeasedCommand{}, ctx: ctx}, c.r, c.err)
		cancel(nil)
		if done.Status != c.status || !slices.Equal(done.Notes, c.notes) || done.Notes == nil || done.Output == nil || done.Leftovers == nil || done.Truncated != nil {
			t.Errorf("%s: got %+v, want %s %q", c.name, done, c.status, c.notes)
		}
	}
	e := &execution{msg: &wire.ExecuteLeasedCommand{}, ctx: t.Context()}
	done := completed(e, shell.Result{Output: big, Truncated: 5, SpoolPath: "/spool", Leftovers: []shell.Process{{PID: 7, Command: "sleep"}}}, nil)
	if len(done.Output) != outputMost || done.Truncated == nil || *done.Truncated != (wire.Truncation{Bytes: 15, SpoolPath: "/spool"}) { // T2f
		t.Errorf("got %d bytes, %+v", len(done.Output), done.Truncated)
	}
	if done.Output[0] != big[0] || done.Output[outputMost-1] != big[len(big)-1] {
		t.Error("not its beginning and its end")
	}
	if !slices.Equal(done.Leftovers, []wire.Process{{PID: 7, Command: "sleep"}}) {
		t.Errorf("got %+v left", done.Leftovers)
	}
	if done = completed(e, shell.Result{Output: big[:outputMost]}, nil); done.Truncated != nil || len(done.Output) != outputMost {
		t.Errorf("%d bytes were cut: %+v", outputMost, done.Truncated)
	}
}

// A link begins with what the shell is: its folder, its environment as it is known by then.
func TestSnapshot(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.drop() // what changes then is in the next one
		done := d.run("cd /tmp", false)
		d.sh.finish(0, shell.State{Dir: "/tmp", Digest: "d1", Vars: map[string]string{"NEW": "1", "API_TOKEN": "hush"}})
		<-done
		d.take()
		var s wire.EnvSnapshot
		d.l.Snapshot(&s)
		if s.Cwd != "/tmp" || s.Leases == nil || len(s.Env) != 2 || s.Env["NEW"] != "1" || s.Env["API_TOKEN"] != "" {
			t.Errorf("got %s, %+v, %v", s.Cwd, s.Env, s.Leases)
		}
	})
	synctest.Test(t, func(t *testing.T) { // before anything is known of it: what it was started with
		d := &desk{t: t, sh: newClock()}
		d.sh.looks = time.Second
		d.l = New(Options{Shell: d.sh, Send: d.send, Observer: d, Env: []string{"OLD=1", "=x", "odd"}})
		defer d.close()
		var s wire.EnvSnapshot
		if d.l.Snapshot(&s); len(s.Env) != 1 || s.Env["OLD"] != "1" {
			t.Errorf("got %+v", s.Env)
		}
	})
}

// What of the environment changed is told, and nothing else; a secret by its name.
func TestTheEnvironmentIsToldByWhatChanged(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		told := func(vars map[string]string) wire.EnvChange {
			t.Helper()
			done := d.run("export", false)
			d.sh.finish(0, shell.State{Digest: fmt.Sprint(vars), Vars: vars})
			<-done
			return d.take("ShellState")[0].(*wire.ShellState).Env
		}
		told(map[string]string{"PATH": "/bin", "KEPT": "1", "GONE": "1"})
		got := told(map[string]string{"PATH": "/tmp/x", "KEPT": "1", "DB_PASSWORD": "hush"})
		want := wire.EnvChange{Set: map[string]wire.OSString{"PATH": "/tmp/x", "DB_PASSWORD": ""}, Unset: []string{"GONE"}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// Functions are told with their bodies as far as one message may hold them.
func TestManyFunctionsAreToldInPart(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		body := func(of string) string { return of + strings.Repeat("x", bodiesMost*2/3) }
		done := d.run("source all", false)
		d.sh.finish(0, shell.State{Digest: "d1", Functions: map[string]string{"a": body("a"), "b": body("b"), "c": "c () { :; }"}})
		<-done
		var with []string
		functions := d.take("ShellState")[0].(*wire.ShellState).Functions
		for _, f := range functions {
			if f.Body != "" {
				with = append(with, f.Name)
			}
		}
		if len(functions) != 3 || !slices.Equal(with, []string{"a", "c"}) {
			t.Errorf("told %d functions, %q with their bodies", len(functions), with)
		}
	})
}

// What a borrowed command left behind is looked at as long as that takes, but for a user who took the shell back.
func TestALookBehindACommand(t *testing.T) {
	for _, taken := range []bool{false, true} {
		atDesk(t, func(t *testing.T, d *desk) {
			d.begin(1, "x1", "make")
			d.sh.looks = 2 * time.Second
			if taken {
				done := d.run("ls", true)
				time.Sleep(lookWanted)
				d.take("CommandCompleted", "ShellLeaseReleased")
				d.sh.finish(0, shell.State{})
				<-done
				return
			}
			d.sh.finish(0, shell.State{Dir: "/tmp", Digest: "d1"})
			d.take("CommandCompleted")
			time.Sleep(2 * time.Second)
			d.take("ShellState")
		})
	}
}

// The shell's own history, and what the terminal prints between commands, are passed on; neither while it is taken.
func TestHistoryAndUnowned(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		if lines, err := d.l.History(t.Context()); err != nil || !slices.Equal(lines, []string{"ls"}) {
			t.Errorf("got %q, %v", lines, err)
		}
		text := []byte("[1]+ Done")
		d.l.Unowned(text)
		clear(text)
		d.begin(1, "x1", "make")
		if u := latest[Unowned](d); u == nil || string(u.Data) != "[1]+ Done" {
			t.Errorf("got %+v", u)
		}
		if _, err := d.l.History(t.Context()); !errors.As(err, new(*LentError)) {
			t.Errorf("while it is lent: got %v", err)
		}
		d.sh.finish(0, shell.State{})
		d.take("CommandCompleted")
		d.run("vim", false)
		if _, err := d.l.History(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("while the user's command runs: got %v", err)
		}
		d.sh.finish(0, shell.State{})
		synctest.Wait()
		d.l.Close()
		if _, err := d.l.History(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: got %v", err)
		}
	})
}
