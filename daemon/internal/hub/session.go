package hub

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"sync"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/eventlog"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/lsp"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// session is one conversation in memory: its events, and what runs in it. Its history is in
// the store, from the first event on; before that the session exists here only.
type session struct {
	hub    *Hub
	id     wire.SessionID
	events *eventlog.Log[*Client]

	files   tool.FileLog
	memory  agent.SessionMemory
	servers lsp.Servers // they go with the last hold
	policy  judge.SessionPolicy

	// guarded by Hub.mu
	holds    int           // clients attached, turns, requests that look at it
	private  *lend.Private // for clients that lend none; it goes with the last hold
	starting sync.Mutex    // held while private is started

	mu sync.Mutex
	// below: guarded by mu
	turns    []*turn           // those whose end was not sent yet; the first one runs
	waiting  []wire.QueuedTurn // of the last TurnQueueChanged
	played   <-chan struct{}   // closed when all turns that were ever queued are over
	recent   []wire.RecentCommand
	unstored bool            // the newest of them could not be stored
	spent    float64         // US dollars since the last prompt of a person
	wakes    []time.Time     // when jobs woke its agent, within wakesIn
	noticed  map[string]bool // the keys that firstTime was called with
}

// maxRecent bounds the user's own commands remembered for the next question.
const maxRecent = 10

// newSession makes a session, which is stored with its first event. It holds it for the caller, who calls release.
func (h *Hub) newSession(cwd wire.OSString, name string) *session {
	s, _ := h.addSession(wire.SessionID(wire.NewID()), cwd, name) // a fresh id is nobody else's
	return s
}

// addSession is newSession under an id; ErrSessionExists if it is in memory already.
func (h *Hub) addSession(id wire.SessionID, cwd wire.OSString, name string) (*session, error) {
	now := time.Now().UnixMilli()
	s := h.makeSession(wire.SessionInfo{ID: id, Name: visible.Exact(visible.Cut(name, maxName)), Cwd: cwd, CreatedAtMS: now, UpdatedAtMS: now})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[id] != nil {
		return nil, ErrSessionExists
	}
	h.sessions[id] = s
	s.holds = 1
	return s, nil
}

// sessionIDs are the ids that a client may choose: they stand in command lines, logs and other protocols.
var sessionIDs = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._:@][A-Za-z0-9._:@-]{0,127}$`) })

// namedSession is newSession under an id that the client chose. It returns ErrSessionExists if the id is taken, ErrNoSession if a
// session of that id was deleted, since a client that deleted it expects that it stays so.
func (h *Hub) namedSession(ctx context.Context, id wire.SessionID, cwd wire.OSString, name string) (*session, error) {
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
	return h.addSession(id, cwd, name)
}

func (h *Hub) makeSession(info wire.SessionInfo) *session {
	events := eventlog.New[*Client](h.opts.Store, h.log, info)
	played := make(chan struct{})
	close(played)
	s := &session{hub: h, id: info.ID, events: events, played: played}
	s.files.Changes = store.Changes{Store: h.opts.Store, Session: info.ID}
	return s
}

// session finds a session in memory or in the store and holds it: the caller calls release. ErrNoSession if there
// is none.
func (h *Hub) session(ctx context.Context, id wire.SessionID) (*session, error) {
	if s := h.hold(id, nil); s != nil {
		if s.events.Deleted() {
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
	return h.hold(id, h.makeSession(info)), nil
}

// hold returns the session of that id and counts one more holder, for whom it stays in memory until release. Where it is not in memory,
// loaded is put there; without one (nil) hold returns nil.
func (h *Hub) hold(id wire.SessionID, loaded *session) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil {
		if s = loaded; s == nil {
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

// release takes one holder off a session's count. When nobody holds it its private shell is closed, and the session itself stays in
// memory among the last maxIdleSessions, for its rules and for what its agents know of files.
func (h *Hub) release(s *session) {
	h.mu.Lock()
	var left *lend.Private
	s.holds--
	idle := s.holds == 0
	if idle {
		// Taken out at once: whoever holds the session next starts one of its own, which is not ours to close.
		left, s.private = s.private, nil
		if s.events.Deleted() {
			delete(h.sessions, s.id)
		} else {
			h.idle = append(h.idle, s)
			if len(h.idle) > maxIdleSessions {
				delete(h.sessions, h.idle[0].id)
				h.idle = slices.Delete(h.idle, 0, 1)
			}
		}
	}
	h.mu.Unlock()
	if idle {
		s.memory.Thread.Drop() // its agents' conversations stay: they may be asked further
		s.servers.Close()
	}
	if left != nil {
		left.Close()
	}
}

// snapshot returns the session as clients are sent it.
func (s *session) snapshot() wire.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.events.Info()
	info.Running = len(s.turns) > 0
	return info
}

// join makes c a client of the session: c, which was sent the session's description info, is sent the events from there on, those that it
// missed first. The caller holds the session for c; leave releases it.
func (s *session) join(ctx context.Context, c *Client, from eventlog.Missed, info wire.SessionInfo) error {
	err := s.events.Subscribe(ctx, c, from, info)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && c.queues && len(s.waiting) > 0 {
		c.Send(&wire.TurnQueueChanged{SessionID: s.id, Waiting: s.waiting})
	}
	return err
}

// leave takes c from the session's clients and releases the session.
func (s *session) leave(c *Client) {
	s.events.Unsubscribe(c)
	s.hub.release(s)
}

// remember keeps one of the user's own commands for the next question. It reports whether it is the first of a row that could not be
// stored.
func (s *session) remember(r *wire.CommandResult, stored bool) (firstLost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent = append(s.recent, wire.RecentCommand{
		Command: r.Command, ExitCode: r.ExitCode, StartedAtMS: r.StartedAtMS, OutputTail: r.OutputTail,
	})
	if n := len(s.recent) - maxRecent; n > 0 {
		s.recent = s.recent[n:]
	}
	firstLost = !stored && !s.unstored
	s.unstored = !stored
	return firstLost
}

// policyMode returns the session's mode, or ask where that mode is not available.
func (s *session) policyMode() policy.Mode {
	m := s.policy.Mode(policy.Mode(s.hub.opts.Config().Policy.Mode))
	if s.hub.modeUnavailable(m) != nil {
		return policy.ModeAsk
	}
	return m
}
