package tui

import "strings"

// maxHistory bounds the questions kept for Up.
const maxHistory = 1000

// history is what was asked before, oldest first, and where in it the user is.
type history struct {
	lines []string
	at    int    // len(lines): at the line being written
	draft string // the line being written, while the user looks at older ones
}

// add appends a line that was entered, unless it repeats the last.
func (h *history) add(line string) {
	if line = strings.TrimRight(line, "\n"); line != "" && (len(h.lines) == 0 || h.lines[len(h.lines)-1] != line) {
		h.lines = append(h.lines, line)
		h.lines = h.lines[max(0, len(h.lines)-maxHistory):]
	}
	h.reset()
}

// reset goes to the line being written, which is empty.
func (h *history) reset() { h.at, h.draft = len(h.lines), "" }

// move goes one line back or forth; current is the text in the editor.
func (h *history) move(back bool, current string) (string, bool) {
	switch {
	case back && h.at > 0:
		if h.at == len(h.lines) {
			h.draft = current
		}
		h.at--
		return h.lines[h.at], true
	case !back && h.at < len(h.lines):
		h.at++
		if h.at == len(h.lines) {
			return h.draft, true
		}
		return h.lines[h.at], true
	}
	return "", false
}
