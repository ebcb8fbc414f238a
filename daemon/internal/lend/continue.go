package lend

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"sublet/daemon/internal/job"
	"sublet/daemon/internal/tool"
	"sublet/lease"
	"sublet/lease/shell"
	"sublet/lease/shell/procs"
	"sublet/wire"
)

// continuedMost is how much of what a command printed before it became a job is kept, in bytes: the newest.
const continuedMost = 1 << 20

// errJobEnded ends a command that became a job.
var errJobEnded = errors.New("the job was ended")

// continuation is how a command that runs can go on as a background job.
type continuation struct {
	draft   func() (*job.Draft, error)
	wanted  chan struct{} // holds one: the job is reserved
	refused chan string   // holds one: the answer to ContinueLeasedCommand, why the command stays in the foreground
	over    chan struct{} // closed once it has ended, or is a job
	info    *job.Info     // of that job; nil = it has ended. Written before over is closed.

	mu sync.Mutex
	// guarded by mu
	asked    bool
	reserved *job.Draft // the job that it is to become; nil = nobody has asked for that, or it was taken
}

func newContinuation(draft func() (*job.Draft, error)) *continuation {
	return &continuation{draft: draft, wanted: make(chan struct{}, 1), refused: make(chan string, 1), over: make(chan struct{})}
}

// reserve reserves the job, unless that is done or the command is over. The error is that of draft.
func (k *continuation) reserve() (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.over:
		return nil
	default:
	}
	if k.asked {
		return nil
	}
	if k.reserved, err = k.draft(); err == nil {
		k.asked = true
		k.wanted <- struct{}{}
	}
	return err
}

// take returns the reserved job, which the caller starts or discards.
func (k *continuation) take() *job.Draft {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.reserved
	k.reserved = nil
	return d
}

// end is called once when the command has ended, or is a job.
func (k *continuation) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reserved != nil {
		k.reserved.Discard()
	}
	close(k.over)
}

// await returns the job that the command has become, nil if it has ended. The error is why it stays in the foreground.
func (k *continuation) await(ctx context.Context) (*job.Info, error) {
	select {
	case why := <-k.refused:
		return nil, fmt.Errorf("the command in your shell stays in the foreground: %s", why)
	case <-k.over:
		return k.info, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// refuse is called with the client's answer. k may be nil: no such answer was due.
func (k *continuation) refuse(why string) {
	if k == nil {
		return
	}
	select {
	case k.refused <- why:
	default: // nobody took the answer before
	}
}

// jobOutput is what a command in a private shell prints, which then goes on as a job.
type jobOutput struct {
	mu sync.Mutex
	// guarded by mu
	buf  []byte       // until it is a job
	file *os.File     // the job's output
	err  error        // the first one of writing it
	live func([]byte) // until it is a job; nil = nobody watches
}

// write is called by the shell's reader with what the command prints. It goes to the job's file or, before there is one, to buf and live.
func (o *jobOutput) write(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		_, err := o.file.Write(p)
		o.err = cmp.Or(o.err, err)
		return
	}
	if o.buf = append(o.buf, p...); len(o.buf) > 2*continuedMost {
		o.buf = bytes.Clone(o.buf[len(o.buf)-continuedMost:])
	}
	if o.live != nil {
		o.live(p)
	}
}

// moveTo moves what the command has printed into the job's output, to which the rest is added.
func (o *jobOutput) moveTo(folder string) error {
	f, err := os.OpenFile(filepath.Join(folder, shell.JobOutput), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write the job's output: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := f.Write(o.buf); err != nil {
		f.Close()
		return fmt.Errorf("write the job's output: %w", err)
	}
	o.file, o.buf, o.live = f, nil, nil
	return nil
}

// ended is what shell.Shell.Run returned for a command.
type ended struct {
	r   shell.Result
	err error
}

// runOn runs a command in the private shell until it ends or, if c.Continue is set, until it becomes a background job. Then the shell
// stays with the job, and p has another one in the state before, which is that before the command. The caller has the turn.
func (p *Private) runOn(ctx context.Context, before shell.State, c Command, cmd shell.Command) (tool.CommandResult, error) {
	sh := p.shell()
	if c.Continue == nil {
		e := p.guarded(ctx, sh, cmd)
		return tool.CommandResult{Result: e.r}, e.err
	}
	k, out := newContinuation(c.Continue), &jobOutput{live: cmd.Output}
	cmd.Output, cmd.Overdue = out.write, func() bool {
		err := k.reserve()
		if err != nil {
			p.shells.log.Warn("a command that took too long cannot go on as a job", "err", err)
		}
		return err == nil
	}
	p.setContinuation(k)
	defer func() {
		p.setContinuation(nil)
		k.end()
	}()
	own, cancel := context.WithCancelCause(p.shells.ctx) // follows ctx until the command is a job
	follow := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	end := make(chan ended, 1)
	if !p.shells.begin(func() { end <- p.guarded(own, sh, cmd) }) { // it ends with the command, which Close cancels
		follow()
		cancel(nil)
		return tool.CommandResult{}, ErrShuttingDown
	}
	select {
	case e := <-end:
		follow()
		cancel(nil)
		return tool.CommandResult{Result: e.r}, e.err
	case <-k.wanted:
		draft := k.take()
		var left []string
		var err error
		if follow() {
			left, err = p.replace(ctx, before)
		} else {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = out.moveTo(draft.Folder)
		}
		if err != nil {
			draft.Discard()
			cancel(err)
			e := <-end
			if p.shell() != sh {
				_ = sh.Close() // it logs its error
			}
			e.r.Notes = append(e.r.Notes, "it could not go on as a job: "+err.Error())
			return tool.CommandResult{Result: e.r}, e.err
		}
		over := make(chan string, 1)
		info := draft.Adopt(job.Held{Ended: over, Group: sh.Foreground, Cancel: func() { cancel(errJobEnded) }})
		finish := func() {
			e := <-end
			p.shells.finishJob(out, draft.Folder, e)
			p.retire(sh)
			cancel(nil)
			over <- strings.Join(e.r.Notes, "; ")
		}
		if !p.shells.begin(finish) {
			finish() // the command is being ended
		}
		k.info = &info
		r := tool.CommandResult{Job: &info, Continued: true}
		r.Dir, r.Status = p.shell().Dir(), wire.StatusSuccess
		if len(left) > 0 {
			r.Notes = []string{"not as before in the new shell: " + strings.Join(left, ", ")}
		}
		return r, nil
	}
}

// guarded runs a command in sh, and ends it if it waits for keys. A fault of ours ends that command alone.
func (p *Private) guarded(ctx context.Context, sh *shell.Shell, cmd shell.Command) (e ended) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	cmd.Keyboard = func(why, who string) {
		if what := neededKeys(why, who); what != "" {
			end(&unansweredError{what})
		}
	}
	defer func() {
		if fault := recover(); fault != nil {
			p.shells.log.Error("a command in a private shell faulted", "fault", fault, "stack", string(debug.Stack()))
			e = ended{err: fmt.Errorf("internal fault: %v", fault)}
		}
	}()
	r, err := sh.Run(ctx, cmd)
	why, ok := errors.AsType[*unansweredError](context.Cause(ctx))
	if ok && r.Status == wire.StatusCancelled { // else it had ended, and the shell read its next line
		r.Notes = append(r.Notes, why.Error())
	}
	return ended{r, err}
}

