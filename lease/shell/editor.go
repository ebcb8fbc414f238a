package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sublet/lease/shell/procs"
)

const (
	askBound  = 100 * time.Millisecond // for the widget's answer: an idle machine takes 1 to 9 ms
	askAgain  = 500 * time.Millisecond // until the next try
	askMost   = 3                      // tries in a row; then the editor counts as busy until the next prompt
	aheadMost = 64 << 10               // bytes of keys that are kept while the editor is held; then who types waits
	keyGap    = 100 * time.Millisecond // between two keys of a paste, or of who types ahead
	doneBound = 5 * time.Second        // for what the script does at once
)

var (
	errNotAnswered = errors.New("the line editor does not answer")
	errInUse       = errors.New("the line editor is in use")
)

// Keys passes on what the user typed to the editor or to the user's own program. While the editor is held the keys are
// kept, and passed on at its release; the event KeysWaiting is sent. It waits while 64 KiB are kept, or the terminal takes no
// more input.
func (s *Shell) Keys(p []byte) error {
	for {
		s.typist <- struct{}{}
		s.mu.Lock()
		e := &s.editor
		kept := e.asking || e.held || e.lease || e.screen || e.restores || s.run != nil
		over, changed := s.closed || s.gone, s.changed
		switch {
		case over:
			s.mu.Unlock()
			<-s.typist
			return ErrClosed
		case !kept:
			s.typedLocked(p)
			t := s.proc.term
			s.mu.Unlock()
			_, err := t.Write(p)
			<-s.typist
			return err
		case len(s.ahead) < aheadMost:
			s.ahead = append(s.ahead, p...)
			waiting := e.lease && s.run == nil
			s.changeLocked()
			s.mu.Unlock()
			<-s.typist
			if waiting {
				s.event(KeysWaiting{})
			}
			return nil
		}
		s.mu.Unlock()
		<-s.typist
		<-changed
	}
}

