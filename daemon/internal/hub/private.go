package hub

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/daemon/internal/mask"

	"sublet/daemon/internal/tool"
	"sublet/lease/shell"
	"sublet/wire"
	"sublet/wire/secretname"
)

// privateShell is a shell of the daemon's own: of one sub-agent, or of a session whose client lends none. It implements
// tool.Shell. Commands run one at a time, in the order in which they came.
type privateShell struct {
	sh    *shell.Shell
	by    *turn         // that started it
	agent bool          // it is one agent's alone, which the kernel holds to a bound; else it is in the place of the user's
	turn  chan struct{} // holds one: whoever took it may run
	state privateState

	changes shell.Changes // guarded by turn

	// What the client told of itself when it was started.
	env map[string]wire.OSString
	cwd wire.OSString
}

// privateShell returns the session's private shell, started when first needed, and anew when the client that asks is
// somewhere else by now: its next command is meant for where it is.
func (s *session) privateShell(ctx context.Context, t *turn) (*privateShell, error) {
	p := s.ownShell()
	if p != nil && !p.gone() && p.fits(t) {
		return p, nil
	}
	// Turns of a session run one after the other, so nobody else starts one meanwhile.
	fresh, err := t.startShell(ctx)
	if err != nil {
		return nil, err
	}
	s.hub.mu.Lock()
	s.private = fresh
	s.hub.mu.Unlock()
	if p != nil {
		p.close()
	}
	return fresh, nil
}

// ownShell is the session's private shell, nil where it has none.
func (s *session) ownShell() *privateShell {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.private
}

// closePrivate ends the session's private shell and whatever runs in it.
func (s *session) closePrivate() {
	s.hub.mu.Lock()
	p := s.private
	s.private = nil
	s.hub.mu.Unlock()
	if p != nil {
		p.close()
	}
}

// newPrivateShell gives an agent a shell of its own.
func (t *turn) newPrivateShell(ctx context.Context, name string) (tool.Shell, func(), error) {
	p, err := t.startShell(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("start a private shell for %s: %w", name, err)
	}
	p.agent = true
	return p, p.close, nil
}

func (t *turn) startShell(ctx context.Context) (*privateShell, error) {
	env, cwd := t.origin.environ()
	if ln := t.origin.lender; ln != nil {
		at, _ := ln.where(ctx)
		env, cwd = ln.environ(), wire.OSString(at)
	}
	cfg := t.hub.opts.Config()
	dir := string(cwd)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = home(env)
	}
	path, _, _, err := shell.Find(slices.DeleteFunc(slices.Clone(os.Environ()), func(kv string) bool { return strings.HasPrefix(kv, "SHELL=") }))
	if err != nil { // no bash: an agent's commands are judged best where they are bash's
		path = ""
	}
	sh, err := shell.Start(ctx, shell.Options{
		Path: path, Dir: dir, Env: privateEnv(env, cfg.Shell.Pass), Folder: t.hub.opts.Runtime, Spool: t.hub.opts.Spool,
		Head: cfg.Shell.OutputHead, Tail: cfg.Shell.OutputTail, Private: true, Log: t.hub.log,
	})
	if err != nil {
		return nil, err
	}
	t.hub.shells.saw(sh.PID())
	p := &privateShell{sh: sh, by: t, turn: make(chan struct{}, 1), env: env, cwd: cwd}
	t.keepShell(p)
	return p, nil
}

// fits reports whether the shell was started from where the turn's client is.
func (p *privateShell) fits(t *turn) bool {
	env, cwd := t.origin.environ()
	return t.origin.lender != nil || cwd == p.cwd && maps.Equal(env, p.env)
}

