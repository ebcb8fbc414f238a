package operator

import (
	"context"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// s3Session is a session in getSession and listSessions (K3), for which the document defines no type.
type s3Session struct {
	SessionID string          `json:"sessionID"`
	AgentID   string          `json:"agentID"` // of the latest turn; "" = none yet
	Name      string          `json:"name"`
	Title     string          `json:"title"` // the first prompt, cut
	Project   string          `json:"project"`
	CreatedAt int64           `json:"createdAt"` // milliseconds since 1970
	UpdatedAt int64           `json:"updatedAt"`
	TurnCount int             `json:"turnCount"`
	Running   bool            `json:"running"`
	Turns     []s3SessionTurn `json:"turns,omitempty"`
	Usage     *s3Usage        `json:"usage,omitempty"`
}

// s3SessionTurn is K5: a whole turn.
type s3SessionTurn struct {
	ID         string       `json:"id"`
	Request    s3TurnAsked  `json:"request"`
	Response   s3TurnAnswer `json:"response"`
	ToolCalls  []s3Call     `json:"toolCalls"`
	Usage      s3Usage      `json:"usage"`
	StopReason string       `json:"stopReason,omitempty"` // absent while it runs
	AgentID    string       `json:"agentID"`
	Timestamp  int64        `json:"timestamp"`
}

type s3TurnAsked struct {
	Content string `json:"content"`
}

type s3TurnAnswer struct {
	Content string `json:"content"`
}

func s3SessionOf(i wire.SessionInfo) s3Session {
	return s3Session{
		SessionID: string(i.ID), AgentID: i.Agent, Name: i.Name, Title: i.Title, Project: string(i.Cwd), CreatedAt: i.CreatedAtMS,
		UpdatedAt: i.UpdatedAtMS, TurnCount: i.Turns, Running: i.Running,
	}
}

func s3TurnOf(t *turn) s3SessionTurn {
	return s3SessionTurn{
		ID: string(t.id), Request: s3TurnAsked{t.prompt}, Response: s3TurnAnswer{t.text()}, ToolCalls: s3Calls(t),
		Usage: s3UsageOf(t.usage), StopReason: t.stopReason(), AgentID: t.agent, Timestamp: t.startMS,
	}
}

// pageSize is how many sessions are listed at once.
const pageSize = 1000

// readSession reads a session's whole history as turns.
func readSession(ctx context.Context, sess *gateway.Session, id wire.SessionID) (*history, wire.SessionInfo, error) {
	h := &history{}
	info, err := sess.History(ctx, id, func(m wire.EventMessage) { h.apply(m) })
	return h, info, err
}

type s3SessionReply struct {
	s3Head
	Session s3Session `json:"session"`
}

type s3SessionsReply struct {
	s3Head
	Sessions []s3Session `json:"sessions"`
	Cursor   string      `json:"cursor,omitempty"` // there are more: pass it on
}

type s3Deleted struct {
	s3Head
	SessionID string `json:"sessionID"`
}

func reply(r *request, kind string) s3Head {
	return s3Head{Type: kind, ID: r.id, Timestamp: time.Now().UnixMilli()}
}

func (c *conn) getSession(r *request) *problem {
	sess, p := c.any()
	if p != nil {
		return p
	}
	h, info, err := readSession(c.ctx, sess, wire.SessionID(r.session))
	if err != nil {
		return away(err)
	}
	v := s3SessionOf(info)
	total := usage{}
	v.Turns = []s3SessionTurn{}
	for _, t := range h.turns {
		total = total.plus(t.usage)
		v.Turns = append(v.Turns, s3TurnOf(t))
	}
	u := s3UsageOf(total)
	v.Usage = &u
	c.send(line(s3SessionReply{reply(r, "session"), v}))
	return nil
}

// listSessions lists those whose latest turn was of the agent named, or all.
func (c *conn) listSessions(r *request) *problem {
	sess, p := c.any()
	if p != nil {
		return p
	}
	out := s3SessionsReply{s3Head: reply(r, "sessions"), Sessions: []s3Session{}, Cursor: r.cursor}
	for {
		page, err := sess.Do(c.ctx, &wire.SessionRequest{Op: "list", Cursor: out.Cursor, Limit: pageSize})
		if err != nil {
			return away(err)
		}
		for _, i := range page.Sessions {
			if r.agent == "" || i.Agent == native(r.agent) {
				out.Sessions = append(out.Sessions, s3SessionOf(i))
			}
		}
		if out.Cursor = page.Cursor; !page.More {
			out.Cursor = ""
		}
		if out.Cursor == "" || len(out.Sessions) >= pageSize {
			break
		}
	}
	c.send(line(out))
	return nil
}

func (c *conn) deleteSession(r *request) *problem {
	sess, p := c.any()
	if p != nil {
		return p
	}
	id := wire.SessionID(r.session)
	if _, err := sess.Do(c.ctx, &wire.SessionRequest{Op: "delete", SessionID: &id}); err != nil {
		p := away(err)
		if p.s3 == codeRate { // the daemon's word for a session in which a turn runs
			p.s3 = codeInvalid
		}
		return p
	}
	c.drop(id)
	c.send(line(s3Deleted{reply(r, "session-deleted"), r.session}))
	return nil
}
