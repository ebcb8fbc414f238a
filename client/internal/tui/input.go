package tui

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/keys"
	"sublet/client/internal/tui/line"
	"sublet/client/internal/tui/style"
)

// writing is what is being written, and what the keys mean meanwhile.
type writing struct {
	ed      line.Line
	asks    line.History
	hint    []string // below the line, until the next key
	picker  *picker
	again   again
	lastKey time.Time
}

// onInput deals with a key or a paste while the screen is the program's.
func (m *model) onInput(e *keyEvent) {
	switch msg := e.msg.(type) {
	case then:
		msg()
		return
	case keys.Switch:
		if e.pass = !m.own.ai; m.own.ai {
			m.leaveAI()
		}
	case keys.Key:
		e.pass = m.onKey(msg.Name, msg.Text)
	case keys.TooLong:
		m.hintLines(m.th.Warn.Render("nothing was pasted: it is "+style.Count(int64(msg.Bytes))+"B long, and a question may have "+style.Count(keys.MaxPaste)+"B") +
			m.th.Dim.Render(" · put it into a file"))
	case keys.Paste:
		e.pass = m.onPaste(msg.Text())
	}
	m.lastKey = m.now()
}

// onPaste puts a paste into what is being written, and reports whether it is for the shell instead.
func (m *model) onPaste(text string) (pass bool) {
	q := m.question()
	switch {
	case q != nil && q.Paste(text):
	case m.picker != nil:
		m.picker.typed(strings.TrimSpace(text))
	case m.own.has && !m.own.ai:
		m.typedAhead(text)
		return true
	default: // also of one that began in AI mode, wherever that is now
		m.hint = nil
		m.ed.Insert(text)
	}
	return false
}

// onKey deals with one key: k is its name, text what it writes. pass: the shell is to have it.
func (m *model) onKey(k, text string) (pass bool) {
	switch q := m.question(); {
	case k != "ctrl+c" && m.rest.Takes(k, m.now(), m.lastKey):
	case k == "ctrl+c" && (q != nil || m.own.ai):
		m.interrupt()
	case q != nil:
		return m.questionKey(q, k, text)
	case m.own.ai:
		m.askKey(k, text)
	default:
		return m.shellKey(k, text)
	}
	return false
}

// askKey is a key in AI mode.
func (m *model) askKey(k, text string) {
	hadHint := m.hint != nil
	m.hint = nil
	if m.picker != nil {
		m.pickerKey(k, text)
		return
	}
	m.again.other(k)
	switch k {
	case "enter":
		m.submit(strings.TrimSpace(m.ed.Text), true)
	case "ctrl+q":
		m.submit(strings.TrimSpace(m.ed.Text), false)
	case "alt+enter", "ctrl+j", "shift+enter":
		m.ed.Insert("\n")
	case "tab":
		switch {
		case m.ed.Empty() && text == "":
			m.leaveAI()
			return
		case m.ed.Empty(): // the beginning of a paste without brackets, whose lines the shell would run
			m.ed.Insert(text)
		case strings.HasPrefix(m.ed.Text, "/"):
			m.completeSlash()
		}
	case "esc":
		if !hadHint {
			m.cancelTurn("stopped by the user")
		}
	case "up", "ctrl+p":
		m.vertical(true)
	case "down", "ctrl+n":
		m.vertical(false)
	case "ctrl+l":
		m.paint.Clear()
	case "ctrl+o":
		m.openCard()
	case "ctrl+t":
		m.thinkMore()
	default:
		m.editKey(k, text)
	}
}

// editKey is a key of the line editor; some mean something else on an empty line.
func (m *model) editKey(k, text string) {
	switch {
	case (k == "backspace" || k == "ctrl+h") && m.unasked(): // deletes the ? that led here
		m.leaveAI()
	case k == "ctrl+b" && m.ed.Empty() && m.turn != nil:
		m.toBackground()
	case k == "ctrl+d" && m.ed.Empty():
		m.endOfInput()
	case !m.ed.Key(k) && text != "":
		m.ed.Insert(text)
	}
}

// interrupt is ^C: the nearest thing that can be given up, and never the program.
func (m *model) interrupt() {
	m.again.other("ctrl+c")
	q := m.question()
	switch {
	case q != nil && q.Back():
	case m.picker != nil:
		m.picker = nil
	case !m.ed.Empty() && q == nil: // ^Y brings it back
		m.ed.Clear()
		m.asks.Reset()
		m.hint = nil
	case m.turn != nil || len(m.waiting) > 0:
		m.cancelTurn("interrupted by the user")
	case lent(m.Lending): // a script's, or that of a turn which is shown elsewhere
		m.takeBack()
	case m.unasked():
		m.leaveAI()
	default:
		m.hint = nil
		if m.again.second("ctrl+c", m.now(), 2*time.Second) {
			m.hintWaysOut()
		}
	}
}

