package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sublet/client/internal/remote"
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

	questions map[wire.ConfirmationID]*Question // that are open
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
	// Asked, if not nil, receives in place of Handle the questions of a session that was connected with Confirm. It must not wait for
	// their answers.
	Asked func(*Question)
	// Ended, if not nil, receives in place of Handle the outcome of the turn, as Outcome returns it.
	Ended func(status string, why *wire.Error)
	// Flush, if not nil, is called after a Handle that is not followed at once by another one of this turn.
	Flush func()
	// Outlives is set for a turn that goes on when its client has left: Cancel ends it only by its id.
	Outlives bool

	// Outcome: read it in Handle, or after Done.
	Problem *wire.Error         // why it was refused or failed; nil = it was not
	End     *wire.AgentComplete // nil if it never began

	files   []string      // of Turns.Handed, removed at the end
	done    chan struct{} // closed after Handle of the end
	turns   *Turns
	session *Session // set once, by Ask, with turns.mu held; the caller of Ask may then read it without

	// below: guarded by session.mu
	request   *wire.AgentRequest
	turn      wire.TurnID // "" = not begun
	link      int         // number of the link on which the request was sent; 0 = being sent
	cancelled string      // why; "" = not
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
	t.turns, t.done = l, make(chan struct{})
	l.open = append(l.open, t)
	return nil
}

