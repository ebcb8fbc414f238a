package hub

import (
	"cmp"
	"context"
	"fmt"

	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// userShell is the shell that an orchestrator's commands run in: the user's, borrowed for each command, or, for whoever
// lends none, a private one of the session. It implements tool.Shell; a lease is held inside Run only, so never during a
// question or a model call.
type userShell struct {
	t      *turn
	holder string
}

// pick finds the shell: that of the client that asked, else of the window of the same session that was typed in last. One
// whose link is down is waited for within its grace.
func (u *userShell) pick() (*lender, error) {
	if u.t.foreign != nil {
		return u.t.lent()
	}
	own := u.t.origin.lender
	if own != nil {
		if linked, _ := own.linked(); linked {
			return own, nil
		}
	}
	u.t.s.mu.Lock()
	var others []*lender
	for c := range u.t.s.clients {
		if c.lender != nil { // its own is away, and so not picked
			others = append(others, c.lender)
		}
	}
	u.t.s.mu.Unlock()
	if ln := lastTyped(others); ln != nil {
		return ln, nil
	}
	if own == nil {
		return nil, nil // lends none: a private shell
	}
	if _, open := own.linked(); open {
		return own, nil
	}
	return nil, tool.ErrNoShell
}

// name returns which shell commands are written for, with its version; "" where it is a private one.
func (u *userShell) name() string {
	ln, err := u.pick()
	if err != nil || ln == nil {
		return ""
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return visible.Exact(cut(cmp.Or(ln.shell.Name, "bash")+" "+ln.shell.Version, 64))
}

// environ returns the exported environment of the client's shell; nil where commands run in a private one.
func (u *userShell) environ() map[string]string {
	ln, err := u.pick()
	if err != nil || ln == nil {
		return nil
	}
	return texts(ln.environ())
}

// Where implements tool.Shell.
func (u *userShell) Where(ctx context.Context) (tool.ShellPlace, error) {
	ln, err := u.pick()
	if err != nil {
		return tool.ShellPlace{}, err
	}
	if ln == nil {
		private, err := u.t.s.privateShell(ctx, u.t)
		if err != nil {
			return tool.ShellPlace{}, err
		}
		return private.Where(ctx)
	}
	cwd, digest := ln.where(ctx)
	return tool.ShellPlace{Cwd: cwd, StateDigest: digest}, nil
}

// Run implements tool.Shell. Live output of a private shell goes to live, that of a client's to the session's other clients.
func (u *userShell) Run(ctx context.Context, c tool.Command, live func([]byte)) (tool.CommandResult, error) {
	ln, err := u.pick()
	if err != nil {
		return tool.CommandResult{}, err
	}
	if (ln == nil) != c.Approved.Private {
		return tool.CommandResult{}, tool.ErrChanged // a window came or went meanwhile
	}
	allowed := u.t.vetted(wire.ExecutionID(c.ExecutionID))
	if ln == nil {
		private, err := u.t.s.privateShell(ctx, u.t)
		if err != nil {
			return tool.CommandResult{}, err
		}
		return private.run(ctx, c, live, allowed)
	}
	cfg := u.t.hub.opts.Config()
	w := wish{
		turn: u.t.id, holder: u.holder, purpose: c.Purpose, wait: cfg.Lease.Wait, term: cfg.Lease.Term,
		execution: wire.ExecutionID(c.ExecutionID), command: c.Text, cwd: c.Cwd, timeout: c.Timeout, approved: &c.Approved,
		vetted: allowed.person, marks: c.Reach == "" && !allowed.literal,
	}
	if len(allowed.scripts) > 0 {
		w.holds = func() bool { return u.t.holds(allowed) }
	}
	if c.Reach != "" {
		w.confine = u.t.hub.confinement(c.Reach, c.Cwd)
	}
	if f := u.t.foreign; f != nil {
		f.watch(u.t, &w)
	}
	w.watch.output = func(offset int64, data []byte) {
		if f := u.t.foreign; f != nil && f.lease != nil {
			u.t.origin.send(&wire.CommandOutput{LeaseRef: f.lease.ref, ExecutionID: w.execution, Offset: offset, Data: data})
			return
		}
		u.show(ln, w.execution, data)
	}
	if c.Background && !ln.startsJobs() {
		return tool.CommandResult{}, errNoJobs
	}
	draft, err := u.t.draft(c, "the user's "+u.name())
	if err != nil {
		return tool.CommandResult{}, err
	}
	if draft != nil {
		w.job = draft.Folder
	}
	done, err := ln.run(ctx, w)
	if err != nil {
		return started(draft, tool.CommandResult{}, err)
	}
	if f := u.t.foreign; f != nil {
		f.ended(u.t, done)
	}
	return started(draft, resultOf(done, ctx.Err() != nil), nil)
}

// startsJobs reports whether the lender's client starts background jobs.
func (ln *lender) startsJobs() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.jobs
}

// show sends live output to the session's clients, but for the one that lends the shell: it has it already.
func (u *userShell) show(ln *lender, id wire.ExecutionID, data []byte) {
	t := u.t
	t.s.emitLive(&wire.AgentStreamChunk{
		Event: wire.Event{TurnID: t.id, RequestID: t.request}, Agent: u.holder,
		Chunk: wire.Chunk{Type: wire.ChunkToolOutput, ExecutionID: id, Data: data},
	}, ln)
}

// resultOf is a client's CommandCompleted as a tool's result. ours tells that we cancelled it; else it was the user.
func resultOf(m *wire.CommandCompleted, ours bool) tool.CommandResult {
	r := tool.CommandResult{
		Output: m.Output, ExitCode: m.ExitCode, Signal: m.Signal, Status: m.Status, Cwd: string(m.Cwd), Notes: m.Notes,
	}
	r.Duration = ms(m.DurationMS)
	if m.Truncated != nil {
		r.Truncated, r.SpoolPath = m.Truncated.Bytes, string(m.Truncated.SpoolPath)
	}
	for _, p := range m.Leftovers {
		r.Leftovers = append(r.Leftovers, fmt.Sprintf("%d %s", p.PID, p.Command))
	}
	if m.Status == wire.StatusCancelled && !ours && len(r.Notes) == 0 {
		r.Notes = append(r.Notes, "the user stopped this command")
	}
	return r
}
