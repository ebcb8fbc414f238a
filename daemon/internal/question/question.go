// Package question puts the questions of turns to people: each has one end, which is an event of its session, and the first answer
// counts. What is asked, and who may answer, it leaves to hub.
package question

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/eventlog"
	"sublet/wire"
)

// ErrNoQuestion reports that there is no such question, or that it has been resolved.
var ErrNoQuestion = errors.New("there is no such question")

// longest is how long a question waits for an answer that has no bound of its own.
const longest = 7 * 24 * time.Hour

// Client is a subscriber that may be able to answer.
type Client interface {
	eventlog.Subscriber
	CanConfirm() bool
}

// Question is what Ask asks.
type Question[C Client] struct {
	Request *wire.ConfirmationRequest // Ask owns it
	Events  *eventlog.Log[C]          // of the session that asks
	Project string                    // that its grants are about
	Bound   time.Duration             // how long it waits; 0: longest
	// Concerns reports whether a client that is not subscribed to the session is asked as well. It is called under the Open's lock, also
	// for a client that has gone. nil: none is.
	Concerns func(C) bool

	others []C                 // those who were asked
	answer chan agent.Decision // holds one
}

// Open are the open questions of all sessions. It is safe for concurrent use.
type Open[C Client] struct {
	clients func() []C // who is connected
	log     *slog.Logger
	asked   func() // called when a question has been sent

	mu sync.Mutex // taken before the lock of a session's events, so that everybody receives a question before its end
	// below: guarded by mu
	open map[wire.ConfirmationID]*Question[C]
}

// New returns an Open without questions.
func New[C Client](clients func() []C, log *slog.Logger, asked func()) *Open[C] {
	return &Open[C]{clients: clients, log: log, asked: asked, open: map[wire.ConfirmationID]*Question[C]{}}
}

// Ask puts a question to everyone subscribed, and waits for the first answer. If ctx ends first, the question is resolved as a no
// and the error is the cause.
func (o *Open[C]) Ask(ctx context.Context, q Question[C]) (agent.Decision, error) {
	q.answer = make(chan agent.Decision, 1)
	id := q.Request.ConfirmationID
	o.mu.Lock()
	err := q.Events.Ask(q.Request)
	if err == nil {
		o.open[id] = &q
		o.showLocked(&q, o.clients()...)
	}
	o.mu.Unlock()
	if err != nil {
		return agent.Decision{}, fmt.Errorf("the question could not be stored: %w", err)
	}
	o.asked()
	bound := cmp.Or(q.Bound, longest)
	expiry := time.NewTimer(bound)
	defer expiry.Stop()
	select {
	case <-expiry.C:
		o.deny(id, agent.Decision{By: "expiry", Reason: "nobody answered within " + bound.String()})
		return <-q.answer, nil
	case d := <-q.answer:
		return d, nil
	case <-ctx.Done():
		o.deny(id, agent.Decision{By: "cancel"}) // somebody may have been faster, but the turn is over all the same
		return agent.Decision{}, context.Cause(ctx)
	}
}

// deny ends a question as a no, if it is still open.
func (o *Open[C]) deny(id wire.ConfirmationID, d agent.Decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q := o.open[id]; q != nil {
		o.resolveLocked(q, wire.DecisionDeny, d)
	}
}

// Answer resolves a question that c was asked, as decide says. An error of decide, which is called under the lock, leaves it open.
func (o *Open[C]) Answer(id wire.ConfirmationID, c C, decide func(q *Question[C]) (decision string, d agent.Decision, err error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.open[id]
	if q == nil || !slices.Contains(q.Events.Subscribers(), c) && !q.concerns(c) {
		return ErrNoQuestion
	}
	decision, d, err := decide(q)
	if err == nil {
		o.resolveLocked(q, decision, d)
	}
	return err
}

// resolveLocked removes a question, sends its end to the clients, and passes the decision to the call that waits.
func (o *Open[C]) resolveLocked(q *Question[C], decision string, d agent.Decision) {
	delete(o.open, q.Request.ConfirmationID)
	m := &wire.ConfirmationResolved{ConfirmationID: q.Request.ConfirmationID, Decision: decision, By: d.By, Comment: d.Comment}
	m.TurnID, m.RequestID = q.Request.TurnID, q.Request.RequestID
	if err := q.Events.Resolve(q.Request, m); err != nil {
		o.log.Error("the end of a question could not be stored", "confirmation", m.ConfirmationID, "err", err)
		d.Allowed, d.EditedCommand, d.Reason = false, nil, "the decision could not be stored"
	}
	subscribed := q.Events.Subscribers()
	for _, c := range q.others {
		if !slices.Contains(subscribed, c) {
			c.Send(m)
		}
	}
	q.answer <- d
}

// Show sends c, which has just connected or changed its session, the open questions of other sessions that concern it.
func (o *Open[C]) Show(c C) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range o.open {
		o.showLocked(q, c)
	}
}

// showLocked sends a question to those of the clients whom it concerns and who were not sent it.
func (o *Open[C]) showLocked(q *Question[C], clients ...C) {
	subscribed := q.Events.Subscribers()
	for _, c := range clients {
		if c.CanConfirm() && q.concerns(c) && !slices.Contains(q.others, c) && !slices.Contains(subscribed, c) {
			q.others = append(q.others, c)
			c.Send(q.Request)
		}
	}
}

func (q *Question[C]) concerns(c C) bool { return q.Concerns != nil && q.Concerns(c) }

// Waiting returns the turns that wait for a person's decision, by their sessions.
func (o *Open[C]) Waiting() map[wire.SessionID]wire.TurnID {
	o.mu.Lock()
	defer o.mu.Unlock()
	turns := map[wire.SessionID]wire.TurnID{}
	for _, q := range o.open {
		turns[q.Request.SessionID] = q.Request.TurnID
	}
	return turns
}
