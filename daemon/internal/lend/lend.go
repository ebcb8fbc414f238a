// Package lend lends shells: those of windows, one command at a time by the rules of package lease, and private ones of the
// daemon's own. It keeps what is known of each shell, what a borrowed command changed in it, and which processes run inside.
// It leaves to the hub who may borrow, what is asked about a command, and sessions and turns.
//
// Locks: the mu of a Lender and that of the Shells are never held together. Sending to a Window only queues, so it is done
// under the lock whose order it must follow.
package lend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sublet/lease"
	"sublet/wire"
)

var (
	ErrShuttingDown  = errors.New("the daemon is stopping")
	ErrDenied        = errors.New("the shell is not lent")
	ErrNotShellOwner = errors.New("this client lends no shell")
	ErrNoLease       = errors.New("there is no such lease")
)

// A Window is one connection of a client that lends its shell. Implementations are pointers: they are compared.
type Window interface {
	// Send queues a message; it never waits.
	Send(m wire.Message)
	// End sends m as the last message and ends the connection; it never waits.
	End(m wire.Message)
}

// Shells are all shells that commands can run in. Safe for concurrent use.
type Shells struct {
	log           *slog.Logger
	fences        lease.Fences
	agentSessions agentSessions // has its own lock

	ctx    context.Context // of commands that may become jobs; ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // those commands

	mu       sync.Mutex
	lenders  map[Owner]*Lender     // guarded by mu; by the process that lends: it outlives a connection
	privates map[*Private]struct{} // guarded by mu: until Private.Close
}

// New returns Shells whose fencing tokens are above the given one, so that they grow across daemons.
func New(log *slog.Logger, above uint64) *Shells {
	s := &Shells{log: log, lenders: map[Owner]*Lender{}, privates: map[*Private]struct{}{}, agentSessions: agentSessions{started: map[int]int64{}, lent: map[int]int{}}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.fences.Above(above)
	return s
}

// Link connects a window with the lender of its shell, creating the lender if the shell is new. It sends ready, with the leases that the
// window still holds, and offers the shell to the next waiter. An older connection of the same shell is ended.
func (s *Shells) Link(w Window, o Owner, env *wire.EnvSnapshot, ready *wire.Ready) *Lender {
	for {
		ln := s.of(o)
		if ln.link(w, env, ready) {
			return ln
		}
		s.forget(ln)
	}
}

// of returns the lender of a process's shell, a new one unless that shell was here before.
func (s *Shells) of(o Owner) *Lender {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := s.lenders[o]; ln != nil {
		return ln
	}
	ln := newLender(s, o)
	s.lenders[o] = ln
	return ln
}

// forget removes a closed lender, so that a client that comes back gets a new one.
func (s *Shells) forget(ln *Lender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lenders[ln.owner] == ln {
		delete(s.lenders, ln.owner)
	}
}

// all returns the lenders whose clients reported that pid as theirs, or, with 0, all.
func (s *Shells) all(pid int) []*Lender {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*Lender, 0, len(s.lenders))
	for _, ln := range s.lenders {
		if pid == 0 || ln.PID() == pid {
			list = append(list, ln)
		}
	}
	return list
}

// Privates returns the private shells of a session's agents.
func (s *Shells) Privates(of wire.SessionID) (list []*Private) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.privates {
		if p.o.Session == of {
			list = append(list, p)
		}
	}
	return list
}

// Find returns the shell to borrow: that of the client that calls itself by that pid, or, with 0, the one last typed in. Nil where
// no such window is linked.
func (s *Shells) Find(pid int) *Lender { return LastTyped(s.all(pid)) }

// LastTyped returns the shell that its user typed in last, of those whose client is linked; nil for none. Asked twice about the
// same shells it answers the same.
func LastTyped(lenders []*Lender) *Lender {
	var best *Lender
	var last time.Time
	for _, ln := range lenders {
		ln.mu.Lock()
		linked, typed := ln.conn.window != nil, ln.typedAt
		ln.mu.Unlock()
		if linked && (best == nil || typed.After(last) || typed.Equal(last) && ln.PID() < best.PID()) {
			best, last = ln, typed
		}
	}
	return best
}

// Revoke takes back the lease with that id, or with "" all, from the borrowers of the client that calls itself by that pid, or
// with 0 of all. The error is ErrNoLease or a *NoShellError where there is nothing of that name.
func (s *Shells) Revoke(id wire.LeaseID, pid int) error {
	lenders := s.all(pid)
	if len(lenders) == 0 && id == "" {
		return &NoShellError{PID: pid}
	}
	found := false
	for _, ln := range lenders {
		found = ln.revoke(id) || found
	}
	if !found && id != "" {
		return ErrNoLease
	}
	return nil
}

// begin runs f in a goroutine that Close waits for. After Close it returns false.
func (s *Shells) begin(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.work.Go(f)
	return true
}

// Close ends every lease, and the jobs that began in the foreground of private shells: the daemon stops.
func (s *Shells) Close() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	defer s.work.Wait()
	for _, ln := range s.all(0) {
		ln.close(lease.ShuttingDown)
	}
}

// A NoShellError reports that nobody lends a shell that could be borrowed.
type NoShellError struct{ PID int }

func (e *NoShellError) Error() string {
	if e.PID != 0 {
		return fmt.Sprintf("client %d lends no shell", e.PID)
	}
	return "nobody lends a shell"
}

// Hint returns how to have one.
func (e *NoShellError) Hint() string {
	return "start `sublet` in a terminal, or name another client: `sublet lease ls`"
}
