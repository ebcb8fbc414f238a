package tui

import (
	"context"
	"errors"
	"strings"

	"sublet/client/internal/tui/keys"
	"sublet/client/internal/tui/line"
	"sublet/lease/shell"
)

// mode is what the user's keys are for.
type mode int

const (
	commandMode mode = iota // the user's shell
	aiMode                  // questions to agents
	oneQuestion             // one question, not asked yet; begun by ? on an empty line of the shell
	oneAnswer               // its answer, with which command mode returns
)

// screenState is where the terminal's screen is on its way between the user's shell and this program. A step from one to the other
// takes time, and the next one begins after it:
//
//	shellHas ── takeScreen ── taking ── weHave ── giveScreen ── giving ── shellHas
//
// In shellRefused the shell has the screen and its editor does not answer; the next prompt leads back to shellHas.
type screenState int

const (
	shellHas screenState = iota
	shellRefused
	taking
	weHave
	giving
)

// owner is who has the terminal's screen. This program needs it in AI mode, and to show a question, what agents said and did, or a
// notice. While a borrowed command runs, it has the screen too, without a step: the lender has the shell's editor then, whose prompt
// is erased.
type owner struct {
	mode     mode
	screen   screenState
	cancel   context.CancelFunc // ends taking before the shell has given the screen up
	leased   bool               // a borrowed command runs, or its end is not drawn yet
	painting bool               // the painter draws
	entering *keyEvent          // a key waits for the screen: no taking may begin
	typed    bool               // the user types for the shell, so it gets the screen back
	insert   string             // a line that the shell runs when it gets the screen back; "" = none
	back     mode               // the AI mode to which the end of that line leads back; commandMode = to none
}

// ai reports whether AI mode is on.
func (o *owner) ai() bool { return o.mode != commandMode }

// onEnterKey handles a key that switches to AI mode: it takes the screen from the shell. If a step is under way, it does so when that
// has ended; a take that waits for the user is cancelled. If this program has the screen, the key is one like any other.
func (m *model) onEnterKey(e *keyEvent) {
	o := &m.own
	o.entering = e
	switch {
	case o.ai() || o.leased || m.question() != nil:
		m.answerEnterKey(false)
		return
	case o.cancel != nil:
		o.cancel()
	}
	if o.screen != shellHas && o.screen != shellRefused {
		o.typed = true // so that the screen is given back
		return
	}
	m.task(func(ctx context.Context) then {
		held, err := m.Shell.HoldIfEmpty(ctx)
		if held {
			m.Lender.SetScreenTaken(true)
		}
		return func() {
			if broken, ok := errors.AsType[*shell.BrokenError](err); ok {
				m.cannotLend(broken.Error(), broken.Hint())
			} else if err != nil && !errors.Is(err, shell.ErrClosed) {
				m.Log.Warn("the screen was not taken", "err", err)
			}
			m.answerEnterKey(held)
			if held {
				o.screen, o.typed = weHave, false
				to := aiMode
				if e.msg == keys.Enter("?") {
					to = oneQuestion
				}
				m.enterAI(to)
			}
		}
	})
}

// answerEnterKey lets the keyboard, which waits in keys.Keyboard.Deliver, continue. taken reports whether the shell gave the screen up
// for the key; otherwise the key is input like any other.
func (m *model) answerEnterKey(taken bool) {
	e := m.own.entering
	e.pass, m.own.entering = taken, nil
	m.handled = append(m.handled, e.done)
}

// enterAI begins AI mode, in one of its kinds.
func (m *model) enterAI(to mode) {
	m.own.mode, m.own.back = to, commandMode
	m.hint = ""
	m.asks.Reset()
	for _, line := range m.notesForAI {
		m.note(line)
	}
	m.notesForAI = nil
}

// lineRan goes back to AI mode if the line that has run was typed there; after a single question (oneAnswer) the shell keeps the screen.
func (m *model) lineRan() {
	if m.own.back == aiMode {
		m.enterAI(aiMode)
	}
	m.own.back = commandMode
}

// leaveAI returns to command mode. What is written stays in the question line.
func (m *model) leaveAI() {
	m.own.mode = commandMode
	m.picker, m.hint = nil, ""
}

