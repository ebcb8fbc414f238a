package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sublet/lease/shell/procs"
	"sublet/lease/shell/term"
	"sublet/wire/visible"
)

const (
	askBound  = 100 * time.Millisecond // for the widget's answer to a key of the user's: an idle machine takes 1 to 9 ms
	holdBound = 2 * time.Second        // for its answer to a borrower: a machine with much else to do is slow
	readBound = 500 * time.Millisecond // for the editor to read what was typed
	keyGap    = 100 * time.Millisecond // between two keys of a paste, or of a user who types ahead
	doneBound = 5 * time.Second        // for the script to carry out a directive
)

var (
	errInUse       = errors.New("the line editor is in use")
	errNotAnswered = fmt.Errorf("%w: it does not answer", errInUse)
)

// Keys passes on what the user typed to the editor or to the user's own program, and waits while the terminal takes no more input.
// While the editor is held, or a borrowed command runs, the keys are kept until the editor is released, and Keys returns at once.
// If a borrower holds the editor without running a command, the event KeysWaiting is sent.
func (s *Shell) Keys(p []byte) error {
	s.inputLock.Lock()
	defer s.inputLock.Unlock()
	s.mu.Lock()
	e := &s.editor
	if e.widget == idle && !e.lease && !e.screen && s.run == nil {
		s.typedLocked(p)
		t := s.proc.term
		s.mu.Unlock()
		_, err := t.Write(p)
		return err
	}
	s.ahead = append(s.ahead, p...)
	waiting := e.lease && s.run == nil
	s.changeLocked()
	s.mu.Unlock()
	if waiting {
		s.event(KeysWaiting{})
	}
	return nil
}

// typedLocked records keys that the user types now. It first reads the widget's answer to take (markHeld), which may have come after take
// gave up: a ^C among the keys makes the terminal drop the mark of that answer, and the widget would block for good.
func (s *Shell) typedLocked(p []byte) {
	s.readRecordsLocked(markHeld)
	s.out.painted.typed()
	s.editor.typed.take(p, time.Now())
	s.changeLocked()
}

// Answer passes on what the user typed for the borrowed command that has the keyboard.
func (s *Shell) Answer(p []byte) error {
	s.mu.Lock()
	t := s.proc.term
	if s.run != nil {
		s.run.answered = true
	}
	s.mu.Unlock()
	_, err := t.Write(p)
	return err
}

// flush types the keys that were kept for the editor. The caller has inputLock, and not mu: a long paste waits for the shell.
func (s *Shell) flush() {
	s.mu.Lock()
	p, t := s.ahead, s.proc.term
	s.ahead = nil
	if len(p) > 0 {
		s.typedLocked(p)
	}
	s.mu.Unlock()
	if _, err := t.Write(p); err != nil {
		s.log.Debug("keys for a shell that is gone", "err", err)
	}
}

// Busy returns, for people, why the editor is not free; "" = it is.
func (s *Shell) Busy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	why, _ := s.busyLocked(s.o.Patience)
	return why
}

// busyLocked returns why the editor is not free, "" if it is, and how long to wait if only time has to pass.
func (s *Shell) busyLocked(patience time.Duration) (why string, wait time.Duration) {
	e := &s.editor
	switch {
	case s.run != nil:
		return "a borrowed command is running", 0
	case s.records.prompts == 0:
		return "the shell is starting", 0
	case e.widget == asked:
		return "the line editor is being asked", 0
	case s.command != nil:
		return s.programLocked() + " is running", 0
	case !e.prompt:
		return "the shell shows no prompt", 0
	case e.typed.other:
		return "the user is in the middle of a line", 0
	}
	if !e.typed.keys { // since the prompt; but input from before it may still be unread, and more of it may come
		patience = min(patience, keyGap)
	}
	if left := patience - time.Since(e.typed.last); left > 0 {
		return "the user is typing", left
	}
	return "", 0
}

// programLocked returns the name of the user's program in the foreground.
func (s *Shell) programLocked() string {
	if fg := s.proc.term.Foreground(); fg > 1 && fg != s.proc.pid {
		if name := procs.Name(fg); name != "" {
			return name
		}
	}
	return "the user's command"
}

