package shell

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
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
	t := &s.editor.typed
	broke := t.broke && time.Since(t.last) < keyGap // fish shows no new prompt where the line was empty
	free := why == "" && !t.filled && !broke && !s.editor.lease && !s.editor.screen
	s.mu.Unlock()
	if !free {
		return false, nil
	}
	a, err := s.take(ctx, askBound)
	switch {
	case errors.Is(err, errInUse):
		return false, nil
	case err != nil:
		return false, err
	case a.context != "ready" || a.line != "":
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
	return s.takeScreen(ctx)
}

// takeScreen records that the screen is taken and erases what the held editor shows. The caller has holdLock.
func (s *Shell) takeScreen(ctx context.Context) error {
	s.mu.Lock()
	e := &s.editor
	e.screen = true
	shown := e.widget == blocked && !e.erased
	s.mu.Unlock()
	if !shown {
		return nil
	}
	return s.direct(ctx, "screen", markErased)
}

// eraseLocked returns the sequence that erases what the editor shows, prompt included, or nil after it was erased. It is sent when
// the widget has printed markErased: the widget of zsh redraws the line as empty before that, the one of bash cannot.
func (s *Shell) eraseLocked() []byte {
	if s.editor.erased {
		return nil
	}
	rows := s.out.painted.rows(s.size.Cols) // below the prompt's first row; 0 after the widget's redraw
	// Each row first: tmux keeps in its scrollback what "\x1b[J" erases from the top left corner.
	return []byte("\r\x1b[K" + strings.Repeat("\x1b[A\x1b[K", rows) + "\x1b[J")
}

// Hold takes the editor for a borrower once the user is not busy; while the screen is taken it does not wait for that. It is
// idempotent. The errors are *BrokenError, ErrClosed and ctx's cause.
func (s *Shell) Hold(ctx context.Context) error {
	if _, err := s.borrow(ctx); err != nil {
		return err
	}
	s.holdLock.Unlock()
	return nil
}

// borrow does what Hold does, but returns with holdLock taken. lent reports whether a borrower had the editor already. It does not wait
// for the user while a borrower has the editor or the screen is taken with the editor blocked: then the user cannot type to the shell.
func (s *Shell) borrow(ctx context.Context) (lent bool, err error) {
	e := &s.editor
	if err := s.hold(ctx, func() bool { return e.lease || e.widget == blocked && e.screen }); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lent, e.lease = e.lease, true
	s.changeLocked()
	return lent, nil
}

// ensureHeld takes holdLock, with the editor held for a borrower. release ends what ensureHeld began.
func (s *Shell) ensureHeld(ctx context.Context) (release func(), err error) {
	lent, err := s.borrow(ctx)
	if err != nil {
		return nil, err
	}
	return func() {
		defer s.holdLock.Unlock()
		if lent {
			return
		}
		if err := s.endLease(); err != nil {
			s.log.Warn("release the line editor", "err", err)
		}
	}, nil
}

// Release ends Hold. If the program's own screen is not shown (TakeScreen), what the shell printed meanwhile is shown and the
// half-typed line restored; else the editor stays held.
func (s *Shell) Release() error {
	s.holdLock.Lock()
	defer s.holdLock.Unlock()
	if lent := locked(s, func() bool { return s.editor.lease }); !lent {
		return nil
	}
	return s.endLease()
}

// endLease does the work of Release for an editor that a borrower has. While the screen is taken, the editor is held again for the
// program that took it, because the borrowed command has released it. The caller has holdLock.
func (s *Shell) endLease() error {
	if screen := locked(s, func() bool { return s.editor.screen }); !screen {
		s.showPrompt()
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), doneBound, errNotAnswered)
	defer cancel()
	err := s.holdUnseen(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.editor.lease = false
	if err == nil {
		s.out.route = toScreen
	}
	s.changeLocked()
	return err
}