// finishJob closes the output of a command that had become a job, and writes its exit status into the job's folder.
func (s *Shells) finishJob(out *jobOutput, folder string, e ended) {
	out.mu.Lock()
	defer out.mu.Unlock()
	err := errors.Join(e.err, out.err, out.file.Close())
	if code := e.r.ExitCode; code != nil {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, shell.JobStatus), []byte(strconv.Itoa(*code)), 0o600))
	}
	if err != nil {
		s.log.Warn("what a job left is not complete", "folder", folder, "err", err)
	}
}

// replace starts another process for the private shell and restores the given state in it; left names what could not be restored. The old
// process stays with its job. The caller has the turn.
func (p *Private) replace(ctx context.Context, state shell.State) (left []string, err error) {
	o := p.o
	o.Cwd = wire.OSString(state.Dir)
	sh, err := p.shells.start(o)
	if err != nil {
		return nil, err
	}
	now, err := sh.State(ctx)
	if err == nil {
		left, err = sh.Undo(ctx, state, now)
	}
	if err == nil {
		_, err = sh.State(ctx) // updates Dir and Digest, by which Run sees whether an approval still holds
	}
	if err != nil {
		_ = sh.Close() // it logs its error
		return nil, fmt.Errorf("start another private shell: %w", err)
	}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.sh = sh
	}
	p.mu.Unlock()
	if closed {
		_ = sh.Close() // it logs its error
		return nil, shell.ErrClosed
	}
	return left, nil
}

// setContinuation notes the command that runs and can become a job; nil = none does.
func (p *Private) setContinuation(k *continuation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.continuation = k
}

// Background makes the command that runs in the shell continue as a background job, and returns the job; nil if there is no
// such command.
func (p *Private) Background(ctx context.Context) (*job.Info, error) {
	p.mu.Lock()
	k := p.continuation
	p.mu.Unlock()
	if k == nil {
		return nil, nil
	}
	if err := k.reserve(); err != nil {
		return nil, err
	}
	return k.await(ctx)
}

// adopt records the job that a command in a window's shell became, also in its result. A job that cannot be recorded, as when too many
// run, is ended.
func (k *continuation) adopt(done *wire.CommandCompleted, r *tool.CommandResult) {
	err := k.reserve()
	if err == nil {
		var info job.Info
		if info, err = k.take().Continues(done.JobPID, done.Output); err == nil {
			k.info, r.Job, r.Continued = &info, &info, true
			return
		}
	}
	r.Status, r.Notes = wire.StatusTimeout, append(r.Notes, "it could not go on as a job, and was ended: "+err.Error())
	if !procs.EndGroup(done.JobPID) {
		r.Notes = append(r.Notes, fmt.Sprintf("after SIGKILL, these processes of it still run: %v", procs.Group(done.JobPID)))
	}
}

// Background makes the command that runs in the shell for a turn continue as a background job of the shell, and returns the job; nil
// if there is no such command.
func (ln *Lender) Background(ctx context.Context, turn wire.TurnID) (*job.Info, error) {
	running := func() (l *lease.Lease, k *continuation) {
		if l = ln.m.Current(); l != nil && l.Running() != "" {
			if r := &l.Owner.(*borrow).request; r.Turn == turn {
				return l, r.continuation
			}
		}
		return nil, nil
	}
	ln.mu.Lock()
	_, k := running()
	ln.mu.Unlock()
	if k == nil {
		return nil, nil
	}
	if err := k.reserve(); err != nil { // where too many jobs run, the command stays as it is
		return nil, err
	}
	ln.mu.Lock()
	if l, now := running(); now == k {
		select {
		case <-k.refused: // an answer that came too late for its request
		default:
		}
		ref := wire.LeaseRef{LeaseID: wire.LeaseID(l.ID), Fence: l.Fence}
		ln.send(&wire.ContinueLeasedCommand{LeaseRef: ref, ExecutionID: wire.ExecutionID(l.Running())})
	}
	ln.mu.Unlock()
	return k.await(ctx)
}