// take holds the free editor: it types the hold key and waits, for at most bound, for the widget's answer. It returns
// errNotAnswered, errInUse or errNoProcess, or the widget's answer and nil with the editor held. The caller has holdLock.
func (s *Shell) take(ctx context.Context, bound time.Duration) (ack, error) {
	if err := s.awaitEditor(ctx); err != nil {
		return ack{}, err
	}
	s.inputLock.Lock()
	s.mu.Lock()
	e := &s.editor
	if s.life.over() || !e.prompt && !e.unreported || e.typed.other { // the user was quicker
		s.mu.Unlock()
		s.inputLock.Unlock()
		return ack{}, errInUse
	}
	e.widget = asked
	t := s.proc.term
	s.mu.Unlock()
	_, err := t.Write([]byte(s.d.HoldKey))
	s.inputLock.Unlock()
	if err != nil {
		err = errNoProcess
	} else {
		bounded, cancel := context.WithTimeoutCause(ctx, bound, errNotAnswered)
		defer cancel()
		err = s.await(bounded, func() bool { return e.widget == blocked })
	}
	if err == nil {
		return locked(s, func() ack { return e.ack }), nil
	}
	s.inputLock.Lock()
	defer s.inputLock.Unlock()
	s.mu.Lock()
	s.readRecordsLocked(markHeld) // the mark may be late, or lost: its record may be there
	if e.widget == blocked {
		s.directLocked(keepLine)
	}
	e.widget = idle
	free := !e.lease && !e.screen
	s.changeLocked()
	s.mu.Unlock()
	if free {
		s.flush()
	}
	return ack{}, err
}

// awaitEditor waits until the editor has set the terminal's modes, because the terminal would echo a key that is typed between
// the prompt hook and that moment; and until the editor has read everything that was typed, because the widget would read what
// comes after the hold key. Without either it returns after readBound: errInUse if there is input left, else nil.
func (s *Shell) awaitEditor(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, readBound)
	defer cancel()
	err := s.await(bounded, func() bool {
		return (s.editor.unreported || s.editor.prompt && len(s.out.painted.b) > 0) && !s.proc.term.Echoes() && s.proc.term.InputEmpty()
	})
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	t := locked(s, func() *term.Terminal { return s.proc.term })
	if !t.InputEmpty() {
		return errInUse
	}
	return nil // an empty prompt, or echo that the user switched on
}

// direct sends the blocked widget a directive and waits, at most doneBound, for the mark that answers it. The caller has holdLock.
func (s *Shell) direct(ctx context.Context, directive, mark string) error {
	s.mu.Lock()
	s.editor.done = ""
	s.directLocked(directive)
	s.mu.Unlock()
	bounded, cancel := context.WithTimeoutCause(ctx, doneBound, errNotAnswered)
	defer cancel()
	return s.await(bounded, func() bool { return s.editor.done == mark })
}

// releaseLocked sends the widget, if it blocks, the directive that ends it. awaitIdle must follow. The caller also has holdLock.
func (s *Shell) releaseLocked(directive string) {
	if s.editor.widget == blocked {
		s.directLocked(directive)
		s.editor.widget = leaving
		s.changeLocked()
	}
}

// awaitIdle waits, for at most readBound, until the widget has ended. A ^C that came before would be lost in zsh and fish, and in bash
// keep the half-typed line from coming back.
func (s *Shell) awaitIdle() {
	bounded, cancel := context.WithTimeout(context.Background(), readBound)
	defer cancel()
	if err := s.await(bounded, func() bool { return s.editor.widget != leaving }); err != nil {
		s.log.Debug("the end of the widget", "err", err)
		s.mu.Lock()
		s.editor.widget = idle
		s.mu.Unlock()
	}
}

