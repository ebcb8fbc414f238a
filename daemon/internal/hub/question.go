package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/question"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// ask puts a question to everyone attached who can confirm, and waits for the first answer.
func (t *turn) ask(ctx context.Context, q agent.Question, v risk.Verdict, d policy.Decision) (agent.Decision, error) {
	req := &wire.ConfirmationRequest{
		ConfirmationID: wire.ConfirmationID(wire.NewID()), ExecutionID: q.ExecutionID, Agent: q.Agent, Tool: q.Tool,
		Command: wire.OSString(q.Action.Command), Arguments: string(q.Arguments), Cwd: wire.OSString(q.Action.Cwd),
		Verdict: judge.Verdict(judge.Asked(v, d)), Preview: wire.Preview{Type: q.Action.Preview.Type, Content: q.Action.Preview.Content},
		Grants: append([]wire.Grant{}, d.Grants...), Reach: string(d.Reach), ReachWhy: visible.Exact(q.Action.ReachWhy), Fixed: q.Fixed,
	}
	if req.Preview.Type == "" {
		req.Preview.Type = "none"
	}
	if d.Reach.Confines() && q.Action.Command != "" {
		req.EnforcedBy = t.hub.confiner().How
	}
	req.Fingerprint = wire.Fingerprint(req.Command, req.Cwd, q.Action.StateDigest)
	req.TurnID, req.RequestID = t.id, t.request
	open := question.Question[*Client]{Request: req, Events: t.s.events, Project: d.Project}
	if f := t.foreign; f != nil { // asked in the window whose shell it concerns
		until := time.Now().Add(f.answer).UnixMilli()
		req.Borrower, req.ExpiresAtMS, open.Bound = f.Borrower, &until, f.answer
		if ln, c := t.window(); c != nil {
			open.Concerns = func(c *Client) bool { return c.lender == ln }
		}
	}
	if p := t.parent; p != nil { // an agent in the background is asked about where it was started
		req.Parent = p.id
		open.Concerns = func(c *Client) bool { return c.attached() == p }
	}
	return t.hub.questions.Ask(ctx, open)
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
	return c.hub.questions.Answer(r.ConfirmationID, c, func(q *question.Question[*Client]) (string, agent.Decision, error) {
		d, err := agent.Answered(q.Request, r)
		if err != nil {
			return "", d, invalid("%v", err)
		}
		d.By = c.who()
		if allow := r.Decision == wire.DecisionAllowAlways; allow || r.Decision == wire.DecisionDenyAlways {
			s := c.hub.hold(q.Request.SessionID, nil) // in memory while its turn waits
			defer c.hub.release(s)
			rule := wire.Rule{Decision: policy.Deny, Pattern: r.Grant.Rule, Scope: r.Grant.Scope}
			if allow {
				rule.Decision = policy.Allow
			}
			if rule, err = judge.NewRule(rule, s.id, q.Project); err == nil {
				err = c.addRule(ctx, s, rule)
			}
		}
		return r.Decision, d, err
	})
}

// propose asks the user about a plan, as tool.Propose. If they accept it, plan mode of the turn and the session is over.
func (t *turn) propose(role agent.Role, cwd string) tool.Propose {
	return func(ctx context.Context, call tool.Proposed) (tool.Proposal, error) {
		steps := call.Steps
		q := agent.Question{
			Agent: t.agent, Mode: role.Mode, Tool: wire.ToolPlan, ExecutionID: wire.ExecutionID(call.ExecutionID), Arguments: call.Arguments,
			Action: tool.Action{Cwd: cwd, Preview: tool.Preview{Type: "text", Content: tool.PlanText(steps)}},
		}
		if t.whyUnasked() != "" {
			return tool.Proposal{Reason: "nobody is attached who could accept it"}, nil
		}
		next := judge.AfterPlan(t.s.policyMode(), policy.Mode(t.hub.opts.Config().Policy.Mode))
		holds := next
		if role.Mode != "" {
			holds = judge.Stricter(next, policy.Mode(role.Mode))
		}
		holds = t.policyIn(ctx, q, holds).Mode
		why := "yes ends plan mode: it is carried out in " + string(holds) + " mode"
		if holds == policy.ModePlan {
			why = "plan mode stays on, by the settings of the project or of the role"
		}
		d, err := t.askAbout(ctx, q, harmless(why), why)
		if err != nil || !d.Allowed {
			return tool.Proposal{Comment: d.Comment, Reason: d.Reason}, err
		}
		if d.EditedCommand != nil {
			if steps, err = tool.PlanSteps(*d.EditedCommand); err != nil {
				return tool.Proposal{}, err
			}
		}
		if t.mode == string(policy.ModePlan) {
			t.mode = ""
		}
		if t.s.policyMode() == policy.ModePlan {
			t.s.policy.SetMode(next)
			t.hub.log.Info("mode set", "session", t.s.id, "mode", next, "by", d.By)
			t.origin.announce(t.s, "a plan was accepted; mode", string(next))
		}
		return tool.Proposal{Accepted: true, Steps: steps, Mode: string(holds)}, nil
	}
}

