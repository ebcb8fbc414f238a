package hub

import (
	"cmp"
	"context"
	"errors"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/crew"
	"sublet/daemon/internal/project"
	"sublet/wire"
)

// host implements crew.Host for the background agents of a session. turn is the one that starts an agent; nil where none is started.
type host struct {
	*session
	turn *turn
}

func (h host) ID() wire.SessionID { return h.id }

func (h host) Role(name, dir string) (agent.Role, bool) {
	roles, _ := h.hub.roles(project.Root(dir))
	return roles[name], roles[name].Name != ""
}

// Play implements crew.Host. It queues a turn in the agent's own session, which it creates if there is none. The session that started
// the agent is held until that turn has ended; then ended gets the outcome. If Play returns an error, ended is never called.
func (h host) Play(p crew.Part, ended func(agent.Outcome)) error {
	t, hub := h.turn, h.hub
	own, err := hub.session(hub.ctx, p.Session)
	if errors.Is(err, ErrNoSession) {
		own, err = hub.addSession(p.Session, p.Request.Context.Cwd, p.Title)
	}
	if err != nil {
		return err
	}
	sub := t.origin.turn(own, p.Request.RequestID)
	sub.wishes, sub.parent = wishes{agent: p.Agent, prompt: p.Request.Prompt, model: cmp.Or(p.Role.Model, t.model), mode: t.mode, wider: t.wider, approve: t.approve}, h.session
	sub.cwd, sub.rules = p.Request.Context.Cwd, p.Rules
	var out agent.Outcome
	sub.work = func(ctx context.Context, sub *turn) agent.Outcome {
		out = sub.converse(ctx, p.Role, p.Request)
		return out
	}
	hub.hold(h.session.id, h.session)
	sub.cleanup(func() {
		if out.Status == "" { // it did not begin
			out = failed(sub.ctx, context.Canceled)
		}
		ended(out)
		hub.release(h.session)
	})
	if err = hub.enqueue(sub); err != nil {
		hub.release(h.session)
	}
	return err
}

func (h host) Cancel(own wire.SessionID, by string) {
	for _, t := range h.hub.unfinished() {
		if t.s.id == own {
			t.cancel(cancelledBy(by, ""))
		}
	}
}

// Wake implements crew.Host.
func (h host) Wake(claim func() bool, what, prompt string) {
	h.hub.wake(h.id, claim, what, prompt)
}

// policySession returns the session whose mode and settings hold for the turn.
func (t *turn) policySession() *session {
	if t.parent != nil {
		return t.parent
	}
	return t.s
}

// inherited returns the rules of the session that started the turn's agent, as rules of the turn's session.
func (t *turn) inherited() (rules []wire.Rule) {
	if t.parent != nil {
		rules = t.parent.policy.Rules()
		for i := range rules {
			rules[i].Subject = wire.OSString(t.s.id)
		}
	}
	return append(rules, t.rules...)
}

// Agents serves an AgentsRequest. AgentsReply answers.
func (c *Client) Agents(ctx context.Context, r *wire.AgentsRequest) error {
	if r.Op != "list" && r.Op != "show" {
		if err := c.person(); err != nil {
			return err
		}
	}
	s, err := c.sessionOf(ctx, r.SessionID)
	if err != nil {
		return err
	}
	return c.answerLater(&operation{request: r.RequestID}, s, func(ctx context.Context) (wire.Message, error) {
		return c.hub.crew.Serve(ctx, host{session: s}, &s.memory.Agents, r, c.who())
	})
}
