package hub

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/job"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
	"sublet/wire"
)

// maxEdits bounds how often a person's own edit is asked about again because it is riskier than what they were shown.
const maxEdits = 5

// Approve implements agent.Approver: it decides by policy or asks whoever is attached. No shell is held while it waits.
func (t *turn) Approve(ctx context.Context, q agent.Question) (agent.Decision, error) {
	if q.Continue != "" {
		return t.askToContinue(ctx, q)
	}
	d, err := t.decide(ctx, q)
	if err == nil && !d.Allowed {
		if d.EditedCommand != nil {
			q.Action.Command = *d.EditedCommand
		}
		d.About = t.refusal(ctx, q)
	}
	return d, err
}

// decide returns whether a call may run, and with which command: see Approve. Each decision is in the audit log.
func (t *turn) decide(ctx context.Context, q agent.Question) (agent.Decision, error) {
	var edited *string // what the user wrote in place of the command
	var v risk.Verdict
	var d policy.Decision
	for range maxEdits {
		v = t.judge(ctx, q)
		d = t.policy(ctx, q).Decide(v, t.action(q, t.reach(q, v)))
		verdict := agent.Decision{By: d.By(), EditedCommand: edited, Reach: d.Held()}
		switch {
		case d.Outcome == policy.Deny:
			verdict.Reason = d.Why
			return t.recordDecision(q, v, d, verdict), nil
		case q.ReadOnly && v.Level > risk.Low && d.Reach != risk.ReachRead && q.Action.Server == "": // an MCP server's tool is one that the role's list names
			verdict.By, verdict.Reason = "role "+q.Role, "the role "+q.Role+" only reads, and this is "+v.Level.String()
			return t.recordDecision(q, v, d, verdict), nil
		case d.Outcome == policy.Allow && (d.Rule != nil || !t.mustAsk(q)):
			verdict.Allowed = true
			return t.recordDecision(q, v, d, verdict), nil
		}
		if why := t.whyUnasked(); why != "" {
			verdict.By, verdict.Reason = "nobody", d.Why+"; it was not asked, because "+why
			return t.recordDecision(q, v, d, verdict), nil
		}
		answer, err := t.ask(ctx, q, v, d)
		if err != nil {
			t.recordDecision(q, v, d, agent.Decision{By: "cancel", Reason: err.Error()})
			return agent.Decision{EditedCommand: edited}, err
		}
		if answer.EditedCommand == nil || *answer.EditedCommand == q.Action.Command {
			answer.EditedCommand, answer.Reach = edited, d.Held()
			return t.recordDecision(q, v, d, answer), nil
		}
		if q.Fixed {
			return t.recordDecision(q, v, d, agent.Decision{By: answer.By, Reason: q.Agent + " runs a command of its own only as it is; the user wants instead: " + *answer.EditedCommand}), nil
		}
		// The user's command is judged too: what a rule denies stays denied, and what is riskier than the command shown is asked
		// about once more.
		edited = answer.EditedCommand
		q.Action.Command = *edited
		if q.Arguments, err = agent.WithCommand(q.Arguments, *edited); err != nil {
			return agent.Decision{EditedCommand: edited}, err
		}
		level, shown := v.Level, d.Reach
		v = t.judge(ctx, q)
		d = t.policy(ctx, q).Decide(v, t.action(q, t.reach(q, v)))
		if v.Level <= level && d.Outcome != policy.Deny && risk.Wider(shown, d.Reach) == shown {
			answer.Reach = d.Held()
			return t.recordDecision(q, v, d, answer), nil
		}
	}
	return t.recordDecision(q, v, d, agent.Decision{By: "nobody", EditedCommand: edited, Reason: "the command was changed too often while it was asked about"}), nil
}

// askToContinue asks the user whether an agent may continue although it repeats the same calls or has reached its cost limit: q.Continue is
// that reason. Where nobody can be asked the agent may not.
func (t *turn) askToContinue(ctx context.Context, q agent.Question) (agent.Decision, error) {
	v := harmless(q.Continue)
	if t.whyUnasked() != "" {
		return t.recordDecision(q, v, policy.Decision{Outcome: policy.Ask, Why: q.Continue}, agent.Decision{By: "nobody", Reason: q.Continue}), nil
	}
	return t.askAbout(ctx, q, v, q.Continue)
}

