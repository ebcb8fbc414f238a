package tui

import (
	"cmp"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/line"
	"sublet/client/internal/tui/style"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	pickerRows = 12             // sessions that a picker shows at once
	pickerPage = pickerRows - 2 // sessions that pgup and pgdown move by, so that two stay in sight
)

// picker is a list to choose a session from.
type picker struct {
	all    []wire.SessionInfo
	filter line.Line
	chosen int
	top    int
}

func (p *picker) shown() []wire.SessionInfo {
	if p.filter.Empty() {
		return p.all
	}
	var out []wire.SessionInfo
	for _, s := range p.all {
		if strings.Contains(strings.ToLower(s.Name+" "+s.Title+" "+string(s.Cwd)+" "+string(s.ID)), strings.ToLower(p.filter.Text)) {
			out = append(out, s)
		}
	}
	return out
}

func (p *picker) typed(text string) {
	p.filter.Insert(text)
	p.chosen, p.top = 0, 0
}

// Render draws the list in at most height lines; the cursor stands behind the filter.
func (p *picker) Render(th *style.Theme, width, height int, now time.Time) (lines []string, row, col int) {
	head := th.Bold.Render("resume:") + " " + visible.Line(p.filter.Text)
	lines = append(lines, cells.Fit(head, width))
	list := p.shown()
	room := max(1, min(height-2, pickerRows))
	p.top = min(max(p.top, p.chosen-room+1), p.chosen)
	if len(list) == 0 {
		lines = append(lines, th.Dim.Render("  none"))
	}
	for i := p.top; i < len(list) && i < p.top+room; i++ {
		line := sessionLine(th, list[i], now, width-2)
		if i == p.chosen {
			line = th.Accent.Render("▸ ") + line
		} else {
			line = "  " + line
		}
		lines = append(lines, cells.Fit(line, width))
	}
	lines = append(lines, th.Dim.Render(cells.Fit("type to search · enter resumes · esc goes back", width)))
	return lines, 0, min(cells.Width(head), width-1)
}

// sessionLine describes a session in one line.
func sessionLine(th *style.Theme, s wire.SessionInfo, now time.Time, width int) string {
	const before = 9 + 15 // cells for the id and the time; each ends with a space
	when := cells.Pad(humanize.RelTime(time.UnixMilli(s.UpdatedAtMS), now, "ago", ""), 15)
	id := string(s.ID)
	if len(id) > 8 {
		id = id[len(id)-8:]
	}
	title := visible.Line(cmp.Or(s.Name, s.Title, "(no question yet)"))
	tail := " · " + english.Plural(s.Turns, "turn", "")
	if s.Running {
		tail += " · running"
	}
	if s.Cwd != "" {
		tail += " · " + visible.Line(string(s.Cwd))
	}
	title = cells.Fit(title, max(12, width-before-min(cells.Width(tail), 24))) // 24: the rest of a longer tail is cut
	return th.Dim.Render(cells.Pad(id, 9)+when) + title + th.Dim.Render(tail)
}

// pickerKey handles a key while the list is open.
func (m *model) pickerKey(k, text string) {
	p := m.picker
	n := len(p.shown())
	switch k {
	case "up", "ctrl+p", "shift+tab":
		p.chosen = max(0, p.chosen-1)
	case "down", "ctrl+n", "tab":
		p.chosen = max(0, min(n-1, p.chosen+1))
	case "pgup":
		p.chosen = max(0, p.chosen-pickerPage)
	case "pgdown":
		p.chosen = max(0, min(n-1, p.chosen+pickerPage))
	case "esc", "ctrl+g":
		m.picker = nil
	case "backspace", "ctrl+h":
		p.filter.Key(k)
		p.chosen, p.top = 0, 0
	case "enter":
		if n > 0 {
			s := p.shown()[p.chosen]
			m.picker = nil
			m.onPicked(s)
		}
	default:
		if text != "" {
			p.typed(text)
		}
	}
}
