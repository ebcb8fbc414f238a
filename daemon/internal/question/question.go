// Package question puts the questions of a session's turns to people: each has one end, which is an event of the session, and the
// first answer counts. What is asked, and who may answer, it leaves to hub.
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
	"sublet/daemon/internal/store"
	"sublet/wire"
)

// ErrNoQuestion reports that there is no such question, or that it has been resolved.
var ErrNoQuestion = errors.New("there is no such question")

// closedWindow is how long a question waits while no client is subscribed that can answer it.
const closedWindow = 24 * time.Hour

// Client is a subscriber that may be able to answer.
type Client interface {
	eventlog.Subscriber
	CanConfirm() bool
}

// Question is what Ask asks.
type Question[C Client] struct {
	Request *wire.ConfirmationRequest // Ask owns it
	Project string                    // that its grants are about
	Bound   time.Duration             // how long it waits; 0: without bound while a client is there that can answer, else closedWindow
	// Others are asked in addition to the session's subscribers, and so is each client for which Concerns is true when Show is called.
	// Concerns, which is false for a client that has gone, is called under the Open's lock. nil: nobody else.
	Others   []C
	Concerns func(C) bool

	answer chan agent.Decision // holds one
	expiry *time.Timer
}

// Open are a session's open questions. It is safe for concurrent use.
type Open[C Client] struct {
	events *eventlog.Log[C]
	log    *slog.Logger
	asked  func() // called when a question has been sent

	mu sync.Mutex // taken before the lock of events, so that everybody receives a question before its end
	// below: guarded by mu
	open map[wire.ConfirmationID]*Question[C]
}

// New returns the questions of the session with these events.
func New[C Client](events *eventlog.Log[C], log *slog.Logger, asked func()) *Open[C] {
	return &Open[C]{events: events, log: log, asked: asked, open: map[wire.ConfirmationID]*Question[C]{}}
}

// Ask puts a question to everyone subscribed, and waits for the first answer. If ctx ends first, the question is resolved as a no
// and the error is the cause.
func (o *Open[C]) Ask(ctx context.Context, q Question[C]) (agent.Decision, error) {
	q.answer = make(chan agent.Decision, 1)
	id := q.Request.ConfirmationID
	o.mu.Lock()
	err := o.events.Ask(q.Request)
	if err == nil {
		o.open[id] = &q
		o.sendOthersLocked(&q, q.Request)
		o.watchLocked()
	}
	o.mu.Unlock()
	if err != nil {
		return agent.Decision{}, fmt.Errorf("the question could not be stored: %w", err)
	}
	o.asked()
	select {
	case d := <-q.answer:
		return d, nil
	case <-ctx.Done():
	}
	o.deny(id, agent.Decision{By: "cancel"}) // somebody may have been faster, but the turn is over all the same
	return agent.Decision{}, context.Cause(ctx)
}

// deny ends a question as a no, if it is still open.
func (o *Open[C]) deny(id wire.ConfirmationID, d agent.Decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q := o.open[id]; q != nil {
		o.resolveLocked(q, wire.DecisionDeny, d)
	}
}

// Answer resolves a question as decide says. An error of decide, which is called under the lock, leaves it open.
func (o *Open[C]) Answer(id wire.ConfirmationID, decide func(q *Question[C]) (decision string, d agent.Decision, err error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.open[id]
	if q == nil {
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
	if q.expiry != nil {
		q.expiry.Stop()
	}
	m := &wire.ConfirmationResolved{ConfirmationID: q.Request.ConfirmationID, Decision: decision, By: d.By, Comment: d.Comment}
	m.TurnID, m.RequestID = q.Request.TurnID, q.Request.RequestID
	store.Mask(m)
	if err := o.events.Resolve(q.Request, m); err != nil {
		o.log.Error("the end of a question could not be stored", "confirmation", m.ConfirmationID, "err", err)
		d.Allowed, d.EditedCommand, d.Reason = false, nil, "the decision could not be stored"
	}
	o.sendOthersLocked(q, m)
	q.answer <- d
}

// sendOthersLocked sends m, which the session's subscribers were sent, to the others who are asked.
func (o *Open[C]) sendOthersLocked(q *Question[C], m wire.Message) {
	if len(q.Others) == 0 {
		return
	}
	subscribed := o.events.Subscribers()
	for _, c := range q.Others {
		if c.CanConfirm() && !slices.Contains(subscribed, c) {
			c.Send(m)
		}
	}
}

// Watch must be called after a client has subscribed or unsubscribed: a question expires while nobody can answer it.
func (o *Open[C]) Watch() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watchLocked()
}

// watchLocked starts the expiry timer of each question that has a bound or no subscriber who can answer, and stops the others' timers.
func (o *Open[C]) watchLocked() {
	if len(o.open) == 0 {
		return
	}
	attended := slices.ContainsFunc(o.events.Subscribers(), C.CanConfirm)
	for id, q := range o.open {
		switch expires := q.Bound > 0 || !attended; {
		case !expires && q.expiry != nil:
			q.expiry.Stop()
			q.expiry = nil
		case expires && q.expiry == nil:
			after := cmp.Or(q.Bound, closedWindow)
			q.expiry = time.AfterFunc(after, func() { o.expire(id, after) })
		}
	}
}

// expire denies a question that nobody answered in the time after. A question without a bound waits for after once more while a client
// outside the session can answer it.
func (o *Open[C]) expire(id wire.ConfirmationID, after time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.open[id]
	switch {
	case q == nil || q.expiry == nil: // resolved, or a subscriber came
	case q.Bound == 0 && slices.ContainsFunc(q.Others, func(c C) bool { return c.CanConfirm() && o.concerns(q, c) }):
		q.expiry.Reset(after)
	default:
		o.resolveLocked(q, wire.DecisionDeny, agent.Decision{By: "expiry", Reason: "nobody answered within " + after.String()})
	}
}

// Show sends c, a client of another session, the open questions that it may answer.
func (o *Open[C]) Show(c C) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range o.open {
		if !slices.Contains(q.Others, c) && o.concerns(q, c) {
			q.Others = append(q.Others, c)
			c.Send(q.Request)
		}
	}
}

// Concerns reports whether there is an open question of that id which c may answer although it is not of the session.
func (o *Open[C]) Concerns(id wire.ConfirmationID, c C) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.open[id]
	return q != nil && o.concerns(q, c)
}

func (o *Open[C]) concerns(q *Question[C], c C) bool { return q.Concerns != nil && q.Concerns(c) }

// Turn returns the turn that waits for a person's decision, "" if none does.
func (o *Open[C]) Turn() wire.TurnID {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range o.open {
		return q.Request.TurnID
	}
	return ""
}
