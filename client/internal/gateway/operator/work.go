package operator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// dispatch begins a turn: S3's dispatch, whose events follow; S4's, answered with its session; S4's query and
// send_context_request, answered with the whole result at the end.
func (c *conn) dispatch(r *request) *problem {
	project, p := projectOf(c.s.o.Project, r.project)
	if p != nil {
		return p
	}
	files, p := attach(project, r.files)
	if p != nil {
		return p
	}
	t := &gateway.Turn{ID: r.ID, Handle: func(wire.EventMessage) {}, Outlives: r.s4}
	if !r.s4 {
		m := &r.Metadata
		s3 := &s3Turn{id: r.ID, agent: r.Agent, options: s3Options{batch: m.Batch, gzip: m.Compression == "gzip", extended: m.Extended}}
		t.Handle = func(e wire.EventMessage) {
			for _, l := range s3.translate(e) {
				c.send(l)
			}
		}
	}
	switch err := c.turns.Begin(t, c.s.limits.RunningTurns); {
	case errors.Is(err, gateway.ErrRepeated): // E22
		return wrong("id", fmt.Sprintf("%q is that of a query that still runs", r.ID))
	case err != nil:
		return busy(c.s.limits.RunningTurns, "at most %d concurrent queries on one connection")
	}
	l, p := c.attach(wire.SessionID(r.Session), !r.s4, r.Metadata.Approvals && c.s.o.Page != nil, project)
	if p != nil {
		t.Abandon()
		return p
	}
	var err error
	if files, err = t.Attach(files, r.images); err != nil {
		t.Abandon()
		return problemFor(err)
	}
	r.Session = string(l.id)
	err = t.Ask(c.ctx, l.sess, &wire.AgentRequest{
		SessionID: &l.id, Agent: daemonName(r.Agent), Prompt: r.prompt, Attachments: files,
		Context: wire.RequestContext{Cwd: wire.OSString(project)},
		Options: wire.RequestOptions{Model: r.Metadata.Model, Tools: r.Tools, Mode: c.s.o.Mode, TimeoutMS: r.Metadata.TimeoutMS},
	})
	switch {
	case err != nil:
		return problemFor(err)
	case !r.s4:
		return nil
	case r.Type == kindDispatch:
		return c.acknowledge(r, l, t)
	}
	c.work.Go(func() { c.sendWhole(r, t) }) // ends with its turn or the connection; serve waits for it
	return nil
}

// refusal returns why a turn never began; nil if it did.
func refusal(t *gateway.Turn) *problem {
	if t.End != nil || t.Problem == nil {
		return nil
	}
	return problemOf(t.Problem)
}

// acknowledge answers S4's dispatch with its session, without waiting for the turn, which may be queued behind another. The daemon
// sends a refusal of the turn before its reply to any later request: acknowledge makes one, and so can return the refusal.
func (c *conn) acknowledge(r *request, l *link, t *gateway.Turn) *problem {
	if _, err := l.sess.Request(c.ctx, &wire.SessionRequest{Op: "get"}); err != nil {
		return problemFor(err)
	}
	if !t.Pending() { // refused or ended already: Done follows at once
		select {
		case <-t.Done():
			if p := refusal(t); p != nil {
				return p
			}
		case <-c.ctx.Done():
			return nil
		}
	}
	c.send(gateway.Line(snapshot(r.ID, r.Session, agentName(r), nil)))
	return nil
}

// sendWhole sends the complete result when the turn has ended. The turn's link may be released then.
func (c *conn) sendWhole(r *request, t *gateway.Turn) {
	select {
	case <-t.Done():
	case <-c.ctx.Done():
		return
	}
	if p := refusal(t); p != nil {
		c.refuse(r, p)
		return
	}
	sess, err := c.connect(r.Session)
	if err != nil {
		c.refuse(r, problemFor(err))
		return
	}
	defer sess.Close()
	h, _, err := readSession(c.ctx, sess, wire.SessionID(r.Session))
	if err != nil {
		c.refuse(r, problemFor(err))
		return
	}
	turns := h.turns
	for i, one := range turns {
		if t.End != nil && one.id == t.End.TurnID {
			turns = turns[:i+1]
			break
		}
	}
	c.send(gateway.Line(snapshot(r.ID, r.Session, agentName(r), turns)))
}

// daemonName returns an agent's name as the daemon knows it. architect, which the documents' examples use, is the orchestrator.
func daemonName(agent string) string {
	switch agent {
	case "architect", "":
		return "orchestrator"
	}
	return agent
}

// agentName returns the agent as the client named it.
func agentName(r *request) string { return cmp.Or(r.Agent, daemonName("")) }

// cancelRequest cancels a turn of this connection, whose end is answered to its own request (E15).
func (c *conn) cancelRequest(r *request) *problem {
	if c.turns.Cancel(nil, r.Request, wire.TurnID(r.Turn), "cancelled by the client") {
		c.reply(r, "ok", body{})
		return nil
	}
	return invalid("no such request runs on this connection").with("requestID", r.Request).with("turnID", r.Turn)
}

// confirm answers a question of a turn of this connection. confirmation-resolved reports how it ended.
func (c *conn) confirm(r *request) *problem {
	q := c.turns.Question(wire.ConfirmationID(r.Confirmation))
	if q == nil || q.SessionID != wire.SessionID(r.Session) {
		return invalid("no turn of this connection asks this in session %q: the question has ended, or its dispatch had no metadata.approvals, or the server no --ui", r.Session)
	}
	a := wire.ConfirmationResponse{Decision: r.Decision, Comment: r.Comment, Grant: (*wire.Grant)(r.Grant)}
	if strings.HasSuffix(r.Decision, "_always") && (a.Grant == nil || !slices.Contains(q.Grants, *a.Grant)) {
		return wrong("grant", "must be one of those that were offered")
	}
	// The daemon may refuse the answer later: that is the error event of this request, not of the turn.
	refused := func(e *wire.Error) { c.send(gateway.Line(s3Refusal(r.ID, "", problemOf(e), e.AtMS))) }
	switch err := q.Answer(a, refused); {
	case errors.Is(err, gateway.ErrAnswered):
		return invalid("%v", err)
	case err != nil:
		return problemFor(err)
	}
	c.reply(r, "ok", body{})
	return nil
}
