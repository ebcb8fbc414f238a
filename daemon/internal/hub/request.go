package hub

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/crew"
	"sublet/daemon/internal/job"
	"sublet/wire"
)

// maxRequestIDs bounds the ids remembered to refuse repeats.
const maxRequestIDs = 1 << 16

// requests are those of one connection. It is safe for concurrent use.
type requests struct {
	mu sync.Mutex
	// below: guarded by mu
	cancels map[wire.RequestID]func(*stopped) // nil once the request is over
	order   []wire.RequestID                  // of cancels, the oldest first
	running int                               // turns running and queued, and commands in other clients' shells
}

// add remembers an id, or returns ErrDuplicateID.
func (r *requests) add(id wire.RequestID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.cancels[id]; ok {
		return ErrDuplicateID
	}
	if r.cancels == nil {
		r.cancels = map[wire.RequestID]func(*stopped){}
	}
	r.cancels[id] = nil
	r.order = append(r.order, id)
	for len(r.order) > maxRequestIDs {
		oldest := r.order[0]
		if r.order = r.order[1:]; r.cancels[oldest] != nil { // it runs
			r.order = append(r.order, oldest)
			continue
		}
		delete(r.cancels, oldest)
	}
	return nil
}

// track makes a request cancellable by its id, until untrack. It does nothing if the id was not added, or is forgotten.
func (r *requests) track(id wire.RequestID, cancel func(*stopped)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.cancels[id]; ok {
		r.cancels[id] = cancel
	}
}

func (r *requests) untrack(id wire.RequestID) { r.track(id, nil) }

// begin counts a turn, or a command in another client's shell, unless limit of them run; end ends the count.
func (r *requests) begin(limit int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running >= limit {
		return &LimitError{Limit: limit}
	}
	r.running++
	return nil
}

func (r *requests) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
}

func (r *requests) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running > 0
}

// Seen remembers the id of a request, before the method that serves the request is called. It returns ErrDuplicateID for a repeat and
// an *InvalidError for an id that is empty or too long.
func (c *Client) Seen(id wire.RequestID) error {
	if len(id) == 0 || len(id) > 128 {
		return invalid("request_id: %d bytes, want 1 to 128", len(id))
	}
	return c.requests.add(id)
}

// begin counts a turn, or a command in another client's shell; end ends the count.
func (c *Client) begin() error {
	err := c.requests.begin(c.hub.opts.Config().Limits.RunningTurns)
	if err == nil {
		if err = c.hub.begin(); err != nil {
			c.requests.end()
		}
	}
	return err
}

func (c *Client) end(id wire.RequestID) {
	c.requests.untrack(id)
	c.requests.end()
	c.hub.over()
}

// Cancel ends a turn, of any connection by its id, or a request of this one. What is over already is left alone: the
// two may have crossed on the way.
func (c *Client) Cancel(r *wire.CancelRequest) error {
	why := cancelledBy(c.who(), r.Reason)
	byTurn, byRequest := r.TurnID != nil && *r.TurnID != "", r.RequestID != nil && *r.RequestID != ""
	switch {
	case byTurn == byRequest:
		return invalid("one of turn_id and request_id must be given")
	case byTurn:
		c.hub.mu.Lock()
		t := c.hub.turns[*r.TurnID]
		c.hub.mu.Unlock()
		if t != nil {
			t.stop(why)
		}
	default:
		c.requests.mu.Lock()
		cancel, known := c.requests.cancels[*r.RequestID]
		c.requests.mu.Unlock()
		if !known {
			return invalid("no request %q was made on this connection", *r.RequestID)
		}
		if cancel != nil {
			cancel(why)
		}
	}
	return nil
}

// aside answers a request that takes its time, beside the connection's reader: work's context ends when the request is cancelled.
// The caller's hold on s ends with the work, or with an error.
func (c *Client) aside(id wire.RequestID, s *session, work func(ctx context.Context) (wire.Message, error)) error {
	h := c.hub
	if err := h.begin(); err != nil {
		h.release(s)
		return err
	}
	ctx, cancel := context.WithCancelCause(h.ctx)
	c.requests.track(id, func(why *stopped) { cancel(why) })
	go func() { // ends with its work; Close waits for it
		defer h.work.Done()
		defer h.release(s)
		defer h.over()
		defer c.requests.untrack(id)
		defer cancel(nil)
		var reply wire.Message
		err := h.guard("a request", func() (err error) {
			reply, err = work(ctx)
			return err
		})
		if err == nil {
			c.Send(reply)
			return
		}
		out := failed(err)
		if why, ok := errors.AsType[*stopped](err); ok {
			out.Status = why.status
		}
		failure := out.Failure()
		failure.RequestID = id
		if errors.As(err, new(*job.NotFoundError)) || errors.As(err, new(*crew.UnknownError)) {
			failure.Code = wire.CodeInvalidMessage
		}
		c.Send(failure)
	}()
	return nil
}

// fail answers a request with why it failed.
func (c *Client) fail(id wire.RequestID, out agent.Outcome) {
	failure := out.Failure()
	failure.RequestID = id
	c.Send(failure)
}

// panicError is a fault of ours, or of a library, that ended one turn or request.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("internal fault: %v", e.value) }

// guard makes an error of a panic in work: one agent's fault must not end everybody's daemon.
func (h *Hub) guard(what string, work func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			h.log.Error("a fault in "+what, "panic", r, "stack", string(debug.Stack()))
			err = &panicError{r}
		}
	}()
	return work()
}
