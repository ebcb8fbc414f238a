package operator

import (
	"context"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// s3SessionOf returns a session for the answer to getSession and listSessions (K3); the document defines no type for it. agentID is that of the latest
// turn, "" = none yet; title the first prompt, cut; times are in milliseconds since 1970.
func s3SessionOf(i wire.SessionInfo) body {
	return body{
		"sessionID": i.ID, "agentID": i.Agent, "name": i.Name, "title": i.Title, "project": string(i.Cwd), "createdAt": i.CreatedAtMS,
		"updatedAt": i.UpdatedAtMS, "turnCount": i.Turns, "running": i.Running,
	}
}

// s3TurnOf returns a turn as S3 has it (K5); stopReason is absent while it runs.
func s3TurnOf(t *turn) body {
	return body{
		"id": t.id, "request": body{"content": t.prompt}, "response": body{"content": t.text()}, "toolCalls": s3Calls(t),
		"usage": s3UsageOf(t.usage), "agentID": t.agent, "timestamp": t.startMS,
	}.with("stopReason", t.stopReason())
}

// pageSize is how many sessions the daemon is asked for at once, and how many suffice for an answer.
const pageSize = 1000

// readSession reads a session's whole history as turns.
func readSession(ctx context.Context, sess *gateway.Session, id wire.SessionID) (*history, wire.SessionInfo, error) {
	h := &history{}
	info, err := sess.History(ctx, id, 0, func(m wire.EventMessage) { h.apply(m) })
	return h, info, err
}

// reply answers a request.
func (c *conn) reply(r *request, kind string, b body) {
	c.send(gateway.Line(s3Event{kind, r.ID, "", stamp(0), b}))
}

func (c *conn) getSession(r *request) *problem {
	sess, err := c.connect("")
	if err != nil {
		return problemFor(err)
	}
	defer sess.Close()
	h, info, err := readSession(c.ctx, sess, wire.SessionID(r.Session))
	if err != nil {
		return problemFor(err)
	}
	v := s3SessionOf(info)
	total := usage{}
	for _, t := range h.turns {
		total = total.plus(t.usage)
	}
	if v["usage"] = s3UsageOf(total); len(h.turns) > 0 {
		v["turns"], v["truncated"] = newest(h.turns, s3TurnOf, turnsMost)
	}
	c.reply(r, "session", body{"session": v})
	return nil
}

// listSessions lists the sessions whose latest turn was answered by the agent that the request names, or all sessions. The answer has a
// cursor if there are more.
func (c *conn) listSessions(r *request) *problem {
	sess, err := c.connect("")
	if err != nil {
		return problemFor(err)
	}
	defer sess.Close()
	list, cursor := []body{}, r.Cursor
	for {
		page, err := wire.Call(c.ctx, sess, &wire.SessionRequest{Op: "list", Cursor: cursor, Limit: pageSize})
		if err != nil {
			return problemFor(err)
		}
		for _, i := range page.Sessions {
			if r.Agent == "" || i.Agent == daemonName(r.Agent) {
				list = append(list, s3SessionOf(i))
			}
		}
		if cursor = page.Cursor; !page.More {
			cursor = ""
		}
		if cursor == "" || len(list) >= pageSize {
			break
		}
	}
	c.reply(r, "sessions", body{"sessions": list}.with("cursor", cursor))
	return nil
}

func (c *conn) deleteSession(r *request) *problem {
	sess, err := c.connect("")
	if err != nil {
		return problemFor(err)
	}
	defer sess.Close()
	id := wire.SessionID(r.Session)
	if _, err := sess.Request(c.ctx, &wire.SessionRequest{Op: "delete", SessionID: &id}); err != nil {
		return problemFor(err)
	}
	c.release(func(l *link) bool { return l.id == id }) // one whose turn's end is still to be delivered stays until abandon
	c.reply(r, "session-deleted", body{"sessionID": r.Session})
	return nil
}