// unasked reports whether the line is for one question and still empty.
func (m *model) unasked() bool { return m.own.once && !m.own.asked && m.ed.Empty() }

func (m *model) hintWaysOut() {
	m.hintLines(m.th.Dim.Render("tab goes back to your shell; ctrl+d on an empty line leaves"))
}

// endOfInput is ^D on an empty line: leave, as a shell does.
func (m *model) endOfInput() {
	held := lent(m.Shell.Lending())
	works := m.turn != nil || len(m.waiting) > 0
	if (!works && !held) || m.again.second("ctrl+d", m.now(), 5*time.Second) {
		m.insert("exit", held)
		return
	}
	what := "ctrl+d again leaves"
	if held { // the bar says by whom
		what = "ctrl+d again ends that command and leaves"
	}
	if works {
		what = "an agent is at work; it goes on without you, but cannot use your shell. " + what
	}
	m.hintLines(m.th.Dim.Render(what))
}

// vertical is Up or Down: within the text, else in the history.
func (m *model) vertical(up bool) {
	if m.ed.Vertical(!up) {
		return
	}
	if text, ok := m.asks.Move(up, m.ed.Text); ok {
		m.ed.Set(text)
	}
}

// submit uses the line of AI mode: a question, `!command`, or a `/` command. steer gives a question to the turn that runs.
func (m *model) submit(text string, steer bool) {
	switch {
	case text == "":
		return
	case text == "exit" || text == "quit" || text == ":q": // nothing to ask a model
		m.hintWaysOut()
	case strings.HasPrefix(text, "!"):
		line := strings.TrimSpace(text[1:])
		if line == "" {
			return
		}
		held := lent(m.Shell.Lending()) // what was said last may be old
		if held && !m.offering() {
			m.offer()
			return
		}
		m.insert(line, held)
	case strings.HasPrefix(text, "/"):
		if !m.slash(text) {
			return // a hint says why; the line stays
		}
		m.own.once = false
	default:
		m.own.asked = true
		m.ask(text, steer)
	}
	m.asks.Add(text)
	m.ed.Set("")
}

// insert has the shell run a line of the user's, once a borrowed command has ended, and AI mode come back afterwards.
func (m *model) insert(line string, takeBack bool) {
	m.own.insert = line
	m.again = again{}
	if takeBack {
		m.takeBack()
	}
}

func (m *model) takeBack() {
	m.back = true
	m.task(func(context.Context) then { m.Shell.TakeBack(); return nil })
}

// openCard is ^O: the whole output of the newest card that is not open yet.
func (m *model) openCard() {
	if c := m.open(); c != nil {
		m.emit(kindCard, c.Whole(&m.th))
		return
	}
	m.hintLines(m.th.Dim.Render("nothing to open: no agent ran a tool yet"))
}

// completeSlash completes the name of a `/` command as far as it is clear.
func (m *model) completeSlash() {
	names := slashNames(m.ed.Text)
	if len(names) == 0 {
		return
	}
	shared := names[0].name
	for _, c := range names[1:] {
		for !strings.HasPrefix(c.name, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	if len(names) == 1 && names[0].args != "" {
		shared += " "
	}
	m.ed.Set(shared)
}

// slashList is what may be meant by the name of a `/` command that is being written.
func (m *model) slashList(room int) (lines []string) {
	names := slashNames(m.ed.Text)
	if len(names) == 1 && names[0].name == m.ed.Text {
		return nil
	}
	for _, c := range names {
		line := m.th.Accent.Render(cells.Pad(strings.TrimSpace(c.name+" "+c.args), 24)) + m.th.Dim.Render(c.help)
		lines = append(lines, cells.Fit("  "+line, m.w))
	}
	if len(lines) > room {
		lines = append(lines[:max(0, room-1)], m.th.Dim.Render("  "+strconv.Itoa(len(lines)-max(0, room-1))+" more"))
	}
	return lines
}

// slashNames are the commands whose name begins with text.
func slashNames(text string) []slashCommand {
	if !strings.HasPrefix(text, "/") || strings.ContainsAny(text, " \n") {
		return nil
	}
	return slices.DeleteFunc(slashCommands(), func(c slashCommand) bool { return !strings.HasPrefix(c.name, text) })
}
