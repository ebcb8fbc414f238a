package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"

	"sublet/daemon/internal/store"
	"sublet/wire"
	"sublet/wire/visible"
)

// ErrNoRule says that no rule has that id.
var ErrNoRule = errors.New("there is no such rule")

// rules are all that the user has made for a session and that hold: the settings', the stored ones and its own. faults
// tells of those that do not do what their examples say; of these, what allows does not hold.
func (h *Hub) rules(ctx context.Context, s *session) (rules []policy.Rule, faults []fault, err error) {
	list, err := h.listRules(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range list {
		if r.Fault != "" {
			faults = append(faults, ruleFault(r))
			if r.Decision == string(policy.Allow) {
				continue
			}
		}
		rules = append(rules, riskRule(r))
	}
	return rules, faults, nil
}

func ruleFault(r wire.Rule) fault {
	f := fault{"a rule of your settings does not do what it says: " + r.Fault, "it still holds; `sublet policy ls` lists all"}
	switch r.Source {
	case "user":
		f.text = "a rule that you made does not do what it says: " + r.Fault
	case policy.SourceProject:
		f.text = "a rule of the project's file does not do what it says: " + r.Fault
	}
	if r.Decision == string(policy.Allow) {
		f.hint = "until it is mended it allows nothing; `sublet policy ls` lists all"
	}
	return f
}

func riskRule(r wire.Rule) policy.Rule {
	rule := policy.Rule{
		ID: string(r.ID), Decision: policy.Outcome(r.Decision), Pattern: r.Pattern, Scope: r.Scope,
		Subject: string(r.Subject), Source: r.Source, Created: time.UnixMilli(r.CreatedAtMS),
	}
	if r.ExpiresAtMS != nil {
		rule.Expires = time.UnixMilli(*r.ExpiresAtMS)
	}
	return rule
}

func (h *Hub) listRules(ctx context.Context, s *session) ([]wire.Rule, error) {
	list := []wire.Rule{}
	cfg := h.opts.Config()
	for _, from := range []struct {
		decision policy.Outcome
		patterns []string
	}{{policy.Deny, cfg.Policy.Deny}, {policy.Allow, cfg.Policy.Allow}} {
		for i, p := range from.patterns {
			list = append(list, wire.Rule{
				ID: wire.RuleID(fmt.Sprintf("config-%s-%d", from.decision, i+1)), Decision: string(from.decision), Pattern: p,
				Scope: policy.ScopeAlways, Source: "config",
			})
		}
	}
	for i, r := range cfg.Policy.Rules {
		list = append(list, wire.Rule{
			ID: wire.RuleID(fmt.Sprintf("config-%d", i+1)), Decision: r.Decision, Pattern: r.Pattern, Scope: policy.ScopeAlways,
			Source: "config", Match: r.Match, NoMatch: r.NoMatch,
		})
	}
	stored, err := h.opts.Store.Rules(ctx)
	if err != nil {
		return nil, err
	}
	list = append(append(list, stored...), s.policyRules()...)
	for i := range list {
		r := &list[i]
		if r.Match == nil {
			r.Match = []string{}
		}
		if r.NoMatch == nil {
			r.NoMatch = []string{}
		}
		// Judged anew each time: what is known of programs changes with the daemon.
		if err := policy.CheckExamples(riskRule(*r), r.Match, r.NoMatch); err != nil {
			r.Fault = err.Error()
		}
	}
	return list, nil
}

// Policy reads or changes mode and rules.
func (c *Client) Policy(ctx context.Context, r *wire.PolicyRequest) (*wire.PolicyReply, error) {
	if err := c.Seen(r.RequestID); err != nil {
		return nil, err
	}
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
	switch r.Op {
	case "get", "list":
	case "test":
		if err := c.try(ctx, s, r, reply); err != nil {
			return nil, err
		}
	case "trust", "untrust", "trust_list":
		if err := c.trust(ctx, r, reply); err != nil {
			return nil, err
		}
	case "accept":
		c.accept(ctx, s)
	case "set_secrets":
		if r.Secrets != secretsMask && r.Secrets != secretsShow {
			return nil, invalid("secrets: %q is neither mask nor show", visible.Exact(visible.Cut(r.Secrets, 64)))
		}
		s.mu.Lock()
		s.showSecrets = r.Secrets == secretsShow
		s.mu.Unlock()
		c.hub.log.Info("secrets set", "session", s.id, "secrets", r.Secrets, "by", c.who())
		c.announce("secrets in session %s: %s", s.id, r.Secrets)
	case "set_mode":
		mode, err := policy.ParseMode(r.Mode)
		if err == nil {
			err = c.hub.offered(mode)
		}
		if err != nil {
			return nil, invalid("mode: %v", err)
		}
		s.mu.Lock()
		s.mode = string(mode)
		s.mu.Unlock()
		c.hub.log.Info("mode set", "session", s.id, "mode", mode, "by", c.who())
		c.announce("mode of session %s: %s", s.id, mode)
	case "add":
		if err := s.addRule(ctx, r.Rule, project.Root(string(s.snapshot().Cwd))); err != nil {
			return nil, err
		}
		c.announce("rule added: %s %s (%s)", r.Rule.Decision, r.Rule.Pattern, cmp.Or(r.Rule.Scope, policy.ScopeAlways))
	case "revoke":
		if err := s.revokeRule(ctx, r.RuleID); err != nil {
			return nil, err
		}
		c.hub.log.Info("rule revoked", "rule", r.RuleID, "by", c.who())
		c.announce("rule revoked: %s", r.RuleID)
	default:
		return nil, invalid("op: %q is none of get, set_mode, list, add, revoke, test, accept, set_secrets, trust, untrust, trust_list", visible.Exact(visible.Cut(r.Op, 64)))
	}
	list, err := c.hub.listRules(ctx, s)
	if err != nil {
		return nil, err
	}
	t := c.tighten(s)
	s.tellBroken(t)
	reply.Mode = string(t.apply(policy.Policy{Mode: s.policyMode()}).Mode)
	reply.Rules = append(list, t.rules...)
	reply.Secrets = secretsMask
	if s.secretsShown() {
		reply.Secrets = secretsShow
	}
	reply.Suspects = c.suspects(ctx, s)
	return reply, nil
}

// What models are given of what looks like a secret.
const (
	secretsMask = "mask"
	secretsShow = "show"
)

func (s *session) secretsShown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.showSecrets
}

