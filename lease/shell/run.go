package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/shell/dialect"
	"sublet/lease/shell/procs"
	"sublet/lease/shell/term"
	"sublet/wire/visible"
)

// beginBound is how long the shell may take to begin a borrowed command's line.
const beginBound = 5 * time.Second

var (
	errTimeout = errors.New("took too long")
	errNoBegin = errors.New("the shell does not run what its line editor was given")
)

// run is a borrowed command. Shell.mu guards its fields, except out and printed, which are safe for concurrent use, and those
// that are set before it begins.
type run struct {
	command   Command
	out       *term.Collector
	from      procs.Moment
	started   time.Time // when its text began; zero = it has not yet
	status    int
	dir       string
	recorded  bool         // the record of markEnd came
	ended     bool         // markEnd came, too, or the next prompt
	answered  bool         // keys were typed for it
	restarted string       // the shell was restarted, and why
	changes   bool         // it may change the shell's state
	job       bool         // its line is one job of the shell
	halted    int          // the process group that was stopped so that it can go on as a job; 0 = none
	stays     string       // why it could not, when its time had passed
	printed   atomic.Int64 // when it printed last, in nanoseconds
}

// began is called with Shell.mu held.
func (r *run) began() bool { return !r.started.IsZero() }

// output is called by the terminal's reader.
func (r *run) output(p []byte) {
	p = r.out.Clean(p)
	r.out.Add(p)
	r.printed.Store(time.Now().UnixNano())
	if r.command.Output != nil {
		r.command.Output(p)
	}
}

// Run runs a borrowed command to its end. If the editor is not held yet, Run holds it first and releases it afterwards. When
// ctx or the command's time ends, the command is cancelled: SIGINT, SIGTERM after 2 s, SIGKILL after 2 s more; its end is
// certain within 5 s. The errors are those of Hold, and others with the reason why the command was not begun.
func (s *Shell) Run(ctx context.Context, c Command) (Result, error) {
	release, err := s.ensureHeld(ctx)
	if err != nil {
		return Result{}, err
	}
	defer release()
	x := s.d.Examine(c.Text, s.isDefined)
	lost := ""
	switch {
	case c.Job != "":
		text, err := s.background(c)
		if err != nil {
			return Result{}, err
		}
		x = dialect.Examination{Text: text}
	case c.Confine != nil:
		line, err := s.launcherLine(c)
		if err != nil {
			return Result{}, err
		}
		lost = x.Lasts
		x = dialect.Examination{Text: line, Job: line}
	case x.Refused != "": // no reason against the commands above: they run in a child of the shell
		return Result{}, errors.New(x.Refused)
	}
	if c.Continue != nil && x.Job != "" {
		x.Text = x.Job
	}
	if c.Dir != "" {
		st, err := os.Stat(c.Dir)
		if err == nil && !st.IsDir() {
			err = &os.PathError{Err: syscall.ENOTDIR}
		}
		if err != nil {
			return Result{}, fmt.Errorf("cannot enter %s: %w", visible.Line(c.Dir), errors.Unwrap(err))
		}
	}
	if err := s.holdUnseen(ctx); err != nil { // where it is a second command under one Hold
		return Result{}, err
	}
	r := &run{
		command: c, out: term.NewCollector(s.cols(), s.o.Head, s.o.Tail, s.o.Spool, s.files.path("text")), from: procs.Now(),
	}
	dir := c.Dir
	if dir == s.Dir() {
		dir = ""
	}
	r.changes, r.job = x.Changes || dir != "", x.Job != ""
	if err := s.begin(r, x.Text, dir); err != nil {
		return Result{}, err
	}
	res, err := s.follow(ctx, r)
	res.Changes = res.Changes || x.Changes
	if c.Confine != nil && c.Job == "" {
		noteDenials(c, &res)
	}
	if lost != "" && res.Status != refused {
		res.Lost = lost
		res.Notes = append(res.Notes, "it ran in a child of the shell, held to the reach "+c.Confine.Reach+": what `"+lost+"` changed is lost; as a command of its own it lasts")
	}
	if x.Ends {
		res.Notes = append(res.Notes, "it ran in a subshell, because it could have ended the shell; changes that it made to the shell's state are lost")
	}
	return res, err
}

