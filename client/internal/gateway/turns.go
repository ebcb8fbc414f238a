package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sublet/wire"
)

// Turns are the requests of one client that have not ended, in all its sessions. The zero value is ready; it is safe for
// concurrent use.
type Turns struct {
	Handed *Handed // holds the files of turns; nil = no turn has any

	mu sync.Mutex
	// guarded by mu
	open  []*Turn  // in the order of Begin
	ended []string // ids of the turns that ended last
}

// rememberMost is how many ids of one client Remember keeps.
const rememberMost = 4096

// Remember returns the newest rememberMost of list and id.
func Remember[T any](list []T, id T) []T {
	list = append(list, id)
	return list[max(0, len(list)-rememberMost):]
}

// A Turn is one request of a client, from Begin to the delivery of its end. The dialect sets the fields up to Outlives.
type Turn struct {
	ID string // the client's name for it; "" = none
	// Handle receives the turn's events in order, its end last, from the goroutine of Turns.Deliver.
	Handle func(wire.EventMessage)
	// Flush, if not nil, is called after a Handle that is not followed at once by another one of this turn.
	Flush func()
	// Outlives is set for a turn that goes on when its client has left: Cancel ends it only by its id.
	Outlives bool

	files   []string // of Turns.Handed, removed at the end
	request wire.RequestID
	session *Session      // set once, by Ask, with turns.mu held; may then be read without it
	done    chan struct{} // closed after Handle of the end
	turns   *Turns

	// Outcome: read it in Handle, or after Done.
	Problem *wire.Error         // why it was refused or failed; nil = it was not
	End     *wire.AgentComplete // nil if it never began

	turn wire.TurnID // "" = not begun; guarded by turns.mu
}

// ErrRepeated refuses a turn whose id is that of another one that has not ended.
var ErrRepeated = errors.New("a request with this id still runs")

// A BusyError refuses a turn beyond the limit of those that run at once.
type BusyError struct{ Running, Limit int }

func (e *BusyError) Error() string {
	return fmt.Sprintf("%d requests run, and at most %d may at once", e.Running, e.Limit)
}

// Begin registers a turn of which at most limit may run at once (0 = any number). Errors are *BusyError and, for an id that a
// running turn has, ErrRepeated. Ask or Abandon must follow.
func (l *Turns) Begin(t *Turn, limit int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.ID != "" && slices.ContainsFunc(l.open, func(o *Turn) bool { return o.ID == t.ID }) {
		return ErrRepeated
	}
	if n := len(l.open); limit > 0 && n >= limit {
		return &BusyError{n, limit}
	}
	t.turns, t.request, t.done = l, wire.RequestID(wire.NewID()), make(chan struct{})
	l.open = append(l.open, t)
	return nil
}

// Ask sends the turn's request in a session whose events Deliver handles. After an error, which is that of Session.Ask, the turn
// has ended without a call of Handle.
func (t *Turn) Ask(ctx context.Context, s *Session, r *wire.AgentRequest) error {
	r.RequestID = t.request
	t.turns.mu.Lock()
	t.session = s // before asking: the answer may come before Ask returns
	t.turns.mu.Unlock()
	err := s.Ask(ctx, r)
	if err != nil {
		t.Abandon()
	}
	return err
}

// Abandon ends a turn whose request was not sent.
func (t *Turn) Abandon() {
	t.turns.remove(t)
	close(t.done)
}

// remove removes a turn from those that have not ended.
func (l *Turns) remove(t *Turn) {
	l.mu.Lock()
	l.open = slices.DeleteFunc(l.open, func(o *Turn) bool { return o == t })
	l.ended = Remember(l.ended, t.ID)
	l.mu.Unlock()
	if len(t.files) > 0 {
		l.Handed.Remove(t.files...)
	}
}

// Cancel ends a turn for which Ask was called; its end follows. It returns false if the turn has ended.
func (t *Turn) Cancel(why string) bool { return t.session.Cancel(t.request, why) }

// Done is closed when the turn has ended and Handle was called for it.
func (t *Turn) Done() <-chan struct{} { return t.done }

// Pending reports whether the session has received neither the end nor a refusal of the turn, for which Ask was called. When a
// Request of that session returns, the session has received all that the daemon sent before its reply; Handle may be called later.
func (t *Turn) Pending() bool { return t.session.pending(t.request) }

// Ended reports whether id is one of the last turns that ended.
func (l *Turns) Ended(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.ended, id)
}

// Running returns the turns that have not ended: of one session, or of all for nil.
func (l *Turns) Running(of *Session) []*Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.open), func(t *Turn) bool { return of != nil && t.session != of })
}

// Cancel ends turns, whose ends follow: that with a client's id, or with the daemon's turn, or, where both are "", all of a session
// or, for nil, of all sessions. It reports whether there was one.
func (l *Turns) Cancel(of *Session, id string, turn wire.TurnID, why string) (found bool) {
	for _, t := range l.Running(of) {
		l.mu.Lock()
		wanted := t.session != nil && (id == "" || t.ID == id) && (turn == "" || t.turn == turn) && !(t.Outlives && id == "" && turn == "")
		l.mu.Unlock()
		found = wanted && t.Cancel(why) || found
	}
	return found
}

// Wait waits until the turns that run now have ended: those of one session, or all for nil. It returns false if ctx ends first.
func (l *Turns) Wait(ctx context.Context, of *Session) bool {
	for _, t := range l.Running(of) {
		select {
		case <-t.done:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// deliverMost is how many waiting messages Deliver takes at once.
const deliverMost = 256

// Deliver passes a session's events to the turns they belong to, and those of no request to other (nil = to nobody), until ctx or
// the session ends. A Handle that blocks, since the client does not read, fills the session's inbox.
func (l *Turns) Deliver(ctx context.Context, s *Session, other func(wire.EventMessage)) {
	for {
		list, err := s.NextBatch(ctx, deliverMost)
		if err != nil {
			return // the connection or the session has ended
		}
		var last *Turn
		for _, m := range list {
			e, ok := m.(wire.EventMessage)
			if !ok {
				continue
			}
			t, over := l.follow(s, e)
			if last != nil && last != t {
				last.flush()
			}
			if last = t; t == nil {
				if e.Meta().RequestID == "" && other != nil {
					other(e)
				}
				continue
			}
			t.Handle(e)
			if over {
				t.flush()
				close(t.done)
				last = nil
			}
		}
		if last != nil {
			last.flush()
		}
	}
}

func (t *Turn) flush() {
	if t.Flush != nil {
		t.Flush()
	}
}

// follow updates the turn of an event of s and returns it; nil if the event belongs to no turn that was asked there, since another
// session of the client may be attached to the same one of the daemon. With over the event was the turn's last one, and the turn has
// been removed, so that a client that receives the end finds it ended.
func (l *Turns) follow(s *Session, e wire.EventMessage) (t *Turn, over bool) {
	id := e.Meta().RequestID
	l.mu.Lock()
	i := slices.IndexFunc(l.open, func(t *Turn) bool { return id != "" && t.request == id && t.session == s })
	if i < 0 {
		l.mu.Unlock()
		return nil, false
	}
	t = l.open[i]
	switch e := e.(type) {
	case *wire.TurnStarted:
		t.turn = e.TurnID
	case *wire.Error:
		t.Problem = e
		over = e.TurnID == "" // refused before it began
	case *wire.AgentComplete:
		t.End, over = e, true
	}
	l.mu.Unlock()
	if over {
		l.remove(t)
	}
	return t, over
}
