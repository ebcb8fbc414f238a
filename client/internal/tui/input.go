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

// writing is the state of the line that is being written, and of keys that depend on an earlier one.
type writing struct {
	ed      line.Line
	asks    line.History
	hint    string // below the line, until the next key
	picker  *picker
	again   again
	lastKey time.Time
	handled []chan struct{} // of keys, to be closed when the screen is settled
}

// onInput handles a key or a paste while this program has the screen.
func (m *model) onInput(e *keyEvent) {
	switch msg := e.msg.(type) {
	case keys.Switch:
		if e.pass = !m.own.ai(); m.own.ai() {
			m.leaveAI()
		}
	case keys.Key:
		e.pass = m.onKey(msg.Name, msg.Text)
	case keys.Paste:
		e.pass = m.onPaste(msg.Text())
	}
	m.lastKey = m.now()
}

// maxPaste bounds a paste, in bytes. A longer one is dropped as a whole, because half of a question is another question.
const maxPaste = 4 << 20

// onPaste inserts a paste into the line being written, or reports that it is for the shell.
func (m *model) onPaste(text string) (pass bool) {
	q := m.question()
	switch {
	case len(text) > maxPaste:
		m.hint = m.th.Warn.Render("nothing was pasted: it is "+style.Count(int64(len(text)))+"B long, and a question may have "+style.Count(maxPaste)+"B") +
			m.th.Dim.Render(" · put it into a file")
	case q != nil && (q.Paste(text) || q.Local != nil): // of a secret, as in questionKey
	case m.picker != nil:
		m.picker.typed(strings.TrimSpace(text))
	case m.own.painting && !m.own.ai():
		m.typedAhead("", text)
		return true
	default: // also the rest of a paste that began in AI mode, if that was left meanwhile
		m.hint = ""
		m.ed.Insert(text)
	}
	return false
}

// onKey handles one key: k is its name, text what it writes. pass reports that the shell gets the key. The first of these takes it: the rest
// of an answer that the user wrote out ("yes", of which y was the answer), ^C, a question, AI mode, the shell.
func (m *model) onKey(k, text string) (pass bool) {
	switch q := m.question(); {
	case k != "ctrl+c" && m.answerRest.Takes(k, m.now(), m.lastKey):
	case k == "ctrl+c" && (q != nil || m.own.ai()):
		m.interrupt()
	case q != nil:
		return m.questionKey(q, k, text)
	case m.own.ai():
		m.askKey(k, text)
	default:
		return m.shellKey(k, text)
	}
	return false
}

