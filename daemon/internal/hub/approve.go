package hub

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/worktree"
	"sublet/wire"
	"sublet/wire/visible"
)

// approver decides for one turn what may run: by policy, or by asking whoever is attached. It implements agent.Approver
// and holds no shell while it waits.
type approver struct{ t *turn }

// maxEdits bounds how often a person's own edit is asked about again because it is riskier than what they were shown.
const maxEdits = 5

// Approve implements agent.Approver.
func (a *approver) Approve(ctx context.Context, q agent.Question) (agent.Decision, error) {
	if q.GoOn != "" {
		return a.goOn(ctx, q)
	}
	d, err := a.approve(ctx, q)
	if err == nil && !d.Allowed {
		if d.EditedCommand != nil {
			q.Action.Command = *d.EditedCommand
		}
		d.About = a.refusal(ctx, q)
	}
	return d, err
}

func (a *approver) approve(ctx context.Context, q agent.Question) (agent.Decision, error) {
	var own *string // what the user wrote in place of the command
	for range maxEdits {
		v := a.judge(ctx, q)
		d := a.policy(ctx, q).Decide(v, a.action(q, a.reach(q, v)))
		verdict := agent.Decision{By: by(d), EditedCommand: own, Reach: held(d)}
		switch {
		case d.Outcome == policy.Deny:
			verdict.Reason = d.Why
			return a.decided(q, v, d, verdict), nil
		case q.ReadOnly && v.Level > risk.Low && d.Reach != risk.ReachRead && q.Action.Server == "": // such a role has a server's tool only where the user named it
			verdict.By, verdict.Reason = "role "+q.Role, "the role "+q.Role+" only reads, and this is "+v.Level.String()
			return a.decided(q, v, d, verdict), nil
		case d.Outcome == policy.Allow && (d.Rule != nil || !a.wanted(q)):
			verdict.Allowed = true
			return a.decided(q, v, d, verdict), nil
		case !a.t.attended():
			verdict.By = "nobody"
			verdict.Reason = d.Why + "; it was not asked, because " + a.t.unattended()
			return a.decided(q, v, d, verdict), nil
		case a.t.approve != nil && !*a.t.approve:
			verdict.By = "nobody"
			verdict.Reason = d.Why + "; it was not asked, because the request said not to ask"
			return a.decided(q, v, d, verdict), nil
		}
		answer, err := a.t.s.ask(ctx, a.t, q, v, d)
		if err != nil {
			a.decided(q, v, d, agent.Decision{By: "cancel", Reason: err.Error()})
			return agent.Decision{EditedCommand: own}, err
		}
		if answer.EditedCommand == nil || *answer.EditedCommand == q.Action.Command {
			answer.EditedCommand, answer.Reach = own, held(d)
			return a.decided(q, v, d, answer), nil
		}
		// A command of the user's own: what rules forbid stays forbidden, and what is riskier than they were shown is
		// shown once more, as it would run.
		own = answer.EditedCommand
		q.Action.Command = *own
		again := a.judge(ctx, q)
		shown := d.Reach
		d = a.policy(ctx, q).Decide(again, a.action(q, a.reach(q, again)))
		if again.Level <= v.Level && d.Outcome != policy.Deny && risk.Wider(shown, d.Reach) == shown {
			answer.Reach = held(d)
			return a.decided(q, again, d, answer), nil
		}
	}
	return agent.Decision{By: "nobody", EditedCommand: own, Reason: "the command was changed too often while it was asked about"}, nil
}

// goOn asks whether an agent may go on that goes round in circles, or has cost what it may.
func (a *approver) goOn(ctx context.Context, q agent.Question) (agent.Decision, error) {
	v := risk.Verdict{Level: risk.Low, Reversible: true, Reasons: []risk.Reason{{Text: q.GoOn, Effect: risk.Unknown, Level: risk.Low}}}
	d := policy.Decision{Outcome: policy.Ask, Why: q.GoOn}
	if !a.t.confirm || a.t.approve != nil && !*a.t.approve {
		return a.decided(q, v, d, agent.Decision{By: "nobody", Reason: q.GoOn}), nil
	}
	answer, err := a.t.s.ask(ctx, a.t, q, v, d)
	if err != nil {
		answer = agent.Decision{By: "cancel", Reason: err.Error()}
	}
	return a.decided(q, v, d, answer), err
}

// unattended returns why nobody can be asked.
func (t *turn) unattended() string {
	switch {
	case t.origin.within.Load():
		return "the request came from inside a shell that agents use"
	case t.foreign != nil:
		return "no sublet window is open that could ask"
	}
	return "the request came from a client that cannot confirm"
}

// environ is the environment and the folder that a call is judged by: of the client that asked, but for a foreign agent those of
// the shell that it borrows.
func (a *approver) environ() (map[string]wire.OSString, wire.OSString) {
	if a.t.foreign != nil {
		if ln, err := a.t.Lent(); err == nil && ln != nil {
			return ln.Environ()
		}
	}
	return a.t.origin.environ()
}

