package tui

import "strings"

// maxHistory bounds the lines kept for Up and ^R.
const maxHistory = 20_000

// history is what was entered before, oldest first, and where in it the user is.
type history struct {
	lines []string
	at    int    // len(lines): at the line being written
	draft string // the line being written, while the user looks at older ones
}

// load replaces the lines.
func (h *history) load(lines []string) {
	if len(lines) > maxHistory {
		lines = lines[len(lines)-maxHistory:]
	}
	h.lines = append([]string(nil), lines...)
	h.at = len(h.lines)
}

// add appends a line that was entered, unless it repeats the last.
func (h *history) add(line string) {
	if line = strings.TrimRight(line, "\n"); line != "" && (len(h.lines) == 0 || h.lines[len(h.lines)-1] != line) {
		h.lines = append(h.lines, line)
		if len(h.lines) > maxHistory {
			h.lines = append([]string(nil), h.lines[len(h.lines)-maxHistory:]...)
		}
	}
	h.at, h.draft = len(h.lines), ""
}

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

// lastWord is the last word of the n-th line from the end (M-.).
func (h *history) lastWord(n int) (string, bool) {
	if n < 0 || n >= len(h.lines) {
		return "", false
	}
	f := strings.Fields(h.lines[len(h.lines)-1-n])
	if len(f) == 0 {
		return "", false
	}
	return f[len(f)-1], true
}

// search is ^R: the newest line before the one shown that holds query.
type search struct {
	query  string
	found  string
	at     int // index of found; len(lines) before the first
	failed bool
	draft  editorState // what to go back to
}

// find looks on from the current place, towards older lines or newer ones. again skips the current line.
func (s *search) find(lines []string, older, again bool) {
	if s.query == "" {
		s.failed = false
		return
	}
	i := min(s.at, len(lines)-1)
	step := -1
	if !older {
		step = 1
	}
	if again && s.at < len(lines) {
		i += step
	}
	for ; i >= 0 && i < len(lines); i += step {
		if strings.Contains(lines[i], s.query) && (!again || lines[i] != s.found) {
			s.at, s.found, s.failed = i, lines[i], false
			return
		}
	}
	s.failed = true
}