// Ask sends the turn's request in a session whose events Deliver handles: TurnStarted and exactly one AgentComplete, or one *wire.Error
// without a turn if it never began. It sets the request's id. After an error of Ask the turn has ended without a call of Handle.
func (t *Turn) Ask(ctx context.Context, s *Session, r *wire.AgentRequest) error {
	r.RequestID = wire.RequestID(wire.NewID())
	kept := *r
	t.turns.mu.Lock()
	s.mu.Lock()
	t.session, t.request = s, &kept
	s.turns = append(s.turns, t) // before sending: the answer may come before Ask returns
	s.mu.Unlock()
	t.turns.mu.Unlock()
	err := s.withConn(ctx, func(c *remote.Conn, link int) error {
		if err := c.Post(ctx, r); err != nil {
			return err
		}
		s.mu.Lock()
		t.link = link
		lost := link != s.links
		s.mu.Unlock()
		if lost { // an older link may have delivered it
			s.work.Go(s.reconcile)
		}
		return nil
	})
	s.mu.Lock()
	begun := t.turn != "" || !slices.Contains(s.turns, t) // also where Post failed on a link that broke behind the request
	if err != nil && !begun {
		s.turns = slices.DeleteFunc(s.turns, func(o *Turn) bool { return o == t })
	}
	s.mu.Unlock()
	if err == nil || begun {
		return nil
	}
	t.Abandon()
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

// Done is closed when the turn has ended and Handle was called for it.
func (t *Turn) Done() <-chan struct{} { return t.done }

// Outcome returns how a turn that is done ended, as one of wire.Status…, and why if that is not success.
func (t *Turn) Outcome() (status string, why *wire.Error) {
	status = wire.StatusError
	switch {
	case t.End != nil:
		status = t.End.Status
	case t.Problem.Code == wire.CodeCancelled: // before it began
		status = wire.StatusCancelled
	}
	return status, Why(status, t.Problem)
}

// Why returns why a turn ended with that status: problem, if it had one; nil for success.
func Why(status string, problem *wire.Error) *wire.Error {
	code, text := wire.CodeInternal, "the turn failed"
	switch {
	case status == wire.StatusSuccess:
		return nil
	case problem != nil:
		return problem
	case status == wire.StatusCancelled:
		code, text = wire.CodeCancelled, "the turn was cancelled"
	case status == wire.StatusTimeout:
		code, text = wire.CodeTimeout, "the turn took too long"
	}
	return &wire.Error{Code: code, Message: text, Recoverable: true}
}

// Pending reports whether the session has received neither the end nor a refusal of the turn, for which Ask was called. When a
// Request of that session returns, the session has received all that the daemon sent before its reply; Handle may be called later.
func (t *Turn) Pending() bool {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	return slices.Contains(t.session.turns, t)
}

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

// Cancel cancels the turn with the client's id, or with the daemon's id turn. With neither it cancels all that do not outlive the
// client. Only turns of one session count, or of all for nil. Turns that wait, or whose link was lost, are cancelled too. The ends
// follow. It reports whether there was a turn to cancel.
func (l *Turns) Cancel(of *Session, id string, turn wire.TurnID, why string) (found bool) {
	for _, t := range l.Running(of) {
		one := id != "" || turn != ""
		if (id == "" || t.ID == id) && (one || !t.Outlives) && t.cancel(turn, why) {
			found = true
		}
	}
	return found
}

// Cancel ends the turn; its end follows. It has no effect on one that has ended, or for which Ask was not called.
func (t *Turn) Cancel(why string) { t.cancel("", why) }

// cancel cancels the turn, if its id in the daemon is turn or turn is "". It reports whether it did.
func (t *Turn) cancel(turn wire.TurnID, why string) bool {
	t.turns.mu.Lock()
	s := t.session
	t.turns.mu.Unlock()
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.turns, t) || turn != "" && t.turn != turn {
		return false
	}
	t.cancelled = why
	s.cancelLocked(t)
	s.endWaitingLocked()
	return true
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

// Deliver passes a session's events to the turns they belong to, until ctx or the session ends. A Handle that blocks, since the
// client does not read, fills the session's inbox.
func (l *Turns) Deliver(ctx context.Context, s *Session) {
	for {
		list, err := s.nextBatch(ctx, deliverMost)
		if err != nil {
			return // the connection or the session has ended
		}
		var last *Turn
		for _, r := range list {
			e, t := r.EventMessage, r.turn
			if last != nil && last != t {
				last.flush()
			}
			if last = t; t == nil { // of no request, or of one that another client of the session has made
				if e, ok := e.(*wire.Error); ok && e.RequestID == "" {
					l.refused(e)
				}
				continue
			}
			var q *Question
			switch e := e.(type) {
			case *wire.ConfirmationRequest:
				if l.Question(e.ConfirmationID) != nil { // repeated after a lost link
					continue
				}
				if s.confirm {
					q = NewQuestion(ctx, s, e)
					l.asked(q)
				}
			case *wire.ConfirmationResolved:
				l.resolved(e.ConfirmationID)
			case *wire.Error:
				t.Problem = e
			case *wire.AgentComplete:
				t.End = e
			}
			if r.last { // removed first, so that a client that receives the end finds it ended
				l.remove(t)
			}
			switch {
			case q != nil && t.Asked != nil:
				t.Asked(q)
			case r.last && t.Ended != nil:
				t.Ended(t.Outcome())
			default:
				t.Handle(e)
			}
			if r.last {
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

// turnLocked returns the turn that a request of this session began, until its end is in the inbox; else nil.
func (s *Session) turnLocked(id wire.RequestID) *Turn {
	i := slices.IndexFunc(s.turns, func(t *Turn) bool { return t.request.RequestID == id })
	if i < 0 {
		return nil
	}
	return s.turns[i]
}

// followLocked updates a turn by one of its events, and reports whether that is its last one.
func (s *Session) followLocked(t *Turn, e wire.EventMessage) (last bool) {
	switch e := e.(type) {
	case *wire.TurnStarted:
		t.turn = e.TurnID
		if t.cancelled != "" {
			s.cancelLocked(t)
		}
		s.endWaitingLocked()
	case *wire.AgentComplete:
		last = true
	case *wire.Error:
		last = e.TurnID == "" // refused before it began
	}
	if last {
		s.turns = slices.DeleteFunc(s.turns, func(o *Turn) bool { return o == t })
	}
	return last
}

// reconcile finds out, after a link came up, what became of requests that had not begun on an older one. All missed events
// come before the daemon's answer to its StatusRequest.
func (s *Session) reconcile() {
	s.mu.Lock()
	link := s.links
	s.mu.Unlock()
	r, err := wire.Call(s.ctx, s.conn, &wire.SessionRequest{Op: "get"})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || link != s.links {
		return // repeated with the next link
	}
	for _, t := range slices.Clone(s.turns) {
		switch {
		case t.turn != "":
			if t.cancelled != "" {
				s.cancelLocked(t)
			}
		case t.link == 0 || t.link == link:
		case r.Session.Running:
			s.recheck = true // it waits or never arrived: check again when the running one ends
		case t.cancelled != "":
			s.endLocked(t, wire.CodeCancelled, t.cancelled+", before it began")
		default:
			t.link = link
			s.log.Info("asked again", "request", t.request.RequestID)
			again := *t.request
			s.work.Go(func() { _ = s.conn.Post(s.ctx, &again) }) // if this link is lost too, reconcile runs again
		}
	}
}

// endLocked ends a turn here, without an end from the daemon.
func (s *Session) endLocked(t *Turn, code, message string) {
	s.turns = slices.DeleteFunc(s.turns, func(o *Turn) bool { return o == t })
	s.pushLocked(received{&wire.Error{
		Event: wire.Event{SessionID: s.id, RequestID: t.request.RequestID, AtMS: time.Now().UnixMilli()},
		Code:  code, Message: message, Details: map[string]string{}, Recoverable: true,
	}, t, true})
}

// endWaitingLocked ends cancelled turns that wait behind a running one, because the daemon reports the end of such a one only when
// it would begin.
func (s *Session) endWaitingLocked() {
	runs := slices.IndexFunc(s.turns, func(t *Turn) bool { return t.turn != "" })
	if runs < 0 {
		return
	}
	for _, t := range slices.Clone(s.turns[runs:]) {
		if t.turn == "" && t.cancelled != "" {
			s.endLocked(t, wire.CodeCancelled, t.cancelled+", before it began")
		}
	}
}

// cancelLocked sends a cancel; without a link the next reconcile does.
func (s *Session) cancelLocked(t *Turn) {
	r := &wire.CancelRequest{Reason: t.cancelled}
	switch {
	case t.turn != "":
		turn := t.turn
		r.TurnID = &turn
	case t.link == s.links:
		id := t.request.RequestID
		r.RequestID = &id
	default:
		return // it is cancelled when it begins
	}
	_ = s.conn.Send(r)
}