// wanted reports whether the request asked for a question about everything that does something.
func (a *approver) wanted(q agent.Question) bool {
	does := q.Action.Command != "" || len(q.Action.Writes) > 0 || q.Action.Network != "" || q.Action.Server != ""
	return does && a.t.approve != nil && *a.t.approve
}

// judge is the verdict on what a call would do, in the shell and the folder where it would do it.
func (a *approver) judge(ctx context.Context, q agent.Question) risk.Verdict {
	act := q.Action
	env, cwd := a.environ()
	c := risk.Context{Cwd: act.Cwd, Home: lend.Home(env), Secrets: a.t.hub.secrets(), Writable: writable(a.t.hub.opts.Config().Policy.ProjectWrite), Hosts: a.t.hub.opts.Config().Policy.ProjectHosts, Env: make(map[string]string, len(env))}
	if c.Cwd == "" {
		c.Cwd = string(cwd)
	}
	for name, value := range env {
		c.Env[name] = string(value)
	}
	if act.Command == "" {
		// A file tool's paths have their links resolved: so must the places they are compared with (T3o).
		c.Cwd, c.Home = real(c.Cwd), real(c.Home)
	}
	c.ProjectRoot, c.Own = project.Root(c.Cwd), a.t.hub.shells.Own()
	if worktree.At(c.ProjectRoot) {
		c.Tracked = func(path string) bool { return a.t.hub.projects.trees.Tracked(ctx, c.ProjectRoot, path) }
	}
	if act.Command == "" {
		return risk.AnalyzeFile(risk.FileAction{Reads: act.Reads, Writes: act.Writes, Network: act.Network, Server: act.Server}, c)
	}
	known := true
	if act.Private {
		known = a.t.privateFacts(ctx, act.StateDigest, &c)
	} else {
		if ln, err := a.t.Lent(); err == nil && ln != nil {
			ln.Where(ctx) // the state that the call was planned in
			known = ln.Facts(&c)
		}
	}
	c.Written = func(path string) (string, bool) { return a.t.s.files.Written(real(path)) }
	c.Venv = func(file string) bool { return standardVenv(file, c.ProjectRoot, c.Env["PATH"]) }
	c.Shadow = shadow(c.Env["PATH"], c.ProjectRoot, c.Home, c.Env["TMPDIR"])
	v := risk.Analyze(act.Command, c)
	if act.Background {
		v.Reasons = append(v.Reasons, risk.Reason{Text: "goes on in the background, until it ends by itself or is ended", Effect: risk.RunCode, Level: risk.Low})
	}
	if !known && v.Level < risk.Medium {
		v.Level, v.Rest = risk.Medium, max(v.Rest, risk.Medium)
		v.Reasons = append(v.Reasons, risk.Reason{
			Text: "the shell's aliases and functions are not known yet", Effect: risk.Unknown, Level: risk.Medium,
		})
	}
	return v
}

