package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The end mark is written before the record, so it is on its way when that came, unless the terminal was flushed by a ^C in
// between: then nothing is left to read. On a busy machine it may be the reader that is late.
const (
	markWait  = 250 * time.Millisecond
	markLooks = 20
)

// run is a command in flight.
type run struct {
	c       Command
	plan    plan
	nonce   string
	sourced bool
	line    string // what was typed
	retyped bool
	dropped bool          // its user typed ^C before it began
	doubted bool          // see doubt
	started func()        // at the start mark
	marked  chan struct{} // closed at the end mark
	ended   bool          // its end record came
	begun   chan struct{} // closed at the start mark
	end     chan endRecord
	dead    chan death
	late    chan struct{} // told when the shell prompted once more before the line began

	watched bool          // somebody typed: the shell will stand still at the end
	writing bool          // a Write is under way
	zero    bool          // zero bytes were typed
	secret  bool          // something was typed while a program had echo off, and may not have been read
	entered bool          // it ended with Enter
	unread  []byte        // typed, and not read by the command
	earlier []byte        // typed before a borrower's command, when none ran
	taken   bool          // what nobody read was taken from the terminal, or cannot be
	stands  chan struct{} // told when the shell stands still

	mended time.Time // when the prompt hook was put back
	frozen bool      // a cancel holds subshells: see freeze

	status int // $? of the last prompt
	out    *sink
	output func([]byte)  // to out
	typed  moment        // when the line went in: what the command starts is younger, however late its start is told
	start  atomic.Int64  // of execution, Unix nanoseconds
	modes  *unix.Termios // of the terminal, before; nil where they could not be read
}

func (r *run) tellDeath(d death) {
	select {
	case r.dead <- d:
	default:
	}
}

// died tells whether the shell died before it told the end.
func (r *run) died() (death, bool) {
	select {
	case d := <-r.dead:
		return d, true
	default:
		return death{}, false
	}
}

// Run runs one command and returns when its end is proved. While another command runs it returns ErrBusy, after the end
// of the shell ErrClosed; a Dir that cannot be entered is a *[DirError]. When ctx ends or the time is up the command is
// cancelled: SIGINT at once, SIGTERM after 2 s, SIGKILL after 2 s more, and Run still returns its Result, within 5 s for a
// borrower's command, in time in which the machine did not stand still. The shell itself is only ever interrupted; where a
// borrower's command makes it deaf to that, it is replaced, and the Result says so.
func (s *Shell) Run(ctx context.Context, c Command) (Result, error) {
	if !s.running.CompareAndSwap(false, true) {
		return Result{}, ErrBusy
	}
	defer s.running.Store(false)
	if err := s.lockTurn(ctx, true); err != nil {
		return Result{}, err
	}
	defer func() { <-s.turn }()
	if err := s.awaitIdle(ctx); err != nil {
		return Result{}, err
	}
	err := s.settleSignals(ctx)
	if errors.Is(err, ErrClosed) { // that may have cost the shell; it is started again
		err = s.awaitIdle(ctx)
	}
	if err != nil {
		return Result{}, err
	}
	if err := s.tidy(ctx, true); err != nil {
		return Result{}, err
	}
	s.current().learn()
	if c.Dir != "" && c.Dir != s.Dir() {
		if err := s.enter(ctx, c.Dir); err != nil {
			return Result{}, err
		}
	}
	plan := analyze(c.Text, c.User, s.known)
	s.mu.Lock()
	plan.fit(s.snap, c.User)
	if s.missed {
		plan.state, plan.functions, plan.assigns = true, true, nil
	}
	s.mu.Unlock()
	if plan.functions && plan.guarded(c) {
		plan.bare = s.bareLibraries()
	}
	if plan.typed && plan.bang {
		if res, refused, err := s.refuseHistory(ctx, c); err != nil || refused {
			return res, err
		}
	}
	r, p, err := s.begin(c, plan)
	if err != nil {
		return Result{}, err
	}
	return s.await(ctx, r, p), nil
}

