package hub

import (
	"context"
	"fmt"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/question"
	"sublet/daemon/internal/risk"
	"sublet/wire"
	"sublet/wire/visible"
)

// ask puts a question to everyone attached who can confirm, and waits for the first answer.
func (t *turn) ask(ctx context.Context, q agent.Question, v risk.Verdict, d policy.Decision) (agent.Decision, error) {
	req := &wire.ConfirmationRequest{
		ConfirmationID: wire.ConfirmationID(wire.NewID()), ExecutionID: q.ExecutionID, Agent: q.Agent, Tool: q.Tool,
		Command: wire.OSString(q.Action.Command), Arguments: string(q.Arguments), Cwd: wire.OSString(q.Action.Cwd),
		Verdict: judge.Verdict(v), Preview: wire.Preview{Type: q.Action.Preview.Type, Content: q.Action.Preview.Content},
		Grants: []wire.Grant{}, Reach: string(d.Reach), ReachWhy: visible.Exact(q.Action.ReachWhy), Fixed: q.Fixed,
	}
	if req.Preview.Type == "" {
		req.Preview.Type = "none"
	}
	if d.Reach.Confines() && q.Action.Command != "" {
		req.EnforcedBy = t.hub.confiner().How
	}
	for _, g := range d.Grants {
		req.Grants = append(req.Grants, wire.Grant{Scope: g.Scope, Rule: g.Rule, Covers: g.Covers})
	}
	req.Fingerprint = wire.Fingerprint(req.Command, req.Cwd, q.Action.StateDigest)
	req.TurnID, req.RequestID = t.id, t.request
	asked := question.Question[*Client]{Request: req, Project: d.Project}
	if f := t.foreign; f != nil { // asked in the window whose shell it concerns
		until := time.Now().Add(f.answer).UnixMilli()
		req.Borrower, req.ExpiresAtMS, asked.Bound = f.Borrower, &until, f.answer
		if ln, c := t.window(); c != nil {
			asked.Others = []*Client{c}
			asked.Concerns = func(c *Client) bool { return c.lender == ln }
		}
	}
	if p := t.parent; p != nil { // an agent in the background is asked about where it was started
		req.Parent = p.id
		asked.Others, asked.Concerns = p.events.Subscribers(), func(c *Client) bool { return c.isAt(p) }
	}
	return t.s.questions.Ask(ctx, asked)
}

// Confirm answers a question. The first answer counts; a later one is ignored, since its client was sent a ConfirmationResolved
// before. An answer that is not valid leaves the question open.
func (c *Client) Confirm(ctx context.Context, r *wire.ConfirmationResponse) error {
	if err := c.mayDecide(); err != nil {
		return err
	}
	if !c.confirm {
		return fmt.Errorf("%w: it did not announce that it can confirm", ErrNotYours)
	}
	s := c.questioned(r.ConfirmationID)
	defer c.hub.release(s)
	return s.questions.Answer(r.ConfirmationID, func(q *question.Question[*Client]) (string, agent.Decision, error) {
		d, err := agent.Answered(q.Request, r)
		if err != nil {
			return "", d, invalid("%v", err)
		}
		d.By = c.who()
		if allow := r.Decision == wire.DecisionAllowAlways; allow || r.Decision == wire.DecisionDenyAlways {
			err = c.addRule(ctx, s, judge.GrantedRule(*r.Grant, allow, s.id, q.Project))
		}
		return r.Decision, d, err
	})
}
