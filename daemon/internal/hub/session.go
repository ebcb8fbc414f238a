package hub

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/lsp"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// session is one conversation in memory: who watches it, what runs in it, which questions are open. Its history is in
// the store, from the first event on; before that the session exists here only.
type session struct {
	hub     *Hub
	id      wire.SessionID
	files   tool.FileLog
	todo    tool.TodoList
	kept    agent.Kept
	servers lsp.Servers // they go with the last hold
	policy  judge.SessionPolicy

	deleted atomic.Bool
	// guarded by Hub.mu
	holds    int           // clients attached, turns, requests that look at it
	private  *lend.Private // for clients that lend none; it goes with the last hold
	starting sync.Mutex    // held while private is started

	mu sync.Mutex
	// below: guarded by mu
	info      wire.SessionInfo // LastSeq is the number of the last stored event
	stored    bool
	clients   map[*Client]struct{}
	turns     []*turn             // the first one runs, if working
	unended   []wire.EventMessage // Errors and ends, as they were sent, of stored turns whose end could not be stored
	working   bool                // a worker goroutine plays turns
	questions map[wire.ConfirmationID]*question
	recent    []wire.RecentCommand
	spent     float64     // US dollars since the last prompt of a person
	wakes     []time.Time // when jobs woke its agent, within wakesIn

	noticed map[string]bool // the keys of first
	broken  []judge.Fault   // the faults in projects' files and rules that were reported last
}

// maxRecent bounds the user's own commands remembered for the next question.
const maxRecent = 10

// storeBound bounds one write to the store. It is far more than a healthy disk takes.
const storeBound = 10 * time.Second

// newSession makes a session that nobody has stored yet; the caller holds it and lets it go with release.
func (h *Hub) newSession(cwd wire.OSString) *session {
	s, _ := h.addSession(wire.SessionID(wire.NewID()), cwd) // a fresh id is nobody else's
	return s
}

// addSession is newSession under an id; ErrSessionExists where it is in memory already, ErrNoSession where it was deleted.
func (h *Hub) addSession(id wire.SessionID, cwd wire.OSString) (*session, error) {
	now := time.Now().UnixMilli()
	s := h.makeSession(wire.SessionInfo{ID: id, Cwd: cwd, CreatedAtMS: now, UpdatedAtMS: now})
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.sessions[id]; old != nil && old.deleted.Load() {
		return nil, ErrNoSession
	} else if old != nil {
		return nil, ErrSessionExists
	}
	h.sessions[id] = s
	s.holds = 1
	return s, nil
}

