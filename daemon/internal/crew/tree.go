package crew

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/worktree"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	// diffMost bounds the changes in a report, in bytes. All of them can be shown.
	diffMost = 48 << 10
	// changesBound is how long git may look for them before the report goes without. The daemon's stop waits for it.
	changesBound = 10 * time.Second
)

// addTree gives an agent a working tree of its own.
func (a *Agent) addTree(ctx context.Context) error {
	id := string(a.SessionID) // its random end: agents of two sessions may have the same name
	tree, err := worktree.Add(ctx, project.Root(a.Cwd), a.Name+"-"+id[max(0, len(id)-8):])
	if err != nil {
		return fmt.Errorf("the role %s works in a working tree of its own: %w", a.Role, err)
	}
	a.Tree, a.Worktree = &tree, wire.OSString(tree.Path)
	return nil
}

// workplace returns the agent's working folder, the part of its system prompt about that, and its rules. In a working tree of its own
// whatever the kernel holds to that tree runs unasked: the user sees the changes before they are merged.
func (a Agent) workplace() (cwd, instruction string, rules []wire.Rule) {
	if a.Tree == nil {
		return a.Cwd, "", nil
	}
	cwd = a.Tree.Path
	if below, err := filepath.Rel(a.Tree.Repo, a.Cwd); err == nil && filepath.IsLocal(below) {
		cwd = filepath.Join(cwd, below)
	}
	instruction = "You work in a git working tree of your own, " + a.Tree.Path + ", at the last commit. Change files only there, and do not " +
		"commit: the user is shown what you changed, and merges it."
	return cwd, instruction, []wire.Rule{{
		ID: wire.RuleID(wire.NewID()), Decision: policy.Allow, Pattern: "reach: project", Scope: policy.ScopeProject,
		Subject: wire.OSString(reach.Real(a.Tree.Path)), Source: "user",
	}}
}

// treeHead begins the part of a report that changes adds.
const treeHead = "\n\n[from its working tree"

// changes is the part of a report about the agent's working tree.
func (a Agent) changes(ctx context.Context, most int) string {
	if a.Tree == nil {
		return ""
	}
	diff, err := a.Tree.Diff(ctx)
	if err != nil {
		return "\n\n[its working tree: " + err.Error() + "]"
	}
	text, more := visible.Cut(string(diff), most), ""
	if len(text) < len(diff) {
		more = fmt.Sprintf("\n[… %d bytes more: /agents show %s]", len(diff)-len(text), a.Name)
	}
	return treeHead + "; it is not in the project until the user merges it: /agents merge " + a.Name + ", or drop]\n" + text + more
}

// endTree merges or drops the changes in an agent's working tree, and removes the tree. Meanwhile the agent begins no turn.
func (m *Manager) endTree(ctx context.Context, session wire.SessionID, name string, merge bool) (err error) {
	m.mu.Lock()
	e := m.agents[key{session, name}]
	switch {
	case e == nil:
		err = &UnknownError{name}
	case e.treeBusy:
		err = errTreeBusy(name)
	case e.Tree == nil:
		err = fmt.Errorf("%s has no working tree of its own", name)
	case e.State == wire.AgentRunning:
		err = errWorks(name)
	}
	if err != nil {
		m.mu.Unlock()
		return err
	}
	e.treeBusy = true
	tree := *e.Tree
	m.mu.Unlock()
	if merge {
		err = tree.Merge(ctx)
	}
	merged := err == nil // or dropped
	if merged {
		err = tree.Remove()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.treeBusy = false
	if !merged {
		return err
	}
	// Forgotten even if it could not be removed: what was merged must not be merged again.
	e.Tree, e.Worktree = nil, ""
	return errors.Join(err, m.saveLocked(e))
}

// Working reports whether an agent of a session works, or its working tree is being merged or dropped.
func (m *Manager) Working(session wire.SessionID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, e := range m.agents {
		if k.session == session && (e.State == wire.AgentRunning || e.treeBusy) {
			return true
		}
	}
	return false
}

// Forget removes the agents of a deleted session, none of which is Working, with their working trees, and returns the sessions that they
// had. Their records in the store went with the session.
func (m *Manager) Forget(session wire.SessionID) (own []wire.SessionID) {
	var trees []*worktree.Copy
	m.mu.Lock()
	for k, e := range m.agents {
		if k.session == session {
			delete(m.agents, k)
			own = append(own, e.SessionID)
			if e.Tree != nil {
				trees = append(trees, e.Tree)
			}
		}
	}
	m.mu.Unlock()
	for _, t := range trees {
		if err := t.Remove(); err != nil {
			m.log.Warn("a working tree is left", "path", t.Path, "err", err)
		}
	}
	return own
}
