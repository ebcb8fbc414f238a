package line

import (
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"sublet/client/internal/tui/cells"
	"sublet/wire/visible"
)

// layout is a prompt and the text after it, wrapped to a width.
type layout struct {
	key      layoutKey
	lines    []string
	row, col int // the cursor's place
}

type layoutKey struct {
	prompt, text, placeholder string
	pos, width                int
}

const more = "  " // the prompt of all lines but the first

// Render returns the prompt (one line that ends in the default style), the text and, behind it, the placeholder, in at most height
// lines around the cursor (0 = any number), and the cursor's place. The layout is kept until the text or an argument changes.
func (l *Line) Render(prompt, placeholder string, width, height int) (lines []string, row, col int) {
	if k := (layoutKey{prompt, l.Text, placeholder, l.Pos, width}); k != l.laid.key || l.laid.lines == nil {
		l.laid = layout{key: k}
		l.laid.wrap(max(2, width), l.Show) // a wide character takes two cells
	}
	lines, row, col = l.laid.lines, l.laid.row, l.laid.col
	if height > 0 && len(lines) > height {
		from := min(max(0, row-height/2), len(lines)-height)
		lines, row = lines[from:from+height], row-from
	}
	return slices.Clip(lines), row, col
}

// wrap computes the lines and the cursor's place for the key.
func (v *layout) wrap(width int, show func(string) string) {
	if show == nil {
		show = visible.Line
	}
	var line strings.Builder
	prompt := cells.Fit(v.key.prompt, width-1)
	line.WriteString(prompt)
	col := cells.Width(prompt)
	v.row, v.col = -1, 0
	next := func() {
		v.lines = append(v.lines, line.String())
		line.Reset()
		col = 0
	}
	state := -1
	for rest, at := v.key.text, 0; ; {
		if at == v.key.pos && v.row < 0 {
			v.row, v.col = len(v.lines), col
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
			moved := v.row == len(v.lines) && v.col == col // the cursor moves with its character
			next()
			if moved {
				v.row, v.col = len(v.lines), 0
			}
		}
		line.WriteString(shown)
		if col += w; col >= width {
			next()
		}
	}
	if v.row < 0 {
		v.row, v.col = len(v.lines), col
	}
	if v.key.placeholder != "" && col < width {
		line.WriteString(cells.Fit(v.key.placeholder, width-col))
	}
	if line.Len() > 0 || len(v.lines) <= v.row {
		v.lines = append(v.lines, line.String())
	}
}