// sessionIDs are the ids that a client may choose: they stand in command lines, logs and other protocols.
var sessionIDs = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._:@][A-Za-z0-9._:@-]{0,127}$`) })

// namedSession is newSession under an id of the client's choosing. ErrSessionExists where it is taken, ErrNoSession where
// a session of that id was deleted: what was deleted does not come back under the same name.
func (h *Hub) namedSession(ctx context.Context, id wire.SessionID, cwd wire.OSString) (*session, error) {
	if !sessionIDs().MatchString(string(id)) {
		return nil, invalid("session_id: want 1 to 128 of A-Z a-z 0-9 . _ : @ -, not beginning with -")
	}
	if gone, err := h.opts.Store.Deleted(ctx, id); err != nil {
		return nil, err
	} else if gone {
		return nil, ErrNoSession
	}
	if _, err := h.opts.Store.Session(ctx, id); err == nil {
		return nil, ErrSessionExists
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return h.addSession(id, cwd)
}

func (h *Hub) makeSession(info wire.SessionInfo) *session {
	return &session{
		hub: h, id: info.ID, info: info,
		clients: map[*Client]struct{}{}, questions: map[wire.ConfirmationID]*question{},
	}
}

// session finds a session in memory or in the store and holds it: the caller lets it go with release. ErrNoSession where
// there is none.
func (h *Hub) session(ctx context.Context, id wire.SessionID) (*session, error) {
	if s := h.hold(id, nil); s != nil {
		if s.deleted.Load() {
			h.release(s)
			return nil, ErrNoSession
		}
		return s, nil
	}
	info, err := h.opts.Store.Session(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, ErrNoSession
	}
	if err != nil {
		return nil, err
	}
	s := h.makeSession(info)
	s.stored = true
	return h.hold(id, s), nil
}

// hold takes a session that is in memory, or puts in the one given, if nobody was faster.
func (h *Hub) hold(id wire.SessionID, read *session) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil {
		if s = read; s == nil {
			return nil
		}
		h.sessions[id] = s
	}
	s.holds++
	if i := slices.Index(h.idle, s); i >= 0 {
		h.idle = slices.Delete(h.idle, i, i+1)
	}
	return s
}

// keep holds a session once more, for a turn or a client beside the caller.
func (h *Hub) keep(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.holds++
}

// release lets a session go. When nobody holds it its private shell is closed, and the session itself stays in memory
// among the last maxIdleSessions, for its undo log and its rules, unless those logs take more than maxIdleUndo together.
func (h *Hub) release(s *session) {
	h.mu.Lock()
	var left *lend.Private
	s.holds--
	idle := s.holds == 0
	if idle {
		// Taken out at once: whoever holds the session next starts one of its own, which is not ours to close.
		left, s.private = s.private, nil
		if s.deleted.Load() {
			delete(h.sessions, s.id)
		} else {
			h.idle = append(h.idle, s)
			h.forgetLocked()
		}
	}
	h.mu.Unlock()
	if idle {
		s.kept.Thread.Drop() // what its agents said stays: they may be asked further
		s.servers.Close()
	}
	if left != nil {
		left.Close()
	}
}

// forgetLocked drops the sessions that were idle for longest, where there are too many or their undo logs are too large.
func (h *Hub) forgetLocked() {
	size := 0
	for _, s := range h.idle {
		size += s.files.Size()
	}
	for len(h.idle) > maxIdleSessions || size > maxIdleUndo {
		size -= h.idle[0].files.Size()
		delete(h.sessions, h.idle[0].id)
		h.idle = slices.Delete(h.idle, 0, 1)
	}
}

// snapshot returns the session as clients are sent it.
func (s *session) snapshot() wire.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.infoLocked()
}

func (s *session) infoLocked() wire.SessionInfo {
	info := s.info
	info.Stored = s.stored
	info.Running = len(s.turns) > 0
	return info
}

// asking is the turn that waits for a person's decision, nil where none does.
func (s *session) asking() *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, qu := range s.questions {
		return qu.turn
	}
	return nil
}

// emit gives events their numbers, masks them, stores them in one transaction, and sends them to everyone attached, in this
// order and under one lock, so that all clients see the same numbers and none sees what is not on disk. The error is the
// store's; nothing was sent then.
func (s *session) emit(list ...wire.EventMessage) error {
	for _, m := range list {
		store.Mask(m)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.emitLocked(list...)
}

func (s *session) emitLocked(list ...wire.EventMessage) error {
	if s.deleted.Load() {
		return ErrNoSession
	}
	// A turn's end must be stored also when its own context is over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.hub.ctx), storeBound)
	defer cancel()
	if !s.stored {
		if err := s.hub.opts.Store.CreateSession(ctx, s.info); err != nil {
			return err
		}
		s.stored = true
	}
	now := time.Now().UnixMilli()
	for i, m := range list {
		e := m.Meta()
		e.SessionID, e.Seq, e.AtMS = s.id, s.info.LastSeq+1+int64(i), now
		if c, ok := m.(*wire.AgentStreamChunk); ok {
			c.SeqFirst = e.Seq
		}
	}
	if err := s.hub.opts.Store.Append(ctx, list...); err != nil {
		return err
	}
	s.info.LastSeq, s.info.UpdatedAtMS = s.info.LastSeq+int64(len(list)), now
	for _, m := range list {
		if t, ok := m.(*wire.TurnStarted); ok {
			s.info.Turns, s.info.Agent, s.info.Title = s.info.Turns+1, t.Agent, cmp.Or(s.info.Title, store.Title(t.Prompt))
		}
		s.sendLocked(m)
	}
	return nil
}

// emitLive sends an event that is not stored: it carries the number of the last one that was. The client that lends but, if
// that is not nil, does not get it.
func (s *session) emitLive(m wire.EventMessage, but *lend.Lender) {
	store.Mask(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := m.Meta()
	e.SessionID, e.Seq, e.AtMS = s.id, s.info.LastSeq, time.Now().UnixMilli()
	if c, ok := m.(*wire.AgentStreamChunk); ok {
		c.SeqFirst = e.Seq
	}
	for c := range s.clients {
		if but == nil || c.lender != but {
			c.Send(m)
		}
	}
}

// emitUnstored sends what cannot be stored, or is not meant to be: it has no number, so that nobody takes it for one seen
// before. If keep is set, clients that attach before the end of its turn is stored get it too.
func (s *session) emitUnstored(m wire.EventMessage, keep bool) {
	store.Mask(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := m.Meta()
	e.SessionID, e.Seq, e.AtMS = s.id, 0, time.Now().UnixMilli()
	if keep {
		s.unended = append(s.unended, m)
	}
	s.sendLocked(m)
}

// storeEnds stores an end for each turn and compaction that ended while the store could not be written. It is called before
// a turn begins and before a client is attached.
func (s *session) storeEnds(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; i < len(s.unended); i++ {
		u := store.Unfinished{SessionID: s.id}
		switch end := s.unended[i].(type) {
		case *wire.AgentComplete:
			u.TurnID, u.RequestID, u.Agent = end.TurnID, end.RequestID, end.Agent
		case *wire.CompactionComplete:
		default:
			continue // an Error, whose turn may still run
		}
		if err := s.endUnfinishedLocked(ctx, u, "the store could not be written when it ended"); err != nil {
			return err
		}
		s.unended, i = s.unended[i+1:], -1
	}
	return nil
}

func (s *session) sendLocked(m wire.Message) {
	for c := range s.clients {
		c.Send(m)
	}
}

// resumePage is how many stored events are read at once.
const resumePage = 500

// A CutOffError reports that a client received a session but not all the events that it had missed, because they could not be
// read. The connection must end, so that the client resumes from what it has.
type CutOffError struct{ Err error }

func (e *CutOffError) Error() string { return "the session cannot be read: " + e.Err.Error() }
func (e *CutOffError) Unwrap() error { return e.Err }
func (e *CutOffError) Hint() string {
	return "connect again and resume; `sublet doctor` looks at the store"
}

// missed is the first page of what a client missed.
type missed struct {
	after  int64 // -1: the client wants only what comes after the session's description
	events []wire.EventMessage
	more   bool
}

// missed reads the first page of what a client missed that has seen the event after. It comes before the client is sent the
// session's description, so that a store that cannot be read is the one answer.
func (s *session) missed(ctx context.Context, after int64) (m missed, err error) {
	if err := s.storeEnds(ctx); err != nil {
		s.hub.log.Error("a turn's end could not be stored", "session", s.id, "err", err)
	}
	m.after = after
	if after >= 0 {
		m.events, m.more, err = s.hub.opts.Store.Events(ctx, s.id, after, resumePage)
	}
	return m, err
}

// join sends c what it missed and attaches it: what is stored from then on reaches it live. A client that wants nothing old
// gets what was stored after info, which it was sent. Questions that are still open come again to everybody. The caller holds
// the session, and c's hold is given back by leave. No event is left out and no other comes twice, whatever runs meanwhile;
// the unstored ends of turns follow the stored events. An error is a *CutOffError; c is not attached then.
func (s *session) join(ctx context.Context, c *Client, from missed, info wire.SessionInfo) error {
	after := from.after
	// Long histories are read without the lock, so that a running turn does not wait for them; only the last page is read
	// under it.
	for events, more := from.events, from.more; more; {
		for _, m := range events {
			c.Send(m)
			after = m.Meta().Seq
		}
		err := c.peer.Flush(ctx)
		if err == nil {
			events, more, err = s.hub.opts.Store.Events(ctx, s.id, after, resumePage)
		}
		if err != nil {
			return &CutOffError{err}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deleted.Load() {
		return &CutOffError{ErrNoSession}
	}
	if after < 0 {
		after = info.LastSeq
	}
	for _, qu := range s.questionsLocked() { // those after it come below, in their order
		if qu.ask.Seq <= after {
			c.Send(qu.ask)
		}
	}
	for more := after < s.info.LastSeq; more; {
		var events []wire.EventMessage
		var err error
		if events, more, err = s.hub.opts.Store.Events(ctx, s.id, after, resumePage); err != nil {
			return &CutOffError{err}
		}
		for _, m := range events {
			c.Send(s.openQuestionLocked(m))
			after = m.Meta().Seq
		}
	}
	for _, m := range s.unended {
		c.Send(m)
	}
	s.clients[c] = struct{}{}
	s.watchQuestionsLocked()
	return nil
}

// leave detaches c and lets the session go.
func (s *session) leave(c *Client) {
	s.mu.Lock()
	delete(s.clients, c)
	s.watchQuestionsLocked()
	s.mu.Unlock()
	s.hub.release(s)
}

// remember keeps one of the user's own commands for the next question.
func (s *session) remember(r *wire.CommandResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent = append(s.recent, wire.RecentCommand{
		Command: r.Command, ExitCode: r.ExitCode, StartedAtMS: r.StartedAtMS, OutputTail: r.OutputTail,
	})
	if n := len(s.recent) - maxRecent; n > 0 {
		s.recent = s.recent[n:]
	}
}

// policyMode returns the session's mode, or ask where that mode is not available.
func (s *session) policyMode() policy.Mode {
	m := s.policy.Mode(s.hub.opts.Config().Policy.Mode)
	if s.hub.offered(m) != nil {
		return policy.ModeAsk
	}
	return m
}
