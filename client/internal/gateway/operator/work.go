package operator

import "sublet/wire"

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
	if p := c.reserve(); p != nil {
		return p
	}
	t := &task{
		request: wire.RequestID(wire.NewID()), id: r.id, cancels: !r.s4,
		began: make(chan struct{}), ended: make(chan struct{}),
	}
	for _, i := range r.images {
		path, err := c.s.handed.Keep(i.content, i.mime)
		if err != nil {
			c.s.handed.Remove(t.handed...)
			c.done()
			return away(err)
		}
		t.handed = append(t.handed, path)
		files = append(files, wire.Attachment{Path: wire.OSString(path), MIME: i.mime})
	}
	if !r.s4 {
		t.s3 = &s3Turn{id: r.id, agent: r.agent, options: r.options}
	}
	l, p := c.attach(wire.SessionID(r.session), !r.s4, r.approvals && c.s.o.Page != nil, project)
	if p != nil {
		c.s.handed.Remove(t.handed...)
		c.done()
		return p
	}
	r.session = string(l.id)
	l.mu.Lock()
	l.tasks[t.request] = t // before asking: the answer may come before Ask returns
	l.mu.Unlock()
	err := l.sess.Ask(c.ctx, &wire.AgentRequest{
		RequestID: t.request, SessionID: &l.id, Agent: native(r.agent), Prompt: r.prompt, Attachments: files,
		Context: wire.RequestContext{Cwd: wire.OSString(project)},
		Options: wire.RequestOptions{Model: r.model, Tools: r.tools, Mode: c.s.o.Mode, TimeoutMS: r.timeout},
	})
	if err != nil {
		l.mu.Lock()
		delete(l.tasks, t.request)
		l.mu.Unlock()
		c.s.handed.Remove(t.handed...)
		c.done()
		return away(err)
	}
	switch {
	case !r.s4:
		return nil
	case r.kind == kindDispatch:
		return c.accepted(r, l, t)
	}
	c.work.Go(func() { c.whole(r, l, t) }) // ends with its turn or the connection; serve waits for it
	return nil
}

// accepted answers S4's dispatch at once, or refuses it: a refusal by the daemon comes before its answer to a later request. A
// turn that waits behind another is accepted too.
func (c *conn) accepted(r *request, l *link, t *task) *problem {
	if _, err := l.sess.Do(c.ctx, &wire.SessionRequest{Op: "get"}); err != nil {
		return away(err)
	}
	if !l.sess.Pending(t.request) { // refused or ended already: the pump finds out in a moment
		select {
		case <-t.ended:
			if t.refusal != nil {
				return t.refusal
			}
		case <-c.ctx.Done():
			return nil
		}
	}
	c.send(snapshot(r.id, r.session, agentName(r), nil).encode(maxMessage))
	return nil
}

// whole sends the complete result when the turn has ended.
func (c *conn) whole(r *request, l *link, t *task) {
	select {
	case <-t.ended:
	case <-c.ctx.Done():
		return
	}
	if t.refusal != nil {
		c.refuse(r, t.refusal)
		return
	}
	h, _, err := readSession(c.ctx, l.sess, l.id)
	if err != nil {
		c.refuse(r, away(err))
		return
	}
	turns := h.turns
	for i, one := range turns {
		if one.id == t.turn {
			turns = turns[:i+1]
			break
		}
	}
	c.send(snapshot(r.id, r.session, agentName(r), turns).encode(maxMessage))
}

// agentName is the agent as the client named it.
func agentName(r *request) string {
	if r.agent == "" {
		return native("")
	}
	return r.agent
}

// cancelRequest ends a turn of this connection, whose own end follows (E15).
func (c *conn) cancelRequest(r *request) *problem {
	c.mu.Lock()
	links := append([]*link(nil), c.links...)
	c.mu.Unlock()
	for _, l := range links {
		l.mu.Lock()
		var found wire.RequestID
		for id, t := range l.tasks {
			begun := wire.TurnID("")
			select {
			case <-t.began:
				begun = t.turn
			default:
			}
			if r.target != "" && t.id == r.target || r.turn != "" && string(begun) == r.turn {
				found = id
			}
		}
		l.mu.Unlock()
		if found != "" && l.sess.Cancel(found, "cancelled by the client") {
			c.send(line(s3Ok{s3Head: s3Head{Type: "ok", ID: r.id, Timestamp: stamp(0)}}))
			return nil
		}
	}
	return invalid("no such request runs on this connection").with("requestID", r.target).with("turnID", r.turn)
}

// s3Ok answers requests that have no other answer.
type s3Ok struct{ s3Head }

// confirm answers a question of a turn of this connection. confirmation-resolved reports how it ended.
func (c *conn) confirm(r *request) *problem {
	l := c.linked(wire.SessionID(r.session), true)
	if l == nil {
		return invalid("no turn of this connection asks questions in session %q: its dispatch had no metadata.approvals, or the server no --ui", r.session)
	}
	a := &wire.ConfirmationResponse{
		ConfirmationID: wire.ConfirmationID(r.answer.confirmation), Decision: r.answer.decision, Comment: r.answer.comment,
	}
	if g := r.answer.grant; g != nil {
		a.Grant = &wire.Grant{Scope: g.Scope, Rule: g.Rule, Covers: g.Covers}
	}
	l.mu.Lock()
	l.confirms[a.ConfirmationID] = r.id
	l.mu.Unlock()
	if err := l.sess.Confirm(c.ctx, a); err != nil {
		return away(err)
	}
	c.send(line(s3Ok{s3Head: s3Head{Type: "ok", ID: r.id, Timestamp: stamp(0)}}))
	return nil
}

// confirmFailed reports an answer that the daemon refused.
func (c *conn) confirmFailed(l *link, e wire.EventMessage) {
	refused, ok := e.(*wire.Error)
	if !ok {
		return
	}
	l.mu.Lock()
	id, known := l.confirms[wire.ConfirmationID(refused.Details["confirmation_id"])]
	l.mu.Unlock()
	if known {
		c.send(line(s3Refusal(id, problemOf(refused), refused.AtMS)))
	}
}

// idOf returns the id of a line that is not parsed further.
func idOf(raw []byte) string {
	r, _ := parse(raw, false)
	return r.id
}
