package hub

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sublet/lease"
	"sublet/wire"
)

// window is a client by its messages: what it is sent is kept, and what it says goes in by its methods.
type window struct {
	deaf
	t *testing.T
	c *Client

	mu   sync.Mutex
	sent []wire.Message
}

func openWindow(t *testing.T, h *Hub, leases ...wire.HeldLease) *window {
	t.Helper()
	w := &window{t: t}
	w.c = &Client{hub: h, peer: w, info: wire.ClientInfo{PID: 1}, owner: owner{says: 1}}
	w.c.lender = h.lenderOf(w.c)
	w.c.lender.link(w.c, &wire.EnvSnapshot{Capabilities: []string{wire.CapRestore}, Leases: leases}, &wire.Ready{})
	return w
}

func (w *window) Send(m wire.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, m)
	return nil
}

func (w *window) says(m wire.LeaseMessage) {
	w.t.Helper()
	if err := w.c.Lease(m); err != nil {
		w.t.Errorf("%T: %v", m, err)
	}
}

// state tells a state in which PATH, and the alias ls, are value.
func (w *window) state(value string) {
	w.t.Helper()
	err := w.c.ShellState(&wire.ShellState{
		Digest: value, Env: wire.EnvChange{Set: map[string]wire.OSString{"PATH": wire.OSString(value)}},
		Aliases: map[string]wire.OSString{"ls": wire.OSString(value), "ll": "ls -l"},
	})
	if err != nil {
		w.t.Error(err)
	}
}

// stateBy is state from a client that tells whose work it may be.
func (w *window) stateBy(value string, executions ...wire.ExecutionID) {
	w.t.Helper()
	err := w.c.ShellState(&wire.ShellState{
		Digest: value, Env: wire.EnvChange{Set: map[string]wire.OSString{"PATH": wire.OSString(value)}},
		Aliases:    map[string]wire.OSString{"ls": wire.OSString(value), "ll": "ls -l"},
		Executions: append([]wire.ExecutionID{}, executions...),
	})
	if err != nil {
		w.t.Error(err)
	}
}

// lend lends the shell for a wish, and is told the command.
func (w *window) lend(wish wish) (b *borrow, ref wire.LeaseRef) {
	w.t.Helper()
	wish.execution = "x"
	ln := w.c.lender
	b = ln.ask(w.t.Context(), wish)
	ln.recorded(b)
	ref = wire.LeaseRef{LeaseID: wire.LeaseID(b.lease.ID), Fence: b.lease.Fence}
	w.says(&wire.ShellLeaseAcquired{LeaseRef: ref})
	w.says(&wire.CommandStarted{LeaseRef: ref, ExecutionID: "x"})
	return b, ref
}

// borrow has a command run that makes value of the state, to its lease's end.
func (w *window) borrow(wish wish, value string) {
	w.t.Helper()
	b, ref := w.lend(wish)
	w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
	w.state(value)
	w.c.lender.giveBack(b)
	w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedReleased})
}

