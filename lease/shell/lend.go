package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// HoldIfEmpty takes the editor and the screen for a key that has a meaning on an empty line only. It does not wait for
// Options.Patience. It returns false, within 150 ms, if the line is not empty or the editor is not free; then the key is the
// shell's. If it returns true, Output has received what erases the prompt, and the cursor is in column 0.
func (s *Shell) HoldIfEmpty(ctx context.Context) (bool, error) {
	select {
	case s.holdLock <- struct{}{}:
	default:
		return false, nil // a borrower is about to take it
	}
	defer s.holdLock.Unlock()
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
		s.giveBack()
		return false, nil
	}
	return true, s.takeScreen(ctx)
}

// TakeScreen takes the editor and the screen once the user is not busy, or the screen alone at once if a borrower has the editor.
// It is idempotent. A half-typed line comes back at GiveScreen. The errors are *BrokenError, ErrClosed and ctx's cause.
func (s *Shell) TakeScreen(ctx context.Context) error {
	if err := s.hold(ctx, func() bool { return s.editor.screen || s.editor.lease }); err != nil {
		return err
	}
	defer s.holdLock.Unlock() // hold took it
	taken := locked(s, func() bool { return s.editor.screen })
	if taken {
		return nil
	}
	return s.takeScreen(ctx)
}

// takeScreen records that the screen is taken, and erases what the held editor shows. The caller has holdLock.
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

// erase has the widget erase what the held editor shows, and waits for that. The caller has holdLock.
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
	if rows := s.out.painted.rows(s.size.Cols); rows > 0 { // 0 where the shell has erased them
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
	defer s.holdLock.Unlock() // hold took it
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.editor.lease {
		return ErrHeld
	}
	s.editor.lease = true
	s.changeLocked()
	return nil
}

// ensureHeld takes the editor like Hold, unless a borrower has it already. release ends what ensureHeld began.
func (s *Shell) ensureHeld(ctx context.Context) (release func(), err error) {
	lent := locked(s, func() bool { return s.editor.lease })
	if lent {
		return func() {}, nil
	}
	if err := s.Hold(ctx); err != nil {
		return nil, err
	}
	return func() {
		if err := s.Release(); err != nil {
			s.log.Warn("release the line editor", "err", err)
		}
	}, nil
}

// Release ends Hold. If the program's own screen is not shown (TakeScreen), what the shell printed meanwhile is shown and the
// half-typed line restored; else the editor stays held.
func (s *Shell) Release() error {
	s.holdLock.Lock()
	defer s.holdLock.Unlock()
	s.mu.Lock()
	e := &s.editor
	if !e.lease {
		s.mu.Unlock()
		return nil
	}
	e.lease = false
	screen := e.screen
	e.restores = !screen // until the line is there, keys are kept
	s.changeLocked()
	s.mu.Unlock()
	if screen {
		return s.hidePrompt()
	}
	s.showPrompt()
	return nil
}

// hidePrompt holds the editor again after a borrowed command, while the screen is taken. The caller has holdLock.
func (s *Shell) hidePrompt() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), doneBound, errNotAnswered)
	defer cancel()
	if err := s.holdUnseen(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.kept, s.editor.erased = nil, true // also where State holds the editor: its prompt was kept from the screen
	s.out.route = toScreen
	return nil
}

// holdUnseen holds the editor again if a borrowed command has released it. The prompt after that command is never shown. The
// caller has holdLock.
func (s *Shell) holdUnseen(ctx context.Context) error {
	held := locked(s, func() bool { return s.editor.held })
	if held {
		return nil
	}
	if err := s.takeAgain(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.kept, s.editor.erased = nil, true
	return nil
}

// takeAgain holds the editor, if a borrowed command has released it, as soon as its prompt comes. The line that was set aside
// stays so. The caller has holdLock.
func (s *Shell) takeAgain(ctx context.Context) error {
	s.mu.Lock()
	held, line, cursor := s.editor.held, s.editor.line, s.editor.cursor
	s.mu.Unlock()
	for !held {
		if err := s.await(ctx, func() bool { return s.editor.prompt && s.run == nil }); err != nil {
			return err
		}
		_, err := s.take(ctx, holdBound) // nothing else can have the key
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

// showPrompt gives the editor and the screen back to the user. The caller has holdLock and has set restores, so that keys are
// kept until the line is there.
func (s *Shell) showPrompt() {
	s.mu.Lock()
	e := &s.editor
	held, erased, ran, line, cursor := e.held, e.erased, e.ran, e.line, e.cursor
	s.mu.Unlock()
	defer s.restored()
	if held && !erased && !ran {
		s.giveBack() // nothing was shown: the editor goes on where it was
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), doneBound, errNotAnswered)
	defer cancel()
	if held && erased { // an empty command brings a fresh prompt
		if err := s.runEmpty(ctx); err != nil {
			s.log.Warn("the shell shows no fresh prompt", "err", err)
		}
	}
	directive, typed := "none", ""
	if line != "" {
		directive = "line " + cursor
		err := s.takeAgain(ctx)
		if err == nil { // after takeAgain: when the widget is called it overwrites the file with the line that it finds
			err = os.WriteFile(s.files.path("line"), []byte(line), 0o600)
		}
		if err != nil { // a slow prompt: the line is typed again, and the cursor stands at its end
			s.log.Info("the half-typed line is typed again", "err", err)
			directive, typed = "none", string(pasteBegin)+line+string(pasteEnd)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.out.kept) > 0 { // a prompt may still be painted meanwhile
		kept := s.out.kept
		s.out.kept = nil
		s.mu.Unlock()
		if s.o.Output != nil {
			s.o.Output(kept)
		}
		s.mu.Lock()
	}
	s.out.route, e.ran = toScreen, false
	if e.held {
		s.directLocked(directive)
		e.held = false
	}
	if line != "" {
		e.typed = typing{keys: true, filled: true, last: e.typed.last}
	}
	s.ahead.keys = append([]byte(typed), s.ahead.keys...)
}

// restored ends showPrompt: it passes on the keys that were kept, once the editor reads them. Before that the terminal would
// edit them as a line.
func (s *Shell) restored() {
	if err := s.awaitEditor(context.Background()); err != nil {
		s.log.Debug("the line editor", "err", err)
	}
	s.inputLock.Lock()
	defer s.inputLock.Unlock()
	s.mu.Lock()
	e := &s.editor
	e.restores = false
	free := !e.lease && !e.screen && !s.life.closed
	s.changeLocked()
	s.mu.Unlock()
	if free {
		s.flush()
	}
}

// GiveScreen gives the screen back: the shell prints a fresh prompt at the cursor, which must be in column 0, with the
// half-typed line. While a borrower has the editor the prompt comes at Release.
func (s *Shell) GiveScreen(ctx context.Context) error { return s.giveScreen(ctx, func(*editor) {}) }

// Insert is GiveScreen with another line in the user's editor, as if it were typed, which is entered if run.
func (s *Shell) Insert(ctx context.Context, line string, run bool) error {
	return s.giveScreen(ctx, func(e *editor) {
		e.line, e.cursor = line, strconv.Itoa(len([]rune(line)))
		if run {
			s.ahead.keys = append([]byte{'\r'}, s.ahead.keys...)
		}
	})
}

// giveScreen ends TakeScreen. change is called with mu held, before the half-typed line comes back, and may replace it. If the
// screen was not taken, nothing is called or shown.
func (s *Shell) giveScreen(ctx context.Context, change func(e *editor)) error {
	if err := s.holdLock.LockContext(ctx); err != nil {
		return err
	}
	defer s.holdLock.Unlock()
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
