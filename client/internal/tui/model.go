package tui

import (
	"context"
	"log/slog"
	"time"

	"sublet/client/internal/tui/question"

	"sublet/client/internal/lender"
	"sublet/client/internal/tui/keys"
	"sublet/client/internal/tui/line"
	"sublet/client/internal/tui/markdown"
	"sublet/client/internal/tui/paint"
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
	opt    Options
	log    *slog.Logger
	daemon Daemon
	shell  Shell
	th     style.Theme
	md     *markdown.Renderer
	paint  *paint.Painter
	keys   *keys.Keyboard
	now    func() time.Time
	after  func(d time.Duration, f then)          // has the event loop do f once d has passed
	task   func(f func(ctx context.Context) then) // has f run beside the event loop, and the loop do what it returns

	w, h     int
	quitting bool
	exitCode int
	own      owner

	// The question being written.
	ed      line.Line
	asks    line.History
	hint    []string // below the line, until the next key
	picker  *picker
	lastKey time.Time
	idleC   time.Time
	leave   time.Time // ^D on an empty line while a turn runs
	clearOK time.Time // /clear was asked for once

	// The shell.
	lending lender.Lending
	queue   wire.ShellQueueChanged // who waits behind whom lending names, as the daemon last said
	offered time.Time              // when Enter was pressed while the shell is lent: Enter again takes it back
	back    bool                   // the user took the shell back from the command that runs
	ahead   string                 // what the user typed for the shell while a borrowed command has it
	broken  string                 // why it cannot be lent, as last printed
	hand    *handover
	drawn   []chan struct{} // to be closed when what was printed so far is on the screen
	recent  []wire.RecentCommand
	// Commands of the user's that the daemon is told of: to be sent, and sent or about to be, whose events come back.
	reports   []*wire.CommandResult
	reporting bool // some are being sent
	reported  map[wire.ExecutionID]bool
	envBusy   bool // an EnvChanged is on its way
	envMore   bool

	// The conversation.
	linked   bool
	lost     bool // it was linked, and is not
	lostSaid bool // the user knows
	losses   int  // how often it was lost
	linkWord string
	later    []string // notes that wait for AI mode
	linkNote string   // what became of the daemon, for AI mode
	session  wire.SessionInfo
	policy   string
	models   []wire.ModelInfo
	answers  string                           // the model that does
	chosen   struct{ model, thinking string } // by /model and /thinking; "" = the settings'
	greeted  bool
	lastSeq  int64
	turn     *turn
	waiting  []*asked // asked and not begun
	cards    map[wire.ExecutionID]*execution
	live     []*execution // running, in order
	kept     []*execution // finished, newest last, for ^O
	openAt   int          // how many of kept are open already, from the end

	questions []*question.Question
	rest      question.Rest // of the last answer
	use       wire.ContextUse

	// Output in order.
	out      []*entry
	lastKind entryKind
	spinning bool
	armTimer bool
	dirty    bool
}

// Messages of the program's own.
type (
	// keyEvent is a key or a paste; done is closed when it was dealt with. pass: the shell is to have it.
	keyEvent struct {
		msg  any
		pass bool
		done chan struct{}
	}
	// drawnEvent is an event whose sender waits until it is drawn.
	drawnEvent struct {
		event any
		drawn chan struct{}
	}
	jobOutput   struct{ data []byte } // what the shell printed while the screen is not its own
	sizeChanged struct{ w, h int }
	redraw      struct{}
	shellExited struct{ status int }
	stopAsked   struct{ code int } // a signal, or the caller's context
	// then is what the event loop does with the outcome of a task, or when a time has come; nil = nothing.
	then func()
)

// update deals with a message and reports whether the program is to end. It never waits.
func (m *model) update(msg any) (quit bool) {
	key, isKey := msg.(*keyEvent)
	if isKey {
		defer close(key.done)
	}
	if m.quitting {
		return true
	}
	if isKey {
		m.onInput(key)
	} else if b, ok := msg.(batch); ok {
		for _, one := range b {
			m.handle(one)
		}
	} else {
		m.handle(msg)
	}
	m.settle()
	return m.quitting
}

// handle deals with one message.
func (m *model) handle(msg any) {
	was := m.dirty // by one before it in the same batch
	m.dirty = true
	switch msg := msg.(type) {
	case sizeChanged:
		m.resized(msg.w, msg.h)
	case then:
		msg()
	case redraw:
	case drawnEvent:
		m.handle(msg.event)
		m.drawn = append(m.drawn, msg.drawn)
	case jobOutput:
		m.onJobOutput(msg.data)
	case shellExited:
		m.quit(msg.status)
	case stopAsked:
		m.quit(msg.code)
	case LinkChanged:
		m.onLink(msg)
	case lender.LeaseChanged:
		m.lending = msg.Lending
	case lender.CannotLend:
		m.cannotLend(msg.Why, msg.Hint)
	case lender.LeasedStarted, lender.LeasedOutput, lender.LeasedKeyboard, lender.LeasedEnded:
		m.onLeased(msg)
	case shell.PromptShown:
		m.own.failed = false
	case shell.UserBegan:
	case shell.UserEnded:
		m.onUserEnded(msg)
	case shell.Restarted:
		m.emit(kindNote, m.marked(m.th.Warn.Render("●"), "the shell was started anew: "+visible.Line(msg.Why), false))
	case wire.Message:
		m.onWire(msg)
	default: // something of bubbletea's own
		m.dirty = false
	}
	m.dirty = m.dirty || was
}

// settle draws and keeps the spinner turning after a message.
func (m *model) settle() {
	m.flushOut()
	m.settleOwner()
	m.flushOut() // on a screen that was taken just now
	if len(m.drawn) > 0 && len(m.out) == 0 {
		m.allDrawn()
	}
	if m.moves() && !m.spinning {
		m.spinning = true
		m.after(style.SpinnerEvery, func() { m.spinning = false })
	}
	if m.dirty {
		m.dirty = false
		m.compose()
	}
}

// moves reports whether something on the screen moves by itself.
func (m *model) moves() bool {
	return m.own.has && !m.held() && (len(m.live) > 0 || len(m.waiting) > 0 || m.turn != nil && !m.lost || lent(m.lending))
}

// held reports whether a borrowed command has the terminal.
func (m *model) held() bool { return m.hand != nil && m.hand.on }

func (m *model) quit(code int) {
	m.exitCode, m.quitting = code, true
}

func (m *model) resized(w, h int) {
	if w < 1 || h < 1 || (w == m.w && h == m.h) {
		return
	}
	m.w, m.h = w, h
	m.paint.Resize(w, h)
	m.envChanged()
}
