package lend

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/tool"
	"sublet/lease/shell"
	"sublet/lease/shell/procs"
	"sublet/wire"
	"sublet/wire/secretname"
	"sublet/wire/visible"
)

// Private is a shell of the daemon's own: of one sub-agent, or of a session whose client lends none. Commands run one at a time, in
// the order in which they came.
type Private struct {
	o      PrivateOptions
	shells *Shells
	turn   chan struct{} // holds one: whoever took it may run

	changes shell.Changes // guarded by turn

	mu sync.Mutex
	// guarded by mu
	sh           *shell.Shell   // another one where a command went on as a job in the one before; it changes under turn
	continuation *continuation  // the command that runs, if it can become a job
	former       []*shell.Shell // in which a job has ended, and what an earlier command left in the background runs on
	closed       bool
	trusted      trusted     // what was there when the shell was first looked at, and what a person approved since
	before       shell.State // as the newest command found it
}

func (p *Private) shell() *shell.Shell {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sh
}

// PrivateOptions are where and how a private shell starts.
type PrivateOptions struct {
	Session    wire.SessionID           // whose agents use it
	Env        map[string]wire.OSString // the client's, of which it gets what is not a secret
	Cwd        wire.OSString            // the client's; where that is not a folder it starts at home
	Pass       []string                 // secrets that it gets all the same
	Agent      bool                     // it belongs to one confined agent; otherwise it stands in for the user's shell
	Folder     string                   // private, for its files
	Spool      string                   // folder for raw output that was cut
	Head, Tail int                      // bytes of output that are kept
}

// StartPrivate starts a private shell. The caller closes it.
func (s *Shells) StartPrivate(o PrivateOptions) (*Private, error) {
	sh, err := s.start(o)
	if err != nil {
		return nil, err
	}
	p := &Private{sh: sh, shells: s, turn: make(chan struct{}, 1), o: o}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.privates[p] = struct{}{}
	return p, nil
}

func (s *Shells) start(o PrivateOptions) (*shell.Shell, error) {
	dir := string(o.Cwd)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = Home(o.Env)
	}
	// Without $SHELL, Find looks for bash, for which commands are judged best.
	path, _, _, err := shell.Find(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "SHELL=") }))
	if err != nil {
		path = "" // there is no bash: Start takes $SHELL
	}
	sh, err := shell.Start(shell.Options{
		Path: path, Dir: dir, Env: PrivateEnv(o.Env, o.Pass), Folder: o.Folder, Spool: o.Spool,
		Head: o.Head, Tail: o.Tail, Private: true, Log: s.log,
	})
	if err != nil {
		return nil, err
	}
	s.agentSessions.remember(sh.PID()) // for Inside
	return sh, nil
}

// StartedIn reports whether the shell was started in that environment and folder of its client.
func (p *Private) StartedIn(env map[string]wire.OSString, cwd wire.OSString) bool {
	return cwd == p.o.Cwd && maps.Equal(env, p.o.Env)
}

// State returns what the shell looks like; a shell that does not answer has none.
func (p *Private) State(ctx context.Context) shell.State {
	st, err := p.shell().State(ctx)
	if err != nil {
		return shell.State{}
	}
	return st
}

// Where returns where a command would run.
func (p *Private) Where(ctx context.Context) tool.ShellPlace {
	ctx, cancel := context.WithTimeout(ctx, answerBound) // it may still read its start-up files
	defer cancel()
	place := tool.ShellPlace{Cwd: p.shell().Dir(), StateDigest: p.shell().Digest(), Private: true, Agent: p.o.Agent}
	if st, err := p.shell().State(ctx); err == nil {
		place.Cwd, place.StateDigest = st.Dir, st.Digest
	}
	place.Facts = func(ctx context.Context, c *risk.Context) bool { return p.facts(ctx, place.StateDigest, c) }
	return place
}

// Run runs a command that was allowed. Errors are those of tool.Shell.
func (p *Private) Run(ctx context.Context, c Command, live func([]byte)) (tool.CommandResult, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return tool.CommandResult{}, context.Cause(ctx)
	}
	p.shells.agentSessions.remember(p.shell().PID()) // a new one if the shell was started again
	p.shells.mark(p.shell().PID())
	before, err := p.shell().State(ctx)
	if err == nil {
		p.mu.Lock()
		p.trusted.begin(before)
		p.before = before
		p.mu.Unlock()
	} // else the command that is about to run reports what is wrong with the shell
	if c.Approved.Cwd != p.shell().Dir() || c.Approved.StateDigest != p.shell().Digest() || c.Approval.Holds != nil && !c.Approval.Holds() {
		return tool.CommandResult{}, tool.ErrChanged
	}
	cmd := shell.Command{Text: c.Text, Dir: c.Cwd, Timeout: c.Timeout, Job: c.folder()}
	if c.Reach != "" {
		cmd.Confine, cmd.Launcher = &c.Confine, c.Launcher
	}
	if cmd.Dir == p.shell().Dir() {
		cmd.Dir = ""
	}
	var stream *batch
	if live != nil {
		stream = &batch{to: live}
		cmd.Output = stream.add
	}
	r, err := p.runOn(ctx, before, c, cmd)
	if stream != nil {
		stream.flush()
	}
	if err == nil && !r.Continued && (r.Changes || cmd.Dir != "") {
		p.recordChange(ctx, c.ExecutionID, before, c.Approval.Person)
	}
	return r, err
}

// An unansweredError is the cause of the end of a command that would wait for keys.
type unansweredError struct{ what string }

func (e *unansweredError) Error() string {
	return e.what + ", and nobody can type in a private shell: give it the input another way, or have the user run it"
}

