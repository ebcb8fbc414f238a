package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/store"
	"sublet/wire"
	"sublet/wire/visible"
)

// turn is one piece of work in a session: a conversation's turn, a tool for a person, an undo. It outlives the
// connection that asked for it.
type turn struct {
	operation // among the hub's until the turn's end is sent; the shell of the client that asked comes first
	wishes
	hub     *Hub
	s       *session
	id      wire.TurnID
	work    func(ctx context.Context, t *turn) agent.Outcome
	serve   func(ctx context.Context) (wire.Message, error) // in place of work: answers a request that waits its turn in the queue, and stores no events of a turn
	parent  *session                                        // of an agent in the background: the session that started it, held
	cwd     wire.OSString                                   // of such an agent: where its private shells start
	rules   []wire.Rule                                     // of such an agent
	foreign *foreign                                        // works for an agent of another program; nil: for one of ours, or a person
	steers  *turn                                           // the running turn that is to take in the prompt, unless it ends before; nil: none

	ctx  context.Context // ends when the turn is cancelled, also while it waits
	done chan struct{}   // closed when the turn is over, and all that were queued before it

	mu       sync.Mutex
	cleanups []func() // guarded by mu: to be called when it is over

	begun    atomic.Bool // it has had its turn in the queue, and has work
	unstored atomic.Bool // the store failed: nothing more of the turn is stored
	recorded bool        // its TurnStarted, or CompactionStarted, is stored
}

// wishes are the fields of a request that its turn follows.
type wishes struct {
	agent   string
	prompt  string
	model   string
	mode    string // the request's; "" = the session's
	wider   bool   // mode lets more run than the session's did: a person asked for it
	approve *bool  // require_approval
	timeout time.Duration
}

// maxQueued is how many turns of a session run and wait, or limits.running_turns where that is more: the queued turns of a
// connection stay when it is closed.
const maxQueued = 100

// enqueue appends a turn to its session's queue and has it played when those before it are over. It takes over the caller's hold on
// the session, and releases it also if it returns an error.
func (h *Hub) enqueue(t *turn) error {
	s := t.s
	t.ctx, t.cancel = context.WithCancelCause(h.ctx)
	t.hub, t.id, t.done = h, wire.TurnID(wire.NewID()), make(chan struct{})
	t.turn, t.limited = t, t.steers == nil // a prompt for a running turn is not bounded
	if err := h.begin(&t.operation); err != nil {
		t.cancel(nil)
		h.release(s)
		return err
	}
	before, err := s.queue(t, max(maxQueued, h.opts.Config().Limits.RunningTurns))
	if err != nil {
		t.cancel(nil)
		h.end(&t.operation)
		h.release(s)
		h.work.Done()
		return err
	}
	s.sendWaiting()
	go func() { // ends with the turn; Close waits for it
		defer h.work.Done()
		select {
		case <-before:
		case <-t.ctx.Done():
		}
		t.play()
		t.close()
		<-before
		close(t.done)
	}()
	return nil
}

// queue appends a turn to the session's queue, which holds up to limit, and returns what is closed when the turns before it are over.
func (s *session) queue(t *turn, limit int) (before <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.events.Deleted():
		return nil, ErrNoSession
	case len(s.turns) >= limit:
		return nil, &LimitError{Limit: limit, Session: true}
	}
	before = s.played
	s.turns, s.played = append(s.turns, t), t.done
	return before, nil
}

// dropLocked takes a turn out of the session's queue.
func (s *session) dropLocked(t *turn) {
	if i := slices.Index(s.turns, t); i >= 0 {
		s.turns = slices.Delete(s.turns, i, i+1)
	}
}

// emitLast is leaveQueue, and stores and sends m, the turn's AgentComplete or a compaction's CompactionComplete, under the same lock:
// whoever is sent it does not find the turn in the session any more. m has its ids. It is not sent if it cannot be stored.
func (t *turn) emitLast(m wire.EventMessage) error {
	t.hub.end(&t.operation)
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.dropLocked(t)
	return t.s.events.Emit(m)
}

// leaveQueue takes the turn out of the hub's operations and the session's queue: before its end is sent. A second call does nothing.
func (t *turn) leaveQueue() {
	t.hub.end(&t.operation)
	t.s.mu.Lock()
	t.s.dropLocked(t)
	t.s.mu.Unlock()
	t.s.sendWaiting()
}

