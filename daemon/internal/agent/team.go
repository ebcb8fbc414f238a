package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/compaction"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// maxSubSteps bounds the model calls of one sub-agent.
const maxSubSteps = 60

// team runs the sub-agents of one turn. Each has a conversation, a private shell and a budget of its own.
type team struct {
	parent *runner
	places chan struct{} // as many as may run at once

	mu     sync.Mutex
	counts map[string]int // guarded by mu: agents started so far, by role
}

func newTeam(r *runner) *team {
	return &team{parent: r, places: make(chan struct{}, r.t.MaxAgents), counts: map[string]int{}}
}

// Delegate implements tool.Delegate. Cancelling ctx ends the agent, whether it runs or waits for a free place.
func (m *team) Delegate(ctx context.Context, a tool.Assignment) (tool.Report, error) {
	role, ok := m.parent.t.Roles[a.Role]
	if !ok || a.Role == Orchestrator {
		return tool.Report{}, fmt.Errorf("there is no role %q; the roles are: %s", clip(a.Role, 60), m.roles())
	}
	select {
	case m.places <- struct{}{}:
		defer func() { <-m.places }()
	case <-ctx.Done():
		return tool.Report{}, context.Cause(ctx)
	}
	name := m.name(a.Role)
	t, err := m.turn(role, name, a)
	if err != nil {
		return tool.Report{Agent: name}, err
	}
	sub := newRunner(ctx, t)
	defer sub.close()
	sub.notice("started: " + clip(clean(firstOf(a.Title, a.Prompt)), 200))
	o := sub.run(ctx)
	m.parent.tally.merge(o)
	end := fmt.Sprintf("ended after %s: %s", o.Duration.Round(100*time.Millisecond), o.Status)
	if o.Err != nil && o.Status == wire.StatusError {
		end += ", " + clip(clean(o.Err.Error()), 200)
	}
	sub.notice(end)
	report := tool.Report{Agent: name, Answer: o.Summary + sub.record()}
	switch {
	case o.Err == nil:
		return report, nil
	case errors.Is(o.Err, ErrStepLimit):
		return report, fmt.Errorf("stopped after %d steps; what it last said follows", sub.t.MaxSteps)
	}
	return report, o.Err
}

// record lists the files that the agent changed and the commands it ran, from its calls rather than from its answer.
func (r *runner) record() string {
	done := compaction.Build("", toItems(r.entries))
	text := compaction.Ledger{Files: done.Files, Commands: done.Commands}.Text()
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
		Project: p.t.Project, Trusted: p.t.Trusted, Approver: p.t.Approver, Emit: p.t.Emit, Threshold: p.t.Threshold, MaxSteps: maxSubSteps, Log: p.log,
		NewPrivateShell: p.t.NewPrivateShell, subAgent: true, limits: p.standing(),
		ShowSecrets: p.t.ShowSecrets, Budget: p.t.Budget, spending: p.t.spending, Compactor: p.t.Compactor, Mode: p.t.Mode, Trees: p.t.Trees, Instructions: p.t.Instructions,
	}
	t.Options = wire.RequestOptions{
		MaxTokens: p.t.Options.MaxTokens, Temperature: p.t.Options.Temperature, Thinking: p.t.Options.Thinking, Tools: p.t.Options.Tools,
	}
	env := p.environment()
	t.Env = tool.Env{Cwd: env.Cwd, Spool: env.Spool, Held: env.Held, Languages: env.Languages, Secrets: env.Secrets, Files: env.Files, Jobs: p.t.Env.Jobs, Session: env.Session, Agent: name}
	t.Role.Private = true // only the orchestrator borrows the user's shell
	if role.Model != "" && p.t.OpenModel != nil {
		model, err := p.t.OpenModel(role.Model)
		if err != nil {
			return Turn{}, fmt.Errorf("the role %s wants the model %s: %w", role.Name, role.Model, err)
		}
		t.Model = model
	}
	return t, nil
}

// standing returns the limits that the user set in the conversation, word for word, for sub-agents that have not seen it. It
// is called while the loop waits for its tools, when the conversation does not change.
func (r *runner) standing() []string {
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
			if said, ok := strings.CutPrefix(p.Text, steerHead); ok {
				add(compaction.Limits(said))
			}
		}
	}
	return limits
}

// name returns the next name for an agent of a role: engineer-1, engineer-2.
func (m *team) name(role string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[role]++
	return fmt.Sprintf("%s-%d", role, m.counts[role])
}

func (m *team) roles() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(m.parent.t.Roles)), func(n string) bool { return n == Orchestrator })
	return strings.Join(names, ", ")
}

func firstOf(a, b string) string {
	if strings.TrimSpace(a) != "" {
		return a
	}
	line, _, _ := strings.Cut(strings.TrimSpace(b), "\n")
	return line
}

// lazyShell is a private shell that is started for the first command.
type lazyShell struct {
	agent string
	open  func(ctx context.Context, agent string) (tool.Shell, func(), error)

	mu sync.Mutex
	// guarded by mu
	shell     tool.Shell
	closeOpen func()
	closed    bool
}

func (l *lazyShell) get(ctx context.Context) (tool.Shell, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, tool.ErrNoShell
	case l.shell != nil:
		return l.shell, nil
	}
	sh, closeShell, err := l.open(ctx, l.agent)
	if err != nil {
		return nil, err
	}
	l.shell, l.closeOpen = sh, closeShell
	return sh, nil
}

func (l *lazyShell) Where(ctx context.Context) (tool.ShellPlace, error) {
	sh, err := l.get(ctx)
	if err != nil {
		return tool.ShellPlace{}, err
	}
	return sh.Where(ctx)
}

func (l *lazyShell) Run(ctx context.Context, c tool.Command, live func([]byte)) (tool.CommandResult, error) {
	sh, err := l.get(ctx)
	if err != nil {
		return tool.CommandResult{}, err
	}
	c.Agent = l.agent
	return sh.Run(ctx, c, live)
}

// close ends the shell, if it was started.
func (l *lazyShell) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.closeOpen != nil {
		l.closeOpen()
	}
}
