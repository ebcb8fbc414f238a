package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// SessionMemory is what a session keeps in memory between its turns. The zero value is ready.
type SessionMemory struct {
	Agents Agents
	Thread Cache
}

// Forget drops the conversations of the session and of its agents that have ended, which cannot be asked further then.
func (s *SessionMemory) Forget() {
	s.Thread.Drop()
	s.Agents.mu.Lock()
	defer s.Agents.mu.Unlock()
	s.Agents.members = slices.DeleteFunc(s.Agents.members, func(m *member) bool { return m.cancel == nil })
}

const (
	maxMembers = 16       // how many agents of a session are kept to be asked further
	maxKept    = 16 << 20 // bytes of their conversations together
)

// Agents are the sub-agents of one session that ended with their turn, so that later turns can ask them further, and those
// that run now. They are in memory only. The zero value is ready; it is safe for concurrent use.
type Agents struct {
	mu sync.Mutex
	// guarded by mu
	counts  map[string]int // agents started so far, by role
	members []*member      // the oldest first
}

type member struct {
	wire.SubAgent
	role    Role
	entries []entry                 // its conversation, once it has ended
	size    int                     // approximate bytes of entries
	cancel  context.CancelCauseFunc // of one that runs; else nil
}

// next returns the next name for an agent of a role, such as engineer-2.
func (a *Agents) next(role string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = map[string]int{}
	}
	a.counts[role]++
	return fmt.Sprintf("%s-%d", role, a.counts[role])
}

// begin adds an agent that is about to run, in place of an earlier one of its name.
func (a *Agents) begin(m *member) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members = append(slices.DeleteFunc(a.members, func(old *member) bool { return old.Name == m.Name }), m)
}

// end records how an agent ended, and its conversation. It drops the oldest of those that ended where too much is kept.
func (a *Agents) end(m *member, o Outcome, entries []entry) {
	messages := render(entries)
	size := provider.Request{Messages: messages}.Bytes()
	for _, image := range provider.Images(messages) {
		size += len(image.Data)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	m.cancel, m.entries, m.size = nil, entries, size
	m.State, m.Status, m.EndedAtMS = wire.AgentEnded, o.Status, time.Now().UnixMilli()
	kept, total := 0, 0
	for i := len(a.members) - 1; i >= 0; i-- {
		switch old := a.members[i]; {
		case old.cancel != nil:
		case kept == maxMembers, total+old.size > maxKept:
			a.members = slices.Delete(a.members, i, i+1)
		default:
			kept, total = kept+1, total+old.size
		}
	}
}

// find returns a copy of an agent, false if there is none of that name.
func (a *Agents) find(name string) (m member, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.members, func(m *member) bool { return m.Name == name })
	if i < 0 {
		return member{}, false
	}
	return *a.members[i], true
}

// List describes all agents, the oldest first.
func (a *Agents) List() (list []wire.SubAgent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.members {
		list = append(list, m.SubAgent)
	}
	return list
}

// Stop cancels an agent that runs, with why as the reason, and reports whether there is one of that name.
func (a *Agents) Stop(name string, why error) bool {
	m, ok := a.find(name)
	if ok && m.cancel != nil {
		m.cancel(why)
	}
	return ok
}

// Crew keeps the agents that have a session of their own and outlive the turn that started them. The hub implements it.
type Crew interface {
	// Start starts an agent, or asks the one of that name further, in the background. ctx bounds the start only.
	Start(ctx context.Context, o Order) error
	// Wait waits for the end of an agent's work and returns its report. After it the agent that started it is not woken.
	Wait(ctx context.Context, name string) (tool.Report, error)
	// Find describes an agent of the session; false if there is none of that name.
	Find(name string) (wire.SubAgent, bool)
	Stop(name string)
}

// Order describes an agent that a Crew starts, or asks further.
type Order struct {
	Role    Role // not set for one that is asked further
	Name    string
	Title   string
	Prompt  string
	Cwd     string
	System  string // what is added to the agent's system prompt
	Options wire.RequestOptions
}

// limitsText returns the part of an agent's system prompt with the limits that the user set in another conversation.
func limitsText(limits []string) string {
	if len(limits) == 0 {
		return ""
	}
	return "\nLimits the user set, in their words; they hold for you too:\n- " + strings.Join(limits, "\n- ") + "\n"
}

var errStoppedByAgent = errors.New("cancelled by the agent that started it")

// delegateToCrew carries out an assignment by an agent of the crew.
func (m *team) delegateToCrew(ctx context.Context, role Role, name string, a tool.Assignment) (tool.Report, error) {
	crew := m.parent.t.Crew
	err := crew.Start(ctx, Order{
		Role: role, Name: name, Title: titleOf(a), Prompt: a.Prompt, Cwd: m.parent.environment().Cwd,
		System: limitsText(m.parent.userLimits()), Options: m.options(),
	})
	switch {
	case err != nil:
		return tool.Report{Agent: name}, err
	case a.Background:
		return tool.Report{Agent: name, Answer: "It works in the background. You are told when it has ended; until then go on, or end your turn."}, nil
	}
	return crew.Wait(ctx, name)
}

// Report implements tool.Delegate: it returns how long a running agent has worked, and the report of one that has ended.
func (m *team) Report(ctx context.Context, name string) (tool.Report, error) {
	found, _ := m.agents.find(name)
	agent := found.SubAgent
	crew := m.parent.t.Crew
	if i, ok := crew.Find(name); ok && i.State != wire.AgentRunning {
		return crew.Wait(ctx, name) // at once, since it has ended
	} else if ok {
		agent = i
	}
	switch agent.State {
	case "":
		return tool.Report{}, m.unknown(name)
	case wire.AgentRunning:
		worked := time.Since(time.UnixMilli(agent.StartedAtMS)).Round(time.Second)
		return tool.Report{Agent: name, Answer: fmt.Sprintf("%s has been working for %s.", name, worked)}, nil
	}
	return tool.Report{Agent: name, Answer: name + " has ended: " + agent.Status + ". Its report was the result of its task."}, nil
}

// Stop implements tool.Delegate.
func (m *team) Stop(name string) error {
	if _, ok := m.parent.t.Crew.Find(name); ok {
		m.parent.t.Crew.Stop(name)
		return nil
	}
	if !m.agents.Stop(name, errStoppedByAgent) {
		return m.unknown(name)
	}
	return nil
}

func (m *team) unknown(name string) error {
	return fmt.Errorf("there is no agent %q here; one that did not work in the background is kept until the daemon ends", clip(name, 60))
}