// sendWaiting sends the clients that want it the prompts that wait in the session, if they differ from those sent last. Those that the
// running turn is to take in come first, since that happens before the next turn begins.
func (s *session) sendWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := []wire.QueuedTurn{}
	for _, steer := range []bool{true, false} {
		for _, t := range s.turns[min(len(s.turns), 1):] {
			if t.prompt != "" && steer == (t.steers == s.turns[0]) {
				waiting = append(waiting, wire.QueuedTurn{TurnID: t.id, RequestID: t.request, Prompt: visible.Cut(mask.String(t.prompt), wire.QueuedPrompt), Steer: steer})
			}
		}
	}
	if slices.Equal(waiting, s.waiting) {
		return
	}
	s.waiting = waiting
	for _, c := range s.events.Subscribers() {
		if c.queues {
			c.Send(&wire.TurnQueueChanged{SessionID: s.id, Waiting: waiting})
		}
	}
}

// close releases what the turn holds. It is called last for every turn, however it went.
func (t *turn) close() {
	t.cancel(nil)
	t.leaveQueue()
	t.hub.release(t.s)
	t.mu.Lock()
	cleanups := t.cleanups
	t.cleanups = nil
	t.mu.Unlock()
	for _, f := range cleanups {
		f()
	}
}

// cleanup has f called when the turn is over and its end has been sent.
func (t *turn) cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// play runs one turn to its one end: AgentComplete, after a stored Error where it failed. A turn that was cancelled before, or that has
// a serve function, has no such events: an Error answers the request if there is one.
func (t *turn) play() {
	h := t.hub
	if err := context.Cause(t.ctx); err != nil {
		t.leaveQueue()
		if err != errTakenIn { // else TurnSteered answers
			t.origin.Send(&wire.Error{
				Event: wire.Event{SessionID: t.s.id, RequestID: t.request}, Code: wire.CodeCancelled,
				Message: err.Error() + " before it began", Details: map[string]string{}, Recoverable: true,
			})
		}
		return
	}
	err := t.s.events.StoreEnds(t.ctx) // of earlier turns, if the store failed then: this one must not begin before
	if t.serve != nil {
		t.origin.answer(t.ctx, t.request, func(ctx context.Context) (wire.Message, error) {
			if err != nil {
				return nil, err
			}
			return t.serve(ctx)
		}, t.leaveQueue)
		return
	}
	t.begun.Store(true)
	started := time.Now()
	h.log.Info("turn started", "turn", t.id, "session", t.s.id, "agent", t.agent)
	if err == nil {
		err = t.emit(&wire.TurnStarted{Agent: t.agent, Prompt: t.prompt, Model: t.model})
	}
	if err != nil {
		t.storeFailed(err)
		t.finish(failed(t.ctx, err), started)
		return
	}
	t.recorded = true
	ctx := t.ctx
	if t.timeout > 0 {
		var stop context.CancelFunc
		why := &stopped{wire.StatusTimeout, "the request's time of " + t.timeout.String() + " is over", context.DeadlineExceeded}
		ctx, stop = context.WithTimeoutCause(ctx, t.timeout, why)
		defer stop()
	}
	out := agent.Outcome{}
	if err := h.guard("turn "+string(t.id), func() error {
		out = t.work(ctx, t)
		return nil
	}); err != nil {
		out = failed(t.ctx, err)
	}
	if why, ok := errors.AsType[*stopped](context.Cause(t.ctx)); ok && out.Status == wire.StatusCancelled && why.status == wire.StatusError {
		out.Status, out.StopReason, out.Err = wire.StatusError, wire.StatusError, why // no person cancelled it
		out.Summary = cmp.Or(out.Summary, why.why)
	}
	t.finish(out, started)
}