// begin types the command. The caller has the turn and the shell is idle.
func (s *Shell) begin(c Command, pl plan) (*run, *process, error) {
	text := c.Text
	if !pl.typed {
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if err := rewrite(s.text, text); err != nil {
			return nil, nil, fmt.Errorf("write command: %w", err)
		}
	}
	line, mode := text, modeTyped
	if !pl.typed {
		line, mode = fixedLine(c, pl), modeSourced
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proc
	r := &run{
		c: c, plan: pl, nonce: s.nonce, sourced: mode == modeSourced, line: line,
		begun: make(chan struct{}), end: make(chan endRecord, 1), dead: make(chan death, 1), late: make(chan struct{}, 1),
		stands: make(chan struct{}, 1),
	}
	r.typed = present()
	r.start.Store(time.Now().UnixNano())
	r.modes, _ = p.modes()
	r.out = newSink(s.size.Cols, s.o.Head, s.o.Tail, s.o.Spool, s.textPath(), c)
	r.output = r.out.write
	flags := pl.flags()
	var opened *opening
	if pl.functions && pl.subshell == "" {
		opened = &opening{p: p, named: pl.opens}
	}
	if pl.guarded(c) {
		flags = "" // guard has them
		if pl.functions {
			opened.before, opened.bare = descriptors(p.pid), pl.bare
		}
	}
	if pl.held != "" {
		note := "what `" + pl.held + "` set was put back at its end: traps, options, IFS, positional parameters and redirections of the shell itself hold for one command"
		if pl.held == "exec" && opened != nil && opened.before == nil {
			note += "; descriptors above 2 stay open: close them (`exec 7>&-`)"
		}
		s.note(r, note)
	}
	if err := s.arrangeLocked(flags); err != nil {
		return nil, nil, err
	}
	s.prompt, s.prompts = "", false
	s.run, s.own, s.found, s.left = r, pl.assigns, nil, make(chan struct{})
	s.opened, s.disowned = opened, pl.disowns
	s.freed = s.freed || pl.disowns
	r.started = func() {
		r.start.Store(time.Now().UnixNano())
		close(r.begun)
		if c.Started != nil {
			c.Started()
		}
	}
	if pl.traced && r.sourced {
		r.output = withoutSource(s.textPath(), r.out.write)
	}
	r.marked = p.stream.expect(mode, r.nonce, line, r.started, r.output)
	if err := s.typeLocked(line); err != nil {
		s.run = nil
		p.stream.finish()
		return nil, nil, err
	}
	if !c.User { // what the user typed is not for who borrows
		r.earlier, s.stray = s.stray, nil
	}
	return r, p, nil
}

// textPath is the file sourced texts lie in; bash names it in syntax errors.
func (s *Shell) textPath() string { return filepath.Join(s.folder, "c") }

// rewrite replaces a file's content in place.
func rewrite(f *os.File, text string) error {
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(text)))
}

// await waits for the end of a command, cancelling it when ctx ends or its time is up.
func (s *Shell) await(ctx context.Context, r *run, p *process) Result {
	var (
		res     = Result{Status: "ok"}
		cancel  *canceller
		timeout <-chan time.Time
		done    = ctx.Done()
		begun   = r.begun
		watch   = newWatcher(s, p, r)
		late    *sight
	)
	defer watch.stop()
	defer func() { late.stop() }()
	stop := func(why string) {
		done, timeout = nil, nil
		res.Status = why
		cancel = newCanceller(s, p, r)
		cancel.press()
	}
	for {
		select {
		case <-begun:
			begun = nil
			if cancel != nil {
				cancel.press()
			}
			if r.c.Timeout > 0 {
				t := time.NewTimer(r.c.Timeout)
				defer t.Stop()
				timeout = t.C
			}
			continue
		case <-done:
			stop("cancelled")
			continue
		case <-timeout:
			stop("timeout")
			continue
		case <-cancel.tick():
			cancel.press()
			if !cancel.overdue() {
				continue
			}
			p.stream.finish()
		case <-watch.tick():
			watch.look()
			continue
		case <-r.late:
			late.stop()
			late = newSight()
			continue
		case <-late.tick():
			if s.unheard(p, late.waited, func() bool { return s.hasTold(r) }) {
				s.loseLine(r, p, cancel != nil)
			} else if !r.hasBegun() {
				late.again()
			}
			continue
		case rec := <-r.end:
			if d, died := r.died(); died { // it is the first prompt of the shell that was started instead
				s.buried(r, d, &res)
				break
			}
			if !p.waitMark(r.marked) {
				if rec.started && s.doubt(r, p, rec) {
					continue
				}
				p.stream.finish()
			}
			code := rec.status
			res.ExitCode = &code
			res.Signal = signalName(code)
			if res.Status == "ok" && code == 130 && s.isClosing() {
				res.Status = "cancelled"
			}
		case d := <-r.dead:
			s.buried(r, d, &res)
		}
		break
	}
	watch.over()
	s.takeAhead(r, p)
	if s.settle(r, p) {
		s.note(r, "it left the terminal's modes changed (stty): they were put back")
	}
	s.finish(r, p, cancel, &res)
	return res
}