// trusts reports whether the user trusts the folder that dir belongs to; false if that cannot be read.
func (h *Hub) trusts(dir string) bool {
	trusted, _, err := h.opts.Store.TrustsFolder(h.ctx, reach.Real(dir))
	if err != nil {
		h.log.Warn("which folders are trusted cannot be read", "err", err)
	}
	return trusted
}

// trust serves the operations of a PolicyRequest that are about folders.
func (c *Client) trust(ctx context.Context, r *wire.PolicyRequest, reply *wire.PolicyReply) (err error) {
	h := c.hub
	if r.Op != "trust_list" {
		path := string(r.Cwd)
		if !filepath.IsAbs(path) {
			return invalid("cwd: %s is not absolute", visible.Exact(path))
		}
		switch path = reach.Real(project.Root(path)); r.Op {
		case "trust":
			if info, err := os.Stat(path); err != nil || !info.IsDir() {
				return invalid("cwd: %s is not a folder", visible.Exact(path))
			}
			if err := h.opts.Store.DecideFolder(ctx, path, true); err != nil {
				return err
			}
			c.announce(nil, "folder trusted", path)
		case "untrust":
			err := h.opts.Store.ForgetFolder(ctx, path)
			if errors.Is(err, store.ErrNotFound) {
				return invalid("nothing was decided about %s", visible.Exact(path))
			}
			if err != nil {
				return err
			}
			c.announce(nil, "folder not trusted any more", path)
		}
		reply.Folder = wire.OSString(path)
	}
	reply.Folders, err = h.opts.Store.Folders(ctx)
	return err
}

// askTrust asks the user whether to trust the folder that a turn works in, if it has files that would instruct agents and nobody has
// decided. If nobody can be asked, or the decision cannot be read, a notice names the files that are not read as instructions.
func (t *turn) askTrust(ctx context.Context, cwd string) {
	_, decided, err := t.hub.opts.Store.TrustsFolder(ctx, reach.Real(cwd))
	if decided || ctx.Err() != nil || !filepath.IsAbs(cwd) {
		return
	}
	root := reach.Real(project.Root(cwd))
	names, would := agent.Instructions(t.hub.opts.Config(), root, reach.Real(cwd))
	if len(names) == 0 {
		return
	}
	state, hint := " is not trusted", "`sublet trust add` there trusts it"
	if err != nil {
		state, hint = " is not known to be trusted", "what you decided cannot be read: "+err.Error()
	}
	if err != nil || t.whyUnasked() != "" {
		if t.s.firstTime("trust " + root) {
			t.origin.Send(&wire.Notice{Level: "warning", Text: visible.Exact(
				root + state + ", so these are not read as instructions: " + strings.Join(names, ", ") + "; " + hint)})
		}
		return
	}
	q, v := judge.Trust(root, would)
	d, err := t.askAbout(ctx, q, v, would)
	if err != nil || d.By == "expiry" { // the turn is over, or nobody decided
		return
	}
	if err := t.hub.opts.Store.DecideFolder(context.WithoutCancel(ctx), root, d.Allowed); err != nil {
		t.hub.log.Error("trust could not be stored", "folder", root, "err", err)
		return
	}
	if d.Allowed {
		t.origin.announce(nil, "folder trusted", root)
	}
}