// hold holds the editor once it is free, asking again as long as it does not answer. It returns nil with holdLock taken and
// the editor held, or with holdLock taken as soon as done, which is called with mu held, reports that it need not be.
func (s *Shell) hold(ctx context.Context, done func() bool) error {
	for {
		err := s.awaitTimed(ctx, func() (bool, time.Duration) {
			why, wait := s.busyLocked(s.o.Patience)
			return why == "" || s.editor.unreported && !s.editor.typed.other || done(), wait
		})
		if err != nil {
			return err
		}
		if err := s.holdLock.LockContext(ctx); err != nil {
			return err
		}
		held, err := s.tryHold(ctx, done)
		if held {
			return nil
		}
		s.holdLock.Unlock()
		if err != nil && !errors.Is(err, errInUse) {
			return err
		}
	}
}

// tryHold holds the editor if it is still free. held is also true if done reports true. Without held and an error the editor was
// taken meanwhile, or a program of the user's reads the line: the caller waits again. The caller has holdLock.
func (s *Shell) tryHold(ctx context.Context, done func() bool) (held bool, err error) {
	s.mu.Lock()
	unneeded, unreported := done(), s.editor.unreported
	why, _ := s.busyLocked(s.o.Patience)
	s.mu.Unlock()
	switch {
	case unneeded:
		return true, nil
	case unreported:
		return false, s.checkHook(ctx)
	case why != "":
		return false, nil
	}
	err = s.holdNow(ctx)
	return err == nil, err
}

// checkHook is for an editor that reads a line though no prompt was reported. It returns a *BrokenError if the user's exec has
// replaced the shell. Otherwise it has the widget check whether the prompt hook was replaced, and restore it: then it returns one,
// too. If it was not, or the widget does not answer, a program of the user's reads the line. The caller has holdLock.
func (s *Shell) checkHook(ctx context.Context) error {
	if now, replaced := s.replaced(); replaced {
		return &BrokenError{Why: visible.Line(now) + " has replaced it (exec)", Fix: "open a new sublet window for agents"}
	}
	a, err := s.take(ctx, holdBound)
	if err == nil {
		s.giveBack()
	} else if !errors.Is(err, errInUse) {
		return err
	}
	s.mu.Lock()
	s.editor.unreported = false
	s.mu.Unlock()
	if strings.Contains(a.flags, "h") {
		return &BrokenError{Why: "it does not report its prompt: the hook was replaced", Fix: "press Enter at its prompt, or else open sublet again"}
	}
	return nil
}

// replaced reports whether the shell's process runs another program than at its first prompt, and returns that program's command line.
func (s *Shell) replaced() (now string, is bool) {
	p := locked(s, func() *process { return s.proc })
	now = procs.CommandLine(p.pid)
	return now, now != p.commandLine
}

// holdNow asks the free editor once. One that does not answer, or whose widget reports that nothing may be run now (ack.context is
// not "ready": a search, a continuation line), counts as in use until the next prompt. The caller has holdLock.
func (s *Shell) holdNow(ctx context.Context) error {
	s.mu.Lock()
	e, prompts := &s.editor, s.records.prompts
	s.mu.Unlock()
	a, err := s.take(ctx, holdBound)
	switch {
	case errors.Is(err, errNotAnswered) || err == nil && a.context != "ready":
		s.giveBack()
		s.mu.Lock()
		defer s.mu.Unlock()
		same := e.prompt && s.records.prompts == prompts
		e.typed.other = e.typed.other || same
		if err != nil && same && !e.typed.keys { // no key of the user's can have led the editor into another mode
			return &BrokenError{Why: "its line editor does not answer sublet's key", Fix: "open sublet again"}
		}
		return errNotAnswered
	case err != nil:
		return err
	case strings.Contains(a.flags, "e"):
		s.giveBack()
		return &BrokenError{Why: "set -e is on: a borrowed command that fails would end it", Fix: "set +e"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.line, e.cursor = a.line, a.cursor
	return nil
}

// giveBack ends a hold that changed nothing: the editor goes on with its line. The caller has holdLock.
func (s *Shell) giveBack() {
	s.inputLock.Lock()
	defer s.inputLock.Unlock()
	s.mu.Lock()
	s.releaseLocked(keepLine)
	s.mu.Unlock()
	s.awaitIdle()
	s.flush()
}
