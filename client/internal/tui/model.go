package tui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"sublet/client/internal/lender"
	"sublet/wire"
)

// model is the state of the screen. Only the event loop touches it; whatever waits is a task (see tasks) whose result
// comes back as a message. Its files: input.go for keys, shellmode.go for the user's commands, aimode.go for questions,
// events.go for what the daemon sends, leased.go for agents' commands, compose.go for the picture.
type model struct {
	opt    Options
	daemon Daemon
	shell  Shell
	th     theme
	md     *markdown
	paint  *painter
	keys   *keyboard
	run    *tasks
	inbox  *inbox
	now    func() time.Time

	w, h     int
	quitting bool
	exitCode int

	// The line being written.
	ai         bool
	ed         editor
	view       editorView
	prompt     string // the user's own, as the shell last said it, or one that stands in for it
	promptDir  string // where the shell was then
	promptNo   int64  // which expansion it is
	expansions *expansions
	clean      string // it, made fit for the screen
	cleanOf    string
	lines      history
	asks       history
	search     *search
	comp       *completion
	compSeq    int
	hint       []string // below the line, until the next key
	picker     *picker
	lastKey    time.Time
	dotted     int  // how often M-. was pressed in a row
	dotAt      int  // where its word begins
	quoted     bool // ^V: the next key goes in as it is
	prefixed   bool // ^X: the next key is one of readline's C-x commands
	idleC      time.Time
	leave      time.Time // ^D on an empty line while a turn runs
	clearOK    time.Time // /clear was asked for once

	// The shell.
	userRun *userRun
	lending lender.Lending
	queue   wire.ShellQueueChanged // who waits behind whom lending names, as the daemon last said
	entered string                 // the line that Enter was pressed on while the shell is lent, and no key since
	offer   bool                   // Enter was pressed while the shell is lent: Enter again takes it back
	hand    *handover
	recent  []wire.RecentCommand
	envBusy bool // an EnvChanged is on its way
	envMore bool

	// The conversation.
	linked     bool
	lost       bool // it was linked, and is not
	lostSaid   bool // the user was told
	losses     int  // how often it was lost
	linkWord   string
	session    wire.SessionInfo
	policy     string
	models     []wire.ModelInfo
	greeted    bool
	lastSeq    int64
	turn       *turn
	waiting    []*asked // asked and not begun
	cards      map[wire.ExecutionID]*card
	live       []*card // running, in order
	kept       []*card // finished, newest last, for ^O
	openAt     int     // how many of kept are open already, from the end
	questions  []*confirm
	answered   time.Time // when a key answered the last one
	answerRest string    // what would complete the word that key began
	use        wire.ContextUse

	// Output in order.
	out      []*entry
	lastKind entryKind
	spinAt   int
	spinning bool
	armTimer bool
	dirty    bool
	cmds     []tea.Cmd
}

// Messages of the program's own.
type (
	// keyEvent is a key or a paste; done is closed when it was dealt with.
	keyEvent struct {
		msg  tea.Msg
		done chan struct{}
	}
	sizeChanged struct{ w, h int }
	tick        struct{}
	redraw      struct{}
	shellExited struct{ status int }
	stopAsked   struct{ code int } // a signal, or the caller's context
	rendered    struct {
		e    *entry
		text string
	}
	historyRead struct{ lines []string }
	taskFailed  struct{ text, hint string }
	printText   struct {
		text string
		kind entryKind
	}
)

func (m *model) Init() tea.Cmd {
	return m.do(func() {
		for _, line := range m.opt.Notice {
			m.emit(kindNote, m.th.dim.Render(visibleLine(line)))
		}
		m.flushOut()
		m.readPrompt()
		m.readHistory()
	})
}

// do runs f and returns the tasks that it began.
func (m *model) do(f func()) tea.Cmd {
	f()
	cmds := m.cmds
	m.cmds = nil
	if len(cmds) == 0 {
		return nil
	}
	return tea.Batch(cmds...)
}

