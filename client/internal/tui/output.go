package tui

import (
	"strings"

	"sublet/client/internal/tui/card"
	"sublet/client/internal/tui/cells"
	"sublet/wire/visible"
)

// entryKind is what a printed piece is; it decides where empty lines stand.
type entryKind int

const (
	kindNone  entryKind = iota
	kindShell           // what programs print
	kindEcho            // a question
	kindText            // an agent's words
	kindCard
	kindNote
	kindEnd // the last line of a turn
)

// entry is something for the scrollback.
type entry struct {
	kind entryKind
	text string
}

// emit prints text once everything before it is printed.
func (m *model) emit(kind entryKind, text string) {
	if text != "" {
		m.out = append(m.out, entry{kind, text})
	}
}

// emitMarkdown prints a block of an agent's words.
func (m *model) emitMarkdown(agent, block string) {
	prefix := m.speakerMark(agent)
	lines := strings.Split(m.md.Render(block, m.w-1-cells.Width(prefix)), "\n")
	m.emit(kindText, strings.Join(cells.Indent(lines, prefix), "\n"))
}

// speakerMark is what stands before each line of an agent's words; "" for the one that the user asked.
func (m *model) speakerMark(agent string) string {
	if card.IsMain(agent) {
		return ""
	}
	return m.th.Name(agent) + m.th.Dim.Render(" │ ")
}

// flushOut hands what waits to the painter, in order, while the screen is the program's.
func (m *model) flushOut() {
	if !m.own.painting {
		return
	}
	for _, e := range m.out {
		if gap(m.lastKind, e.kind) {
			m.paint.Print("")
		}
		m.paint.Print(e.text)
		m.lastKind = e.kind
	}
	m.out = nil
}

// gap reports whether an empty line stands between two printed pieces.
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
	s := m.marked(m.th.Bad.Render("✗"), visible.Text(text), false)
	if hint != "" {
		s += "\n" + m.marked(" ", visible.Text(hint), true)
	}
	m.emit(kindNote, s)
}

// warn prints what the user must notice.
func (m *model) warn(text string) {
	m.emit(kindNote, m.marked(m.th.Warn.Render("!"), text, false))
}

// note prints something quiet.
func (m *model) note(text string) {
	m.emit(kindNote, m.marked(m.th.Dim.Render("·"), text, true))
}

// marked is text wrapped behind a mark.
func (m *model) marked(mark, text string, dim bool) string {
	if dim {
		text = m.th.Dim.Render(text)
	}
	return strings.Join(cells.Hanging(mark+" ", cells.Wrap(text, m.w-cells.Width(mark)-1)), "\n")
}
