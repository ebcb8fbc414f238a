package tui

import (
	"context"
	"errors"
	"strings"

	"sublet/client/internal/tui/keys"
	"sublet/lease/shell"
)

// owner is who has the terminal's screen: the user's shell (command mode), or this program, for one of these reasons:
//
//   - AI mode: the user asks agents.
//   - A borrowed command runs in command mode. The lender has the editor, whose prompt is erased; the screen is the
//     shell's again when the command's end is drawn.
//   - Something must be shown in command mode: a question, what agents said and did, a notice.
//
// Unless a borrowed command holds the editor anyway, the screen is taken from the shell and given back to it. That takes
// time, and one such step is under way at most.
type owner struct {
	ai     bool // AI mode
	once   bool // AI mode is for one question and ends with the answer
	asked  bool // with once: the question was asked
	taken  bool // the shell has given the screen up
	leased bool // a borrowed command runs, or its end is not drawn yet
	has    bool // the painter draws
	// moving is true while a task takes or gives the screen; cancel ends a take.
	moving  bool
	cancel  context.CancelFunc
	waiters []chan struct{} // closed when the step has ended
	yields  bool            // the keyboard asks the shell for the screen; no other take may begin
	failed  bool            // the last take failed; the next one waits for the next prompt
	typed   bool            // the user types for the shell, so it gets the screen back
	// insert is a line that the shell runs when it gets the screen back. With returns, set if AI mode was on, that begins again when
	// it has run.
	insert  string
	returns bool
}

// mayEnter reports whether a key may switch to AI mode; the keyboard waits for it. With ours it may not: this program has the
// screen, and the key is handled as any other. Otherwise the keyboard asks the shell for the screen, after wait is closed if
// wait is not nil: a step under way must end first. A take that waits for the user is cancelled.
func (m *model) mayEnter() (ours bool, wait <-chan struct{}) {
	o := &m.own
	if o.ai || o.leased || m.question() != nil {
		return true, nil
	}
	o.yields = true
	if o.cancel != nil {
		o.cancel()
	}
	if o.moving || o.taken {
		o.typed = true // so that the screen is given back
		done := make(chan struct{})
		o.waiters = append(o.waiters, done)
		wait = done
	}
	return false, wait
}

// switched begins AI mode, for which the keyboard has taken the screen; with once it ends after one question.
func (m *model) switched(once bool) {
	o := &m.own
	o.taken, o.has, o.typed, o.yields = true, true, false, false
	m.lastKey = m.now()
	m.paint.TakeLater() // the end of a borrowed command may have given it back meanwhile
	m.enterAI(once)
}

func (m *model) enterAI(once bool) {
	m.own.ai, m.own.once, m.own.asked, m.own.returns = true, once, false, false
	m.hint = ""
	m.asks.Reset()
	for _, line := range m.later {
		m.note(line)
	}
	m.later = nil
	m.linkLine(m.linkState())
}

// lineRan returns to AI mode, from which the line came that has run, unless that was for one question.
func (m *model) lineRan() {
	o := &m.own
	if o.returns && !o.once {
		m.enterAI(false)
	}
	o.returns, o.once = false, o.once && o.ai
}

// leaveAI returns to command mode. What is written stays in the question line.
func (m *model) leaveAI() {
	m.own.ai, m.own.once = false, false
	m.picker, m.hint = nil, ""
}

// wantsScreen reports whether this program needs the screen for anything but a borrowed command.
func (m *model) wantsScreen() bool {
	o := &m.own
	switch {
	case o.insert != "", o.yields && !o.ai: // the shell runs the line, or the keyboard asks it for the screen
		return false
	case o.ai, len(m.questions) > 0, len(m.out) > 0 && (o.taken || !o.leased):
		return true
	case o.taken && m.rest.Expected(m.now(), m.lastKey): // the rest of an answer must not reach the shell
		return true
	}
	return o.taken && !o.typed && m.streaming() // more of the text follows at once
}

// streaming reports whether an agent is in the middle of a block of text.
func (m *model) streaming() bool {
	if m.turn != nil {
		for _, s := range m.turn.agents {
			if s.text.Rest() != "" {
				return true
			}
		}
	}
	return false
}