// loseLine handles a line that was proved never to begin. It is typed once more; in vain or after a cancel its end is told.
func (s *Shell) loseLine(r *run, p *process, cancelled bool) {
	// A comment, an empty alias or a syntax error was read and is done; after a ^C the line was dropped.
	s.mu.Lock()
	defer s.mu.Unlock()
	again := !cancelled && !r.retyped && !r.dropped && !r.doubted && (r.sourced || r.status == 130)
	if r.ended {
		return
	}
	if again {
		r.retyped = true
		mode := modeTyped
		if r.sourced {
			mode = modeSourced
		}
		r.marked = p.stream.expect(mode, r.nonce, r.line, r.started, r.output)
		if _, err := p.write([]byte(r.line + "\n")); err == nil {
			return
		}
	}
	p.stream.finish()
	r.ended = true
	r.end <- endRecord{nonce: r.nonce, status: r.status}
	close(s.idle)
}

func (s *Shell) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// waitMark waits for the end mark; false when it was lost.
func (p *process) waitMark(marked chan struct{}) bool {
	t := time.NewTimer(markWait)
	defer t.Stop()
	for looks, empty := 0, 0; ; t.Reset(markWait) {
		select {
		case <-marked:
			return true
		case <-t.C:
		}
		if empty++; p.unreadOutput() {
			empty = 0
		}
		if looks++; empty > 1 || looks > markLooks { // once more: the reader may have it in its hands
			return false
		}
	}
}

// doubt handles an end of a command whose start was never seen: a SIGINT in the moment of the start can have bash tell the
// end and yet run what it has read of the line. So the line is taken for one that is still to come, until it begins after
// all or is proved not to; it is never typed again. False where the command did begin, or where this was asked before.
func (s *Shell) doubt(r *run, p *process, rec endRecord) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.doubted || r.hasBegun() || s.proc != p {
		return false
	}
	r.doubted, r.ended, r.status = true, false, rec.status
	if s.nonce == r.nonce {
		return true // unexpectedLocked takes it from here
	}
	if closed(s.idle) {
		s.idle = make(chan struct{})
	}
	s.unexpectedLocked(p, r, s.nonce)
	return true
}

// began is when execution began, or the line was typed.
func (r *run) began() time.Time { return time.Unix(0, r.start.Load()) }

// hasTold tells whether the shell has told that the line began or ended.
func (s *Shell) hasTold(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.ended || r.hasBegun()
}

func (r *run) hasBegun() bool { return closed(r.begun) }

func (s *Shell) note(r *run, text string) { r.out.notes = append(r.out.notes, text) }

// finish completes a result: proof after a cancel, what a subshell hands back, output, leftovers.
func (s *Shell) finish(r *run, p *process, c *canceller, res *Result) {
	res.Duration = time.Since(r.began())
	s.mu.Lock()
	s.run = nil
	res.Unread, s.stray = append(s.stray, r.unread...), nil
	if s.edits && s.proc == p && !closed(s.idle) {
		s.plainInputLocked()
	}
	s.edits = false
	s.mu.Unlock()
	if c != nil {
		c.timer.Stop()
		c.release()
		if res.Status != "shell_exited" && !res.Respawned {
			c.prove(res)
		}
	}
	if r.plan.subshell != "" && res.Why == "" && res.Status != "shell_exited" {
		s.handBack(r)
	}
	if c != nil {
		res.Leftovers = c.sweep()
		if slices.ContainsFunc(res.Leftovers, func(p Process) bool { return p.User != "" }) {
			s.note(r, "what is left of it is another user's and heeds nothing that sublet or the terminal may send: it was stopped where it can be (`fg` goes on with it), and is the user's to end")
		}
	}
	p.stream.do(func() {
		var err error
		res.Output, res.Truncated, res.SpoolPath, err = r.out.close()
		if err != nil {
			s.log.Warn("spool", "error", err)
		}
	})
	s.mu.Lock()
	res.Unread, s.stray = append(res.Unread, s.stray...), r.earlier // typed meanwhile
	s.mu.Unlock()
	if r.secret {
		res.Unread = nil
	}
	res.Dir = s.Dir()
	res.Notes = r.out.notes
}