// T3g: what an unapproved command changed in the shell is suspect, until a person changes it or it is what it was: also where
// the link was lost before that was told. A window that was cut off in the middle of an agent's command came
// back with nothing to blame for.
func TestBlame(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, h *Hub, w *window)
		want []string
	}{
		{"the user's own change", func(_ *testing.T, _ *Hub, w *window) { w.state("new") }, nil},
		{"an unapproved one", func(_ *testing.T, _ *Hub, w *window) {
			b, ref := w.lend(wish{})
			w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			w.c.lender.giveBack(b)
			w.state("new")
		}, []string{"PATH", "ls"}},
		{"one that a person wanted", func(_ *testing.T, _ *Hub, w *window) {
			_, ref := w.lend(wish{vetted: true})
			w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			w.state("new")
		}, nil},
		{"an unapproved one, and then the user's", func(_ *testing.T, _ *Hub, w *window) {
			w.borrow(wish{}, "new")
			w.state("newer")
		}, nil},
		{"the user's, who took the shell back from an unapproved one", func(_ *testing.T, _ *Hub, w *window) {
			_, ref := w.lend(wish{})
			w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedByUser})
			w.state("new")
		}, nil},
		{"the user's, who came before an unapproved one", func(t *testing.T, _ *Hub, w *window) {
			ln := w.c.lender
			b := ln.ask(t.Context(), wish{execution: "x"})
			ln.recorded(b)
			ref := wire.LeaseRef{LeaseID: wire.LeaseID(b.lease.ID), Fence: b.lease.Fence}
			w.says(&wire.ShellLeaseAcquired{LeaseRef: ref})
			w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedUserFirst})
			w.state("new")
		}, nil},
		{"an unapproved one, put back", func(_ *testing.T, _ *Hub, w *window) {
			w.borrow(wish{}, "new")
			w.lend(wish{undo: true})
			w.state("old")
		}, nil},
		{"the second of two, put back", func(_ *testing.T, _ *Hub, w *window) {
			for _, value := range []string{"new", "newer"} {
				w.borrow(wish{}, value)
			}
			w.lend(wish{undo: true})
			w.state("new")
		}, []string{"PATH", "ls"}},
		{"one that a person wanted, put back", func(_ *testing.T, _ *Hub, w *window) {
			w.borrow(wish{vetted: true}, "new")
			w.lend(wish{undo: true})
			w.state("old")
		}, nil},
		{"one that a person wanted, put back beside what is suspect", func(_ *testing.T, _ *Hub, w *window) {
			tell := func(path, ls string, by wire.ExecutionID) {
				err := w.c.ShellState(&wire.ShellState{
					Digest: path + ls, Env: wire.EnvChange{Set: map[string]wire.OSString{"PATH": wire.OSString(path)}},
					Aliases: map[string]wire.OSString{"ls": wire.OSString(ls), "ll": "ls -l"}, Executions: []wire.ExecutionID{by},
				})
				if err != nil {
					t.Error(err)
				}
			}
			tell("old", "new", "nobody's")
			_, ref := w.lend(wish{vetted: true})
			w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			tell("new", "new", "x")
			w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedReleased})
			w.lend(wish{undo: true})
			tell("old", "new", "x")
		}, []string{"ls"}},
		{"the second of two, put back by the user", func(_ *testing.T, _ *Hub, w *window) {
			w.stateBy("new", "x")
			w.stateBy("newer", "y")
			w.stateBy("new", "y")
		}, []string{"PATH", "ls"}},
		{"both, put back by the user", func(_ *testing.T, _ *Hub, w *window) {
			w.stateBy("new", "x")
			w.stateBy("newer", "y")
			w.stateBy("old", "y")
		}, nil},
		{"an unapproved one that goes on over a lost link", func(t *testing.T, h *Hub, w *window) {
			_, ref := w.lend(wish{})
			w.c.lender.unlink(w.c)
			back := openWindow(t, h, wire.HeldLease{LeaseID: ref.LeaseID, Fence: ref.Fence, ExecutionID: "x"})
			back.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			back.state("new")
		}, []string{"PATH", "ls"}},
		{"an unapproved one that goes on over a lost link, and changes it then", func(t *testing.T, h *Hub, w *window) {
			_, ref := w.lend(wish{})
			w.c.lender.unlink(w.c)
			back := openWindow(t, h, wire.HeldLease{LeaseID: ref.LeaseID, Fence: ref.Fence, ExecutionID: "x"})
			back.state("old")
			back.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			back.state("new")
		}, []string{"PATH", "ls"}},
		{"what is unset and defined", func(_ *testing.T, _ *Hub, w *window) {
			err := w.c.ShellState(&wire.ShellState{
				Digest: "new", Env: wire.EnvChange{Unset: []string{"PATH"}}, Aliases: map[string]wire.OSString{"ls": "old"},
				Functions: []wire.ShellFunction{{Name: "f", Hash: "h", Body: "f () { :; }"}}, Hashed: map[string]wire.OSString{"make": "/x"},
				Disabled: []string{"times"}, Loaded: []string{"sleep"}, Executions: []wire.ExecutionID{"x"},
			})
			if err != nil {
				t.Error(err)
			}
		}, []string{"PATH", "f", "ll", "make", "sleep", "times"}},
		{"what the user unset and defined", func(_ *testing.T, _ *Hub, w *window) {
			err := w.c.ShellState(&wire.ShellState{
				Digest: "new", Env: wire.EnvChange{Unset: []string{"PATH"}}, Aliases: map[string]wire.OSString{"ls": "old"},
				Functions: []wire.ShellFunction{{Name: "f", Hash: "h", Body: "f () { :; }"}}, Hashed: map[string]wire.OSString{"make": "/x"},
				Disabled: []string{"times"}, Loaded: []string{"sleep"}, Executions: []wire.ExecutionID{},
			})
			if err != nil {
				t.Error(err)
			}
		}, nil},
		{"what the user unset and defined, and takes back", func(_ *testing.T, _ *Hub, w *window) {
			for _, st := range []*wire.ShellState{{
				Digest: "new", Env: wire.EnvChange{Unset: []string{"PATH"}}, Aliases: map[string]wire.OSString{"ls": "old"},
				Functions: []wire.ShellFunction{{Name: "f", Hash: "h", Body: "f () { :; }"}}, Hashed: map[string]wire.OSString{"make": "/x"},
				Disabled: []string{"times"}, Loaded: []string{"sleep"}, Executions: []wire.ExecutionID{},
			}, {Digest: "newer", Aliases: map[string]wire.OSString{"ls": "old"}, Executions: []wire.ExecutionID{}}} {
				if err := w.c.ShellState(st); err != nil {
					t.Error(err)
				}
			}
		}, nil},
		{"an unapproved one that ends while the link is lost", func(t *testing.T, h *Hub, w *window) {
			_, ref := w.lend(wish{})
			back := openWindow(t, h, wire.HeldLease{LeaseID: ref.LeaseID, Fence: ref.Fence, ExecutionID: "x"}) // before it was noticed
			back.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			back.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedByUser})
			back.state("new")
		}, []string{"PATH", "ls"}},
		{"the user's own one after that", func(t *testing.T, h *Hub, w *window) {
			w.lend(wish{})
			w.c.lender.unlink(w.c)
			back := openWindow(t, h) // it has forgotten
			back.state("new")
			back.state("newer")
		}, nil},
		{"the user's own while the link is lost", func(t *testing.T, h *Hub, w *window) {
			w.c.lender.unlink(w.c)
			openWindow(t, h).state("new")
		}, nil},
		{"an unapproved one, told behind the command of the user who took the shell back", func(_ *testing.T, _ *Hub, w *window) {
			_, ref := w.lend(wish{})
			w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedByUser})
			w.stateBy("new", "x")
		}, []string{"PATH", "ls"}},
		{"one that a person wanted, told so", func(_ *testing.T, _ *Hub, w *window) {
			_, ref := w.lend(wish{vetted: true})
			w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedByUser})
			w.stateBy("new", "x")
		}, nil},
		{"one of several", func(_ *testing.T, _ *Hub, w *window) {
			_, ref := w.lend(wish{vetted: true})
			w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedByUser})
			w.stateBy("new", "w", "x")
		}, []string{"PATH", "ls"}},
		{"the user's, told so while an unapproved one has the shell still", func(_ *testing.T, _ *Hub, w *window) {
			_, ref := w.lend(wish{})
			w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			w.stateBy("new", "x")
			w.stateBy("newer")
		}, nil},
		{"an unapproved one whose state was lost with the link", func(t *testing.T, h *Hub, w *window) {
			w.lend(wish{})
			w.c.lender.unlink(w.c)
			openWindow(t, h).stateBy("new") // it has told whose it was
		}, []string{"PATH", "ls"}},
		{"the environment of an unapproved one that ended while the link was lost", func(_ *testing.T, _ *Hub, w *window) {
			_, ref := w.lend(wish{})
			w.c.lender.unlink(w.c)
			env := map[string]wire.OSString{"PATH": "new"}
			w.c.lender.link(w.c, &wire.EnvSnapshot{
				Env: env, Leases: []wire.HeldLease{{LeaseID: ref.LeaseID, Fence: ref.Fence, ExecutionID: "x"}},
			}, &wire.Ready{})
			w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			if err := w.c.ShellState(&wire.ShellState{Digest: "new", Aliases: map[string]wire.OSString{"ls": "old", "ll": "ls -l"}}); err != nil {
				t.Error(err)
			}
		}, []string{"PATH"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHub(t)
			w := openWindow(t, h)
			w.state("old")
			c.do(t, h, w)
			if got := w.c.lender.suspects; !slices.Equal(got, c.want) {
				t.Errorf("suspect is %q, want %q", got, c.want)
			}
		})
	}
}

