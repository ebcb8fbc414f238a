package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// onInput deals with a key or a paste.
func (m *model) onInput(msg tea.Msg) {
	m.dirty = true
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		m.onKey(keyName(msg), msg.Text)
		m.lastKey = m.now()
	case pasteTooLong:
		m.hintLines(m.th.warn.Render("nothing was pasted: it is "+count(int64(msg.bytes))+"B long, and a line may have "+count(maxPaste)+"B") +
			m.th.dim.Render(" · put it into a file"))
		m.lastKey = m.now()
	case tea.PasteMsg:
		m.onPaste(msg.Content)
		m.lastKey = m.now()
	}
}

// keyName is the key as the tables below know it.
func keyName(k tea.KeyPressMsg) string {
	name := k.String()
	switch name {
	case "ctrl+i":
		return "tab"
	case "ctrl+m", "kpenter", "kp_enter":
		return "enter"
	case "ctrl+[", "escape":
		return "esc"
	case "ctrl+?":
		return "backspace"
	case "ctrl+alt+c": // Esc and ^C typed at once
		return "ctrl+c"
	}
	return name
}

func (m *model) onPaste(text string) {
	if q := m.question(); q != nil && q.step != stepAsk && q.step != stepGrant {
		q.edit.insertWhole(text)
		return
	}
	if m.picker != nil {
		m.picker.typed(strings.TrimSpace(text))
		return
	}
	if m.search != nil {
		m.endSearch(true)
	}
	m.comp = nil
	m.hint = nil
	m.offer = false
	m.below(text)
	m.ed.insertWhole(text)
}

// below begins a new line behind one that was entered and has to wait: who types on without having seen that has the next
// command in mind, and `rm old` and `ls` must not become `rm oldls`. What begins with a space goes on with the same one.
func (m *model) below(text string) {
	entered := m.entered
	m.entered = ""
	if entered == "" || entered != m.ed.text || m.ed.pos != len(entered) || m.ed.vi.command || strings.TrimLeft(text, " \t") != text || text == "" {
		return
	}
	m.ed.insert("\n")
}

// onKey deals with one key: k is its name, text what it writes.
func (m *model) onKey(k, text string) {
	if k == "ctrl+c" {
		m.interrupt()
		return
	}
	m.idleC = time.Time{}
	if m.restOfAnswer(k) {
		return
	}
	if q := m.question(); q != nil {
		m.questionKey(q, k, text)
		return
	}
	if m.quoted {
		m.quoted = false
		m.insertQuoted(k, text)
		return
	}
	if m.prefixed {
		m.prefixed = false
		switch k {
		case "ctrl+e":
			m.editVisual()
		case "ctrl+u":
			m.ed.undoOnce()
		}
		return
	}
	hadHint := m.hint != nil
	m.hint = nil
	switch {
	case m.picker != nil:
		m.pickerKey(k, text)
		return
	case m.search != nil:
		if m.searchKey(k, text) {
			return
		}
	case m.comp != nil:
		if m.completionKey(k, text) {
			return
		}
	}
	if k != "alt+." && k != "alt+_" {
		m.dotted = 0
	}
	if k != "ctrl+d" {
		m.leave = time.Time{}
	}
	if m.offer && k != "enter" {
		m.offer = false
		if k == "esc" {
			m.hintLines(m.th.dim.Render("waiting: your line stays; enter runs it when the shell is free"))
			return
		}
	}
	if m.below(text); m.ed.vi.on && m.viKey(k, text) {
		return
	}
	switch k {
	case "enter":
		m.enter()
	case "alt+enter", "ctrl+j", "shift+enter":
		m.ed.insert("\n")
	case "tab":
		m.tab()
	case "esc":
		m.escape(hadHint)
	case "up", "ctrl+p":
		m.vertical(true)
	case "down", "ctrl+n":
		m.vertical(false)
	case "ctrl+r":
		m.beginSearch()
	case "ctrl+l":
		m.paint.clear()
	case "ctrl+o":
		m.openCard()
	case "ctrl+d":
		if m.ed.empty() {
			m.endOfInput()
			return
		}
		m.ed.key(k)
	case "ctrl+v", "ctrl+q":
		m.quoted = true
	case "ctrl+x":
		m.prefixed = true
	case "alt+.", "alt+_":
		m.lastArgument()
	case "ctrl+g":
		m.ed.set("")
	default:
		if !m.ed.key(k) && text != "" {
			m.ed.insert(text)
		}
	}
	if m.ai && strings.HasPrefix(m.ed.text, "/") && !strings.ContainsAny(m.ed.text, " \n") && m.comp == nil {
		m.completeSlash(false)
	}
}

// insertQuoted puts a key into the line as the character it is.
func (m *model) insertQuoted(k, text string) {
	switch {
	case text != "":
		m.ed.insert(text)
	case k == "enter":
		m.ed.insert("\r")
	case k == "tab":
		m.ed.insert("\t")
	case k == "esc":
		m.ed.insert("\x1b")
	case k == "backspace":
		m.ed.insert("\x7f")
	case strings.HasPrefix(k, "ctrl+") && len(k) == len("ctrl+x"):
		m.ed.insert(string(k[len("ctrl+")] & 0x1f))
	}
}

