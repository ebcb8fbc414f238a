package lend

import (
	"log/slog"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"sublet/wire"
)

// window is a client by its messages: what it is sent is kept, and what it reports goes in by the lender's methods.
type window struct {
	t      *testing.T
	shells *Shells
	ln     *Lender

	mu   sync.Mutex
	sent []wire.Message
	last wire.Message // with which it was ended
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newShells(t *testing.T) *Shells {
	t.Helper()
	s := New(slog.New(slog.DiscardHandler), 0)
	t.Cleanup(s.Close)
	return s
}

func openWindow(t *testing.T, s *Shells, leases ...wire.HeldLease) *window {
	t.Helper()
	w := &window{t: t, shells: s}
	w.ln = s.Link(w, Owner{reported: 1}, &wire.EnvSnapshot{Capabilities: []string{wire.CapRestore}, Leases: leases}, &wire.Ready{})
	return w
}

func (w *window) Send(m wire.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, m)
}

func (w *window) End(m wire.Message) { w.last = m }

func (w *window) says(m wire.LeaseMessage) {
	w.t.Helper()
	if err := w.ln.Report(w, m); err != nil {
		w.t.Errorf("%T: %v", m, err)
	}
}

// state reports that the user changed PATH, and the alias ls, to value.
func (w *window) state(value string) { w.stateBy(value) }

// stateBy reports that one of the executions may have changed PATH, and the alias ls, to value.
func (w *window) stateBy(value string, executions ...wire.ExecutionID) {
	w.t.Helper()
	err := w.ln.StateChanged(w, &wire.ShellState{
		Digest: value, Env: wire.EnvChange{Set: map[string]wire.OSString{"PATH": wire.OSString(value)}},
		Aliases:    map[string]wire.OSString{"ls": wire.OSString(value), "ll": "ls -l"},
		Executions: append([]wire.ExecutionID{}, executions...),
	})
	if err != nil {
		w.t.Error(err)
	}
}

// lend lends the window's shell for a request, whose command begins at once.
func (w *window) lend(r request) (b *borrow, ref wire.LeaseRef) {
	w.t.Helper()
	r.ExecutionID, r.own = "x", true
	ln := w.ln
	b = ln.enqueue(w.t.Context(), r)
	ln.markReady(b)
	ref = wire.LeaseRef{LeaseID: wire.LeaseID(b.lease.ID), Fence: b.lease.Fence}
	w.says(&wire.ShellLeaseAcquired{LeaseRef: ref})
	w.says(&wire.CommandStarted{LeaseRef: ref, ExecutionID: "x"})
	return b, ref
}

// borrow has a command run that makes value of the state, to its lease's end.
func (w *window) borrow(r request, value string) {
	w.t.Helper()
	b, ref := w.lend(r)
	w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
	w.stateBy(value, "x")
	w.ln.giveBack(b)
	w.says(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedReleased})
}