// addRule adds a rule that the user wrote.
func (s *session) addRule(ctx context.Context, given *wire.Rule, project string) error {
	if given == nil {
		return invalid("rule: is missing")
	}
	rule := *given
	if err := policy.ParseRule(rule.Pattern); err != nil {
		return invalid("rule.pattern: %v", err)
	}
	switch policy.Outcome(rule.Decision) {
	case policy.Allow, policy.Ask, policy.Deny:
	default:
		return invalid("rule.decision: %q is none of allow, ask, deny", visible.Exact(visible.Cut(rule.Decision, 64)))
	}
	rule.ID, rule.Source, rule.CreatedAtMS, rule.Fault = wire.RuleID(wire.NewID()), "user", time.Now().UnixMilli(), ""
	if err := policy.CheckExamples(riskRule(rule), rule.Match, rule.NoMatch); err != nil {
		return invalid("%v", err)
	}
	switch rule.Scope {
	case policy.ScopeSession:
		rule.Subject = wire.OSString(s.id)
		s.mu.Lock()
		s.rules = append(s.rules, rule)
		s.mu.Unlock()
		return nil
	case policy.ScopeProject:
		if rule.Subject == "" {
			rule.Subject = wire.OSString(project)
		}
	case policy.ScopeAlways, "":
		rule.Scope, rule.Subject = policy.ScopeAlways, ""
	default:
		return invalid("rule.scope: %q is none of session, project, always", visible.Exact(visible.Cut(rule.Scope, 64)))
	}
	return s.hub.opts.Store.AddRule(ctx, rule)
}

func (s *session) revokeRule(ctx context.Context, id wire.RuleID) error {
	s.mu.Lock()
	for i, r := range s.rules {
		if r.ID == id {
			s.rules = append(s.rules[:i:i], s.rules[i+1:]...)
			s.mu.Unlock()
			return nil
		}
	}
	s.mu.Unlock()
	err := s.hub.opts.Store.DeleteRule(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return ErrNoRule
	}
	return err
}
