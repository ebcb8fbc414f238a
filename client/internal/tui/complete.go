package tui

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"sublet/lease/shell"
)

// maxPopup is how many candidates are seen at once.
const maxPopup = 8

// completion is the popup below the line.
type completion struct {
	from   int // where the word begins
	to     int // where it ends: the cursor
	items  []shell.Completion
	chosen int    // -1: none yet
	top    int    // first one seen
	before string // the word as it was typed
	slash  bool
}

// completed is the shell's answer.
type completed struct {
	seq   int
	line  string
	pos   int
	from  int
	items []shell.Completion
	err   error
}

// tab switches modes on an empty line, else completes.
func (m *model) tab() {
	switch {
	case strings.TrimSpace(m.ed.text) == "":
		m.ed.reset()
		m.ai = !m.ai
		m.here().at = len(m.here().lines)
	case m.ai && strings.HasPrefix(m.ed.text, "/") && !strings.Contains(m.ed.text, " "):
		m.completeSlash(true)
	default:
		m.compSeq++
		seq, line, pos, sh := m.compSeq, m.ed.text, m.ed.pos, m.shell
		if m.ai {
			// Words of a question are file names: complete them as arguments.
			line, pos = ": "+line, pos+2
		}
		m.task(func(ctx context.Context) tea.Msg {
			from, items, err := sh.Complete(ctx, line, pos)
			return completed{seq: seq, line: line, pos: pos, from: from, items: items, err: err}
		})
	}
}

// onCompleted shows what the shell proposed, unless the line went on meanwhile.
func (m *model) onCompleted(c completed) {
	if m.promptNo < m.expansions.last.Load() {
		m.readPrompt() // the one that took long gave way
	}
	line, pos := m.ed.text, m.ed.pos
	if m.ai {
		line, pos = ": "+line, pos+2
	}
	if c.seq != m.compSeq || c.line != line || c.pos != pos || m.question() != nil {
		return
	}
	if c.err != nil {
		m.hintLines(m.th.dim.Render("no completion: " + visibleLine(c.err.Error())))
		return
	}
	from := c.from
	if m.ai {
		from -= 2
	}
	if from < 0 || from > m.ed.pos || len(c.items) == 0 {
		return
	}
	if len(c.items) == 1 {
		m.complete(from, m.ed.pos, c.items[0])
		return
	}
	word := m.ed.text[from:m.ed.pos]
	if p := sharedPrefix(c.items); len(p) > len(word) && strings.HasPrefix(p, word) {
		m.ed.replace(from, m.ed.pos, p)
	}
	m.comp = &completion{from: from, to: m.ed.pos, items: c.items, chosen: -1, before: m.ed.text[from:m.ed.pos]}
}

// complete puts a candidate in, with the space that ends a word where it is complete.
func (m *model) complete(from, to int, c shell.Completion) {
	text := c.Text
	if !strings.HasSuffix(text, "/") && !strings.HasSuffix(text, " ") && !strings.HasSuffix(text, "=") && !strings.HasPrefix(m.ed.text[to:], " ") {
		text += " "
	}
	m.ed.replace(from, to, text)
}

func sharedPrefix(items []shell.Completion) string {
	p := items[0].Text
	for _, c := range items[1:] {
		for !strings.HasPrefix(c.Text, p) {
			_, n := lastRune(p)
			p = p[:len(p)-n]
		}
	}
	return strings.TrimRight(p, " ")
}

// lastRune is the last character of s and its length; a broken one has length 1.
func lastRune(s string) (rune, int) {
	for n := 1; n <= 4 && n <= len(s); n++ {
		if c := s[len(s)-n]; c&0xc0 != 0x80 {
			return []rune(s[len(s)-n:])[0], n
		}
	}
	return 0, min(1, len(s))
}

// completionKey is a key while the popup is open; false: it closed and the key means what it always means.
func (m *model) completionKey(k, text string) bool {
	c := m.comp
	switch k {
	case "tab", "down", "ctrl+n":
		m.choose((c.chosen + 1) % len(c.items))
		return true
	case "shift+tab", "up", "ctrl+p":
		if c.slash && c.chosen < 0 && k != "shift+tab" {
			m.comp = nil
			return false
		}
		m.choose((max(c.chosen, 0) + len(c.items) - 1) % len(c.items))
		return true
	case "enter":
		if c.chosen < 0 {
			m.comp = nil
			return false
		}
		m.complete(c.from, c.to, c.items[c.chosen])
		m.comp = nil
		return !c.slash || strings.HasSuffix(m.ed.text, " ") && slashTakesArgument(strings.TrimSpace(m.ed.text))
	case "esc", "ctrl+g":
		m.ed.replace(c.from, c.to, c.before)
		m.comp = nil
		return true
	}
	m.comp = nil
	return false
}

func (m *model) choose(i int) {
	c := m.comp
	c.chosen = i
	if c.chosen < c.top {
		c.top = c.chosen
	}
	if c.chosen >= c.top+maxPopup {
		c.top = c.chosen - maxPopup + 1
	}
	text := strings.TrimRight(c.items[i].Text, " ")
	m.ed.replace(c.from, c.to, text)
	c.to = c.from + len(text)
}

// Render draws the popup in at most height lines; col is where the word begins.
func (c *completion) Render(th *theme, width, height, col int) []string {
	candidate := candidate
	if c.slash {
		candidate = visibleLine
	}
	n := min(len(c.items), maxPopup, max(1, height))
	c.top = min(c.top, len(c.items)-n)
	shown := c.items[c.top : c.top+n]
	textW, kindW := 0, 0
	for _, it := range shown {
		textW = max(textW, cells(candidate(it.Text)))
		kindW = max(kindW, cells(it.Description))
	}
	textW = min(textW, max(8, width-2))
	if kindW > 0 && textW+kindW+4 > width {
		kindW = max(0, width-textW-4)
	}
	total := textW + 2
	if kindW > 0 {
		total += kindW + 2
	}
	lead := strings.Repeat(" ", max(0, min(col-1, width-total)))
	var out []string
	for i, it := range shown {
		line := " " + pad(fit(candidate(it.Text), textW), textW) + " "
		if kindW > 0 {
			line += " " + pad(fit(visibleLine(it.Description), kindW), kindW) + " "
		}
		if c.top+i == c.chosen {
			line = th.chosen.Render(line)
		} else if kindW > 0 {
			line = " " + pad(fit(candidate(it.Text), textW), textW) + "  " + th.dim.Render(fit(visibleLine(it.Description), kindW))
		}
		out = append(out, lead+line)
	}
	if len(c.items) > n {
		out[len(out)-1] = fit(out[len(out)-1]+th.dim.Render("  "+itoa(max(c.chosen, c.top)+1)+"/"+itoa(len(c.items))), width)
	}
	return out
}

// candidate is how a candidate is shown: of a path, its last part.
func candidate(text string) string {
	text = strings.TrimRight(text, " ")
	body := strings.TrimSuffix(text, "/")
	if i := strings.LastIndexByte(body, '/'); i >= 0 && i+1 < len(body) {
		text = text[i+1:]
	}
	return visibleLine(text)
}