// holdUnseen holds the editor again if a borrowed command has released it. It drops the prompt after that command, which was kept
// from the screen. The caller has holdLock.
func (s *Shell) holdUnseen(ctx context.Context) error {
	if err := s.takeAgain(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out.route != toScreen {
		s.out.kept, s.editor.erased = nil, true
	}
	return nil
}

// takeAgain holds the editor, if a borrowed command has released it, as soon as its prompt comes. The caller has holdLock.
func (s *Shell) takeAgain(ctx context.Context) error {
	for {
		if held := locked(s, func() bool { return s.editor.widget == blocked }); held {
			return nil
		}
		if err := s.await(ctx, func() bool { return s.editor.prompt && s.run == nil }); err != nil {
			return err
		}
		_, err := s.take(ctx, holdBound)
		if ctx.Err() != nil && err != nil {
			return context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, errInUse) { // errInUse: the shell is only slow, as the user cannot type now, and is asked again
			return err
		}
	}
}

// showPrompt gives the editor and the screen back to the user; until the half-typed line is there, keys are kept. The caller has
// holdLock.
func (s *Shell) showPrompt() {
	s.mu.Lock()
	e := &s.editor
	held, erased, unseen, line, cursor := e.widget == blocked, e.erased, s.out.route != toScreen, e.line, e.cursor
	s.mu.Unlock()
	defer s.passOnKeys()
	if held && !erased && !unseen {
		s.giveBack() // nothing was shown: the editor continues where it was
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), doneBound, errNotAnswered)
	defer cancel()
	if held && erased { // an empty command brings a fresh prompt
		if err := s.runEmpty(ctx); err != nil {
			s.log.Warn("the shell shows no fresh prompt", "err", err)
		}
	}
	directive, typed := keepLine, ""
	if line != "" {
		directive = "line " + cursor
		err := s.takeAgain(ctx)
		if err == nil {
			err = s.files.write("line", line)
		}
		if err != nil { // a slow prompt: the line is typed again, and the cursor stands at its end
			s.log.Info("the half-typed line is typed again", "err", err)
			directive, typed = keepLine, string(pasteBegin)+line+string(pasteEnd)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.showKeptLocked()
	s.releaseLocked(directive)
	if line != "" {
		e.typed = typing{keys: true, filled: true, last: e.typed.last}
	}
	s.ahead = append([]byte(typed), s.ahead...)
}

// showKeptLocked shows what was kept from the screen, and from then on what comes. It unlocks mu meanwhile.
func (s *Shell) showKeptLocked() {
	for len(s.out.kept) > 0 { // more may come meanwhile
		kept := s.out.kept
		s.out.kept = nil
		s.mu.Unlock()
		if s.o.Output != nil {
			s.o.Output(kept)
		}
		s.mu.Lock()
	}
	s.out.route = toScreen
}

// passOnKeys ends showPrompt: it types the kept keys once the editor reads. Before that the line discipline would edit them.
func (s *Shell) passOnKeys() {
	s.awaitIdle()
	if err := s.awaitEditor(context.Background()); err != nil {
		s.log.Debug("the line editor", "err", err)
	}
	s.inputLock.Lock()
	defer s.inputLock.Unlock()
	s.mu.Lock()
	s.editor.lease, s.editor.screen, s.editor.line = false, false, ""
	s.showKeptLocked() // where the shell was started again meanwhile
	s.changeLocked()
	s.mu.Unlock()
	s.flush()
}

// GiveScreen gives the screen back: the shell prints a fresh prompt at the cursor, which must be in column 0, with the
// half-typed line. While a borrower has the editor the prompt comes at Release.
func (s *Shell) GiveScreen(ctx context.Context) error { return s.giveScreen(ctx, func(*editor) {}) }

// RunLine is GiveScreen with another line in the user's editor, which is entered as if the user had typed it.
func (s *Shell) RunLine(ctx context.Context, line string) error {
	return s.giveScreen(ctx, func(e *editor) {
		e.line, e.cursor = line, strconv.Itoa(len([]rune(line)))
		s.ahead = append([]byte{'\r'}, s.ahead...)
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
	e.screen = shows // showPrompt ends it
	s.changeLocked()
	s.mu.Unlock()
	if shows {
		s.showPrompt()
	}
	return nil
}
