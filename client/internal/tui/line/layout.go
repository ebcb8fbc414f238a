package line

import (
	"strings"

	"github.com/rivo/uniseg"

	"sublet/client/internal/tui/cells"
	"sublet/wire/visible"
)

const more = "  " // the prompt of all lines but the first

// Render returns the prompt (one line that ends in the default style), the text and, behind it, the placeholder, in at most height
// lines around the cursor, and the cursor's place.
func (l *Line) Render(prompt, placeholder string, width, height int) (lines []string, row, col int) {
	lines, row, col = l.wrap(prompt, placeholder, max(2, width)) // a wide character takes two cells
	if len(lines) > height {
		from := min(max(0, row-height/2), len(lines)-height)
		lines, row = lines[from:from+height], row-from
	}
	return lines, row, col
}

// wrap is Render for any number of lines. cursorRow is below 0 until the cursor's place is known.
func (l *Line) wrap(prompt, placeholder string, width int) (lines []string, cursorRow, cursorCol int) {
	show := l.Show
	if show == nil {
		show = visible.Line
	}
	var line strings.Builder
	prompt = cells.Fit(prompt, width-1)
	line.WriteString(prompt)
	col := cells.Width(prompt)
	cursorRow = -1
	next := func() {
		lines = append(lines, line.String())
		line.Reset()
		col = 0
	}
	state := -1
	for rest, at := l.Text, 0; ; {
		if at >= l.Pos && cursorRow < 0 {
			cursorRow, cursorCol = len(lines), col
			if col >= width { // its row is full
				cursorRow, cursorCol = len(lines)+1, 0
			}
		}
		if rest == "" {
			break
		}
		var c string
		c, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		at += len(c)
		if c == "\n" || c == "\r\n" {
			next()
			line.WriteString(more)
			col = cells.Width(more)
			continue
		}
		shown := show(c)
		w := cells.Width(shown)
		if col+w > width {
			moved := cursorRow == len(lines) && cursorCol == col // the cursor moves with its character
			next()
			if moved {
				cursorRow, cursorCol = len(lines), 0
			}
		}
		line.WriteString(shown)
		col += w
	}
	if placeholder != "" && col < width {
		line.WriteString(cells.Fit(placeholder, width-col))
	}
	if lines = append(lines, line.String()); len(lines) <= cursorRow {
		lines = append(lines, "")
	}
	return lines, cursorRow, cursorCol
}
