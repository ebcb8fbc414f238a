package tui

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// viKey is a key in vi mode; false: it means what it always means.
func (m *model) viKey(k, text string) bool {
	e := &m.ed
	if rest, ok := strings.CutPrefix(k, "alt+"); ok && utf8.RuneCountInString(rest) == 1 { // Esc and a key typed at once
		e.viEscape()
		k, text = rest, rest
	} else if k == "alt+enter" && !m.ai { // tmux makes one key of Esc and Enter that are typed within half a second
		e.viEscape()
		k = "enter"
	}
	if !e.vi.command {
		unsent := slices.ContainsFunc(m.waiting, func(a *asked) bool { return a.unsent })
		if k == "esc" && !unsent && (!m.ai || !e.empty()) {
			e.viEscape()
			return true
		}
		e.viNote(k, text)
		return false
	}
	switch k {
	case "enter":
		m.viLeave()
		m.enter()
		return true
	case "esc":
		pending := len(e.vi.typed) > 0
		e.vi.typed = nil
		return pending
	case "space", "left", "right", "up", "down", "home", "end", "delete", "backspace", "ctrl+h", "ctrl+p", "ctrl+n":
	default:
		if text == "" {
			return false
		}
		k = text
	}
	switch e.viKey(k) {
	case "up", "down":
		m.viHistory(k == "k" || k == "-" || k == "up" || k == "ctrl+p")
	case "search":
		m.beginSearch()
	case "edit":
		m.editVisual()
	case "comment":
		e.pos = 0
		e.insertWhole("#")
		m.viLeave()
		m.enter()
	}
	return true
}

// viLeave goes behind the line, as one who types would stand.
func (m *model) viLeave() {
	m.ed.pos = len(m.ed.text)
	m.ed.viInsert()
}

// viHistory moves to a line above or below; in a line of the history the cursor stands at its start, as readline has it.
func (m *model) viHistory(up bool) {
	before := m.ed.text
	m.vertical(up)
	if m.ed.text != before {
		m.ed.pos = 0
	}
}