// isDefined reports whether a name is an alias or a function in the state that was read last. Before any state was read it returns true
// for every name, so that no command counts as harmless.
func (s *Shell) isDefined(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Functions == nil {
		return true
	}
	_, function := s.state.Functions[name]
	_, alias := s.state.Aliases[name]
	return function || alias
}

// begin has the held editor run the text, in dir if it is not "". The caller has holdLock.
func (s *Shell) begin(r *run, text, dir string) error {
	if dir != "" {
		text = "builtin cd -- " + s.d.Quote(dir) + " && builtin eval " + s.d.Quote(text)
	}
	if err := s.files.source(text); err != nil {
		return fmt.Errorf("write the command: %w", err)
	}
	s.inputLock.Lock()
	defer s.inputLock.Unlock()
	s.mu.Lock()
	if s.editor.widget != blocked {
		s.mu.Unlock()
		return errNoBegin
	}
	s.run, s.nonces.next = r, newNonce()
	s.editor.widget = idle
	if s.editor.erased { // what its widget erases now is a prompt that was not seen, and the cursor is elsewhere
		s.out.route = toNobody
	}
	s.directLocked("run " + s.nonces.next)
	t := s.proc.term
	s.changeLocked()
	s.mu.Unlock()
	if _, err := t.Write([]byte(s.d.AcceptKey)); err != nil {
		s.mu.Lock()
		s.run = nil
		s.mu.Unlock()
		return errNoProcess
	}
	return nil
}

// runEmpty has the editor run an empty command, for the fresh prompt that the shell shows after it, and waits for its end. The
// output is not used. The caller has holdLock.
func (s *Shell) runEmpty(ctx context.Context) error {
	r := &run{out: term.NewCollector(s.cols(), 1, 1, "", "")}
	if err := s.begin(r, "", ""); err != nil {
		return err
	}
	err := s.await(ctx, func() bool { return r.ended })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = nil
	return err
}

// follow waits for the end of the command that was begun, or of the shell. It cancels the command if it is not begun within
// beginBound, when its time-out has passed, and when ctx ends.
func (s *Shell) follow(ctx context.Context, r *run) (res Result, err error) {
	var (
		cancelled error // why, or nil
		cancel    *canceller
		again     <-chan time.Time // when to signal again
		watch     = &watcher{s: s, r: r, wait: lookAfter, due: time.Now().Add(lookAfter), t: time.NewTimer(lookAfter)}
		begin     = time.After(beginBound)
		limit     clock
		halt      = &halt{s: s, r: r}
	)
	stop := func(why error) {
		if cancelled == nil {
			cancelled, again = why, time.Tick(signalEvery)
			cancel = &canceller{s: s, r: r, since: time.Now(), sent: make(map[int]syscall.Signal)}
			cancel.signalDue()
		}
	}
	done := ctx.Done()
	for {
		s.mu.Lock()
		changed, began, ended, died := s.changed, r.began(), r.ended, r.restarted != "" || s.life.left || s.life.closed && within(s.proc.exited, 0)
		s.mu.Unlock()
		if began && limit.t == nil && r.command.Timeout > 0 {
			limit.begin(r.command.Timeout)
		}
		if ended || died {
			break
		}
		select {
		case <-changed:
		case <-begin:
			if began := locked(s, r.began); !began {
				stop(errNoBegin)
			}
		case <-watch.t.C:
			watch.examine()
			limit.pause(watch.why != "")
		case <-limit.tick():
			if cancelled == nil && halt.timeOver() {
				stop(errTimeout)
			}
		case <-r.command.Continue:
			halt.request()
		case <-halt.next:
			if halt.try() {
				stop(errTimeout)
			}
		case <-done:
			done = nil
			stop(context.Cause(ctx))
		case <-again:
			cancel.signalDue()
		}
	}
	limit.pause(true)
	watch.report("", "") // the keyboard is given back
	return s.finish(r, cancelled)
}

