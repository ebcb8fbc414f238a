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

// continuable is a command in a private shell that becomes a background job once its time-out has passed, or when a person asks for it. The
// shell that runs it then belongs to the job, and the private shell is given another one.
type continuable struct {
	draft   func() (*job.Draft, error)
	offered chan *job.Draft // holds one: the job that the command is to become
	became  chan struct{}   // closed once it has become one, or ended without

	mu sync.Mutex
	// guarded by mu
	over bool         // it cannot become a job any more: it has ended, or is becoming one
	buf  []byte       // what it printed, until it is a job
	file *os.File     // the job's output
	err  error        // the first one of writing it
	live func([]byte) // until it is a job; nil = nobody watches
	info *job.Info    // of the job that it became
}

// output is called by the shell's reader with what the command prints. It goes to the job's file or, before there is one, to buf and live.
func (k *continuable) output(p []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file != nil {
		_, err := k.file.Write(p)
		k.err = cmp.Or(k.err, err)
		return
	}
	if k.buf = append(k.buf, p...); len(k.buf) > 2*continuedMost {
		k.buf = bytes.Clone(k.buf[len(k.buf)-continuedMost:])
	}
	if k.live != nil {
		k.live(p)
	}
}

// background makes the command a job, which runOn then takes from offered. It does nothing for a command that has ended or is a job already.
func (k *continuable) background() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return nil
	}
	draft, err := k.draft()
	if err == nil {
		k.over = true
		k.offered <- draft
	}
	return err
}

// take moves what the command has printed into the job's output, to which the rest is added.
func (k *continuable) take(folder string) error {
	f, err := os.OpenFile(filepath.Join(folder, shell.JobOutput), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write the job's output: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := f.Write(k.buf); err != nil {
		f.Close()
		return fmt.Errorf("write the job's output: %w", err)
	}
	k.file, k.buf, k.live = f, nil, nil
	return nil
}

// ended is what shell.Shell.Run returned for a command.
type ended struct {
	r   shell.Result
	err error
}

// runOn runs a command in the private shell until it ends or, if c.Continue is set, until it becomes a background job. Then the result is
// the job's Info, the shell stays with the job, and p has another one in the state before, which is that before the command. The caller
// has the turn.
func (p *Private) runOn(ctx context.Context, before shell.State, c Command, cmd shell.Command) (shell.Result, *job.Info, error) {
	sh := p.shell()
	if c.Continue == nil {
		e := p.guarded(ctx, sh, cmd)
		return e.r, nil, e.err
	}
	k := &continuable{draft: c.Continue, offered: make(chan *job.Draft, 1), became: make(chan struct{}), live: cmd.Output}
	cmd.Output, cmd.Overdue = k.output, func() bool {
		err := k.background()
		if err != nil {
			p.shells.log.Warn("a command that took too long cannot go on as a job", "err", err)
		}
		return err == nil
	}
	p.setContinuable(k)
	defer func() {
		p.setContinuable(nil)
		close(k.became)
	}()
	own, cancel := context.WithCancelCause(p.shells.ctx) // follows ctx until the command is a job
	follow := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	end := make(chan ended, 1)
	if !p.shells.begin(func() { end <- p.guarded(own, sh, cmd) }) { // it ends with the command, which Close cancels
		follow()
		cancel(nil)
		return shell.Result{}, nil, ErrShuttingDown
	}
	select {
	case e := <-end:
		follow()
		cancel(nil)
		k.mu.Lock()
		k.over = true
		k.mu.Unlock()
		select {
		case draft := <-k.offered: // it ended in that moment
			draft.Discard()
		default:
		}
		return e.r, nil, e.err
	case draft := <-k.offered:
		var left []string
		var err error
		if follow() {
			left, err = p.replace(ctx, before)
		} else {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = k.take(draft.Folder)
		}
		if err != nil {
			draft.Discard()
			cancel(err)
			e := <-end
			if p.shell() != sh {
				_ = sh.Close() // it logs its error
			}
			e.r.Notes = append(e.r.Notes, "it could not go on as a job: "+err.Error())
			return e.r, nil, e.err
		}
		over := make(chan string, 1)
		info := draft.Adopt(job.Held{Ended: over, Group: sh.Foreground, Cancel: func() { cancel(errJobEnded) }})
		finish := func() {
			e := <-end
			p.shells.finishJob(k, draft.Folder, e)
			p.retire(sh)
			cancel(nil)
			over <- strings.Join(e.r.Notes, "; ")
		}
		if !p.shells.begin(finish) {
			finish() // the command is being ended
		}
		k.mu.Lock()
		k.info = &info
		k.mu.Unlock()
		var r shell.Result
		if len(left) > 0 {
			r.Notes = []string{"not as before in the new shell: " + strings.Join(left, ", ")}
		}
		return r, &info, nil
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
func (s *Shells) finishJob(k *continuable, folder string, e ended) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := errors.Join(e.err, k.err, k.file.Close())
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

// setContinuable notes the command that runs and can become a job; nil = none does.
func (p *Private) setContinuable(k *continuable) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.continuable = k
}

// Background makes the command that runs in the shell continue as a background job, and returns the job; nil if there is no
// such command.
func (p *Private) Background(ctx context.Context) (*job.Info, error) {
	p.mu.Lock()
	k := p.continuable
	p.mu.Unlock()
	if k == nil {
		return nil, nil
	}
	if err := k.background(); err != nil {
		return nil, err
	}
	select {
	case <-k.became:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.info, nil
}

// onward is how a command in a window's shell goes on as a job of that shell.
type onward struct {
	draft   func() (*job.Draft, error)
	refused chan string   // holds one: the answer to ContinueLeasedCommand, why it stays in the foreground
	over    chan struct{} // closed once it has ended, or is a job
	info    *job.Info     // of that job; nil = it has ended. Written before over is closed.

	// guarded by mu
	mu       sync.Mutex
	reserved *job.Draft // the job that it is to become; nil = nobody has asked for that
}

// reserve reserves the job, unless that is done or the command is over. The error is that of draft.
func (o *onward) reserve() (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.over:
		return nil
	default:
	}
	if o.reserved == nil {
		o.reserved, err = o.draft()
	}
	return err
}

// end is called once when the command has ended, or is a job.
func (o *onward) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reserved != nil {
		o.reserved.Discard()
	}
	close(o.over)
}

