package hub

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/crew"
	"sublet/daemon/internal/job"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/provider"
	"sublet/wire"
)

// maxRequestIDs bounds the ids remembered to refuse repeats.
const maxRequestIDs = 1 << 16

// operation is work in progress that a client asked for: a turn, which may still wait in its session's queue, a command in another
// client's shell, or an answer that takes its time.
type operation struct {
	origin  *Client // who asked
	request wire.RequestID
	turn    *turn // nil: the operation is not a turn
	cancel  context.CancelCauseFunc

	limited  bool // limits.running_turns bounds how many such operations a client may have
	attached bool // it ends with its client's connection, since nobody else receives its result

	beforeNext func(ctx context.Context) // what answerLater does before the connection's next request is read; nil: nothing
}

// begin adds an operation to those that run. It fails while the daemon stops, and above the client's limit. end removes the operation.
// The caller calls h.work.Done, for which Close waits, when nothing of it runs any more.
func (h *Hub) begin(o *operation) error {
	limit := h.opts.Config().Limits.RunningTurns
	h.mu.Lock()
	defer h.mu.Unlock()
	own := 0
	for other := range h.running {
		if other.limited && other.origin == o.origin {
			own++
		}
	}
	switch {
	case o.limited && own >= limit:
		return &LimitError{Limit: limit}
	case h.closing:
		return lend.ErrShuttingDown
	}
	h.running[o] = struct{}{}
	h.work.Add(1)
	return nil
}

// end removes an operation from those that run. It is called before the client is sent the operation's end, so that the client can begin
// another at once, also at its limit. A second call does nothing.
func (h *Hub) end(o *operation) {
	h.mu.Lock()
	delete(h.running, o)
	h.mu.Unlock()
	h.signalActivity()
}

// find returns an operation that runs and for which is returns true; nil if there is none.
func (h *Hub) find(is func(o *operation) bool) *operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	for o := range h.running {
		if is(o) {
			return o
		}
	}
	return nil
}

// cancelAttached cancels the operations that end with the client's connection.
func (c *Client) cancelAttached() {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	for o := range c.hub.running {
		if o.attached && o.origin == c {
			o.cancel(cancelledBy(c.who(), "its connection ended"))
		}
	}
}

// RememberID records the id of a request before the method that serves the request is called. It returns ErrDuplicateID for a repeat and
// an *InvalidError for an id that is empty or too long.
func (c *Client) RememberID(id wire.RequestID) error {
	if len(id) == 0 || len(id) > 128 {
		return invalid("request_id: %d bytes, want 1 to 128", len(id))
	}
	if _, seen := c.seen[id]; seen {
		return ErrDuplicateID
	}
	if c.seen == nil {
		c.seen = map[wire.RequestID]struct{}{}
	}
	c.seen[id] = struct{}{}
	if c.seenOrder = append(c.seenOrder, id); len(c.seenOrder) > maxRequestIDs {
		delete(c.seen, c.seenOrder[0])
		c.seenOrder = c.seenOrder[1:]
	}
	return nil
}

// Cancel ends a turn, or withdraws a prompt that waits, of any connection by its id, or a request of this one. What is over already
// is left alone: the two may have crossed on the way.
func (c *Client) Cancel(r *wire.CancelRequest) error {
	why := cancelledBy(c.who(), r.Reason)
	byTurn, byRequest := r.TurnID != nil && *r.TurnID != "", r.RequestID != nil && *r.RequestID != ""
	switch {
	case byTurn == byRequest:
		return invalid("one of turn_id and request_id must be given")
	case byTurn:
		for _, t := range c.hub.unfinished() {
			if t.id == *r.TurnID {
				t.cancel(why)
			}
		}
	default:
		if o := c.hub.find(func(o *operation) bool { return o.origin == c && o.request == *r.RequestID }); o != nil {
			o.cancel(why)
		} else if _, seen := c.seen[*r.RequestID]; !seen {
			return invalid("no request %q was made on this connection", *r.RequestID)
		}
	}
	return nil
}

// answerLater answers a request that takes long, in a goroutine, so that the connection's reader goes on: work's context ends when the request is cancelled.
// The caller's hold on s ends with the work, or with an error.
func (c *Client) answerLater(o *operation, s *session, work func(ctx context.Context) (wire.Message, error)) error {
	h := c.hub
	ctx, cancel := context.WithCancelCause(h.ctx)
	o.origin, o.cancel = c, cancel
	if err := h.begin(o); err != nil {
		cancel(nil)
		h.release(s)
		return err
	}
	if o.beforeNext != nil {
		o.beforeNext(ctx)
	}
	go func() { // ends with its work; Close waits for it
		defer h.work.Done()
		defer h.release(s)
		defer cancel(nil)
		c.answer(ctx, o.request, work, func() { h.end(o) })
	}()
	return nil
}

// answer runs work, then over, which ends the request's operation, and then sends work's message, unless that is nil, or an Error.
// A panic in work is an error.
func (c *Client) answer(ctx context.Context, id wire.RequestID, work func(ctx context.Context) (wire.Message, error), over func()) {
	var m wire.Message
	err := c.hub.guard("a request", func() (err error) {
		m, err = work(ctx)
		return err
	})
	over()
	switch {
	case err != nil:
		c.fail(ctx, id, err)
	case m != nil:
		c.Send(m)
	}
}

// fail answers a request with the Error for err or, if ctx has ended, for the cause of that.
func (c *Client) fail(ctx context.Context, id wire.RequestID, err error) {
	failure := failed(ctx, err).Failure()
	failure.RequestID = id
	if errors.As(err, new(*job.NotFoundError)) || errors.As(err, new(*crew.UnknownError)) {
		failure.Code = wire.CodeInvalidMessage
	}
	c.Send(failure)
}

// failed is the outcome of work that failed because of err or, if ctx has ended, of that.
func failed(ctx context.Context, err error) agent.Outcome {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	out := agent.Outcome{Err: err}
	out.Status, out.StopReason, out.Summary = wire.StatusError, wire.StatusError, err.Error()
	if why, ok := errors.AsType[*stopped](err); ok {
		out.Status, out.StopReason = why.status, why.status
	}
	return out
}

// succeeded is the outcome of a turn without a model that ran one tool.
func succeeded(tool, summary string) (out agent.Outcome) {
	out.Status, out.StopReason, out.Summary, out.ToolsExecuted = wire.StatusSuccess, string(provider.EndTurn), summary, []string{tool}
	return out
}

// guard returns a panic in work as an error: a fault in one agent's turn must not end the daemon.
func (h *Hub) guard(what string, work func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			h.log.Error("a fault in "+what, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal fault: %v", r)
		}
	}()
	return work()
}
