package line

import "strings"

// maxHistory bounds the questions kept for Up.
const maxHistory = 1000

// History is what was asked before, oldest first, and where in it the user is.
type History struct {
	lines []string
	at    int    // len(lines): at the line being written
	draft string // the line being written, while the user looks at older ones
}

// Add appends a line that was entered, unless it repeats the last.
func (h *History) Add(line string) {
	if line = strings.TrimRight(line, "\n"); line != "" && (len(h.lines) == 0 || h.lines[len(h.lines)-1] != line) {
		h.lines = append(h.lines, line)
		h.lines = h.lines[max(0, len(h.lines)-maxHistory):]
	}
	h.Reset()
}

// Reset goes to the line being written, which is empty.
func (h *History) Reset() { h.at, h.draft = len(h.lines), "" }

// Move goes one line back or forth; current is the text in the editor.
func (h *History) Move(back bool, current string) (string, bool) {
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
