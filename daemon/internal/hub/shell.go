package hub

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"sublet/daemon/internal/job"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// A turn is who its commands are run for: it implements lend.Borrower.

// Lent returns the shell of the client that asked, else of the window of the same session that was typed in last, nil for a
// private one. One whose link is down is waited for within its grace. An agent of another program has the window of its own.
func (t *turn) Lent() (*lend.Lender, error) {
	if t.foreign != nil {
		return t.foreignShell()
	}
	own := t.origin.lender
	if own != nil {
		if linked, _ := own.Linked(); linked {
			return own, nil
		}
	}
	var others []*lend.Lender
	for _, c := range t.s.events.Subscribers() {
		if c.lender != nil { // its own is away, and so not picked
			others = append(others, c.lender)
		}
	}
	if ln := lend.LastTyped(others); ln != nil {
		return ln, nil
	}
	if own == nil {
		return nil, nil // lends none: a private shell
	}
	if _, open := own.Linked(); open {
		return own, nil
	}
	return nil, tool.ErrNoShell
}

// Private returns the session's private shell, which it starts when first needed. It starts another one if the client, which lends no shell,
// has another folder or environment by now: its next command is meant for these.
func (t *turn) Private(ctx context.Context) (*lend.Private, error) {
	s := t.s
	s.starting.Lock() // a hosted agent runs commands side by side
	defer s.starting.Unlock()
	p := s.ownShell()
	env, cwd := t.origin.environ()
	if p != nil && !p.Gone() && (t.origin.lender != nil || p.StartedIn(env, cwd)) {
		return p, nil
	}
	fresh, err := t.startShell(ctx, false)
	if err != nil {
		return nil, err
	}
	s.hub.mu.Lock()
	s.private = fresh
	s.hub.mu.Unlock()
	if p != nil {
		p.Close()
	}
	return fresh, nil
}

// Prepare returns an allowed command with what holds it to its reach, and with the draft of the background job that it becomes, or may.
func (t *turn) Prepare(c tool.Command, shellName string) (lend.Command, error) {
	cmd := lend.Command{Command: c}
	if c.Reach != "" {
		cmd.Confine, cmd.Launcher = t.hub.confinement(c.Reach, c.Cwd), t.hub.confiner().Launcher
	}
	var err error
	cmd.Draft, err = t.draft(c, shellName)
	if c.Continue && !c.Background {
		c.Background = true
		cmd.Continue = func() (*job.Draft, error) { return t.draft(c, shellName) }
	}
	return cmd, err
}

// Terms implements lend.Borrower. While the command runs, its output goes to all clients of the session except the one that lends the
// shell, which shows it already. foreign.watch changes that for an agent of another program.
func (t *turn) Terms(ln *lend.Lender, id wire.ExecutionID) lend.Terms {
	on := t.terms()
	on.Watch = func(m wire.LeaseMessage) {
		if out, ok := m.(*wire.CommandOutput); ok {
			t.s.events.EmitLive(&wire.AgentStreamChunk{
				Event: wire.Event{TurnID: t.id, RequestID: t.request}, Agent: t.agent,
				Chunk: wire.Chunk{Type: wire.ChunkToolOutput, ExecutionID: id, Data: out.Data},
			}, func(c *Client) bool { return c.lender == ln })
		}
	}
	if t.foreign != nil {
		t.foreign.watch(t, &on)
	}
	return on
}

func (t *turn) terms() lend.Terms {
	cfg := t.hub.opts.Config()
	return lend.Terms{Turn: t.id, Holder: t.agent, Wait: cfg.Lease.Wait.Duration, Term: cfg.Lease.Term.Duration}
}

// agentShell is a turn as the borrower of a private shell of one agent's own, which starts with the agent's first command.
type agentShell struct {
	*turn
	name string // of the agent

	mu sync.Mutex
	// guarded by mu
	own    *lend.Private
	closed bool
}

// Lent implements lend.Borrower: the user's shell is never lent.
func (a *agentShell) Lent() (*lend.Lender, error) { return nil, nil }

// Private implements lend.Borrower. It starts the shell at its first call; after the turn it returns tool.ErrNoShell.
func (a *agentShell) Private(ctx context.Context) (*lend.Private, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return nil, tool.ErrNoShell
	case a.own != nil:
		return a.own, nil
	}
	p, err := a.startShell(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("start a private shell for %s: %w", a.name, err)
	}
	a.own = p
	return p, nil
}

func (a *agentShell) Prepare(c tool.Command, shellName string) (lend.Command, error) {
	c.Agent = a.name
	cmd, err := a.turn.Prepare(c, shellName)
	_, cwd := a.origin.environ()                            // the user's prompt is there, not in the private shell's folder
	cmd.Confine.Dir, _ = filepath.EvalSymlinks(string(cwd)) // "" where it is not known, or gone
	return cmd, err
}

// closeOwn ends the shell, if it was started, and waits.
func (a *agentShell) closeOwn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.own != nil {
		a.own.Close()
	}
}

// newPrivateShell returns a shell for the agent of that name alone. It implements agent.Team.NewPrivateShell.
func (t *turn) newPrivateShell(name string) (tool.Shell, func()) {
	in, closeShell := t.privateShell(name)
	return in(""), closeShell
}

// privateShell returns a shell for the agent of that name alone, by the folder of a command. It is hosted.Turn.Private.
func (t *turn) privateShell(name string) (in func(cwd string) tool.Shell, closeShell func()) {
	a := &agentShell{turn: t, name: name}
	return func(cwd string) tool.Shell { return &lend.Shell{By: a, Cwd: cwd} }, a.closeOwn
}

// startShell starts a private shell where the turn's client is: of one agent alone (agentOnly), or in place of the user's.
func (t *turn) startShell(ctx context.Context, agentOnly bool) (*lend.Private, error) {
	if ln := t.origin.lender; ln != nil {
		ln.Where(ctx) // what the last command changed counts
	}
	env, cwd := t.origin.environ()
	cwd = cmp.Or(t.cwd, cwd)
	cfg := t.hub.opts.Config()
	return t.hub.shells.StartPrivate(lend.PrivateOptions{
		Session: t.s.id, Env: env, Cwd: cwd, Pass: cfg.Shell.Pass, Agent: agentOnly, Folder: t.hub.opts.Runtime, Spool: t.hub.opts.Spool,
		Head: cfg.Shell.OutputHead, Tail: cfg.Shell.OutputTail,
	})
}

// exported returns the exported variables of the shell that the turn borrows or, without one, of the client that asked for it.
func (t *turn) exported() map[string]string {
	env, _ := t.origin.environ()
	if ln, err := t.Lent(); err == nil && ln != nil {
		env, _ = ln.Environ()
	}
	return lend.Texts(env)
}

// ownShell is the session's private shell, nil where it has none.
func (s *session) ownShell() *lend.Private {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.private
}

// closePrivate ends the session's language servers, its private shell and whatever runs in that.
func (s *session) closePrivate() {
	s.hub.mu.Lock()
	p := s.private
	s.private = nil
	s.hub.mu.Unlock()
	s.servers.Close()
	if p != nil {
		p.Close()
	}
}

// windowOf returns the client that lends a shell, nil while its link is down, or where ln is nil.
func windowOf(ln *lend.Lender) *Client {
	if ln == nil {
		return nil
	}
	c, _ := ln.Window().(*Client)
	return c
}
