package markdown

import (
	"strings"

	"sublet/client/internal/tui/cells"
)

const (
	// longBlock is when a list or a code block that does not end is cut at its next line, in bytes: what is not yet
	// printed stays small, however long the answer.
	longBlock = 6 << 10
	// liveBytes is how much of the unfinished block is drawn while it grows.
	liveBytes = 2 * longBlock
)

// Stream cuts a growing Markdown text into blocks that are complete: a paragraph, a heading, a whole list, table or
// code block. Each byte is looked at once.
type Stream struct {
	rest string // not complete yet
	seen int    // of rest, in whole lines
	// What the lines seen so far say of the block that rest begins with.
	fence string // the open fence, such as ```; "" = none
	info  string // its first line
	list  bool
	blank bool // the last line seen was blank
}

// Add appends text and returns the blocks that it completed.
func (m *Stream) Add(text string) (blocks []string) {
	m.rest += text
	for {
		i := strings.IndexByte(m.rest[m.seen:], '\n')
		if i < 0 {
			return blocks
		}
		start, end := m.seen, m.seen+i+1
		line := strings.TrimRight(m.rest[start:end], " \t\r\n")
		at, cut := m.line(line, start, end)
		m.seen = end
		if !cut {
			continue
		}
		if b := m.rest[:at]; strings.TrimSpace(b) != "" {
			blocks = append(blocks, b)
		}
		reopen := ""
		if m.fence != "" && at == end {
			// A long code block goes on behind the cut.
			blocks[len(blocks)-1] += m.fence + "\n"
			reopen = m.info + "\n"
		}
		m.rest = reopen + m.rest[at:]
		m.seen = len(reopen)
		fence, info := m.fence, m.info
		m.list, m.blank, m.fence, m.info = false, false, "", ""
		if reopen != "" {
			m.fence, m.info = fence, info
		}
	}
}

// line classifies one line, rest[start:end], and reports whether the block ends, before it or behind it.
func (m *Stream) line(line string, start, end int) (at int, cut bool) {
	trimmed := strings.TrimLeft(line, " \t")
	inner := len(line) - len(trimmed)
	if m.fence != "" {
		return end, m.inFence(trimmed, end)
	}
	if trimmed == "" {
		m.blank = true
		return end, !m.list && start > 0
	}
	wasBlank := m.blank
	m.blank = false
	if start > 0 && m.begins(trimmed, inner, start, wasBlank) {
		return start, true // the line is looked at again as the start of a block
	}
	if f := fenceOf(trimmed); f != "" {
		m.fence, m.info = f, line
		return 0, false
	}
	if start == 0 && inner < 4 {
		m.list = listItem(trimmed)
		return end, strings.HasPrefix(trimmed, "#")
	}
	return 0, false
}

// inFence handles a line of a code block and reports whether the text is cut behind it: the fence closes, or the block has become
// long. A code block of a list does not cut the list.
func (m *Stream) inFence(trimmed string, end int) bool {
	if strings.HasPrefix(trimmed, m.fence) && strings.Trim(trimmed, m.fence[:1]) == "" {
		m.fence = ""
		return !m.list
	}
	return end > longBlock && !m.list
}

// begins reports whether a line behind others begins a block of its own: behind a list whatever is no item and no part of one,
// behind a paragraph a code block or a heading. A long list is cut at its next item.
func (m *Stream) begins(trimmed string, inner, start int, wasBlank bool) bool {
	fence := fenceOf(trimmed) != ""
	if !m.list {
		return inner < 4 && (fence || heading(trimmed))
	}
	if inner > 0 {
		return false
	}
	if listItem(trimmed) {
		return start > longBlock
	}
	return wasBlank || fence || strings.HasPrefix(trimmed, "#")
}

// heading reports whether a line is a heading of the first three levels.
func heading(trimmed string) bool {
	return strings.HasPrefix(trimmed, "# ") || strings.HasPrefix(trimmed, "## ") || strings.HasPrefix(trimmed, "### ")
}

// Rest is what is not complete yet.
func (m *Stream) Rest() string { return m.rest }

// Finish returns what is left, complete or not, and starts anew.
func (m *Stream) Finish() string {
	rest := m.rest
	if m.fence != "" {
		rest = strings.TrimRight(rest, "\n") + "\n" + m.fence + "\n"
	}
	*m = Stream{}
	if strings.TrimSpace(rest) == "" {
		return ""
	}
	return rest
}

// fenceOf is the fence that a line opens or closes, without its info string.
func fenceOf(trimmed string) string {
	for _, c := range []string{"`", "~"} {
		n := len(trimmed) - len(strings.TrimLeft(trimmed, c))
		if n >= 3 && (c == "~" || !strings.Contains(trimmed[n:], "`")) {
			return trimmed[:n]
		}
	}
	return ""
}

// listItem reports whether a line begins an item of a list.
func listItem(trimmed string) bool {
	if len(trimmed) > 1 && strings.IndexByte("-*+", trimmed[0]) >= 0 && trimmed[1] == ' ' {
		return true
	}
	n := 0
	for n < len(trimmed) && n < 9 && trimmed[n] >= '0' && trimmed[n] <= '9' {
		n++
	}
	return n > 0 && len(trimmed) > n+1 && (trimmed[n] == '.' || trimmed[n] == ')') && trimmed[n+1] == ' '
}

// Live returns the last lines, at most height of them, of a block that is not complete yet. It is cheap enough for every frame.
func (m *Renderer) Live(block string, width, height int) []string {
	if cut := len(block) - liveBytes; cut > 0 {
		block = strings.ToValidUTF8(block[cut+strings.IndexByte(block[cut:], '\n')+1:], "")
	}
	if strings.TrimSpace(block) == "" {
		return nil
	}
	return cells.Last(strings.Split(m.Render(block, width), "\n"), height)
}
