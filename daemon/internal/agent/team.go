package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sublet/compaction"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// MaxSubSteps bounds the model calls of one sub-agent.
const MaxSubSteps = 60

// team runs the sub-agents of one turn. Each has a conversation, a private shell and a budget of its own.
type team struct {
	parent *runner
	agents *Agents
	places chan struct{} // as many as may run at once
}

func newTeam(r *runner) *team {
	return &team{parent: r, agents: r.t.Agents, places: make(chan struct{}, r.t.MaxAgents)}
}

// Delegate implements tool.Delegate. Cancelling ctx ends an agent that does not work in the background, whether it runs or waits
// for a free place.
func (m *team) Delegate(ctx context.Context, a tool.Assignment) (tool.Report, error) {
	role, ok := m.parent.t.Roles[a.Role]
	name, history := a.Agent, []entry(nil)
	switch {
	case a.Agent != "":
		if _, known := m.parent.t.Crew.Find(name); known {
			return m.delegateToCrew(ctx, Role{}, name, a)
		}
		old, known := m.agents.find(name)
		_, isRole := m.parent.t.Roles[name]
		switch {
		case !known && isRole: // as other programs name the agent to start
			a.Role, a.Agent = name, ""
			return m.Delegate(ctx, a)
		case !known:
			return tool.Report{}, m.unknown(name)
		case old.cancel != nil:
			return tool.Report{}, fmt.Errorf("%s is still working; wait for its report first", name)
		case a.Background:
			return tool.Report{}, fmt.Errorf("%s was not started in the background; ask it without", name)
		}
		role, history, a.Title = old.role, old.entries, old.Title
	case !ok || a.Role == Orchestrator:
		return tool.Report{}, fmt.Errorf("there is no role %q; the roles are: %s", clip(a.Role, 60), m.roles())
	case a.Background, role.Worktree:
		return m.delegateToCrew(ctx, role, m.name(a.Role), a)
	}
	select {
	case m.places <- struct{}{}:
		defer func() { <-m.places }()
	case <-ctx.Done():
		return tool.Report{}, context.Cause(ctx)
	}
	if name == "" {
		name = m.name(a.Role)
	}
	t, err := m.turn(role, name, a)
	if err != nil {
		return tool.Report{Agent: name}, err
	}
	t.History.entries = history
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	me := &member{role: role, cancel: cancel, SubAgent: wire.SubAgent{
		Name: name, Role: role.Name, Title: clip(clean(titleOf(a)), 200), State: wire.AgentRunning, StartedAtMS: time.Now().UnixMilli(),
	}}
	m.agents.begin(me)
	sub := newRunner(t)
	defer sub.close()
	sub.notice("started: " + me.Title)
	o := sub.run(ctx)
	m.agents.end(me, o, sub.entries)
	m.parent.tally.merge(o)
	end := fmt.Sprintf("ended after %s: %s", (time.Duration(o.DurationMS) * time.Millisecond).Round(100*time.Millisecond), o.Status)
	if o.Err != nil && o.Status == wire.StatusError {
		end += ", " + clip(clean(o.Err.Error()), 200)
	}
	sub.notice(end)
	report := tool.Report{Agent: name, Answer: o.Summary}
	if role.Hosted == nil { // the calls of a program are known by its events alone
		report.Answer += sub.workRecord()
	}
	switch {
	case o.Err == nil:
		return report, nil
	case errors.Is(o.Err, ErrStepLimit):
		return report, fmt.Errorf("stopped after %d steps; its last text follows", sub.t.MaxSteps)
	case o.Status == wire.StatusTimeout:
		return report, errors.New("its time ran out; its last text follows")
	}
	return report, o.Err
}