// finish stores and sends the turn's last events: an Error where it failed, and AgentComplete. Where the store fails
// they are sent unstored, since whoever waits for the end must get one, and the session stores an end later.
func (t *turn) finish(out agent.Outcome, started time.Time) {
	if failure := out.Failure(); failure != nil && !t.unstored.Load() {
		if errors.Is(out.Err, errStopped) {
			failure.Code, failure.Hint = wire.CodeShuttingDown, store.AskAgain
		}
		if err := t.emit(failure); err != nil {
			t.s.events.EmitUnstored(failure, t.recorded)
			t.storeFailed(err)
		}
	}
	if out.DurationMS == 0 {
		out.DurationMS = time.Since(started).Milliseconds()
	}
	out.Agent = cmp.Or(out.Agent, t.agent)
	end := out.Complete()
	of := end.Meta()
	of.TurnID, of.RequestID = t.id, t.request
	if !t.unstored.Load() {
		if err := t.emitLast(end); err != nil {
			t.storeFailed(err)
		}
	}
	if t.unstored.Load() {
		if end.Status == wire.StatusSuccess {
			end.Status, end.StopReason = wire.StatusError, wire.StatusError
		}
		t.leaveQueue()
		t.s.events.EmitUnstored(end, t.recorded)
	}
	t.hub.log.Info("turn ended", "turn", t.id, "status", end.Status, "ms", end.DurationMS)
}

// storeFailed notes that nothing more of the turn can be stored. The first time it sends an unstored Error to whoever is
// attached.
func (t *turn) storeFailed(err error) {
	if t.unstored.Swap(true) {
		return
	}
	hint := "is the disk full? `sublet doctor` looks"
	if fault, ok := errors.AsType[*store.FaultError](err); ok {
		hint = fault.Hint()
	}
	t.hub.log.Error("event could not be stored", "turn", t.id, "session", t.s.id, "err", err)
	t.s.events.EmitUnstored(&wire.Error{
		Event: wire.Event{TurnID: t.id, RequestID: t.request}, Code: wire.CodeInternal,
		Message: "the session cannot be written: " + err.Error(), Hint: hint,
		Details: map[string]string{},
	}, t.recorded)
}

// emit stores and sends an event of this turn.
func (t *turn) emit(m wire.EventMessage) error {
	e := m.Meta()
	e.TurnID, e.RequestID = t.id, t.request
	return t.s.events.Emit(m)
}

// emitFromAgent is the agent's way to emit. A store that fails ends the turn: nothing may be shown that is not kept.
func (t *turn) emitFromAgent(m wire.EventMessage) {
	e := m.Meta()
	e.TurnID, e.RequestID = t.id, t.request
	if c, ok := m.(*wire.AgentStreamChunk); ok && (c.Chunk.Type == wire.ChunkToolOutput || c.Chunk.Type == wire.ChunkToolCallDelta) {
		t.s.events.EmitLive(m, nil)
		return
	}
	if r, ok := m.(*wire.CommandResult); ok {
		t.auditExecution(r)
	}
	if t.unstored.Load() {
		return
	}
	if err := t.s.events.Emit(m); err != nil {
		t.storeFailed(err)
		t.cancel(&stopped{wire.StatusError, "the session cannot be written: " + err.Error(), err})
	}
}

// turn makes a turn of a request; enqueue has it played.
func (c *Client) turn(s *session, request wire.RequestID) *turn {
	return &turn{s: s, operation: operation{origin: c, request: request}}
}

// running returns the turn that has begun in the session and whose end was not sent yet, nil if there is none.
func (s *session) running() *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) == 0 || !s.turns[0].begun.Load() {
		return nil
	}
	return s.turns[0]
}

// errTakenIn is why a turn in the queue ends whose prompt the running one takes in.
var errTakenIn = errors.New("the running turn took it in")

// takeSteering stores and sends the prompts that were added to the turn since the last call, and returns them. It is agent.Turn.Steering.
func (t *turn) takeSteering() (taken []*wire.TurnSteered) {
	t.s.mu.Lock()
	list := slices.DeleteFunc(slices.Clone(t.s.turns), func(q *turn) bool { return q.steers != t })
	t.s.mu.Unlock()
	for _, q := range list {
		if q.cancel(errTakenIn); context.Cause(q.ctx) != errTakenIn { // withdrawn before
			continue
		}
		q.leaveQueue()
		m := &wire.TurnSteered{Event: wire.Event{TurnID: t.id, RequestID: q.request}, Prompt: q.prompt}
		if err := t.s.events.Emit(m); err != nil {
			t.storeFailed(err)
			q.origin.fail(context.Background(), q.request, err)
			continue
		}
		taken = append(taken, m)
	}
	return taken
}