// interrupt is ^C: the nearest thing that can be given up, and never the program (T6d).
func (m *model) interrupt() {
	m.offer = false
	if q := m.question(); q != nil && q.step != stepAsk {
		q.step, q.choice = stepAsk, 0
		return
	}
	listed := m.search != nil || m.comp != nil
	if m.search != nil {
		m.endSearch(false)
	}
	m.comp = nil
	m.ed.viInsert()
	switch {
	case m.picker != nil:
		m.picker = nil
	case !m.ed.empty() && m.question() == nil: // with what was listed for it, as in bash
		m.ed.set("")
		m.here().at = len(m.here().lines)
		m.hint = nil
	case listed:
	case m.turn != nil || len(m.waiting) > 0:
		m.cancelTurn("interrupted by the user")
	case m.lending.Command != "" && m.lending.Holder != "user": // a script's, or that of a turn which is shown elsewhere
		sh := m.shell
		m.task(func(context.Context) tea.Msg { sh.TakeBack(); return nil })
	default:
		now := m.now()
		if !m.idleC.IsZero() && now.Sub(m.idleC) < 2*time.Second {
			m.hintLines(m.th.dim.Render("to leave: exit, or ctrl+d on an empty line"))
		} else {
			m.hint = nil
		}
		m.idleC = now
	}
}

// escape is Esc with nothing open: it stops the turn in AI mode.
func (m *model) escape(hadHint bool) {
	switch {
	case hadHint:
	case slices.ContainsFunc(m.waiting, func(a *asked) bool { return a.unsent }):
		m.cancelTurn("")
	case (m.ai || m.ed.empty()) && (m.turn != nil || len(m.waiting) > 0):
		m.cancelTurn("stopped by the user")
	case m.ai && m.ed.empty():
		m.ai = false
	}
}

// endOfInput is ^D on an empty line: leave, as bash does.
func (m *model) endOfInput() {
	lend := m.shell.Lending()
	works := m.turn != nil || len(m.waiting) > 0
	if now := m.now(); (works || lent(lend)) && (m.leave.IsZero() || now.Sub(m.leave) > 5*time.Second) {
		m.leave = now
		var lines []string
		if lent(lend) {
			lines = append(lines, m.lentLine(lend))
		}
		what := "ctrl+d again leaves"
		if lent(lend) {
			what = "ctrl+d again ends that command and leaves"
		}
		if works {
			what = "an agent is at work; it goes on without you, but cannot use your shell. " + what
		}
		for _, l := range wrap(what, m.w) {
			lines = append(lines, m.th.dim.Render(l))
		}
		m.hintLines(lines...)
		return
	}
	m.ai = false
	m.runShell("exit", lent(lend))
}

// here is the history of the mode.
func (m *model) here() *history {
	if m.ai {
		return &m.asks
	}
	return &m.lines
}

// vertical is Up or Down: within the text, else in the history.
func (m *model) vertical(up bool) {
	if m.ed.vertical(!up) {
		return
	}
	if text, ok := m.here().move(up, m.ed.text); ok {
		m.ed.set(text)
	}
}

// lastArgument is M-.: the last word of the line before, of the one before that, and so on.
func (m *model) lastArgument() {
	word, ok := m.here().lastWord(m.dotted)
	if !ok {
		return
	}
	if m.dotted == 0 {
		m.dotAt = m.ed.pos
		m.ed.insertWhole(word)
	} else {
		m.ed.replace(m.dotAt, m.ed.pos, word)
	}
	m.dotted++
}

func (m *model) beginSearch() {
	h := m.here()
	m.comp = nil
	m.search = &search{at: len(h.lines), draft: editorState{m.ed.text, m.ed.pos}}
}

// searchKey is a key while ^R is on; false: the search is over and the key means what it always means.
func (m *model) searchKey(k, text string) bool {
	s, lines := m.search, m.here().lines
	switch k {
	case "ctrl+r", "up":
		s.find(lines, true, true)
	case "ctrl+s", "down":
		s.find(lines, false, true)
	case "backspace", "ctrl+h":
		if s.query != "" {
			e := editor{text: s.query, pos: len(s.query)}
			e.key("backspace")
			s.query = e.text
			s.at, s.found = len(lines), ""
			s.find(lines, true, false)
		}
	case "ctrl+g":
		m.endSearch(false)
	case "esc", "tab":
		m.endSearch(true)
	case "enter":
		m.endSearch(true)
		return false
	default:
		if text == "" {
			m.endSearch(true)
			return false
		}
		s.query += text
		s.find(lines, true, false)
	}
	if m.search != nil && s.found != "" {
		m.ed.text = s.found
		m.ed.pos = max(0, strings.Index(s.found, s.query))
	}
	return true
}

// endSearch keeps what was found, or goes back to what was there.
func (m *model) endSearch(keep bool) {
	s := m.search
	m.search = nil
	m.ed.text, m.ed.pos = s.draft.text, s.draft.pos
	if keep && s.found != "" {
		m.ed.set(s.found)
		m.here().at = s.at
	}
}

// openCard is ^O: the whole output of the newest card that is not open yet.
func (m *model) openCard() {
	n := len(m.kept) - 1 - m.openAt
	if n < 0 {
		if len(m.kept) == 0 {
			m.hintLines(m.th.dim.Render("nothing to open: no agent ran a tool yet"))
			return
		}
		m.openAt, n = 0, len(m.kept)-1
	}
	m.openAt++
	m.emit(kindCard, m.kept[n].Whole(&m.th, m.w))
}