// finish returns the result of r, which has ended or lost its shell.
func (s *Shell) finish(r *run, cancelled error) (res Result, err error) {
	s.mu.Lock()
	s.run = nil
	pid, t := s.proc.pid, s.proc.term
	if r.dir != "" {
		s.dir = r.dir
	}
	res = Result{Status: "shell_exited", Dir: s.dir, Changes: r.restarted != ""}
	began, ended, status := r.began(), r.ended, r.status
	s.stale = s.stale || r.changes || r.restarted != ""
	_ = t.Resize(s.size) // as the command may have set another one; the same one has no effect. An error: the shell has exited
	s.changeLocked()
	s.mu.Unlock()
	if began {
		res.Duration = time.Since(r.started)
	}
	res.Output, res.Truncated, res.SpoolPath, err = r.out.Close()
	if err != nil {
		s.log.Warn("spool", "err", err)
		err = nil
	}
	if ended {
		res.Status, res.ExitCode, res.Signal = "ok", &status, signalName(status)
	}
	switch {
	case errors.Is(cancelled, errTimeout):
		res.Status = "timeout"
		if res.Stays = r.stays; r.stays != "" {
			res.Notes = append(res.Notes, "it could not go on as a job: "+r.stays)
		}
	case errors.Is(cancelled, errNoBegin):
		return res, &BrokenError{Why: errNoBegin.Error(), Fix: "open sublet again"}
	case cancelled != nil:
		res.Status = "cancelled"
	case ended && !began: // a signal to the shell brought the next prompt instead
		return res, errNoBegin
	}
	if r.command.Job != "" {
		if res.JobPID = s.jobStarted(r.command.Job); res.JobPID != 0 {
			res.ExitCode = nil // what ended is the start
		}
	}
	if ended && s.resume(r, cancelled != nil) {
		res.JobPID, res.ExitCode, res.Signal = r.halted, nil, "" // what ended is the wait for it
		res.Output = s.withoutStopped(res.Output)
	}
	if ended {
		res.Leftovers = s.leftovers(pid, t, r.from)
	}
	if r.answered {
		res.Notes = append(res.Notes, "the program asked for the keyboard, and the user answered it")
	}
	if r.restarted != "" {
		res.Notes = append(res.Notes, r.restarted)
	}
	return res, nil
}

// hooksBound is how long the prompt's hooks may take where it matters whether a process is one of them.
const hooksBound = 2 * time.Second

// leftovers lists the processes that a command has left in the shell's session. If a fork of the shell is among them, it waits for
// the prompt, by when the forks of the prompt's hooks have ended or run a program, and drops what is gone.
func (s *Shell) leftovers(pid int, t *term.Terminal, from procs.Moment) []procs.Process {
	jobs := s.jobGroups()
	list, forks := procs.BegunSince(pid, t.Foreground, from, jobs...)
	if !forks {
		return s.programs(list)
	}
	bounded, cancel := context.WithTimeout(context.Background(), hooksBound)
	defer cancel()
	_ = s.await(bounded, func() bool { // the list is made anew in any case
		return s.editor.prompt && len(s.out.painted.b) > 0 && !t.Echoes()
	})
	now, _ := procs.BegunSince(pid, t.Foreground, from, jobs...)
	return s.programs(slices.DeleteFunc(now, func(p procs.Process) bool {
		return !slices.ContainsFunc(list, func(q procs.Process) bool { return p.PID == q.PID })
	}))
}

// programs leaves out the launcher and the shell that it starts for a confined command (held), unless there is nothing else in the
// list.
func (s *Shell) programs(list []procs.Process) []procs.Process {
	child := " " + strings.Join(s.d.ChildArgs, " ")
	held := func(p procs.Process) bool { return strings.HasSuffix(p.Command, child) }
	if own := slices.DeleteFunc(slices.Clone(list), held); len(own) > 0 {
		return own
	}
	return list
}

// signalName returns the name of the signal that a shell reports as this exit status, 128 plus its number; "" = none. It leaves out
// signals whose status programs also use themselves: git reports wrong usage with 129, which would be SIGHUP.
func signalName(status int) string {
	switch sig := syscall.Signal(status - 128); sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGILL, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGKILL, syscall.SIGSEGV,
		syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTERM, syscall.SIGTSTP:
		return unix.SignalName(sig)
	}
	return ""
}
