package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/lease/shell"
	"sublet/wire"
	"sublet/wire/visible"
)

// listRules returns the rules that hold in a session: of the settings, the stored ones, the session's own, and more.
func (h *Hub) listRules(ctx context.Context, s *session, more ...wire.Rule) ([]wire.Rule, error) {
	stored, err := h.opts.Store.Rules(ctx)
	if err != nil {
		return nil, err
	}
	return judge.Rules(h.opts.Config().Policy, slices.Concat(stored, s.policy.Rules(), more)...), nil
}

// Policy reads or changes mode and rules. PolicyReply answers.
func (c *Client) Policy(ctx context.Context, r *wire.PolicyRequest) error {
	s, err := c.sessionOf(ctx, r.SessionID)
	if err != nil {
		return err
	}
	defer c.hub.release(s)
	switch r.Op {
	case "get", "list", "test", "trust_list":
	default:
		if err := c.mayDecide(); err != nil {
			return err
		}
	}
	reply := &wire.PolicyReply{RequestID: r.RequestID, Op: r.Op, Outcomes: []wire.PolicyOutcome{}, Folders: []wire.TrustedFolder{}}
	if err := c.policyOp(ctx, s, r, reply); err != nil {
		return err
	}
	list, err := c.hub.listRules(ctx, s)
	if err != nil {
		return err
	}
	t := c.tightening(s)
	s.reportFaults(t.Faults())
	reply.Mode = string(t.Apply(policy.Policy{Mode: s.policyMode()}).Mode)
	reply.Rules = append(list, t.Rules...)
	reply.Secrets = secretsMask
	if s.policy.ShowSecrets.Load() {
		reply.Secrets = secretsShow
	}
	reply.Suspects = c.suspects(ctx, s)
	c.Send(reply)
	return nil
}