// refuse is called with the client's answer. o may be nil: no such answer was due.
func (o *onward) refuse(why string) {
	if o == nil {
		return
	}
	select {
	case o.refused <- why:
	default: // nobody took the answer before
	}
}

// adopt records the job that the command became, also in its result. A job that cannot be recorded, as when too many run, is ended.
func (o *onward) adopt(done *wire.CommandCompleted, r *tool.CommandResult) {
	err := o.reserve()
	if err == nil {
		o.mu.Lock()
		d := o.reserved
		o.reserved = nil
		o.mu.Unlock()
		var info job.Info
		if info, err = d.Continues(done.JobPID, done.Output); err == nil {
			o.info, r.Job, r.Continued = &info, &info, true
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
	running := func() (l *lease.Lease, o *onward) {
		if l = ln.m.Current(); l != nil && l.Running() != "" {
			if r := &l.Owner.(*borrow).request; r.Turn == turn {
				return l, r.onward
			}
		}
		return nil, nil
	}
	ln.mu.Lock()
	_, o := running()
	ln.mu.Unlock()
	if o == nil {
		return nil, nil
	}
	if err := o.reserve(); err != nil { // where too many jobs run, the command stays as it is
		return nil, err
	}
	ln.mu.Lock()
	if l, now := running(); now == o {
		select {
		case <-o.refused: // an answer that came too late for its request
		default:
		}
		ref := wire.LeaseRef{LeaseID: wire.LeaseID(l.ID), Fence: l.Fence}
		ln.send(&wire.ContinueLeasedCommand{LeaseRef: ref, ExecutionID: wire.ExecutionID(l.Running())})
	}
	ln.mu.Unlock()
	select {
	case why := <-o.refused:
		return nil, fmt.Errorf("the command in your shell stays in the foreground: %s", why)
	case <-o.over:
		return o.info, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// wentOn is the result of a command that has become a job.
func (p *Private) wentOn(info *job.Info, notes []string) tool.CommandResult {
	return tool.CommandResult{Notes: notes, Job: info, Continued: true, Cwd: p.shell().Dir(), Status: wire.StatusSuccess}
}
