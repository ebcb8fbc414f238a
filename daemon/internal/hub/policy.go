package hub

import (
	"context"
	"errors"
	"slices"

	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/store"
	"sublet/wire"
	"sublet/wire/visible"
)

// ErrNoRule says that no rule has that id.
var ErrNoRule = errors.New("there is no such rule")

func (h *Hub) listRules(ctx context.Context, s *session, more ...wire.Rule) ([]wire.Rule, error) {
	stored, err := h.opts.Store.Rules(ctx)
	if err != nil {
		return nil, err
	}
	return judge.Rules(h.opts.Config().Policy, slices.Concat(stored, s.policy.Rules(), more)...), nil
}

// Policy reads or changes mode and rules.
func (c *Client) Policy(ctx context.Context, r *wire.PolicyRequest) (*wire.PolicyReply, error) {
	s, err := c.sessionOf(ctx, r.SessionID)
	if err != nil {
		return nil, err
	}
	defer c.hub.release(s)
	switch r.Op {
	case "get", "list", "test", "trust_list":
	default:
		if err := c.mayDecide(); err != nil {
			return nil, err
		}
	}
	reply := &wire.PolicyReply{RequestID: r.RequestID, Op: r.Op, Outcomes: []wire.PolicyOutcome{}, Folders: []wire.TrustedFolder{}}
	if err := c.policyOp(ctx, s, r, reply); err != nil {
		return nil, err
	}
	list, err := c.hub.listRules(ctx, s)
	if err != nil {
		return nil, err
	}
	t := c.tighten(s)
	s.reportFaults(t.Faults())
	reply.Mode = string(t.Apply(policy.Policy{Mode: s.policyMode()}).Mode)
	reply.Rules = append(list, t.Rules...)
	reply.Secrets = secretsMask
	if s.policy.ShowSecrets.Load() {
		reply.Secrets = secretsShow
	}
	reply.Suspects = c.suspects(ctx, s)
	return reply, nil
}

// policyOp does what a PolicyRequest asks for, and puts what only that op answers into reply.
func (c *Client) policyOp(ctx context.Context, s *session, r *wire.PolicyRequest, reply *wire.PolicyReply) error {
	switch r.Op {
	case "get", "list":
	case "test":
		return c.try(ctx, s, r, reply)
	case "trust", "untrust", "trust_list":
		return c.trust(ctx, r, reply)
	case "accept":
		c.accept(ctx, s, r.Suspects)
	case "set_secrets":
		if r.Secrets != secretsMask && r.Secrets != secretsShow {
			return invalid("secrets: %q is neither mask nor show", visible.Exact(visible.Cut(r.Secrets, 64)))
		}
		s.policy.ShowSecrets.Store(r.Secrets == secretsShow)
		c.hub.log.Info("secrets set", "session", s.id, "secrets", r.Secrets, "by", c.who())
		c.announce("secrets in session %s: %s", s.id, r.Secrets)
	case "set_mode":
		mode, err := policy.ParseMode(r.Mode)
		if err == nil {
			err = c.hub.offered(mode)
		}
		if err != nil {
			return invalid("mode: %v", err)
		}
		s.policy.SetMode(mode)
		c.hub.log.Info("mode set", "session", s.id, "mode", mode, "by", c.who())
		c.announce("mode of session %s: %s", s.id, mode)
	case "add":
		if r.Rule == nil {
			return invalid("rule: is missing")
		}
		_, cwd := c.environ()
		rule, err := judge.NewRule(*r.Rule, s.id, reach.Real(project.Root(string(cwd))))
		if err != nil {
			return invalid("%v", err)
		}
		return c.addRule(ctx, s, rule)
	case "revoke":
		if err := s.revokeRule(ctx, r.RuleID); err != nil {
			return err
		}
		c.hub.log.Info("rule revoked", "rule", r.RuleID, "by", c.who())
		c.announce("rule revoked: %s", r.RuleID)
	default:
		return invalid("op: %q is none of get, set_mode, list, add, revoke, test, accept, set_secrets, trust, untrust, trust_list", visible.Exact(visible.Cut(r.Op, 64)))
	}
	return nil
}

// What models are given of what looks like a secret.
const (
	secretsMask = "mask"
	secretsShow = "show"
)

// addRule adds a rule that the user wrote or granted.
func (c *Client) addRule(ctx context.Context, s *session, rule wire.Rule) error {
	if rule.Scope == policy.ScopeSession {
		s.policy.Add(rule)
	} else if err := c.hub.opts.Store.AddRule(ctx, rule); err != nil {
		return err
	}
	c.hub.log.Info("rule added", "rule", rule.ID, "decision", rule.Decision, "scope", rule.Scope, "by", c.who())
	c.announce("rule added: %s %s (%s)", rule.Decision, rule.Pattern, rule.Scope)
	return nil
}

func (s *session) revokeRule(ctx context.Context, id wire.RuleID) error {
	if s.policy.Revoke(id) {
		return nil
	}
	err := s.hub.opts.Store.DeleteRule(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return ErrNoRule
	}
	return err
}

// tighten is what the projects' files ask for: of the folder that a call works in, of the shell and of the session. An
// agent that leaves a project does not leave its rules.
func (c *Client) tighten(s *session, dirs ...string) judge.Tightening {
	env, cwd := c.environ()
	return c.hub.projects.Tighten(lend.Home(env), append(dirs, string(cwd), string(s.snapshot().Cwd))...)
}

// reportFaults sends the attached clients a notice for each fault of a project's file or rule that is not known yet.
func (s *session) reportFaults(faults []judge.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events.Subscribers()) == 0 {
		return // reported when a client attaches
	}
	for _, f := range faults {
		if !slices.Contains(s.broken, f) {
			s.hub.log.Warn("policy is not as it was meant", "session", s.id, "what", f.Text)
			s.events.Send(&wire.Notice{Level: "warning", Text: visible.Exact(f.Text), Hint: f.Hint})
		}
	}
	s.broken = faults
}