// policyOp does what a PolicyRequest asks for, and puts what only that op answers into reply.
func (c *Client) policyOp(ctx context.Context, s *session, r *wire.PolicyRequest, reply *wire.PolicyReply) error {
	switch r.Op {
	case "get", "list":
	case "test":
		return c.testCommand(ctx, s, r, reply)
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
		c.announce(s, "secrets", r.Secrets)
	case "set_mode":
		mode, err := policy.ParseMode(r.Mode)
		if err == nil {
			err = c.hub.modeUnavailable(mode)
		}
		if err != nil {
			return invalid("mode: %v", err)
		}
		s.policy.SetMode(mode)
		c.hub.log.Info("mode set", "session", s.id, "mode", mode, "by", c.who())
		c.announce(s, "mode", string(mode))
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
		c.announce(nil, "rule revoked", string(r.RuleID))
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
	c.announce(nil, "rule added", fmt.Sprintf("%s %s (%s)", rule.Decision, rule.Pattern, rule.Scope))
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

// tightening returns the stricter mode and the rules that the files of projects ask for: those of dirs, of the shell's folder and of
// the session's. An agent that leaves a project does not leave its rules.
func (c *Client) tightening(s *session, dirs ...string) judge.Tightening {
	env, cwd := c.environ()
	return c.hub.projects.Tighten(lend.Home(env), append(dirs, string(cwd), string(s.snapshot().Cwd))...)
}

// reportFaults sends the attached clients a notice of each fault of a project's file or rule, once.
func (s *session) reportFaults(faults []judge.Fault) {
	if len(s.events.Subscribers()) == 0 {
		return // reported when a client attaches
	}
	for _, f := range faults {
		if s.firstTime("fault " + f.Text) {
			s.hub.log.Warn("policy is not as it was meant", "session", s.id, "what", f.Text)
			s.events.Send(&wire.Notice{Level: "warning", Text: visible.Exact(f.Text), Hint: f.Hint})
		}
	}
}

// testCommand judges a command as an agent's would be in this session, in every mode.
func (c *Client) testCommand(ctx context.Context, s *session, r *wire.PolicyRequest, reply *wire.PolicyReply) error {
	origin, cwd := c, string(r.Cwd)
	if r.Live {
		if origin = windowOf(c.hub.shells.Find(0)); origin == nil {
			return &lend.NoShellError{}
		}
		s = origin.attached()
	}
	if ln := origin.lender; ln != nil && cwd == "" {
		cwd = ln.Where(ctx).Cwd
	}
	if cwd == "" {
		_, at := origin.environ()
		cwd = string(at)
	}
	if !filepath.IsAbs(cwd) {
		return invalid("cwd: %q is not absolute", visible.Exact(visible.Cut(cwd, 64)))
	}
	t := &turn{hub: c.hub, s: s, operation: operation{origin: origin}}
	q := agent.Question{Tool: "bash", Action: tool.Action{Command: string(r.Command), Cwd: cwd}}
	if ln, err := t.Lent(); err == nil && ln != nil {
		q.Action.Facts = ln.Facts
	}
	v := t.judge(ctx, q)
	verdict := judge.Verdict(v)
	reply.Verdict = &verdict
	reach := t.reach(q, v)
	reply.Outcomes = judge.Outcomes(reach != "", func(mode policy.Mode) policy.Decision {
		return t.policyIn(ctx, q, mode).Decide(v, t.action(q, reach))
	})
	return nil
}

// shownShells returns the shells whose unapproved changes a client can list and accept: the one it lends, or else the one that was last
// typed in, and the session's private shell.
func (c *Client) shownShells(s *session) (list []lend.Trusting) {
	ln := c.lender
	if ln == nil {
		ln = c.hub.shells.Find(0)
	}
	if ln != nil {
		list = append(list, ln)
	}
	if p := s.ownShell(); p != nil {
		list = append(list, p)
	}
	return list
}

// accept records that the user approves what agents' commands changed in shownShells: every change if names is empty, otherwise the
// changes to these names, unless they changed again since suspects listed them to the client.
func (c *Client) accept(ctx context.Context, s *session, names []string) {
	for _, sh := range c.shownShells(s) {
		if shown, ok := c.shown[sh]; ok || len(names) == 0 {
			sh.Accept(ctx, names, shown)
		}
	}
	c.hub.log.Info("changes of the shell accepted", "names", names, "by", c.who())
	c.announce(nil, "changes of the shell accepted", cmp.Or(strings.Join(names, " "), "all"))
}

// suspects returns the names (of variables, functions, aliases) that agents' commands changed and no person approved. It keeps the states
// in which it found them in c.shown, so that accept approves no later change.
func (c *Client) suspects(ctx context.Context, s *session) []string {
	names := []string{}
	c.shown = map[lend.Trusting]shell.State{}
	for _, sh := range c.shownShells(s) {
		list, in := sh.Suspects(ctx)
		names, c.shown[sh] = append(names, list...), in
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ErrAgent refuses what only a person may do to a process that a known agent of another program started.
var ErrAgent = errors.New("this is called by an agent of another program")

// Elsewhere is the hint of lend.ErrInside and ErrAgent.
const Elsewhere = "do it in a terminal outside of sublet; /mode, /rules and /accept are also in the window itself"

// person returns nil if the client may do what only a person may: confirm, change policy, revoke or run leases. Once its
// process was inside a shell that agents use it stays so.
func (c *Client) person() error {
	if c.within.Load() {
		return lend.ErrInside
	}
	err := c.hub.shells.Inside(c.owner)
	if err != nil {
		c.within.Store(true)
	}
	return err
}

// mayDecide returns nil if the client may confirm, change policy or bounds, or take a shell back: a person does, and neither
// what runs in a shell that agents use nor what an agent of another program started.
func (c *Client) mayDecide() error {
	if err := c.person(); err != nil {
		return err
	}
	if c.startedBy != nil {
		if of := c.startedBy(); of.Name != "" {
			return fmt.Errorf("%w, %s", ErrAgent, of.Name)
		}
	}
	return nil
}

// announce sends a notice to every client that can confirm, except this one, which changed a part of the policy (what) to value.
// of is the session whose policy that is; nil = it is not one session's.
func (c *Client) announce(of *session, what, value string) {
	value = visible.Exact(visible.Cut(value, 1024)) + ", by " + c.who()
	for _, other := range c.hub.attached() {
		if other == c || !other.confirm {
			continue
		}
		n := &wire.Notice{Level: "info", Text: what + ": " + value}
		if of != nil {
			whose := "session " + string(of.id)
			if other.attached() == of {
				whose = "this conversation"
			}
			n.Text, n.SessionID = what+" of "+whose+": "+value, of.id
		}
		other.Send(n)
	}
}
