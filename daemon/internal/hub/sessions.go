package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sublet/daemon/internal/archive"
	"sublet/daemon/internal/store"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	defaultPage = 100
	maxPage     = 1000
	maxName     = 200 // bytes of a session's name
)

// Sessions works on stored sessions. SessionReply answers; after it resume and new send the session's events.
func (c *Client) Sessions(ctx context.Context, r *wire.SessionRequest) error {
	out := &wire.SessionReply{
		RequestID: r.RequestID, Op: r.Op, Sessions: []wire.SessionInfo{}, Events: []wire.Envelope{}, Hits: []wire.SearchHit{},
	}
	limit := r.Limit
	switch {
	case limit == 0:
		limit = defaultPage
	case limit < 0 || limit > maxPage:
		return invalid("limit: %d is outside 1 to %d", limit, maxPage)
	}
	var err error
	switch r.Op {
	case "list":
		err = c.hub.listSessions(ctx, r, limit, out)
	case "search":
		if out.Hits, err = c.hub.opts.Store.Search(ctx, store.Search{Query: r.Query, Project: string(r.Project), SinceMS: r.SinceMS, Limit: limit}); out.Hits == nil {
			out.Hits = []wire.SearchHit{}
		}
		if err != nil && strings.TrimSpace(r.Query) == "" {
			err = invalid("query: is empty")
		}
	case "new", "resume":
		return c.switchSession(ctx, r, out)
	case "load":
		err = c.load(ctx, r, out)
	case "get", "rename", "delete", "clear", "save", "export", "fork":
		var s *session
		if s, err = c.sessionOf(ctx, r.SessionID); err != nil {
			return err
		}
		defer c.hub.release(s)
		err = c.sessionOp(ctx, s, r, limit, out)
	default:
		err = invalid("op: %q is none of list, get, new, resume, rename, delete, clear, save, load, export, search, fork",
			visible.Exact(visible.Cut(r.Op, 64)))
	}
	if err != nil {
		return err
	}
	c.Send(out)
	return nil
}

func (h *Hub) listSessions(ctx context.Context, r *wire.SessionRequest, limit int, out *wire.SessionReply) error {
	list, next, err := h.opts.Store.Sessions(ctx, r.Cursor, limit)
	if errors.Is(err, store.ErrCursor) {
		return invalid("cursor: %v", err)
	}
	if err != nil {
		return err
	}
	for i := range list {
		h.mu.Lock()
		s := h.sessions[list[i].ID]
		h.mu.Unlock()
		if s != nil {
			list[i].Running = s.snapshot().Running
		}
	}
	if list != nil {
		out.Sessions = list
	}
	out.Cursor, out.More = next, next != ""
	return nil
}

// sessionOp carries out the operations of a SessionRequest that are about the one session s.
func (c *Client) sessionOp(ctx context.Context, s *session, r *wire.SessionRequest, limit int, out *wire.SessionReply) error {
	var err error
	switch r.Op {
	case "get":
		// Before the events: a turn that ends in between is then shown as running, with its end, and never as ended without one.
		out.Session = s.snapshot()
		if r.IncludeHistory {
			events, more, err := c.hub.opts.Store.Events(ctx, s.id, r.AfterSeq, limit)
			if err != nil {
				return err
			}
			if !r.IncludeBlocks {
				events = archive.WithoutBlocks(events)
			}
			out.Events, out.More = archive.Envelopes(events), more
		}
		return nil
	case "rename":
		err = s.events.Rename(ctx, visible.Exact(visible.Cut(r.Name, maxName)))
	case "delete":
		if err = s.remove(ctx); err == nil {
			for _, id := range append(c.hub.crew.Forget(s.id), s.id) {
				c.hub.opts.Hosted.EndSession(string(id))
				if own := c.hub.hold(id, nil); own != nil { // its events went with those of s
					err = errors.Join(err, own.events.Delete(ctx))
					c.hub.release(own)
				}
			}
		}
	case "clear":
		err = s.clear(ctx)
	case "export":
		out.Text, err = s.export(ctx, r)
	case "save":
		err = c.save(ctx, s, r, out)
	case "fork":
		return c.fork(ctx, s, r, out)
	}
	out.Session = s.snapshot()
	return err
}

// switchSession attaches the connection to another session: a new one, or a stored one, whose events after after_seq follow the
// reply as messages like any other. Turns of the session that is left go on.
func (c *Client) switchSession(ctx context.Context, r *wire.SessionRequest, out *wire.SessionReply) error {
	var to *session
	var err error
	if r.Op == "resume" {
		if to, err = c.hub.session(ctx, named(r.SessionID)); err != nil {
			return err
		}
	} else {
		_, cwd := c.environ()
		if id := named(r.SessionID); id != "" {
			if to, err = c.hub.namedSession(ctx, id, cwd, r.Name); err != nil {
				return err
			}
		} else {
			to = c.hub.newSession(cwd, r.Name)
		}
	}
	first, err := to.events.Missed(ctx, r.AfterSeq)
	if err != nil {
		c.hub.release(to)
		return err // the connection stays where it is
	}
	c.mu.Lock()
	from := c.session
	c.session = to
	c.mu.Unlock()
	// The old one first: its events must not mix with the new one's. Their ids differ anyway.
	from.leave(c)
	out.Session = to.snapshot()
	c.Send(out)
	if err := to.join(ctx, c, first, out.Session); err != nil {
		return err
	}
	c.hub.questions.Show(c)
	c.hub.wakeDue(to)
	return nil
}

// remove deletes a session and its events; it returns ErrSessionBusy while a turn or a background agent works. Attached clients stay
// connected: their next request fails with ErrNoSession.
func (s *session) remove(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.turns) > 0:
		return ErrSessionBusy
	case s.hub.crew.Working(s.id):
		return fmt.Errorf("%w: one of its agents works in the background", ErrSessionBusy)
	}
	return s.events.Delete(ctx)
}

// clear deletes the session's events, and what agents remember of them. It returns ErrSessionBusy while a turn runs or waits.
func (s *session) clear(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) > 0 {
		return ErrSessionBusy
	}
	if err := s.events.Clear(ctx); err != nil {
		return err
	}
	s.recent = nil
	s.memory.Forget()
	return nil
}

// restarted is what an unfinished turn of an earlier daemon is ended with.
const restarted = "daemon restarted"

// endUnfinished stores the end of every turn and compaction that was cut short, in the session with that id or, for "", in all sessions:
// it resolves open questions, and stores an Error and an AgentComplete, or a CompactionComplete. Stored events stay; a command that still
// runs is not taken over. why is shown to the user.
func (h *Hub) endUnfinished(ctx context.Context, id wire.SessionID, why string) error {
	open, err := h.opts.Store.Unfinished(ctx)
	for _, u := range open {
		if id != "" && id != u.SessionID {
			continue
		}
		var s *session
		if s, err = h.session(ctx, u.SessionID); err != nil {
			break
		}
		err = s.events.EndUnfinished(ctx, u, why)
		h.release(s)
		if err != nil {
			break
		}
		h.log.Warn("unfinished work ended", "why", why, "turn", u.TurnID, "session", u.SessionID)
	}
	if err != nil {
		return fmt.Errorf("end unfinished turns: %w", err)
	}
	return nil
}