// askKey handles a key in AI mode.
func (m *model) askKey(k, text string) {
	hadHint := m.hint != ""
	m.hint = ""
	if m.picker != nil {
		m.pickerKey(k, text)
		return
	}
	m.again.disarmUnless(k)
	switch k {
	case "enter":
		m.submit(strings.TrimSpace(m.ed.Text), true)
	case "ctrl+q":
		if m.ed.Empty() {
			m.withdraw()
		}
		m.submit(strings.TrimSpace(m.ed.Text), false)
	case "alt+enter", "ctrl+j", "shift+enter":
		m.ed.Insert("\n")
	case "tab":
		switch {
		case m.ed.Empty() && text == "":
			m.leaveAI()
			return
		case m.ed.Empty(): // it may begin an unbracketed paste; in command mode the shell would run the paste's lines
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

// editKey handles a key of the line editor. Some have another meaning on an empty line.
func (m *model) editKey(k, text string) {
	switch {
	case (k == "backspace" || k == "ctrl+h") && m.awaitsQuestion(): // it deletes the ? that began AI mode
		m.leaveAI()
	case k == "ctrl+b" && m.ed.Empty() && m.turn != nil:
		m.toBackground()
	case k == "ctrl+d" && m.ed.Empty():
		m.endOfInput()
	case !m.ed.Key(k) && text != "":
		m.ed.Insert(text)
	}
}

// interrupt handles ^C: it gives up the innermost thing that can be, such as the line or the running turn, and never ends the
// program.
func (m *model) interrupt() {
	m.again.disarmUnless("ctrl+c")
	q := m.question()
	switch {
	case q != nil && q.Back():
	case q != nil && q.Local == nil && q.SessionID != "" && q.SessionID != m.SessionInfo.ID: // its turn is not shown here
		if no := q.Refuse(); no != nil {
			m.answer(q, no)
		}
	case m.picker != nil:
		m.picker = nil
	case !m.ed.Empty() && q == nil: // ^Y brings it back
		m.ed.Clear()
		m.asks.Reset()
		m.hint = ""
	case m.turn != nil || len(m.waiting) > 0:
		m.cancelTurn("interrupted by the user")
	case lent(m.Lending): // the borrower is a script, or a turn that another window shows
		m.takeBack()
	case m.awaitsQuestion():
		m.leaveAI()
	default:
		m.hint = ""
		if m.again.second("ctrl+c", m.now(), 2*time.Second) {
			m.hintWaysOut()
		}
	}
}

// awaitsQuestion reports whether AI mode is for one question, which has not been written yet.
func (m *model) awaitsQuestion() bool { return m.own.mode == oneQuestion && m.ed.Empty() }

func (m *model) hintWaysOut() {
	m.hint = m.th.Dim.Render("tab goes back to your shell; ctrl+d on an empty line leaves")
}

// endOfInput handles ^D on an empty line, and /quit: it has the shell exit, with which the program ends. While an agent or its command
// runs, only a second ^D within 5 s does so.
func (m *model) endOfInput() {
	held := lent(m.Lender.Lending())
	works := m.turn != nil || len(m.waiting) > 0
	if (!works && !held) || m.again.second("ctrl+d", m.now(), 5*time.Second) {
		m.insert("exit", held)
		m.leaveAI() // if the shell does not exit, because of stopped jobs, the next ^D goes to it
		return
	}
	what := "ctrl+d again leaves"
	if held { // the lease bar names the borrower
		what = "ctrl+d again ends that command and leaves"
	}
	if works {
		what = "an agent is at work; it goes on without you, but cannot use your shell. " + what
	}
	m.hint = m.th.Dim.Render(what)
}

// vertical handles Up and Down: they move within the text, at its first or last line in the history.
func (m *model) vertical(up bool) {
	if m.ed.Vertical(!up) {
		return
	}
	if text, ok := m.asks.Move(up, m.ed.Text); ok {
		m.ed.Set(text)
	}
}

// submit carries out the line of AI mode: a question, `!command`, or a `/` command. With steer the running turn takes the
// question in.
func (m *model) submit(text string, steer bool) {
	switch {
	case text == "":
		return
	case text == "exit" || text == "quit" || text == ":q": // the user wants to leave
		m.hintWaysOut()
	case strings.HasPrefix(text, "!"):
		line := strings.TrimSpace(text[1:])
		if line == "" {
			return
		}
		held := lent(m.Lender.Lending()) // m.Lending may be out of date
		if held && !m.offering() {
			m.offer()
			return
		}
		m.insert(line, held)
	case strings.HasPrefix(text, "/"):
		if !m.slash(text) {
			return // the line stays, and a hint gives the reason
		}
		if m.own.ai() {
			m.own.mode = aiMode
		}
	default:
		if m.own.mode == oneQuestion {
			m.own.mode = oneAnswer
		}
		m.ask(text, steer)
	}
	m.asks.Add(text)
	m.ed.Set("")
}

// insert has the shell run a line of the user's once no borrowed command runs; takeBack ends a running one. AI mode, unless left by
// then, returns afterwards.
func (m *model) insert(line string, takeBack bool) {
	m.own.insert = line
	m.again = again{}
	if takeBack {
		m.takeBack()
	}
}

func (m *model) takeBack() { m.endLent("you took your shell back") }

// endLent ends the borrowed command that runs, and its lease. Its card reports why.
func (m *model) endLent(why string) {
	m.userEnded = why
	m.task(func(context.Context) then { m.Lender.TakeBack(); return nil })
}

// openCard handles ^O: it prints the whole output of the newest card that has not been opened.
func (m *model) openCard() {
	if c := m.open(); c != nil {
		m.emit(kindCard, c.Whole(&m.th))
		return
	}
	m.hint = m.th.Dim.Render("nothing to open: no agent ran a tool yet")
}

// completeSlash completes the name of a `/` command as far as it is unambiguous.
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

// slashList returns the `/` commands that begin with what is written, in at most room lines.
func (m *model) slashList(room int) (lines []string) {
	names := slashNames(m.ed.Text)
	if len(names) == 1 && names[0].name == m.ed.Text {
		return nil
	}
	for _, c := range names {
		line := m.th.Accent.Render(cells.Pad(c.name+" "+c.args, 23)+" ") + m.th.Dim.Render(c.help)
		lines = append(lines, cells.Fit("  "+line, m.w))
	}
	if len(lines) > room {
		lines = append(lines[:max(0, room-1)], m.th.Dim.Render("  "+strconv.Itoa(len(lines)-max(0, room-1))+" more"))
	}
	return lines
}

// slashNames returns the `/` commands whose name begins with text.
func slashNames(text string) []slashCommand {
	if !strings.HasPrefix(text, "/") || strings.ContainsAny(text, " \n") {
		return nil
	}
	return slices.DeleteFunc(slashCommands(), func(c slashCommand) bool { return !strings.HasPrefix(c.name, text) })
}
