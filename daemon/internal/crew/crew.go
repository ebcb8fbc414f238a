// Package crew keeps the agents that work in the background: who started them, how they stand, and the reports that are due to
// whoever started them. Each has a session of its own, which the hub plays; what is known of an agent is stored, so that it
// can be asked further by the next daemon.
package crew

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/daemon/internal/worktree"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	// reportMost bounds the report in the prompt that wakes whoever started an agent, in bytes. All of it can be looked at.
	reportMost = 16 << 10
	storeBound = 10 * time.Second
)

// Agent is what is known of an agent.
type Agent struct {
	wire.SubAgent
	Session wire.SessionID // of the agent that started it
	Cwd     string         // where whoever started it worked
	Tree    *worktree.Copy // the working tree that it has of its own; nil = none
	Report  string         // of its newest turn that has ended
	Failure string         // why that failed; "" = it did not
	Due     bool           // the report has not been given yet
}

// An UnknownError reports that a session has no agent of that name.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("this session has no agent %q", visible.Exact(visible.Cut(e.Name, 60)))
}

type key struct {
	session wire.SessionID
	name    string
}

type entry struct {
	Agent
	waiting  int           // callers of wait
	ended    chan struct{} // closed when its turn ends; begin makes a new one
	treeBusy bool          // its working tree is being merged or dropped
}

// Manager keeps all agents. It is safe for concurrent use.
type Manager struct {
	store *store.Store
	log   *slog.Logger

	mu     sync.Mutex
	agents map[key]*entry // guarded by mu
}

// Open loads the agents of earlier daemons. Those that worked have ended with their daemon.
func Open(ctx context.Context, s *store.Store, log *slog.Logger) (*Manager, error) {
	m := &Manager{store: s, log: log, agents: map[key]*entry{}}
	records, err := s.Agents(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range records {
		e := &entry{ended: make(chan struct{})}
		close(e.ended)
		if err := json.Unmarshal(text, &e.Agent); err != nil {
			log.Warn("an agent's record cannot be read", "err", err)
			continue
		}
		m.agents[key{e.Session, e.Name}] = e
		if e.State == wire.AgentRunning {
			m.endLocked(e, wire.StatusError, "", "the daemon was restarted while it worked")
		}
	}
	return m, nil
}

// begin records that an agent works: a new one, or one that is asked further. a is what was known of it when the caller looked, with
// its working tree, which is new or else the one that it had and must still have.
func (m *Manager) begin(a Agent, newTree bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.agents[key{a.Session, a.Name}]
	switch {
	case e == nil:
		e = &entry{Agent: a}
	case e.State == wire.AgentRunning:
		return errWorks(a.Name)
	case e.treeBusy, e.Tree != a.Tree && !newTree:
		return errTreeBusy(a.Name)
	}
	before := e.Agent
	e.Tree, e.Worktree = a.Tree, a.Worktree
	e.State, e.Status, e.EndedAtMS, e.Due = wire.AgentRunning, "", 0, false
	e.StartedAtMS = time.Now().UnixMilli()
	if err := m.saveLocked(e); err != nil {
		e.Agent = before
		return err
	}
	e.ended = make(chan struct{})
	m.agents[key{a.Session, a.Name}] = e
	return nil
}

func errWorks(name string) error {
	return fmt.Errorf("%s is still working; wait for its report first", name)
}

func errTreeBusy(name string) error {
	return fmt.Errorf("the working tree of %s is being merged or dropped; try again", name)
}

// end records how an agent's turn ended. Its report is due where nobody waits for it.
func (m *Manager) end(session wire.SessionID, name, status, report, failure string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.agents[key{session, name}]
	if e == nil || e.State != wire.AgentRunning {
		return
	}
	m.endLocked(e, status, report, failure)
	close(e.ended)
}

func (m *Manager) endLocked(e *entry, status, report, failure string) {
	e.State, e.Status, e.Report, e.Failure, e.EndedAtMS, e.Due = wire.AgentEnded, status, report, failure, time.Now().UnixMilli(), e.waiting == 0
	m.updateLocked(e)
}

// updateLocked stores the agent's record. If that fails it only logs: this daemon goes on with the record in memory, and the next one
// reads the older record.
func (m *Manager) updateLocked(e *entry) {
	if err := m.saveLocked(e); err != nil {
		m.log.Warn("an agent's record is not up to date", "agent", e.Name, "err", err)
	}
}

func (m *Manager) saveLocked(e *entry) error {
	text, err := json.Marshal(e.Agent)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeBound)
	defer cancel()
	return m.store.PutAgent(ctx, e.Session, e.Name, e.SessionID, text)
}

// Find returns an agent of a session, or an *UnknownError.
func (m *Manager) Find(session wire.SessionID, name string) (Agent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.agents[key{session, name}]; e != nil {
		return e.Agent, nil
	}
	return Agent{}, &UnknownError{name}
}

// List returns the agents of a session in the order in which their newest turns started. Where those started in the same millisecond, the
// agent that was started first comes first.
func (m *Manager) List(session wire.SessionID) (list []Agent) {
	m.mu.Lock()
	for _, e := range m.agents {
		if e.Session == session {
			list = append(list, e.Agent)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b Agent) int { // ids of sessions grow
		return cmp.Or(cmp.Compare(a.StartedAtMS, b.StartedAtMS), cmp.Compare(a.SessionID, b.SessionID))
	})
	return list
}

// wait waits until an agent does not work and returns its report, which then is not due any more.
func (m *Manager) wait(ctx context.Context, session wire.SessionID, name string) (tool.Report, error) {
	m.mu.Lock()
	e := m.agents[key{session, name}]
	if e == nil {
		m.mu.Unlock()
		return tool.Report{}, &UnknownError{name}
	}
	e.waiting++
	ended := e.ended
	m.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.waiting--
	select {
	case <-ended: // also if ctx has ended too: nobody is woken with the report, since this call waited for it
	default:
		return tool.Report{Agent: name}, context.Cause(ctx)
	}
	m.deliverLocked(e)
	report := tool.Report{Agent: name, Answer: e.Report}
	if e.Failure != "" {
		return report, errors.New(e.Failure)
	}
	return report, nil
}

// takeReport marks the report of an agent, which may be gone, as delivered. It returns true to one caller for each report.
func (m *Manager) takeReport(session wire.SessionID, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.agents[key{session, name}]
	return e != nil && m.deliverLocked(e)
}

// deliverLocked marks the agent's report as delivered, and reports whether it was due.
func (m *Manager) deliverLocked(e *entry) (due bool) {
	if !e.Due {
		return false
	}
	e.Due = false
	m.updateLocked(e)
	return true
}

// ended returns one line about the agent's end.
func (a Agent) ended() string {
	text := fmt.Sprintf("agent %s (%s) has ended: %s", a.Name, visible.Exact(visible.Cut(a.Title, 120)), a.Status)
	if a.Failure != "" {
		text += ", " + visible.Exact(visible.Cut(a.Failure, 300))
	}
	return text
}

// reportPrompt returns the prompt with which the agent that started this one receives its report.
func (a Agent) reportPrompt() string {
	report := strings.TrimSpace(a.Report)
	text, more := visible.Cut(report, reportMost), ""
	if len(text) < len(report) {
		more = "\n[… the whole: task with agent " + a.Name + "]"
	}
	if text != "" {
		text = " Its report:\n\n" + text + more + "\n"
	}
	return a.ended() + "." + text + "\nGo on with what waited for it."
}