// Who waits is asked for as soon as the command before is told to have ended: its borrower, which may be busy, has no part in
// that.
func TestTheNextNeedNotWaitForTheBorrower(t *testing.T) {
	w := openWindow(t, newHub(t))
	_, ref := w.lend(wish{})
	next := w.c.lender.ask(t.Context(), wish{holder: "next"})
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
		{"the end of the link", func(w *window, _ wire.LeaseRef) { w.c.lender.unlink(w.c) }, 0},
		{"the end of the shell", func(w *window, _ wire.LeaseRef) { w.c.lender.close(lease.NoShell) }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := openWindow(t, newHub(t))
			b, ref := w.lend(wish{})
			w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
			w.c.lender.giveBack(b)
			w.state("known")
			begun := time.Now()
			var waited time.Duration
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.c.lender.where(t.Context())
				waited = time.Since(begun)
			}()
			synctest.Wait()
			c.tell(w, ref)
			<-done
			if waited != c.want {
				t.Errorf("%s: waited %v, want %v", c.name, waited, c.want)
			}
			w.c.lender.close(lease.NoShell)
		})
	}
}

// A window that is back in the moment in which it was given up has its shell lent: it was taken in by what was being
// closed, and lent nothing for as long as it stayed.
func TestBackWhenGivenUp(t *testing.T) {
	h := newHub(t)
	w := openWindow(t, h)
	ln := w.c.lender
	ln.unlink(w.c)
	ln.mu.Lock()
	ln.lostAt = time.Now().Add(-lease.Grace)
	ln.mu.Unlock()
	h.mu.Lock() // what closes the lender waits for this
	done := make(chan struct{})
	go func() { defer close(done); ln.lost() }()
	for range 10_000 { // it has looked for the client by then, if it does so before
		runtime.Gosched()
	}
	back := &Client{hub: h, peer: w, info: w.c.info, owner: w.c.owner, lender: ln}
	linked := ln.link(back, &wire.EnvSnapshot{}, &wire.Ready{})
	h.mu.Unlock()
	<-done
	if linked && (ln.closed || h.lenders[ln.owner] != ln) {
		t.Error("the window is at a shell that is not lent any more")
	}
}
