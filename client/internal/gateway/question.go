package gateway

import (
	"context"
	"errors"
	"sync/atomic"

	"sublet/client/internal/remote"
	"sublet/wire"
)

// A Question is one that the daemon asks the client of a turn. It is open until its ConfirmationResolved arrives.
type Question struct {
	*wire.ConfirmationRequest
	ctx      context.Context
	end      context.CancelFunc
	session  *Session
	answered atomic.Pointer[func(*wire.Error)] // nil = not answered; else what is called if the daemon refuses the answer
}

// NewQuestion returns a question of a session; ctx is the connection's.
func NewQuestion(ctx context.Context, s *Session, m *wire.ConfirmationRequest) *Question {
	q := &Question{ConfirmationRequest: m, session: s}
	q.ctx, q.end = context.WithCancel(ctx)
	return q
}

// Context ends with the question, and with the connection.
func (q *Question) Context() context.Context { return q.ctx }

// ErrAnswered reports that a question was answered before, or is not open any more.
var ErrAnswered = errors.New("the question was answered, or its time or its turn has ended")

// Answer sends the client's answer, of which it sets the question's id. The first answer counts; after it, and after the question's
// end, Answer returns ErrAnswered. After another error the question can be answered again, as after a refusal of the daemon, which
// the goroutine of Turns.Deliver passes to refused.
func (q *Question) Answer(r wire.ConfirmationResponse, refused func(*wire.Error)) error {
	if q.ctx.Err() != nil || !q.answered.CompareAndSwap(nil, &refused) {
		return ErrAnswered
	}
	r.ConfirmationID = q.ConfirmationID
	err := q.session.withConn(q.ctx, func(c *remote.Conn, _ int) error { return c.Notify(&r) })
	if err != nil {
		q.answered.Store(nil)
		if q.ctx.Err() != nil {
			return ErrAnswered
		}
	}
	return err
}

// Question returns the open question with this id; nil if there is none.
func (l *Turns) Question(id wire.ConfirmationID) *Question {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.questions[id]
}

func (l *Turns) asked(q *Question) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.questions == nil {
		l.questions = map[wire.ConfirmationID]*Question{}
	}
	l.questions[q.ConfirmationID] = q
}

func (l *Turns) resolved(id wire.ConfirmationID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.questions[id]; q != nil {
		q.end()
		delete(l.questions, id)
	}
}

// refused handles an Error of no request, which may refuse the answer to a question.
func (l *Turns) refused(e *wire.Error) {
	q := l.Question(wire.ConfirmationID(e.Details["confirmation_id"]))
	if q == nil {
		return
	}
	if report := q.answered.Swap(nil); report != nil {
		(*report)(e)
	}
}