// wantsScreen reports whether this program needs the screen for anything but a borrowed command.
func (m *model) wantsScreen() bool {
	o := &m.own
	switch {
	case o.insert != "", o.entering != nil && !o.ai(): // the shell runs the line, or is asked for the screen
		return false
	case o.ai(), len(m.questions) > 0:
		return true
	case len(m.out) > 0 && (o.screen == weHave || !o.leased): // during a borrowed command it can be printed without a step
		return true
	case o.screen == weHave && m.answerRest.Expected(m.now(), m.lastKey): // the rest of an answer must not reach the shell
		return true
	}
	return o.screen == weHave && !o.typed && m.streaming() // more of the text follows at once
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

// settleOwner takes the next step towards the screen's right owner, this program or the shell. It prints what waits while this program has
// the screen, takes or gives it back, and routes the keyboard to the owner. It is called after each message of the event loop.
func (m *model) settleOwner() {
	o := &m.own
	if o.mode == oneAnswer && m.turn == nil && len(m.waiting) == 0 && m.ed.Empty() && m.picker == nil && len(m.questions) == 0 {
		m.leaveAI()
	}
	if !o.painting && (o.screen == weHave || o.leased) {
		o.painting = true
		m.paint.Take()
		m.disarmQuestions()
	}
	m.flushOut()
	switch want := m.wantsScreen(); {
	case o.screen == taking && !want:
		o.cancel()
	case o.screen == shellHas && want:
		m.takeScreen()
	case o.screen == weHave && !want && !o.leased:
		m.giveScreen()
	}
	if o.painting && o.screen != weHave && !o.leased { // the end of a borrowed command is drawn
		o.painting = false
		m.lastKind = kindShell
		m.paint.Give()
	}
	if m.handover == nil || !m.handover.on {
		to := keys.ToShell
		if o.painting {
			to = keys.ToUs
		}
		m.keys.Route(to)
	}
}

// onEndShown handles the end of a borrowed command: it prints the command's card, returns the screen to the shell unless something
// else needs it, and closes drawn when the terminal shows that.
func (m *model) onEndShown(drawn chan struct{}) {
	m.settleOwner() // prints
	m.own.leased = false
	m.settleOwner() // returns the screen
	m.paint.WhenWritten(drawn)
}

// takeScreen takes the screen from the shell once the user is not busy there; stepEnded handles the end. own.cancel gives it up.
func (m *model) takeScreen() {
	take, cancel := context.WithCancel(context.Background())
	m.own.screen, m.own.cancel = taking, cancel
	m.task(func(ctx context.Context) then {
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		err := m.Shell.TakeScreen(take)
		if err != nil {
			_ = m.Shell.GiveScreen(ctx) // the take may have done half of its work; its error is the one reported
		} else {
			m.Lender.SetScreenTaken(true)
		}
		return func() { m.stepEnded(weHave, err) }
	})
}

// giveScreen gives the screen back to the shell, which runs the line in insert, if there is one.
func (m *model) giveScreen() {
	o := &m.own
	o.screen, o.painting, o.typed = giving, false, false
	m.lastKind = kindShell     // what stands above the next thing printed
	m.ahead = line.Line{}      // the shell shows it
	m.keys.Route(keys.ToShell) // also what is typed before the shell has the screen
	insert := o.insert
	if o.insert = ""; insert != "" {
		o.mode, o.back = commandMode, o.mode
	}
	given := m.paint.Give()
	m.task(func(ctx context.Context) then {
		select {
		case <-given:
		case <-ctx.Done():
			return nil
		}
		m.Lender.SetScreenTaken(false)
		var err error
		if insert != "" {
			err = m.Shell.RunLine(ctx, insert)
		} else {
			err = m.Shell.GiveScreen(ctx)
		}
		return func() { m.stepEnded(shellHas, err) }
	})
}

// stepEnded handles the end of taking or giving the screen. The new state is to or, after an error, shellHas or shellRefused. A key that
// switches to AI mode and was typed during the step is handled afterwards.
func (m *model) stepEnded(to screenState, err error) {
	o := &m.own
	o.cancel, o.screen = nil, to
	if o.entering != nil {
		defer m.onEnterKey(o.entering)
	}
	if err == nil {
		return
	}
	o.screen = shellHas
	if errors.Is(err, context.Canceled) || errors.Is(err, shell.ErrClosed) {
		return
	}
	m.Log.Warn("the screen could not be taken or given", "err", err)
	if o.back != commandMode { // the shell did not accept the line that was typed in AI mode
		m.fail("not run: "+err.Error(), "")
		m.enterAI(aiMode)
		return
	}
	o.screen = shellRefused
	if broken, ok := errors.AsType[*shell.BrokenError](err); ok {
		m.cannotLend(broken.Error(), broken.Hint())
		m.printBelowShell()
	}
}

// cannotLend prints why the shell cannot be lent, once for each reason.
func (m *model) cannotLend(why, hint string) {
	if m.lendFault != why {
		m.lendFault = why
		m.fail(why, hint)
	}
}

// printBelowShell prints what waits to be printed below the shell's output, because the shell's editor does not answer.
func (m *model) printBelowShell() {
	var lines []string
	for _, e := range m.out {
		lines = append(lines, e.text)
	}
	m.out = nil
	m.paint.Notice(strings.Join(lines, "\n"))
}