// real is path with its links resolved, or path where it leads nowhere.
func real(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// policy is the rules and the mode that hold for this turn now.
func (a *approver) policy(ctx context.Context, q agent.Question) policy.Policy {
	mode := a.t.s.policyMode()
	if a.t.mode != "" { // checked when the request came
		mode = policy.Mode(a.t.mode)
	}
	return a.policyIn(ctx, q, mode)
}

// policyIn is the rules that hold now, with a mode that a project's file may still narrow.
func (a *approver) policyIn(ctx context.Context, q agent.Question, mode policy.Mode) policy.Policy {
	p := policy.Policy{Mode: mode}
	rules, faults, err := a.t.hub.rules(ctx, a.t.s)
	if err != nil {
		// Without its rules the store could have said no: nothing runs unasked.
		if ctx.Err() == nil {
			a.t.hub.log.Error("rules could not be read", "err", err)
		}
		p.Mode = policy.ModePlan
	}
	p.Rules = rules
	t := a.t.origin.tighten(a.t.s, q.Action.Cwd)
	a.t.s.tellBroken(t, faults...)
	return t.apply(p)
}

// held is what the kernel holds a command to by a decision, "" for nothing.
func held(d policy.Decision) string {
	if d.Reach.Confines() {
		return string(d.Reach)
	}
	return ""
}

func (a *approver) action(q agent.Question, reach risk.Reach) policy.Action {
	env, cwd := a.environ()
	at := q.Action.Cwd
	if at == "" {
		at = string(cwd)
	}
	var bound risk.Reach
	switch {
	case !q.Action.AgentShell:
	case q.ReadOnly:
		bound = risk.ReachRead
	default:
		bound = risk.ReachProject
	}
	return policy.Action{
		Tool: q.Tool, Command: q.Action.Command, Cwd: at, Reads: q.Action.Reads, Writes: q.Action.Writes,
		Network: q.Action.Network, Server: q.Action.Server, Reach: reach, Bound: bound, Passing: q.Action.ServerPassing, Session: string(a.t.s.id), Project: project.Root(at), Editable: isProject(project.Root(at), lend.Home(nil)), Home: lend.Home(env), Now: time.Now(),
	}
}

// by names who decided, for people and the audit log.
func by(d policy.Decision) string {
	switch {
	case d.Rule != nil && d.Rule.ID != "":
		return "rule " + d.Rule.ID
	case d.Rule != nil:
		return "rule " + d.Rule.Pattern
	}
	return "policy"
}

// decided writes a decision into the audit log and returns it, as a no where that failed. p is what the policy said: that a person was to be asked, and why.
func (a *approver) decided(q agent.Question, v risk.Verdict, p policy.Decision, d agent.Decision) agent.Decision {
	e := store.AuditEntry{
		At: time.Now(), Event: "decision", Session: string(a.t.s.id), Turn: string(a.t.id), Agent: q.Agent, Model: a.t.model,
		Tool: q.Tool, Command: mask.String(subject(q)), Cwd: q.Action.Cwd, Level: v.Level.String(), Decision: "deny", By: d.By,
		Why: mask.String(p.Why),
	}
	if a.t.foreign != nil {
		e.Agent = a.t.foreign.who()
	}
	if p.Rule != nil {
		e.Rule = mask.String(p.Rule.Pattern)
	}
	if d.Reason != "" && d.Reason != p.Why {
		e.Why = mask.String(d.Reason)
	}
	if d.Comment != "" {
		e.Why += ": " + mask.String(d.Comment)
	}
	if d.Allowed {
		e.Decision = "allow"
	}
	if err := a.t.hub.audit(e); err != nil { // what is not on record does not run
		d.Allowed, d.EditedCommand, d.Reason = false, nil, "the decision could not be recorded: "+err.Error()
	}
	if d.Allowed {
		a.t.vet(q.ExecutionID, lend.Approval{Person: strings.HasPrefix(d.By, "client ") && !opaque(v), Literal: p.Reach == risk.ReachShell, Holds: a.t.unchanged(v.Scripts)})
	}
	return d
}

// opaque reports whether a text runs what cannot be seen in it, such as `. ./x.sh`: who allowed it did not see what it would
// change in the shell.
func opaque(v risk.Verdict) bool {
	return v.Unread || slices.ContainsFunc(v.Commands, func(c risk.Command) bool { return c.Opaque }) ||
		slices.ContainsFunc(v.Reasons, func(r risk.Reason) bool {
			return r.Level > risk.Low && (r.Effect == risk.RunCode || r.Effect == risk.Unknown)
		})
}

// unchanged returns what reports whether the scripts that were judged by their text still hold it; nil where there are none.
func (t *turn) unchanged(scripts []risk.Script) func() bool {
	if len(scripts) == 0 {
		return nil
	}
	return func() bool {
		return !slices.ContainsFunc(scripts, func(s risk.Script) bool {
			text, ok := t.s.files.Written(real(s.Path))
			return !ok || text != s.Text
		})
	}
}

func (t *turn) vet(id wire.ExecutionID, a lend.Approval) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.approved == nil {
		t.approved = map[wire.ExecutionID]lend.Approval{}
	}
	t.approved[id] = a
}

// maxSubject bounds a call's arguments in the audit log, in bytes.
const maxSubject = 4 << 10

// subject is what a call works on, in one text.
func subject(q agent.Question) string {
	act := q.Action
	switch {
	case act.Command != "":
		return act.Command
	case len(act.Writes) > 0:
		return fmt.Sprint("write ", act.Writes)
	case act.Network != "":
		return "fetch " + act.Network
	case act.Server != "":
		return visible.Cut(q.Tool+" "+string(q.Arguments), maxSubject)
	case len(act.Reads) > 0:
		return fmt.Sprint("read ", act.Reads)
	}
	return ""
}

// auditExecution writes what a tool did into the audit log. What was refused did nothing: the decision is there.
func (t *turn) auditExecution(r *wire.CommandResult) {
	if r.Status == wire.StatusDenied {
		return
	}
	who := r.Agent
	if t.foreign != nil {
		who = t.foreign.who()
	}
	_ = t.hub.audit(store.AuditEntry{ // it is in the daemon's log, and the execution cannot be undone
		At: time.Now(), Event: "execution", Session: string(t.s.id), Turn: string(t.id), Agent: who, Model: t.model,
		Tool: r.Tool, Command: mask.String(string(r.Command)), Cwd: string(r.Cwd), Status: r.Status, ExitCode: r.ExitCode,
		DurationMS: r.DurationMS,
	})
}

// audit records e. That somebody else touched the log is said to every client, and is no error.
func (h *Hub) audit(e store.AuditEntry) error {
	err := h.opts.Audit.Record(e)
	if touched, ok := errors.AsType[*store.TouchedError](err); ok {
		h.log.Error("audit log touched", "what", touched.Why)
		h.Notify(&wire.Notice{Level: "error", Text: touched.Why, Hint: touched.Hint()})
		return nil
	}
	if err != nil {
		h.log.Error("audit log cannot be written", "err", err)
	}
	return err
}