func (s *Shell) typedLocked(p []byte) {
	s.painted.typed()
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

// flush types what was kept for the editor. The caller has typist, and not the lock: a long paste waits for the shell.
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

// busyLocked returns why the editor is not free, and how long to wait where only time has to pass.
func (s *Shell) busyLocked(patience time.Duration) (why string, wait time.Duration) {
	e := &s.editor
	switch {
	case s.run != nil:
		return "a borrowed command is running", 0
	case s.prompts == 0:
		return "the shell is starting", 0
	case e.restores || e.asking:
		return "the line editor is being asked", 0
	case s.command != nil:
		return s.programLocked() + " is running", 0
	case !e.prompt:
		return "the shell shows no prompt", 0
	case e.typed.other:
		return "the user is in the middle of a line", 0
	}
	if !e.typed.keys { // since the prompt; but what was typed before may lie in the terminal, and go on
		patience = min(patience, keyGap)
	}
	if left := patience - time.Since(e.typed.last); left > 0 {
		return "the user is typing", left
	}
	return "", 0
}

func (s *Shell) programLocked() string {
	if fg := s.proc.term.Foreground(); fg > 1 && fg != s.proc.pid {
		if name := procs.Name(fg); name != "" {
			return name
		}
	}
	return "the user's command"
}

// awaitFree waits until the editor is free, or done reports true.
func (s *Shell) awaitFree(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		why, wait := s.busyLocked(s.o.Patience)
		free := why == "" || s.editor.unhooked || done()
		over, changed := s.closed || s.gone, s.changed
		s.mu.Unlock()
		switch {
		case over:
			return ErrClosed
		case free:
			return nil
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-changed:
		case <-timer:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// take asks the free editor to block. It returns errNotAnswered or errInUse, or nil with the editor held. The caller has user.
func (s *Shell) take(ctx context.Context, bound time.Duration) (ack, error) {
	if err := s.awaitEditor(ctx); err != nil {
		return ack{}, err
	}
	s.typist <- struct{}{}
	s.mu.Lock()
	e := &s.editor
	if s.closed || s.gone || !e.prompt || e.typed.other { // the user was quicker
		s.mu.Unlock()
		<-s.typist
		return ack{}, errInUse
	}
	select { // an answer to who gave up
	case <-s.acks:
	default:
	}
	e.asking = true
	t, prompts := s.proc.term, s.prompts
	s.mu.Unlock()
	_, err := t.Write([]byte(s.d.HoldKey()))
	<-s.typist
	if err != nil {
		s.mu.Lock()
		e.asking = false
		s.mu.Unlock()
		return ack{}, errNoProcess
	}
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case a := <-s.acks:
		s.mu.Lock()
		e.held, e.ignored, e.erased, e.line, e.cursor = true, 0, false, "", a.cursor
		if a.line {
			line, err := os.ReadFile(filepath.Join(s.folder, "line"))
			if err != nil {
				s.log.Warn("the half-typed line", "err", err)
			}
			e.line = string(line)
		}
		s.changeLocked()
		s.mu.Unlock()
		return a, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	s.typist <- struct{}{}
	defer func() { <-s.typist }()
	s.mu.Lock()
	select {
	case <-s.acks: // at the last moment
		s.directLocked("none")
	default:
	}
	e.asking, e.held = false, false
	if e.ignored++; e.ignored >= askMost && prompts == s.prompts {
		e.typed.other = true
	}
	free := !e.lease && !e.screen && !e.restores
	s.changeLocked()
	s.mu.Unlock()
	if free {
		s.flush()
	}
	return ack{}, errNotAnswered
}

// awaitEditor waits until the editor has the terminal, for a key typed between the prompt hook and that would be echoed, and
// has read all that was typed: what lies behind the hold key would be read while it holds.
func (s *Shell) awaitEditor(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, askAgain)
	defer cancel()
	err := s.await(bounded, func() bool {
		return s.editor.prompt && len(s.painted.b) > 0 && !s.proc.term.Echoes() && s.proc.term.InputEmpty()
	})
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.mu.Lock()
	t := s.proc.term
	s.mu.Unlock()
	if !t.InputEmpty() {
		return errInUse
	}
	return nil // an empty prompt, or echo that the user switched on
}

// release gives the held editor a last directive. The caller has user.
func (s *Shell) release(directive string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.editor.held {
		s.directLocked(directive)
		s.editor.held = false
		s.changeLocked()
	}
}

// HoldIfEmpty takes the editor and the screen, without patience, for a key of the user's that means something on an empty
// line only. It returns false, within 150 ms, where the line is not empty or the editor not free; then the key is the
// shell's. Where it returns true, Output has received what erases the prompt, and the cursor is in column 0.
func (s *Shell) HoldIfEmpty(ctx context.Context) (bool, error) {
	select {
	case s.user <- struct{}{}:
	default:
		return false, nil // a borrower is about to take it
	}
	defer func() { <-s.user }()
	s.mu.Lock()
	why, _ := s.busyLocked(0)
	free := why == "" && !s.editor.typed.filled && !s.editor.lease && !s.editor.screen
	s.mu.Unlock()
	if !free {
		return false, nil
	}
	a, err := s.take(ctx, askBound)
	if errors.Is(err, errNotAnswered) || errors.Is(err, errInUse) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if a.context != "ready" || a.line {
		s.giveBack("none")
		return false, nil
	}
	return true, s.takeScreen(ctx)
}

// TakeScreen takes the editor and the screen once the user is not busy. A half-typed line comes back at GiveScreen.
func (s *Shell) TakeScreen(ctx context.Context) error {
	if err := s.hold(ctx, func() bool { return s.editor.screen || s.editor.lease }); err != nil {
		return err
	}
	defer func() { <-s.user }()
	s.mu.Lock()
	taken := s.editor.screen
	s.mu.Unlock()
	if taken {
		return nil
	}
	return s.takeScreen(ctx)
}

func (s *Shell) takeUser(ctx context.Context) error {
	select {
	case s.user <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Shell) takeScreen(ctx context.Context) error {
	s.mu.Lock()
	s.editor.screen = true
	held := s.editor.held
	s.mu.Unlock()
	if held {
		return s.erase(ctx)
	}
	return nil
}

// hold takes the editor once it is free, asking again as long as it does not answer. It returns nil with user taken and the
// editor held, or with user taken as soon as done, called with the lock held, reports that it need not be.
func (s *Shell) hold(ctx context.Context, done func() bool) error {
	for {
		if err := s.awaitFree(ctx, done); err != nil {
			return err
		}
		if err := s.takeUser(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		over, unhooked := done(), s.editor.unhooked
		why, _ := s.busyLocked(s.o.Patience)
		s.mu.Unlock()
		if over {
			return nil
		}
		if unhooked {
			s.typist <- struct{}{}
			_, err := s.proc.term.Write([]byte(s.d.HoldKey())) // the widget puts the hook back and goes on
			<-s.typist
			<-s.user
			s.log.Info("the prompt hook was replaced", "err", err)
			return &BrokenError{Why: "it does not report its prompt: the hook was replaced", Fix: "press Enter at its prompt, or else open sublet again"}
		}
		if why != "" { // somebody else took user in between
			<-s.user
			continue
		}
		err := s.holdNow(ctx)
		if err == nil {
			return nil
		}
		<-s.user
		if errors.Is(err, errInUse) {
			continue
		}
		if !errors.Is(err, errNotAnswered) {
			return err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// holdNow asks the free editor once. The caller has user.
func (s *Shell) holdNow(ctx context.Context) error {
	s.mu.Lock()
	e := &s.editor
	bound := askBound << (2 * e.ignored) // a machine with much else to do is slow
	s.mu.Unlock()
	a, err := s.take(ctx, min(bound, 4*askAgain))
	s.mu.Lock()
	broken := e.ignored >= askMost && !e.typed.keys
	s.mu.Unlock()
	switch {
	case errors.Is(err, errNotAnswered) && broken:
		return &BrokenError{Why: "its line editor does not answer sublet's key", Fix: "open sublet again"}
	case err != nil:
		return err
	case a.context != "ready":
		s.giveBack("none")
		s.mu.Lock()
		e.typed.other, e.typed.keys = true, true // until the next prompt
		s.mu.Unlock()
		return errNotAnswered
	case strings.Contains(a.flags, "e"):
		s.giveBack("none")
		return &BrokenError{Why: "set -e is on: a borrowed command that fails would end it", Fix: "set +e"}
	}
	return nil
}

// giveBack ends a hold that changed nothing: the editor goes on with its line.
func (s *Shell) giveBack(directive string) {
	s.release(directive)
	s.typist <- struct{}{}
	s.flush()
	<-s.typist
}

// erase has what the held editor shows erased.
func (s *Shell) erase(ctx context.Context) error {
	s.mu.Lock()
	if s.editor.erased || !s.editor.held {
		s.mu.Unlock()
		return nil
	}
	s.directLocked("screen")
	s.mu.Unlock()
	bounded, cancel := context.WithTimeoutCause(ctx, doneBound, errNotAnswered)
	defer cancel()
	return s.await(bounded, func() bool { return s.editor.erased })
}

// eraseLocked returns what erases the rest of what the editor shows, once its widget has erased what it can.
func (s *Shell) eraseLocked() []byte {
	if s.editor.erased {
		return nil
	}
	up := ""
	if rows := s.painted.rows(s.size.Cols); rows > 0 { // 0 where the shell has erased them
		up = fmt.Sprintf("\x1b[%dA", rows)
	}
	return []byte("\r" + up + "\x1b[J")
}

// Hold takes the editor for a borrower once the user is not busy; while the screen is taken it does not wait for that. The
// errors are *BrokenError, ErrHeld, ErrClosed and ctx's cause.
func (s *Shell) Hold(ctx context.Context) error {
	if err := s.hold(ctx, func() bool { return s.editor.lease || s.editor.held && s.editor.screen }); err != nil {
		return err
	}
	defer func() { <-s.user }()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.editor.lease {
		return ErrHeld
	}
	s.editor.lease = true
	s.changeLocked()
	return nil
}

// Release ends Hold. In command mode what the shell painted since is shown, and the half-typed line restored; while the
// screen is taken the editor stays held.
func (s *Shell) Release() error {
	s.user <- struct{}{}
	defer func() { <-s.user }()
	s.mu.Lock()
	e := &s.editor
	if !e.lease {
		s.mu.Unlock()
		return nil
	}
	e.lease = false
	screen := e.screen
	e.restores = !screen
	s.changeLocked()
	s.mu.Unlock()
	if screen {
		return s.hidePrompt()
	}
	s.showPrompt()
	return nil
}

// hidePrompt holds the editor again behind a borrowed command, while the screen is taken.
func (s *Shell) hidePrompt() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), doneBound, errNotAnswered)
	defer cancel()
	if err := s.holdUnseen(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.route = toScreen
	return nil
}

// holdUnseen holds the editor where a borrowed command has released it. The prompt behind that is never shown.
func (s *Shell) holdUnseen(ctx context.Context) error {
	s.mu.Lock()
	held := s.editor.held
	s.mu.Unlock()
	if held {
		return nil
	}
	if err := s.takeAgain(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.editor.erased = nil, true
	return nil
}

// takeAgain holds the editor, where a borrowed command has released it, as soon as its prompt comes. The line that was set
// aside stays so.
func (s *Shell) takeAgain(ctx context.Context) error {
	s.mu.Lock()
	held, line, cursor := s.editor.held, s.editor.line, s.editor.cursor
	s.mu.Unlock()
	for !held {
		if err := s.await(ctx, func() bool { return s.editor.prompt && s.run == nil }); err != nil {
			return err
		}
		_, err := s.take(ctx, 4*askAgain) // nothing else can have the key
		switch {
		case err == nil:
			s.mu.Lock()
			s.editor.line, s.editor.cursor, held = line, cursor, true
			s.mu.Unlock()
		case !errors.Is(err, errNotAnswered) && !errors.Is(err, errInUse):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
	return nil
}

// showPrompt gives the editor and the screen back to the user. The caller has user and has set restores, so that keys are
// kept until the line is there.
func (s *Shell) showPrompt() {
	s.mu.Lock()
	e := &s.editor
	held, fresh, ran, line, cursor := e.held, e.erased, e.ran, e.line, e.cursor
	s.mu.Unlock()
	defer s.restored()
	if held && !fresh && !ran {
		s.giveBack("none") // nothing was shown: the editor goes on where it was
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), doneBound, errNotAnswered)
	defer cancel()
	if held && fresh { // what it shows was erased: an empty command brings a fresh prompt
		if err := s.runEmpty(ctx); err != nil {
			s.log.Warn("the shell shows no fresh prompt", "err", err)
		}
	}
	directive, typed := "none", ""
	if line != "" {
		directive = "line " + cursor
		err := s.takeAgain(ctx)
		if err == nil { // behind the widget's call, which writes the line that it found
			err = os.WriteFile(filepath.Join(s.folder, "line"), []byte(line), 0o600)
		}
		if err != nil { // a slow prompt: the line is typed again, and the cursor stands at its end
			s.log.Info("the half-typed line is typed again", "err", err)
			directive, typed = "none", string(pasteBegin)+line+string(pasteEnd)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.kept) > 0 { // a prompt may still be painted meanwhile
		kept := s.kept
		s.kept = nil
		s.mu.Unlock()
		if s.o.Output != nil {
			s.o.Output(kept)
		}
		s.mu.Lock()
	}
	s.route, e.ran = toScreen, false
	if e.held {
		s.directLocked(directive)
		e.held = false
	}
	if line != "" {
		e.typed = typing{keys: true, filled: true, last: e.typed.last}
	}
	s.ahead = append([]byte(typed), s.ahead...)
}

// restored passes on what was typed meanwhile, once the editor reads it: before that the terminal would edit it as a line.
func (s *Shell) restored() {
	if err := s.awaitEditor(context.Background()); err != nil {
		s.log.Debug("the line editor", "err", err)
	}
	s.typist <- struct{}{}
	defer func() { <-s.typist }()
	s.mu.Lock()
	e := &s.editor
	e.restores = false
	free := !e.lease && !e.screen && !s.closed
	s.changeLocked()
	s.mu.Unlock()
	if free {
		s.flush()
	}
}

// GiveScreen gives the screen back: the shell prints a fresh prompt at the cursor, which must be in column 0, with the
// half-typed line. While a borrower has the editor the prompt comes at Release.
func (s *Shell) GiveScreen(ctx context.Context) error { return s.giveScreen(ctx, func(*editor) {}) }

// Insert gives the screen back with a line in the user's editor as if it were typed, and enters it if run.
func (s *Shell) Insert(ctx context.Context, line string, run bool) error {
	return s.giveScreen(ctx, func(e *editor) {
		e.line, e.cursor = line, strconv.Itoa(len([]rune(line)))
		if run {
			s.ahead = append([]byte{'\r'}, s.ahead...)
		}
	})
}

func (s *Shell) giveScreen(ctx context.Context, change func(e *editor)) error {
	if err := s.takeUser(ctx); err != nil {
		return err
	}
	defer func() { <-s.user }()
	s.mu.Lock()
	e := &s.editor
	shows := e.screen && !e.lease
	if e.screen {
		change(e)
	}
	e.screen, e.restores = false, shows
	s.changeLocked()
	s.mu.Unlock()
	if shows {
		s.showPrompt()
	}
	return nil
}