// workRecord lists the files that the agent changed and the commands that it ran in this turn. It reads them from its calls, not from
// its answer. Once the turn's prompt is compacted, it lists those of earlier turns too.
func (r *runner) workRecord() string {
	from := max(len(r.entries)-1, 0)
	for from > 0 && !(isRequest(r.entries[from]) && r.entries[from].first == r.t.StartSeq) {
		from--
	}
	done := compaction.Build("", toItems(r.entries[from:]))
	text := compaction.Ledger{Ledger: wire.Ledger{Files: done.Files, Commands: done.Commands}}.Text()
	if text == "" {
		text = "no file was changed with its tools, and no command was run"
	}
	return "\n\n[from the record of its calls]\n" + text
}

// turn returns the input of a sub-agent's turn: an empty history, otherwise as in the parent's.
func (m *team) turn(role Role, name string, a tool.Assignment) (Turn, error) {
	p := m.parent
	t := Turn{
		Role: role, Name: name, Model: p.t.Model, Prompt: a.Prompt, Tools: p.t.Tools,
		Approver: p.t.Approver, Emit: p.t.Emit, Log: p.log, ShowSecrets: p.t.ShowSecrets,
		Team:       Team{NewPrivateShell: p.t.NewPrivateShell, Host: p.t.Host},
		Place:      Place{Project: p.t.Project, Environ: p.t.Environ, Mode: p.t.Mode, GitTime: p.t.GitTime, Instructions: p.t.Instructions, Trusted: p.t.Trusted},
		Bounds:     p.t.Bounds,
		delegation: delegation{subAgent: true, limits: p.userLimits(), spending: p.t.spending},
	}
	t.MaxSteps, t.Options = MaxSubSteps, m.options()
	env := p.environment()
	t.Env = tool.Env{Cwd: env.Cwd, Spool: env.Spool, Held: env.Held, Languages: env.Languages, Opened: p.t.Env.Opened, CheckTime: env.CheckTime, Secrets: env.Secrets, Files: env.Files, Jobs: p.t.Env.Jobs, Session: env.Session, Agent: name}
	t.Role.Private = true // only the orchestrator borrows the user's shell
	if role.Model != "" && role.Hosted == nil {
		model, err := p.t.OpenModel(role.Model)
		if err != nil {
			return Turn{}, fmt.Errorf("the role %s wants the model %s: %w", role.Name, role.Model, err)
		}
		t.Model = model
	}
	return t, nil
}

// userLimits returns the limits that the user set in the conversation, word for word, for sub-agents that have not seen it. It
// is called while the loop waits for its tools, when the conversation does not change.
func (r *runner) userLimits() []string {
	var limits []string
	add := func(list []string) {
		for _, l := range list {
			if !slices.Contains(limits, l) {
				limits = append(limits, l)
			}
		}
	}
	for _, e := range r.entries {
		if e.ledger != nil {
			add(e.ledger.Limits)
		}
		if e.kind == compaction.Request && !strings.HasPrefix(firstText(e.msg), WakeHead) {
			add(compaction.Limits(firstText(e.msg)))
		}
		for _, p := range e.msg.Parts {
			if prompt, ok := strings.CutPrefix(p.Text, steerHead); ok {
				add(compaction.Limits(prompt))
			}
		}
	}
	return limits
}

// name returns a name that no agent of the session has.
func (m *team) name(role string) string {
	for {
		name := m.agents.next(role)
		if _, taken := m.parent.t.Crew.Find(name); !taken {
			return name
		}
	}
}

// options are those of the turn that hold for its agents.
func (m *team) options() wire.RequestOptions {
	o := m.parent.t.Options
	return wire.RequestOptions{MaxTokens: o.MaxTokens, Temperature: o.Temperature, Thinking: o.Thinking, Tools: o.Tools}
}

func (m *team) roles() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(m.parent.t.Roles)), func(n string) bool { return n == Orchestrator })
	return strings.Join(names, ", ")
}

// titleOf returns what the agent with an assignment does, in a line.
func titleOf(a tool.Assignment) string {
	return cmp.Or(strings.TrimSpace(a.Title), visible.FirstLine(a.Prompt))
}
