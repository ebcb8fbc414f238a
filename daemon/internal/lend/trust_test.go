package lend

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sublet/daemon/internal/tool"
	"sublet/lease"
	"sublet/wire"
)

// What an unapproved command changed in the shell is suspect, until a person changes it or it is what it was: also where
// the link was lost before that was told. A window that was cut off in the middle of an agent's command came
// back with nothing to blame for.
func TestBlame(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, s *Shells, w *window)
		want []string
	}{
		{"the user's own change", func(_ *testing.T, _ *Shells, w *window) { w.state("new") }, nil},
		{"an unapproved one", func(_ *testing.T, _ *Shells, w *window) {
			b, ref := w.lend(request{})
			w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			w.ln.giveBack(b)
			w.stateBy("new", "x")
		}, []string{"PATH", "ls"}},
		{"one that a person wanted", func(_ *testing.T, _ *Shells, w *window) {
			_, ref := w.lend(request{Command: Command{Command: tool.Command{Approval: tool.Approval{Person: true}}}})
			w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			w.stateBy("new", "x")
		}, nil},
		{"an unapproved one, and then the user's", func(_ *testing.T, _ *Shells, w *window) {
			w.borrow(request{}, "new")
			w.state("newer")
		}, nil},
		{"an unapproved one, put back", func(_ *testing.T, _ *Shells, w *window) {
			w.borrow(request{}, "new")
			w.lend(request{undo: true})
			w.stateBy("old", "x")
		}, nil},
		{"the second of two, put back", func(_ *testing.T, _ *Shells, w *window) {
			for _, value := range []string{"new", "newer"} {
				w.borrow(request{}, value)
			}
			w.lend(request{undo: true})
			w.stateBy("new", "x")
		}, []string{"PATH", "ls"}},
		{"one that a person wanted, put back", func(_ *testing.T, _ *Shells, w *window) {
			w.borrow(request{Command: Command{Command: tool.Command{Approval: tool.Approval{Person: true}}}}, "new")
			w.lend(request{undo: true})
			w.stateBy("old", "x")
		}, nil},
		{"one that a person wanted, put back beside what is suspect", func(_ *testing.T, _ *Shells, w *window) {
			tell := func(path, ls string, by wire.ExecutionID) {
				err := w.ln.StateChanged(w, &wire.ShellState{
					Digest: path + ls, Env: wire.EnvChange{Set: map[string]wire.OSString{"PATH": wire.OSString(path)}},
					Aliases: map[string]wire.OSString{"ls": wire.OSString(ls), "ll": "ls -l"}, Executions: []wire.ExecutionID{by},
				})
				if err != nil {
					t.Error(err)
				}
			}
			tell("old", "new", "nobody's")
			_, ref := w.lend(request{Command: Command{Command: tool.Command{Approval: tool.Approval{Person: true}}}})
			w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			tell("new", "new", "x")
			w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedReleased})
			w.lend(request{undo: true})
			tell("old", "new", "x")
		}, []string{"ls"}},
		{"the second of two, put back by the user", func(_ *testing.T, _ *Shells, w *window) {
			w.stateBy("new", "x")
			w.stateBy("newer", "y")
			w.stateBy("new", "y")
		}, []string{"PATH", "ls"}},
		{"both, put back by the user", func(_ *testing.T, _ *Shells, w *window) {
			w.stateBy("new", "x")
			w.stateBy("newer", "y")
			w.stateBy("old", "y")
		}, nil},
		{"an unapproved one that goes on over a lost link", func(t *testing.T, s *Shells, w *window) {
			_, ref := w.lend(request{})
			w.ln.Unlink(w)
			back := openWindow(t, s, wire.HeldLease{LeaseID: ref.LeaseID, Fence: ref.Fence, ExecutionID: "x"})
			back.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			back.stateBy("new", "x")
		}, []string{"PATH", "ls"}},
		{"what is unset and defined", func(_ *testing.T, _ *Shells, w *window) {
			err := w.ln.StateChanged(w, &wire.ShellState{
				Digest: "new", Env: wire.EnvChange{Unset: []string{"PATH"}}, Aliases: map[string]wire.OSString{"ls": "old"},
				Functions: []wire.ShellFunction{{Name: "f", Hash: "h", Body: "f () { :; }"}}, Hashed: map[string]wire.OSString{"make": "/x"},
				Disabled: []string{"times"}, Executions: []wire.ExecutionID{"x"},
			})
			if err != nil {
				t.Error(err)
			}
		}, []string{"PATH", "f", "ll", "make", "times"}},
		{"what the user unset and defined", func(_ *testing.T, _ *Shells, w *window) {
			err := w.ln.StateChanged(w, &wire.ShellState{
				Digest: "new", Env: wire.EnvChange{Unset: []string{"PATH"}}, Aliases: map[string]wire.OSString{"ls": "old"},
				Functions: []wire.ShellFunction{{Name: "f", Hash: "h", Body: "f () { :; }"}}, Hashed: map[string]wire.OSString{"make": "/x"},
				Disabled: []string{"times"}, Executions: []wire.ExecutionID{},
			})
			if err != nil {
				t.Error(err)
			}
		}, nil},
		{"what the user unset and defined, and takes back", func(_ *testing.T, _ *Shells, w *window) {
			for _, st := range []*wire.ShellState{{
				Digest: "new", Env: wire.EnvChange{Unset: []string{"PATH"}}, Aliases: map[string]wire.OSString{"ls": "old"},
				Functions: []wire.ShellFunction{{Name: "f", Hash: "h", Body: "f () { :; }"}}, Hashed: map[string]wire.OSString{"make": "/x"},
				Disabled: []string{"times"}, Executions: []wire.ExecutionID{},
			}, {Digest: "newer", Aliases: map[string]wire.OSString{"ls": "old"}, Executions: []wire.ExecutionID{}}} {
				if err := w.ln.StateChanged(w, st); err != nil {
					t.Error(err)
				}
			}
		}, nil},
		{"the user's own while the link is lost", func(t *testing.T, s *Shells, w *window) {
			w.ln.Unlink(w)
			openWindow(t, s).state("new")
		}, nil},
		{"an unapproved one, told behind the command of the user who took the shell back", func(_ *testing.T, _ *Shells, w *window) {
			_, ref := w.lend(request{})
			w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedByUser})
			w.stateBy("new", "x")
		}, []string{"PATH", "ls"}},
		{"one that a person wanted, told so", func(_ *testing.T, _ *Shells, w *window) {
			_, ref := w.lend(request{Command: Command{Command: tool.Command{Approval: tool.Approval{Person: true}}}})
			w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedByUser})
			w.stateBy("new", "x")
		}, nil},
		{"one of several", func(_ *testing.T, _ *Shells, w *window) {
			_, ref := w.lend(request{Command: Command{Command: tool.Command{Approval: tool.Approval{Person: true}}}})
			w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedByUser})
			w.stateBy("new", "w", "x")
		}, []string{"PATH", "ls"}},
		{"the user's, told so while an unapproved one has the shell still", func(_ *testing.T, _ *Shells, w *window) {
			_, ref := w.lend(request{})
			w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			w.stateBy("new", "x")
			w.stateBy("newer")
		}, nil},
		{"of a client that does not report whose it may be", func(_ *testing.T, _ *Shells, w *window) {
			if err := w.ln.StateChanged(w, &wire.ShellState{Digest: "new", Aliases: map[string]wire.OSString{"ls": "new", "ll": "ls -l"}}); err != nil {
				t.Error(err)
			}
		}, []string{"ls"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShells(t)
			w := openWindow(t, s)
			w.state("old")
			c.do(t, s, w)
			if got, _ := w.ln.Suspects(t.Context()); !slices.Equal(got, c.want) {
				t.Errorf("suspect is %q, want %q", got, c.want)
			}
		})
	}
}