// neededKeys describes the keys that a program waits for, by the arguments of shell.Command.Keyboard; "" if it may end without any, as
// one that takes the whole screen ("screen") may.
func neededKeys(why, who string) string {
	switch why {
	case "password", "secret":
		return fmt.Sprintf("%s asked for a password", cmp.Or(visible.Line(who), "it"))
	case "input":
		return "it waited for keys"
	}
	return ""
}

// recordChange records what a command changed in the shell, for undo, and trusts it where a person allowed it. The caller has the turn.
func (p *Private) recordChange(ctx context.Context, id string, before shell.State, byPerson bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerBound) // also of one that was cancelled
	defer cancel()
	now, err := p.shell().State(ctx)
	if err != nil || before.Digest == "" {
		return // the shell is gone, or does not answer: nothing is trusted
	}
	if byPerson { // what an earlier command changed stays suspect
		p.mu.Lock()
		p.trusted.change(before, now)
		p.mu.Unlock()
	}
	if shell.Difference(before, now) != "" {
		p.changes.Add(id, before, now)
	}
}

// Restore undoes the last change to the shell, or (all) every change. changed describes in one line what was undone, left what
// could not be; "" = nothing.
func (p *Private) Restore(ctx context.Context, all bool) (changed, left string, err error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return "", "", context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	_, changed, left, err = p.changes.PutBack(ctx, p.shell(), all)
	return changed, left, err
}

// facts is a tool.Facts of the shell in the state with this digest; "" = the state is not known.
func (p *Private) facts(ctx context.Context, digest string, c *risk.Context) bool {
	if digest == "" || p.shell().Digest() != digest {
		return false
	}
	suspects, now := p.Suspects(ctx)
	if now.Digest != digest {
		return false
	}
	c.Env, c.Aliases, c.Functions, c.Poisoned = now.Vars, now.Aliases, now.Functions, suspects
	c.Hashed, c.Disabled, c.Dialect = now.Hashed, now.Disabled, p.shell().Name()
	return true
}

// Suspects implements Trusting. While a command runs, the state is the one before that command. Nothing runs on a judgement of an old
// state: the digest is compared before a command begins.
func (p *Private) Suspects(ctx context.Context) (names []string, in shell.State) {
	ctx, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	now, err := p.shell().State(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		now = p.before
	}
	if now.Digest != "" {
		p.trusted.begin(now)
	}
	return p.trusted.suspects(now), now
}

// Accept implements Trusting. It does nothing if the shell does not return its state.
func (p *Private) Accept(ctx context.Context, names []string, shown shell.State) {
	now, err := p.shell().State(ctx)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trusted.begin(now)
	p.trusted.accept(names, shown, now)
}

// Gone reports whether the shell has ended.
func (p *Private) Gone() bool {
	select {
	case <-p.shell().Exited():
		return true
	default:
		return false
	}
}

// Close ends the shell and waits for it; a second time does nothing.
func (p *Private) Close() {
	p.mu.Lock()
	all := append(p.former, p.sh)
	p.former, p.closed = nil, true
	p.mu.Unlock()
	p.shells.mu.Lock()
	delete(p.shells.privates, p)
	p.shells.mu.Unlock()
	for _, sh := range all {
		_ = sh.Close() // it logs its error
	}
}

// retire closes a shell whose command has ended as a job. A shell with other processes in its session is kept until Close.
func (p *Private) retire(sh *shell.Shell) {
	left, _ := procs.BegunSince(sh.PID(), sh.Foreground, procs.Moment{})
	p.mu.Lock()
	keep := len(left) > 0 && !p.closed
	if keep {
		p.former = append(p.former, sh)
	}
	p.mu.Unlock()
	if !keep {
		_ = sh.Close() // it logs its error
	}
}

// PrivateEnv returns the client's environment, or the daemon's own if the client sent none, without secrets except those named in pass. A
// client does not send values that look like secrets; those of pass come from the daemon's own environment.
func PrivateEnv(env map[string]wire.OSString, pass []string) []string {
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
	if len(env) == 0 {
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

// Home returns the home folder by an environment; where that has none, by the daemon's own.
func Home(env map[string]wire.OSString) string { return cmp.Or(string(env["HOME"]), reach.Home()) }

// batch gathers live output, which arrives in pieces of at most 4 KiB, and passes it on at most every batchEvery, so that
// a program that prints without end does not cost a message for each piece. It never blocks the shell: output beyond
// maxBatch between two flushes is dropped, which does not change the command's result.
type batch struct {
	to func([]byte)

	sending sync.Mutex // held while to is called, so that the pieces stay in order

	mu sync.Mutex
	// below: guarded by mu
	buf     bytes.Buffer
	flushed time.Time   // the time of the last flush
	timer   *time.Timer // calls flush; nil while buf is empty
}

const (
	batchEvery = 30 * time.Millisecond
	maxBatch   = 64 << 10
)

// add buffers p, or drops it if the buffer would exceed maxBatch, and schedules a flush.
func (b *batch) add(p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf.Len()+len(p) <= maxBatch {
		b.buf.Write(p)
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(batchEvery-time.Since(b.flushed), b.flush)
	}
}

// flush calls b.to with the buffered output, unless there is none. The owner calls it once after the last add; b.to is not called after
// that flush has returned.
func (b *batch) flush() {
	b.sending.Lock()
	defer b.sending.Unlock()
	b.mu.Lock()
	if b.timer != nil {
		b.timer.Stop()
	}
	data := bytes.Clone(b.buf.Bytes())
	b.buf.Reset()
	b.flushed, b.timer = time.Now(), nil
	b.mu.Unlock()
	if len(data) > 0 {
		b.to(data)
	}
}