// settleOwner takes or gives the screen, one step at a time, so that it comes to whoever should have it, and routes the keyboard
// to the one who has it.
func (m *model) settleOwner() {
	o := &m.own
	if o.once && o.asked && m.turn == nil && len(m.waiting) == 0 && m.ed.Empty() && m.picker == nil && len(m.questions) == 0 {
		m.leaveAI()
	}
	want := m.wantsScreen()
	switch {
	case o.moving:
		if !want && o.cancel != nil {
			o.cancel()
		}
	case want && !o.taken && !o.failed:
		m.takeScreen()
	case !want && o.taken && !o.leased:
		m.giveScreen()
	}
	switch has := o.taken || o.leased; {
	case has && !o.has:
		o.has = true
		m.paint.TakeLater()
		m.unshow()
	case !has && o.has:
		o.has = false
		m.lastKind = kindShell
		m.paint.Give()
	}
	if m.hand == nil || !m.hand.on {
		to := keys.ToShell
		if o.has {
			to = keys.ToUs
		}
		m.keys.Route(to)
	}
}

// allDrawn is called when the end of a borrowed command is on the screen.
func (m *model) allDrawn() {
	m.own.leased = false
	m.settleOwner()
	for _, done := range m.drawn {
		m.paint.WhenWritten(done)
	}
	m.drawn = nil
}

func (m *model) takeScreen() {
	o := &m.own
	o.moving = true
	take, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	m.task(func(ctx context.Context) then {
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		err := m.Shell.TakeScreen(take)
		if err != nil {
			_ = m.Shell.GiveScreen(ctx) // the take may have done half of its work; its error is the one reported
		} else {
			m.paint.Take()
		}
		return func() { m.onMoved(err == nil, err) }
	})
}

// giveScreen gives the screen back to the shell, which runs the line in insert, if there is one.
func (m *model) giveScreen() {
	o := &m.own
	m.flushOut()
	o.taken, o.has, o.moving, o.typed = false, false, true, false
	m.lastKind = kindShell
	m.keys.Route(keys.ToShell)
	line := o.insert
	if o.insert = ""; line != "" {
		o.ai, o.returns = false, o.ai
	}
	given := m.paint.Give()
	m.task(func(ctx context.Context) then {
		select {
		case <-given:
		case <-ctx.Done():
			return nil
		}
		var err error
		if line != "" {
			err = m.Shell.Insert(ctx, line, true)
		} else {
			err = m.Shell.GiveScreen(ctx)
		}
		return func() { m.onMoved(false, err) }
	})
}

// onMoved handles the end of a step.
func (m *model) onMoved(taken bool, err error) {
	o := &m.own
	o.moving, o.cancel = false, nil
	for _, wait := range o.waiters {
		close(wait)
	}
	o.waiters = nil
	if taken {
		o.taken, o.has = true, true
		m.paint.TakeLater() // as in switched
		m.unshow()
	}
	if err == nil || o.taken || errors.Is(err, context.Canceled) || errors.Is(err, shell.ErrClosed) {
		return
	}
	m.Log.Warn("the screen could not be taken or given", "err", err)
	broken, ok := errors.AsType[*shell.BrokenError](err)
	switch {
	case o.returns:
		m.fail("not run: "+err.Error(), "")
		m.enterAI(false)
	case ok:
		o.failed = true
		m.cannotLend(broken.Error(), broken.Hint())
		m.printBeside()
	default:
		o.failed = true
	}
}

// cannotLend prints why the shell cannot be lent, once for each reason.
func (m *model) cannotLend(why, hint string) {
	if m.broken != why {
		m.broken = why
		m.fail(why, hint)
	}
}

// printBeside prints what waits to be printed below the shell's output, because the shell's editor does not answer.
func (m *model) printBeside() {
	var lines []string
	for _, e := range m.out {
		if e.text != "" {
			lines = append(lines, e.text)
		}
	}
	m.out = nil
	m.paint.Notice(strings.Join(lines, "\n"))
}
