package tui

import (
	"context"
	"time"

	"sublet/client/internal/lender"
	"sublet/client/internal/tui/keys"
	"sublet/client/internal/tui/markdown"
	"sublet/client/internal/tui/paint"
	"sublet/client/internal/tui/question"
	"sublet/client/internal/tui/style"
	"sublet/lease/shell"
	"sublet/wire"
	"sublet/wire/visible"
)

// model is the state of the screen. Only the event loop touches it; whatever waits is a task whose result comes back as a
// message. Its files: owner.go for who has the screen, input.go and borrowed.go for keys, aimode.go for
// questions, events.go for what the daemon sends, leased.go for agents' commands, user.go for the user's, compose.go for
// the picture, output.go for what is printed.
type model struct {
	Options
	th    style.Theme
	md    *markdown.Renderer
	paint *paint.Painter
	keys  *keys.Keyboard
	after func(d time.Duration, f then)          // has the event loop do f once d has passed
	task  func(f func(ctx context.Context) then) // runs f in a goroutine; the event loop then does what f returns

	w, h    int
	exit    *int // the program ends with this status; nil = it goes on
	ticking bool // a timer is set that draws the screen again
	own     owner
	writing
	lease
	reports
	link
	conversation
	executions
	turn       *turn
	waiting    []*asked // asked here and not begun
	questions  []*question.Question
	answerRest question.Rest // of the last answer

	out      []entry // to be printed, in order
	lastKind entryKind
}

// Messages of the program's own.
type (
	// keyEvent is a message of the keyboard's. done is closed when it has been handled and the keyboard is routed to who has the
	// screen. pass is the answer of keys.Keyboard.Deliver.
	keyEvent struct {
		msg  any
		pass bool
		done chan struct{}
	}
	jobOutput struct{ data []byte } // what the shell printed while the screen is not its own
	// then is what the event loop does, such as with the outcome of a task, or when a time has come; nil = nothing.
	then func()
)

// update handles messages, in order, and reports whether the program is to end. It never waits.
func (m *model) update(msgs ...any) (quit bool) {
	for _, msg := range msgs {
		if m.exit == nil {
			m.handle(msg)
		}
	}
	m.settle()
	for _, done := range m.handled {
		close(done)
	}
	m.handled = nil
	return m.exit != nil
}

// handle handles one message.
func (m *model) handle(msg any) {
	switch msg := msg.(type) {
	case *keyEvent:
		if _, enters := msg.msg.(keys.Enter); enters {
			m.onEnterKey(msg)
			return
		}
		m.onInput(msg)
		m.handled = append(m.handled, msg.done)
	case then:
		msg()
	case jobOutput:
		m.onJobOutput(msg.data)
	case LinkChanged:
		m.onLink(msg)
	case lender.LeaseChanged:
		m.Lending = msg.Lending
	case lender.CannotLend:
		m.cannotLend(msg.Why, msg.Hint)
	case lender.LeasedStarted, lender.LeasedOutput, lender.LeasedKeyboard, lender.LeasedEnded:
		m.onLeased(msg)
	case shell.PromptShown:
		if m.own.screen == shellRefused {
			m.own.screen = shellHas
		}
	case shell.UserEnded:
		m.onUserEnded(msg)
	case shell.Restarted:
		m.lineRan() // if it ended the shell, its own end is not reported
		m.emit(kindNote, m.marked(m.th.Warn.Render("●"), "the shell was started again: "+visible.Line(msg.Why), false))
	case wire.Message:
		m.onWire(msg)
	}
}

// settle draws after a message, and again after a while as long as what is drawn depends on the time.
func (m *model) settle() {
	m.settleOwner()
	if m.moves() && !m.ticking {
		m.ticking = true
		m.after(style.SpinnerEvery, func() { m.ticking = false })
	}
	m.compose()
}

// moves reports whether something on the screen, or who has it, changes with time alone: a spinner, a question that is to be armed, the
// rest of an answer.
func (m *model) moves() bool {
	if !m.own.painting || m.programHasTerminal() {
		return false
	}
	works := len(m.running) > 0 || len(m.waiting) > 0 || m.turn != nil && m.up || lent(m.Lending)
	q := m.question()
	return works || q != nil && !q.Ready(m.now(), m.lastKey) || m.answerRest.Expected(m.now(), m.lastKey)
}

// programHasTerminal reports whether a borrowed command has the terminal.
func (m *model) programHasTerminal() bool { return m.handover != nil && m.handover.on }

func (m *model) resized(w, h int) {
	if w == m.w && h == m.h {
		return
	}
	m.w, m.h = w, h
	m.paint.Resize(w, h)
	m.envChanged()
}