// harmless is the verdict on what does nothing by itself.
func harmless(why string) risk.Verdict {
	return risk.Verdict{Level: risk.Low, Reversible: true, Reasons: []risk.Reason{{Text: why, Effect: risk.Unknown, Level: risk.Low}}}
}

// askAbout asks about what no rule decides, and records the answer. If ctx ends first the answer is a no, and the error the cause.
func (t *turn) askAbout(ctx context.Context, q agent.Question, v risk.Verdict, why string) (agent.Decision, error) {
	p := policy.Decision{Outcome: policy.Ask, Why: why}
	d, err := t.ask(ctx, q, v, p)
	if err != nil {
		d = agent.Decision{By: "cancel", Reason: err.Error()}
	}
	return t.recordDecision(q, v, p, d), err
}

// whyUnasked returns why nobody is asked about what the turn does; "" if somebody can be.
func (t *turn) whyUnasked() string {
	canAsk := t.origin.confirm
	if t.foreign != nil {
		_, window := t.window()
		canAsk = window != nil
	}
	switch {
	case canAsk && t.approve != nil && !*t.approve:
		return "the request said not to ask"
	case canAsk:
		return ""
	case t.origin.within.Load():
		return "the request came from inside a shell that agents use"
	case t.foreign != nil:
		return "no sublet window is open that could ask"
	}
	return "the request came from a client that cannot confirm"
}

// refusal returns lines for the model: which parts of a refused command the refusal is about, and which would run without a question.
func (t *turn) refusal(ctx context.Context, q agent.Question) string {
	rules := t.policy(ctx, q)
	return judge.Refusal(q.Action.Command, t.judge(ctx, q).Reasons, func(statement string) bool {
		q := q
		q.Action.Command = statement
		v := t.judge(ctx, q)
		d := rules.Decide(v, t.action(q, t.reach(q, v)))
		return d.Outcome == policy.Allow && (!q.ReadOnly || v.Level == risk.Low || d.Reach == risk.ReachRead) && (d.Rule != nil || !t.mustAsk(q))
	})
}

// shellEnviron returns the environment and the folder in which a call is judged: the client's or, for a foreign agent, those of the shell
// that it borrows.
func (t *turn) shellEnviron() (map[string]wire.OSString, wire.OSString) {
	if t.foreign != nil {
		if ln, err := t.Lent(); err == nil && ln != nil {
			return ln.Environ()
		}
	}
	return t.origin.environ()
}

// mustAsk reports whether the user is asked about this call though the policy allows it: the request demands a question about each call
// that has an effect.
func (t *turn) mustAsk(q agent.Question) bool {
	does := q.Action.Command != "" || len(q.Action.Writes) > 0 || q.Action.Network != "" || q.Action.Server != ""
	return does && t.approve != nil && *t.approve
}

// judge returns the verdict on what a call would do, in the shell and the folder where it would run.
func (t *turn) judge(ctx context.Context, q agent.Question) risk.Verdict {
	h := t.hub
	env, cwd := t.shellEnviron()
	conf := h.opts.Config()
	var serverWrite []string
	for _, server := range conf.MCP {
		serverWrite = append(serverWrite, server.Write...)
	}
	var jobs []string
	for _, i := range h.jobs.List("") {
		if i.State != job.Ended && i.Reach == confine.Project {
			jobs = append(jobs, reach.Real(project.Root(string(i.Cwd))))
		}
	}
	return judge.Place{
		Settings: conf.Policy, ServerWrite: serverWrite, Env: lend.Texts(env), Cwd: string(cwd), Home: lend.Home(env), Own: h.shells.Own(),
		Written: t.s.files.Written, Made: t.s.files.Made, Jobs: jobs,
	}.Judge(ctx, q.Action)
}

// policy is the rules and the mode that hold for this turn now.
func (t *turn) policy(ctx context.Context, q agent.Question) policy.Policy {
	mode := t.policySession().policyMode()
	switch { // checked when the request came
	case t.wider:
		mode = cmp.Or(policy.Mode(t.mode), mode) // "" once a plan was accepted
	case t.mode != "":
		mode = judge.Stricter(mode, policy.Mode(t.mode))
	}
	if q.Mode != "" { // checked when the role was read
		mode = judge.Stricter(mode, policy.Mode(q.Mode))
	}
	return t.policyIn(ctx, q, mode)
}

