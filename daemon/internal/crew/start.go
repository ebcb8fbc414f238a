package crew

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// Host is what the Manager needs of a session whose agent starts others. The hub implements it.
type Host interface {
	ID() wire.SessionID
	// Role returns a role that may be used in the folder dir.
	Role(name, dir string) (agent.Role, bool)
	// Play begins a turn of another session, which it makes if there is none. It calls ended, once, after the turn's end, unless
	// it returns an error.
	Play(p Part, ended func(agent.Outcome)) error
	// Cancel starts to end the turns of another session; by is shown to the user.
	Cancel(session wire.SessionID, by string)
	// Wake begins a turn of the host's session with prompt, now or when a client attaches. It calls claim first and begins no
	// turn if that returns false. what is the event in one line, for notices.
	Wake(claim func() bool, what, prompt string)
}

// Part is a turn of an agent in the session that it has of its own.
type Part struct {
	Session wire.SessionID
	Title   string // of a new session
	Agent   string
	Role    agent.Role
	Request *wire.AgentRequest
	Rules   []wire.Rule // of the session
}

// For returns the crew of a host's session, through which its agent starts others.
func (m *Manager) For(h Host) agent.Crew { return sessionCrew{m, h} }

type sessionCrew struct {
	m *Manager
	h Host
}

func (c sessionCrew) Find(name string) (wire.SubAgent, bool) {
	a, err := c.m.Find(c.h.ID(), name)
	return a.SubAgent, err == nil
}

func (c sessionCrew) Wait(ctx context.Context, name string) (tool.Report, error) {
	return c.m.wait(ctx, c.h.ID(), name)
}

func (c sessionCrew) Stop(name string) {
	if a, err := c.m.Find(c.h.ID(), name); err == nil {
		c.h.Cancel(a.SessionID, "the agent that started it")
	}
}

// Start implements agent.Crew. It waits for git where the agent gets a working tree, and returns once the turn is queued.
func (c sessionCrew) Start(ctx context.Context, o agent.Order) error {
	m, h := c.m, c.h
	a, err := m.Find(h.ID(), o.Name)
	if err == nil { // it is asked further
		var ok bool
		if o.Role, ok = h.Role(a.Role, a.Cwd); !ok {
			return fmt.Errorf("the role %s of agent %s does not exist any more", visible.Exact(a.Role), a.Name)
		}
	} else {
		a = Agent{Session: h.ID(), Cwd: o.Cwd, SubAgent: wire.SubAgent{
			Name: o.Name, Role: o.Role.Name, Title: visible.Exact(visible.Cut(o.Title, 200)), SessionID: wire.SessionID(wire.NewID()),
		}}
	}
	if a.State == wire.AgentRunning {
		return errWorks(a.Name)
	}
	newTree := o.Role.Worktree && a.Tree == nil
	if newTree {
		if err := a.addTree(ctx); err != nil {
			return err
		}
	}
	if err := m.begin(a, newTree); err != nil {
		if newTree {
			err = errors.Join(err, a.Tree.Remove())
		}
		return err
	}
	cwd, instruction, rules := a.workplace()
	o.Role.Private, o.Options.AppendSystem = true, strings.TrimSpace(instruction+"\n\n"+o.System) // only the orchestrator borrows the user's shell
	err = h.Play(Part{
		Rules: rules, Session: a.SessionID, Title: a.Name + ": " + a.Title, Agent: a.Name, Role: o.Role,
		Request: &wire.AgentRequest{
			RequestID: wire.RequestID(wire.NewID()), Prompt: o.Prompt, Context: wire.RequestContext{Cwd: wire.OSString(cwd)}, Options: o.Options,
		},
	}, func(out agent.Outcome) {
		failure := ""
		if out.Err != nil {
			failure = out.Err.Error()
		}
		ctx, cancel := context.WithTimeout(context.Background(), changesBound) // the daemon may be stopping
		defer cancel()
		m.end(h.ID(), a.Name, out.Status, out.Summary+a.changes(ctx, diffMost), failure)
		m.Report(h)
	})
	if err != nil {
		m.end(h.ID(), a.Name, wire.StatusError, "", err.Error())
		m.takeReport(h.ID(), a.Name)
	}
	return err
}

// Report wakes the host's agent for each report that is due.
func (m *Manager) Report(h Host) {
	for _, a := range m.List(h.ID()) {
		if a.Due {
			h.Wake(func() bool { return m.takeReport(h.ID(), a.Name) }, a.ended(), a.reportPrompt())
		}
	}
}

// Serve answers an AgentsRequest about the agents of a host's session. beside are those of its turns.
func (m *Manager) Serve(ctx context.Context, h Host, beside *agent.Agents, r *wire.AgentsRequest, by string) (*wire.AgentsReply, error) {
	reply := &wire.AgentsReply{RequestID: r.RequestID, Agents: []wire.SubAgent{}}
	if r.Op == "list" {
		for _, a := range m.List(h.ID()) {
			reply.Agents = append(reply.Agents, a.SubAgent)
		}
		reply.Agents = append(reply.Agents, beside.List()...)
		return reply, nil
	}
	a, err := m.Find(h.ID(), r.Name)
	switch {
	case r.Op == "stop" && err == nil:
		h.Cancel(a.SessionID, by)
	case r.Op == "stop" && beside.Stop(r.Name, errors.New("cancelled by "+by)):
		return reply, nil
	case err != nil:
		return nil, err
	case r.Op == "show":
		report, _, _ := strings.Cut(a.Report, treeHead)       // without the changes at the end of that turn, cut off at diffMost
		reply.Text = report + a.changes(ctx, wire.MaxFrame/4) // leaves room in the frame for the report and the encoding
	case r.Op == "merge", r.Op == "drop":
		if err := m.endTree(ctx, a.Session, a.Name, r.Op == "merge"); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("op: want list, stop, show, merge or drop")
	}
	reply.Agents = append(reply.Agents, a.SubAgent)
	return reply, nil
}
