package line

// maxHistory bounds the questions kept for Up.
const maxHistory = 1000

// History has the lines entered before, oldest first, and the user's place among them.
type History struct {
	lines []string
	at    int    // index in lines; len(lines) = at the line being written
	draft string // the line being written, while an older one is shown
}

// Add appends a line that was entered, which is not empty, unless it repeats the last.
func (h *History) Add(line string) {
	if len(h.lines) == 0 || h.lines[len(h.lines)-1] != line {
		h.lines = append(h.lines, line)
		h.lines = h.lines[max(0, len(h.lines)-maxHistory):]
	}
	h.Reset()
}

// Reset goes to a new, empty line.
func (h *History) Reset() { h.at, h.draft = len(h.lines), "" }

// Move goes to the previous (back) or next line and returns it, or false if there is none. current is the text in the editor.
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