// task has f run beside the event loop; what it returns comes back as a message.
func (m *model) task(f func(ctx context.Context) tea.Msg) {
	m.cmds = append(m.cmds, m.run.cmd(f))
}

// after sends msg once d has passed.
func (m *model) after(d time.Duration, msg any) {
	time.AfterFunc(d, func() { m.inbox.push(msg) })
}

// Update implements tea.Model. It never waits.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if m.quitting {
		if k, ok := msg.(keyEvent); ok {
			close(k.done)
		}
		return m, tea.Quit
	}
	cmd := m.do(func() {
		switch msg := msg.(type) {
		case keyEvent:
			defer close(msg.done)
			m.inUse()
			m.onInput(msg.msg)
		case batch:
			for _, one := range msg {
				m.handle(one)
			}
		default:
			m.handle(msg)
		}
		m.settle()
	})
	if m.quitting {
		return m, tea.Quit
	}
	return m, cmd
}

// View implements tea.Model; the painter draws instead of bubbletea's renderer.
func (m *model) View() tea.View { return tea.View{} }

func (m *model) inUse() {
	if m.opt.InUse != nil {
		m.opt.InUse()
	}
}

// handle deals with one message.
func (m *model) handle(msg any) {
	m.dirty = true
	switch msg := msg.(type) {
	case sizeChanged:
		m.resized(msg.w, msg.h)
	case tick:
		m.inUse()
		m.spinAt++
		m.spinning = false
	case redraw:
		m.armTimer = false
	case rendered:
		msg.e.text, msg.e.ready = msg.text, true
	case promptRead:
		m.onPrompt(msg)
	case promptOverdue:
		m.onPromptOverdue(msg)
	case shellUndone:
		m.onShellUndone(msg)
	case historyRead:
		m.lines.load(msg.lines)
	case printText:
		m.emit(msg.kind, msg.text)
	case taskFailed:
		m.fail(msg.text, msg.hint)
	case completed:
		m.onCompleted(msg)
	case picked:
		m.onPicked(msg)
	case runDone:
		m.onRunDone(msg)
	case envSent:
		m.onEnvSent()
	case answerFailed:
		m.onAnswerFailed(msg)
	case askOverdue:
		m.onAskOverdue(msg.a)
	case askFailed:
		m.onAskFailed(msg)
	case sessionChanged:
		m.onSession(msg)
	case policyRead:
		m.policy = msg.mode
		if msg.text != "" {
			m.emit(kindNote, msg.text)
		}
	case shellExited:
		m.quit(msg.status)
	case stopAsked:
		m.quit(msg.code)
	case LinkChanged:
		m.onLink(msg)
	case stillGone:
		m.onStillGone(msg)
	case lender.LeaseChanged:
		m.onLease(msg.Lending)
	case lender.LeasedStarted, lender.LeasedOutput, lender.LeasedKeyboard, lender.LeasedEnded:
		m.onLeased(msg)
	case terminalFree:
		msg.held <- m.holdFor(msg.run)
	case overdue:
		if msg.c.place != nil {
			m.finish(msg.c)
		}
	case handRetry:
		m.tryHand()
	case handOver:
		m.lingered(msg.h)
	case lender.Unowned:
		m.onUnowned(msg.Data)
	case lender.Respawned:
		m.emit(kindNote, m.marked(m.th.warn.Render(m.th.glyph("●", "*")), "the shell was started anew: "+visibleLine(msg.Why), false))
		m.readPrompt()
	case wire.Message:
		m.onWire(msg)
	default: // something of bubbletea's own
		m.dirty = false
	}
}

// settle draws and keeps the spinner turning after a message.
func (m *model) settle() {
	m.flushOut()
	if m.busy() && !m.spinning {
		m.spinning = true
		m.after(spinnerEvery, tick{})
	}
	if m.dirty {
		m.dirty = false
		m.compose()
	}
}

// busy tells that something on the screen moves by itself.
func (m *model) busy() bool {
	return !m.held() && (len(m.live) > 0 || len(m.waiting) > 0 || m.turn != nil && !m.lost)
}