// policyIn returns the rules in force with the mode, or with a stricter one if a project's file demands that.
func (t *turn) policyIn(ctx context.Context, q agent.Question, mode policy.Mode) policy.Policy {
	p := policy.Policy{Mode: mode}
	list, err := t.hub.listRules(ctx, t.s, t.inherited()...)
	rules, faults := judge.InForce(list)
	if err != nil {
		// The rules that cannot be read may be ones that deny: as in plan mode, nothing runs but what only reads.
		if ctx.Err() == nil {
			t.hub.log.Error("rules could not be read", "err", err)
		}
		p.Mode = policy.ModePlan
	}
	p.Rules = rules
	projects := t.origin.tightening(t.s, q.Action.Cwd)
	t.s.reportFaults(append(projects.Faults(), faults...))
	return projects.Apply(p)
}

// rootOf returns the top folder of the project that holds the folder at. For a file tool its symbolic links are resolved, as they are in
// the paths of q.
func rootOf(q agent.Question, at string) string {
	if q.Action.Command == "" {
		at = reach.Real(at)
	}
	return project.Root(at)
}

// action returns what the policy judges of a call that would run with the reach to ("" = nothing holds it).
func (t *turn) action(q agent.Question, to risk.Reach) policy.Action {
	env, cwd := t.shellEnviron()
	at := q.Action.Cwd
	if at == "" {
		at = string(cwd)
	}
	var bound risk.Reach // the shell of one agent alone is held to what the agent's role needs
	switch {
	case !q.Action.AgentShell:
	case q.ReadOnly:
		bound = risk.ReachRead
	default:
		bound = risk.ReachProject
	}
	root := rootOf(q, at)
	return policy.Action{
		Tool: q.Tool, Command: q.Action.Command, Cwd: at, Reads: q.Action.Reads, Writes: q.Action.Writes,
		Network: q.Action.Network, Server: q.Action.Server, Reach: to, Bound: bound, Passing: q.Action.ServerOfClient, Session: string(t.s.id),
		Project: root, Real: reach.Real(root), Editable: reach.IsProject(root, reach.Home()), Home: lend.Home(env), Now: time.Now(),
	}
}

// recordDecision writes a decision into the audit log and returns it, as a refusal if that failed. p is the policy's own decision, whose rule
// and reason are recorded.
func (t *turn) recordDecision(q agent.Question, v risk.Verdict, p policy.Decision, d agent.Decision) agent.Decision {
	e := t.entry("decision", q.Agent, q.Tool, q.Subject(), q.Action.Cwd)
	e.Level, e.Decision, e.By, e.Why = v.Level.String(), "deny", d.By, mask.String(p.Why)
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
	if err := t.hub.audit(e); err != nil { // what is not on record does not run
		d.Allowed, d.EditedCommand, d.Reason = false, nil, "the decision could not be recorded: "+err.Error()
	}
	if d.Allowed { // a person who could not see in the text what it runs has approved none of its changes to the shell
		d.Approval = tool.Approval{
			Person: strings.HasPrefix(d.By, clientPrefix) && !judge.Opaque(v), Literal: p.Reach == risk.ReachShell,
			Holds: func() bool { return judge.Unchanged(v.Scripts, t.s.files.Written) },
		}
	}
	return d
}

// auditExecution writes what a tool did into the audit log. For a refused call the log has the decision alone.
func (t *turn) auditExecution(r *wire.CommandResult) {
	if r.Status == wire.StatusDenied {
		return
	}
	e := t.entry("execution", r.Agent, r.Tool, string(r.Command), string(r.Cwd))
	e.Status, e.ExitCode, e.DurationMS = r.Status, r.ExitCode, r.DurationMS
	_ = t.hub.audit(e) // it is in the daemon's log, and the execution cannot be undone
}

// entry begins an entry of the audit log.
func (t *turn) entry(event, who, tool, command, cwd string) store.AuditEntry {
	if t.foreign != nil {
		who = t.foreign.who()
	}
	return store.AuditEntry{
		At: time.Now(), Event: event, Session: string(t.s.id), Turn: string(t.id), Agent: who, Model: t.model,
		Tool: tool, Command: mask.String(command), Cwd: cwd,
	}
}

// audit records e and logs an error of that. Where another program has changed the log, e is recorded nevertheless: every client is
// sent a notice, and audit returns nil.
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
