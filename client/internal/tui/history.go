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
	word := lastToken(h.lines[len(h.lines)-1-n])
	return word, word != ""
}

// lastToken is the last word of a line, or operator, as it is written: readline's history_tokenize.
func lastToken(line string) string {
	const blanks, operators = " \t\n", "<>;&|()"
	from, to := 0, 0
	for at := 0; at < len(line); {
		switch {
		case strings.IndexByte(blanks, line[at]) >= 0:
			at++
			continue
		case strings.IndexByte(operators, line[at]) >= 0 && !substitutes(line[at:]):
			from, to = at, at+1
			for to < len(line) && line[to] == line[at] && line[at] != '(' && line[at] != ')' {
				to++
			}
		default:
			from, to = at, wordEnd(line, at, blanks+operators)
		}
		at = to
	}
	return line[from:to]
}

// substitutes tells that s begins with $( <( or >(.
func substitutes(s string) bool {
	return len(s) > 1 && s[1] == '(' && strings.IndexByte("$<>", s[0]) >= 0
}

// wordEnd is where the word at ends: at one of stops that is neither quoted nor within $( ), <( ) or the like.
func wordEnd(line string, at int, stops string) int {
	depth := 0
	for ; at < len(line); at++ {
		switch c := line[at]; {
		case c == '\\':
			at++
		case c == '\'', c == '"', c == '`':
			for at++; at < len(line) && line[at] != c; at++ {
				if line[at] == '\\' && c != '\'' {
					at++
				}
			}
		case substitutes(line[at:]):
			depth++
			at++
		case c == '(' && depth > 0:
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth == 0 && strings.IndexByte(stops, c) >= 0:
			return at
		}
	}
	return min(at, len(line))
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