// held tells that a program has the terminal.
func (m *model) held() bool {
	return m.userRun != nil && !m.userRun.waits || (m.hand != nil && m.hand.on)
}

func (m *model) quit(code int) {
	m.exitCode, m.quitting = code, true
}

func (m *model) resized(w, h int) {
	if w < 1 || h < 1 || (w == m.w && h == m.h) {
		return
	}
	m.w, m.h = w, h
	m.paint.resize(w, h)
	m.envChanged()
}

// entryKind is what a printed piece is; it decides where empty lines stand.
type entryKind int

const (
	kindNone  entryKind = iota
	kindShell           // prompts and what programs print
	kindEcho            // a question
	kindText            // an agent's words
	kindCard
	kindNote
	kindEnd // the last line of a turn
)

// entry is something for the scrollback. While it is not ready, live stands for it below, and what comes later waits.
type entry struct {
	kind  entryKind
	text  string
	ready bool
	live  string
	card  *card
}

// emit prints text once everything before it is printed.
func (m *model) emit(kind entryKind, text string) {
	if text != "" {
		m.out = append(m.out, &entry{kind: kind, text: text, ready: true})
		m.dirty = true
	}
}

// emitMarkdown prints a block of an agent's words; it is rendered beside the event loop.
func (m *model) emitMarkdown(agent, block string) {
	e := &entry{kind: kindText, live: block}
	m.out = append(m.out, e)
	prefix := ""
	if agent != "" {
		prefix = m.th.agent.Render(agent) + m.th.dim.Render(m.th.glyph(" │ ", " | "))
	}
	md, width := m.md, m.w-1-cells(prefix)
	m.task(func(context.Context) tea.Msg {
		text := md.Render(block, width)
		if prefix != "" {
			text = prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
		}
		return rendered{e, text}
	})
}

// flushOut hands what is ready to the painter, in order.
func (m *model) flushOut() {
	n := 0
	for n < len(m.out) && m.out[n].ready {
		e := m.out[n]
		n++
		if e.text == "" {
			continue
		}
		if gap(m.lastKind, e.kind) {
			m.paint.print("")
		}
		m.paint.print(m.th.spell(e.text))
		m.lastKind = e.kind
	}
	if n > 0 {
		m.out = append(m.out[:0:0], m.out[n:]...)
		m.dirty = true
	}
}

// gap tells whether an empty line stands between two printed pieces.
func gap(before, after entryKind) bool {
	switch {
	case before == kindNone || before == kindShell && after == kindShell:
		return false
	case after == kindText || after == kindEcho:
		return true
	case before == kindText || before == kindEcho || before == kindEnd:
		return after != kindEnd
	case after == kindCard && before != kindCard && before != kindNote:
		return true
	case after == kindShell:
		return before != kindNote
	}
	return false
}

// fail prints an error with its hint.
func (m *model) fail(text, hint string) {
	s := m.marked(m.th.bad.Render(m.th.glyph("✗", "x")), visible(text), false)
	if hint != "" {
		s += "\n" + m.marked(" ", visible(hint), true)
	}
	m.emit(kindNote, s)
}

// note prints something quiet.
func (m *model) note(text string) {
	m.emit(kindNote, m.marked(m.th.dim.Render(m.th.glyph("·", "-")), text, true))
}

// marked is text wrapped behind a mark.
func (m *model) marked(mark, text string, dim bool) string {
	lines := wrap(text, m.w-cells(mark)-1)
	for i, l := range lines {
		if dim {
			l = m.th.dim.Render(l)
		}
		lines[i] = mark + " " + l
		mark = strings.Repeat(" ", cells(mark))
	}
	return strings.Join(lines, "\n")
}

// hintLines shows lines below the prompt until the next key.
func (m *model) hintLines(lines ...string) {
	m.hint = lines
	m.dirty = true
}

func (m *model) readHistory() {
	sh := m.shell
	m.task(func(ctx context.Context) tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		lines, err := sh.History(ctx)
		if err != nil {
			return nil
		}
		return historyRead{lines}
	})
}