// Who waits is asked for as soon as the command before is told to have ended: its borrower, which may be busy, has no part in
// that.
func TestTheNextNeedNotWaitForTheBorrower(t *testing.T) {
	w := openWindow(t, newShells(t))
	_, ref := w.lend(request{})
	next := w.ln.enqueue(t.Context(), request{Terms: Terms{Holder: "next"}})
	w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
	if last, ok := w.sent[len(w.sent)-1].(*wire.AcquireShellLease); !ok || last.Agent != "next" || next.lease.State != lease.Offered {
		t.Errorf("last sent is %+v, and the next is %v", w.sent[len(w.sent)-1], next.lease.State)
	}
}

// Where a command would run is told when all that is to come of the last one was: its state, or the answer to the release,
// and not that to another one. A client that says nothing is waited for settleBound.
func TestWhereWaitsForWhatIsToCome(t *testing.T) {
	for _, c := range []struct {
		name string
		tell func(w *window, ref wire.LeaseRef)
		want time.Duration
	}{
		{"nothing", func(*window, wire.LeaseRef) {}, settleBound},
		{"the answer", func(w *window, ref wire.LeaseRef) { w.says(&wire.ShellLeaseReleased{LeaseRef: ref}) }, 0},
		{"another answer", func(w *window, ref wire.LeaseRef) {
			w.says(&wire.ShellLeaseReleased{LeaseRef: wire.LeaseRef{LeaseID: ref.LeaseID, Fence: ref.Fence - 1}})
		}, settleBound},
		{"the end of the link", func(w *window, _ wire.LeaseRef) { w.ln.Unlink(w) }, 0},
		{"the end of the shell", func(w *window, _ wire.LeaseRef) { w.ln.close(lease.NoShell) }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := openWindow(t, newShells(t))
			b, ref := w.lend(request{})
			w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			w.ln.giveBack(b)
			w.state("known")
			begun := time.Now()
			var waited time.Duration
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.ln.Where(t.Context())
				waited = time.Since(begun)
			}()
			synctest.Wait()
			c.tell(w, ref)
			<-done
			if waited != c.want {
				t.Errorf("%s: waited %v, want %v", c.name, waited, c.want)
			}
			w.ln.close(lease.NoShell)
		})
	}
}

// A window that is back in the moment in which it was given up has its shell lent: it was taken in by what was being
// closed, and lent nothing for as long as it stayed.
func TestBackWhenGivenUp(t *testing.T) {
	s := newShells(t)
	w := openWindow(t, s)
	ln := w.ln
	ln.Unlink(w)
	ln.mu.Lock()
	ln.conn.lostAt = time.Now().Add(-lease.Grace)
	ln.mu.Unlock()
	s.mu.Lock() // what closes the lender waits for this
	done := make(chan struct{})
	go func() { defer close(done); ln.lost() }()
	for range 10_000 { // it has looked for the client by then, if it does so before
		runtime.Gosched()
	}
	linked := ln.link(&window{t: t}, &wire.EnvSnapshot{}, &wire.Ready{})
	s.mu.Unlock()
	<-done
	if linked && (ln.closed || s.lenders[ln.owner] != ln) {
		t.Error("the window is at a shell that is not lent any more")
	}
}
