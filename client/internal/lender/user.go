package lender

import (
	"context"
	"slices"
	"time"

	"sublet/lease/shell"
)

// Write passes keyboard bytes to the program that has the terminal.
func (l *Lender) Write(p []byte) (int, error) { return l.sh.Write(p) }

// Unowned passes on what the terminal printed while no command ran. It never waits; p stays the caller's.
func (l *Lender) Unowned(p []byte) { l.events.put(Unowned{Data: slices.Clone(p)}) }

// Resize tells the shell how large the terminal is.
func (l *Lender) Resize(s shell.Size) error { return l.sh.Resize(s) }

// Dir is where the shell is, as last known.
func (l *Lender) Dir() string { return l.sh.Dir() }

// Exited closes when the user's own exit ended the shell.
func (l *Lender) Exited() <-chan struct{} { return l.sh.Exited() }

// ExitStatus is the status of that exit.
func (l *Lender) ExitStatus() int { return l.sh.ExitStatus() }

// promptRest is how long the shell must have been left alone by borrowers before it is asked for the prompt: no person
// notices, and a borrower with several commands does not wait for a prompt, which may run programs, after each of them.
// promptDue is how long an expansion may keep waiting whoever wants the shell, from its beginning.
const (
	promptRest = 100 * time.Millisecond
	promptDue  = 500 * time.Millisecond
)

// Prompt is the user's own prompt, expanded. It gives way to borrowers, but for the one after the user's own command; one that
// takes longer than promptDue gives way to whoever wants the shell, and ctx's cause is the error, as where ctx ends first. While
// the shell is in use it is a *LentError or ErrBusy, at once.
func (l *Lender) Prompt(ctx context.Context) (p shell.Prompt, err error) {
	called := time.Now()
	if err := l.rest(ctx); err != nil {
		return p, err
	}
	err = l.idle(ctx, func() (err error) {
		p, err = l.expand(ctx, called)
		return err
	})
	return p, err
}

// rest waits until borrowers have left the shell alone for promptRest.
func (l *Lender) rest(ctx context.Context) error {
	for {
		l.mu.Lock()
		left := time.Until(l.lentAt.Add(promptRest))
		owed := l.prompted.Before(l.userAt)
		l.mu.Unlock()
		if left <= 0 || owed {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// expand asks the shell for the prompt, unless somebody else did after called. The caller holds the token.
func (l *Lender) expand(ctx context.Context, called time.Time) (shell.Prompt, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	if l.prompted.After(called) {
		defer l.mu.Unlock()
		return l.prompt, nil
	}
	if l.user != nil {
		l.mu.Unlock()
		return shell.Prompt{}, ErrBusy // theirs is on its way
	}
	begun := time.Now()
	var due *time.Timer
	l.expanding = func() {
		if due == nil {
			due = time.AfterFunc(time.Until(begun.Add(promptDue)), cancel)
		}
	}
	if g := l.grant; g != nil && g.exec != nil || len(l.waiting) > 0 {
		l.expanding()
	}
	l.mu.Unlock()
	prompt, err := l.sh.Prompt(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expanding = nil
	if due != nil {
		due.Stop()
	}
	if err != nil {
		return shell.Prompt{}, err
	}
	l.prompt, l.prompted = prompt, begun
	return prompt, nil
}

// wantedLocked tells an expansion of the prompt that somebody wants the shell.
func (l *Lender) wantedLocked() {
	if l.expanding != nil {
		l.expanding()
	}
}

// Complete asks the shell for completions. While it is in use it returns *LentError or ErrBusy at once.
func (l *Lender) Complete(ctx context.Context, line string, cursor int) (from int, cs []shell.Completion, err error) {
	l.mu.Lock()
	l.wantedLocked()
	l.mu.Unlock()
	err = l.idle(ctx, func() (err error) {
		from, cs, err = l.sh.Complete(ctx, line, cursor)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dirty = true // it may have loaded functions and completions
		return err
	})
	return from, cs, err
}

// History is bash's own history list, oldest first. While the shell is in use it returns *LentError or ErrBusy at once.
func (l *Lender) History(ctx context.Context) (lines []string, err error) {
	err = l.idle(ctx, func() (err error) {
		lines, err = l.sh.History(ctx)
		return err
	})
	return lines, err
}

// UndoShell puts back what the last borrowed command that changed the shell's state changed in it, as far as it is still so,
// and tells in one line what that changed; "" where there is nothing to put back.
func (l *Lender) UndoShell(ctx context.Context) (changed string, err error) {
	err = l.idle(ctx, func() (err error) {
		changed, err = l.putBack(ctx)
		return err
	})
	return changed, err
}

// putBack does it for whoever has the token. The daemon is told the state.
func (l *Lender) putBack(ctx context.Context) (changed string, err error) {
	l.mu.Lock()
	change := l.change
	l.mu.Unlock()
	if change == nil {
		return "", nil
	}
	if err := l.sh.Undo(ctx, change.before, change.after); err != nil {
		return "", err
	}
	l.mu.Lock()
	was := l.state
	l.ran = joined(l.ran, change.by) // what was suspect before it is so again
	l.change, l.dirty = nil, true
	l.mu.Unlock()
	l.look(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	return shell.Difference(was, l.state), nil
}

// idle runs f with the shell, unless a command has it. A look at the state, or another question, is waited for: those
// are short.
func (l *Lender) idle(ctx context.Context, f func() error) error {
	l.mu.Lock()
	switch {
	case l.closing != "":
		l.mu.Unlock()
		return ErrClosed
	case l.user != nil:
		l.mu.Unlock()
		return ErrBusy
	case l.grant != nil && l.grant.exec != nil:
		defer l.mu.Unlock()
		return &LentError{Lending: l.lendingLocked()}
	}
	l.mu.Unlock()
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.give()
	return f()
}
