// Package marks draws a command with the parts marked that the reasons of its verdict speak of: ~~1~~ below each. Which rows
// are shown and in what colours is left to the caller.
package marks

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"sublet/wire"
	"sublet/wire/visible"
)

// Of returns the parts of a command that reasons speak of, by where they begin; a part's number is its place, from 1 on. numbers has
// that of each reason, 0 for one without a span or about the whole command.
func Of(command string, reasons []wire.Reason) (parts []wire.Span, numbers []int) {
	for _, r := range reasons {
		if s := r.Span; s != nil && 0 <= s.Start && s.Start < s.End && s.End <= len(command) && s.End-s.Start < len(command) {
			parts = append(parts, *s)
		}
	}
	slices.SortFunc(parts, func(x, y wire.Span) int { return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End)) })
	parts = slices.Compact(parts)
	numbers = make([]int, len(reasons))
	for i, r := range reasons {
		if r.Span != nil {
			numbers[i] = slices.Index(parts, *r.Span) + 1
		}
	}
	return parts, numbers
}

// glyph is one character as it is shown, and where it stands.
type glyph struct {
	text     string
	from, to int // bytes of the command
	col      int // cells from the row's start
	cells    int
}

// A Row is a part of a command that fits a line, with the lines of marks below it.
type Row struct {
	Text  string
	Marks []string
}

// minWidth is the least number of cells that a command is drawn in.
const minWidth = 20

// Draw returns the command in rows of at most width cells, minWidth at least, with each of its characters made visible.
func Draw(command string, parts []wire.Span, width int) []Row {
	lines := rowsOf(command, max(width, minWidth))
	rows := make([]Row, len(lines))
	for i, line := range lines {
		var text strings.Builder
		for _, g := range line {
			text.WriteString(g.text)
		}
		rows[i] = Row{text.String(), marksUnder(line, parts)}
	}
	return rows
}

// rowsOf splits a command into rows of at most width cells, at each line feed and where a row is full.
func rowsOf(command string, width int) (rows [][]glyph) {
	var row []glyph
	col := 0
	end := func() { rows, row, col = append(rows, row), nil, 0 }
	for i := 0; i < len(command); {
		r, n := utf8.DecodeRuneInString(command[i:])
		if r == '\n' {
			end()
			i++
			continue
		}
		shown := visible.Exact(command[i : i+n])
		if r == '\t' {
			shown = "    "
		}
		cells := ansi.StringWidth(shown)
		if col+cells > width {
			end()
		}
		row = append(row, glyph{text: shown, from: i, to: i + n, col: col, cells: cells})
		col += cells
		i += n
	}
	end()
	return rows
}

// marksUnder draws the marks of one row: ~~1~~ below each part, in as many lines as it takes for none to lie on another.
func marksUnder(row []glyph, parts []wire.Span) (lines []string) {
	var drawn [][]byte
	for i, m := range parts {
		from, to := -1, -1
		for _, g := range row {
			if g.to > m.Start && g.from < m.End {
				if from < 0 {
					from = g.col
				}
				to = g.col + g.cells
			}
		}
		number := strconv.Itoa(i + 1)
		if from < 0 {
			continue
		}
		to = max(to, from+len(number))
		line := slices.IndexFunc(drawn, func(d []byte) bool { return len(d) < from })
		if line < 0 {
			drawn = append(drawn, nil)
			line = len(drawn) - 1
		}
		d := drawn[line]
		d = append(d, strings.Repeat(" ", from-len(d))...)
		bar := []byte(strings.Repeat("~", to-from))
		copy(bar[(len(bar)-len(number))/2:], number)
		drawn[line] = append(d, bar...)
	}
	for _, d := range drawn {
		lines = append(lines, string(d))
	}
	return lines
}