// privateEnv is the client's environment without secrets, but for those that the settings name. A client does not send
// values that look like secrets; those that are to be passed come from the daemon's own environment.
func privateEnv(env map[string]wire.OSString, pass []string) []string {
	var list []string
	for name, value := range env {
		if secretname.IsSecret(name) && !slices.Contains(pass, name) {
			continue
		}
		list = append(list, name+"="+string(value))
	}
	for _, name := range pass {
		if value, ok := os.LookupEnv(name); ok && env[name] == "" {
			list = append(list, name+"="+value)
			mask.Keep(value) // programs there may print it
		}
	}
	if len(env) == 0 { // a client that tells nothing of its own
		for _, kv := range os.Environ() {
			name, _, _ := strings.Cut(kv, "=")
			if !secretname.IsSecret(name) || slices.Contains(pass, name) {
				list = append(list, kv)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func home(env map[string]wire.OSString) string {
	if h := env["HOME"]; h != "" {
		return string(h)
	}
	if h, err := os.UserHomeDir(); err == nil {
		return h
	}
	return "/"
}

// Where implements tool.Shell.
func (p *privateShell) Where(ctx context.Context) (tool.ShellPlace, error) {
	// Not the state of a moment ago: what the last command left behind is written down a little after its end.
	ctx, cancel := context.WithTimeout(ctx, settleBound)
	defer cancel()
	if st, err := p.sh.State(ctx); err == nil {
		return tool.ShellPlace{Cwd: st.Dir, StateDigest: st.Digest, Private: true, Agent: p.agent}, nil
	}
	return tool.ShellPlace{Cwd: p.sh.Dir(), StateDigest: p.sh.Digest(), Private: true, Agent: p.agent}, nil
}

// Run implements tool.Shell, for the turn that started the shell.
func (p *privateShell) Run(ctx context.Context, c tool.Command, live func([]byte)) (tool.CommandResult, error) {
	return p.run(ctx, c, live, p.by.vetted(wire.ExecutionID(c.ExecutionID)))
}

// run runs a command that was allowed.
func (p *privateShell) run(ctx context.Context, c tool.Command, live func([]byte), allowed approval) (tool.CommandResult, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return tool.CommandResult{}, context.Cause(ctx)
	}
	p.by.hub.shells.saw(p.sh.PID()) // another one, where it was started again
	p.by.hub.mark(p.sh.PID())
	before, err := p.sh.State(ctx)
	if err == nil {
		p.state.begin(before)
	} // else the command that is about to run reports what is wrong with the shell
	if c.Approved.Cwd != p.sh.Dir() || c.Approved.StateDigest != p.sh.Digest() || !p.by.holds(allowed) {
		return tool.CommandResult{}, tool.ErrChanged
	}
	cmd := shell.Command{Text: c.Text, Dir: c.Cwd, Timeout: c.Timeout}
	if c.Reach != "" {
		spec := p.by.hub.confinement(c.Reach, c.Cwd)
		cmd.Confine, cmd.Launcher = &spec, p.by.hub.confiner().Launcher
	}
	if cmd.Dir == p.sh.Dir() {
		cmd.Dir = ""
	}
	draft, err := p.by.draft(c, "a private "+p.sh.Name())
	if err != nil {
		return tool.CommandResult{}, err
	}
	if draft != nil {
		cmd.Job = draft.Folder
	}
	var stream *batch
	if live != nil {
		stream = newBatch(live)
		cmd.Output = stream.add
	}
	r, err := p.sh.Run(ctx, cmd)
	if stream != nil {
		stream.close()
	}
	if err != nil {
		return started(draft, tool.CommandResult{}, err)
	}
	if r.Changes || r.Restarted || cmd.Dir != "" {
		p.note(ctx, c.ExecutionID, before, allowed.person)
	}
	res := tool.CommandResult{
		Output: r.Output, Truncated: r.Truncated, SpoolPath: r.SpoolPath, ExitCode: r.ExitCode, Signal: r.Signal,
		Status: r.Status, Cwd: r.Dir, Duration: r.Duration, Notes: r.Notes,
	}
	for _, left := range r.Leftovers {
		res.Leftovers = append(res.Leftovers, left.String())
	}
	return started(draft, res, nil)
}

// note records what a command changed in the shell, for undo, and trusts it where a person allowed it. The caller has the turn.
func (p *privateShell) note(ctx context.Context, id string, before shell.State, vetted bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleBound) // also of one that was cancelled
	defer cancel()
	now, err := p.sh.State(ctx)
	if err != nil || before.Digest == "" {
		return // the shell is gone, or does not answer: nothing is trusted
	}
	if vetted {
		p.state.accept(now)
	}
	if shell.Difference(before, now) != "" {
		p.changes.Add(id, before, now)
	}
}

// undo puts back what the last command that changed something changed, or what all of them did, and returns that in one line,
// "" for nothing, and in another what differs all the same.
func (p *privateShell) undo(ctx context.Context, all bool) (changed, left string, err error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return "", "", context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, restoreBound)
	defer cancel()
	_, changed, left, err = p.changes.PutBack(ctx, p.sh, all)
	return changed, left, err
}

func (p *privateShell) gone() bool {
	select {
	case <-p.sh.Exited():
		return true
	default:
		return false
	}
}

// close ends the shell and waits for it; a second time does nothing.
func (p *privateShell) close() { _ = p.sh.Close() } // it logs its error

// batch gathers live output, which arrives in pieces of at most 4 KiB, and passes it on at most every batchEvery, so that
// a program that prints without end does not cost a message for each piece. It never blocks the shell: what passes the
// bound between two rounds is left out, live output being only for the eye.
type batch struct {
	to   func([]byte)
	wake chan struct{} // one token: something was added
	end  chan struct{}
	done sync.WaitGroup

	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

const (
	batchEvery = 30 * time.Millisecond
	batchMost  = 64 << 10
)

func newBatch(to func([]byte)) *batch {
	b := &batch{to: to, wake: make(chan struct{}, 1), end: make(chan struct{})}
	b.done.Go(b.pass) // ends with close, which waits for it
	return b
}

func (b *batch) add(p []byte) {
	b.mu.Lock()
	if b.buf.Len()+len(p) <= batchMost {
		b.buf.Write(p)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *batch) pass() {
	pause := time.NewTimer(batchEvery)
	defer pause.Stop()
	for open := true; open; {
		select {
		case <-b.wake:
		case <-b.end:
			open = false
		}
		b.mu.Lock()
		data := bytes.Clone(b.buf.Bytes())
		b.buf.Reset()
		b.mu.Unlock()
		if len(data) > 0 {
			b.to(data)
		}
		if open {
			pause.Reset(batchEvery)
			select {
			case <-pause.C:
			case <-b.end:
			}
		}
	}
}

func (b *batch) close() {
	close(b.end)
	b.done.Wait()
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
