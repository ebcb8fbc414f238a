package tui

import (
	"strings"

	"github.com/rivo/uniseg"

	"sublet/client/internal/tui/cells"
	"sublet/wire/visible"
)

// editorView lays a prompt and the text behind it out in cells.
type editorView struct {
	prompt string // one line, which ends in the default style
	text   string
	pos    int
	ghost  string // shown faintly behind the text
	more   string // prompt of the following lines

	// What was laid out last, and what came of it.
	key      viewKey
	lines    []string
	row, col int
}

type viewKey struct {
	prompt, text, ghost string
	pos, width          int
}

// Render returns the lines, at most height of them around the cursor, and where the cursor stands.
func (v *editorView) Render(width, height int) (lines []string, row, col int) {
	if k := (viewKey{v.prompt, v.text, v.ghost, v.pos, width}); k != v.key || v.lines == nil {
		v.key = k
		v.layout(max(2, width))
	}
	lines, row, col = v.lines, v.row, v.col
	if height > 0 && len(lines) > height {
		from := min(max(0, row-height/2), len(lines)-height)
		lines, row = lines[from:from+height], row-from
	}
	return lines, row, col
}

func (v *editorView) layout(width int) {
	v.lines = v.lines[:0:0]
	var line strings.Builder
	prompt := cells.Fit(v.prompt, width-1)
	line.WriteString(prompt)
	col := cells.Width(prompt)
	v.row, v.col = -1, 0
	next := func() {
		v.lines = append(v.lines, line.String())
		line.Reset()
		col = 0
	}
	state := -1
	for rest, at := v.text, 0; ; {
		if at == v.pos && v.row < 0 {
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
			line.WriteString(v.more)
			col = cells.Width(v.more)
			continue
		}
		shown := visible.Line(c)
		w := cells.Width(shown)
		if col+w > width {
			moved := v.row == len(v.lines) && v.col == col // the cursor goes along with its character
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
	if v.ghost != "" && col < width {
		line.WriteString(cells.Fit(v.ghost, width-col))
	}
	if line.Len() > 0 || len(v.lines) <= v.row {
		v.lines = append(v.lines, line.String())
	}
}
