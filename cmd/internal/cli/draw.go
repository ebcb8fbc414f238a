package cli

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"sublet/wire"
)

// drawVerdict writes the level, the command with what counts in it marked and numbered, and the reasons by number.
func (a *app) drawVerdict(command string, v wire.Verdict) {
	a.printf("%s\n", plain(v.Level))
	marks, numbers := marksOf(command, v.Reasons)
	if len(marks) > 0 {
		a.printf("\n")
		for _, line := range drawMarks(command, marks, a.columns()-2) {
			a.printf("  %s\n", line)
		}
		a.printf("\n")
	}
	wide := len(strconv.Itoa(len(marks)))
	for i, r := range v.Reasons {
		number := ""
		if numbers[i] > 0 {
			number = strconv.Itoa(numbers[i])
		}
		a.printf("  %*s %-12s %s\n", wide, number, plain(r.Effect), firstLine(r.Text, 400))
	}
	if v.Level != "low" {
		if v.Reversible {
			a.printf("  can be undone")
		} else {
			a.printf("  cannot be undone")
		}
		if v.UndoHint != "" {
			a.printf(": %s", plain(v.UndoHint))
		}
		a.printf("\n")
	}
}

// drawOutcomes writes what each mode would do; the one that is in force, if any, is marked.
func (a *app) drawOutcomes(outcomes []wire.PolicyOutcome, now string) {
	verbs := map[string]string{"allow": "runs", "ask": "asks", "deny": "refuses"}
	a.printf("\n")
	for _, o := range outcomes {
		here := " "
		if o.Mode == now {
			here = "*"
		}
		verb := verbs[o.Decision]
		if verb == "" {
			verb = plain(o.Decision)
		}
		a.printf("%s %-5s %-8s %s\n", here, plain(o.Mode), verb, firstLine(o.Why, 200))
	}
}

// columns is the width to draw for.
func (a *app) columns() int {
	if f, ok := a.stdout.(*os.File); ok && isTerminal(f) {
		if w, _, err := term.GetSize(f.Fd()); err == nil && w >= 20 {
			return w
		}
	}
	return 100
}

// mark is a part of the command that reasons speak of.
type mark struct{ start, end, number int }

// marksOf numbers the spans by where they begin; reasons about the same span share a number. A span of the whole command
// is none.
func marksOf(command string, reasons []wire.Reason) (marks []mark, numbers []int) {
	for _, r := range reasons {
		s := r.Span
		if s == nil || s.Start < 0 || s.Start >= s.End || s.End > len(command) || s.End-s.Start == len(command) {
			continue
		}
		if !slices.ContainsFunc(marks, func(m mark) bool { return m.start == s.Start && m.end == s.End }) {
			marks = append(marks, mark{start: s.Start, end: s.End})
		}
	}
	slices.SortFunc(marks, func(x, y mark) int { return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.end, y.end)) })
	for i := range marks {
		marks[i].number = i + 1
	}
	numbers = make([]int, len(reasons))
	for i, r := range reasons {
		if r.Span == nil {
			continue
		}
		for _, m := range marks {
			if m.start == r.Span.Start && m.end == r.Span.End {
				numbers[i] = m.number
			}
		}
	}
	return marks, numbers
}

// glyph is one character as it is shown, and where it stands.
type glyph struct {
	text     string
	from, to int // bytes of the command
	col      int // cells from the row's start
	cells    int
}

// drawMarks is the command in rows of at most width cells, each with the lines of marks below it. Rows without marks are
// left out where there are many.
func drawMarks(command string, marks []mark, width int) (lines []string) {
	const many = 24
	rows := rowsOf(command, max(width, 20))
	gap := false
	for _, row := range rows {
		under := marksUnder(row, marks)
		if len(rows) > many && len(under) == 0 {
			if !gap {
				lines = append(lines, "…")
			}
			gap = true
			continue
		}
		gap = false
		var text strings.Builder
		for _, g := range row {
			text.WriteString(g.text)
		}
		lines = append(append(lines, text.String()), under...)
	}
	return lines
}

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
		text := visible(command[i : i+n])
		switch {
		case r == '\t':
			text = "    "
		case r == utf8.RuneError && n == 1:
			text = "\uFFFD"
		}
		cells := ansi.StringWidth(text)
		if col+cells > width {
			end()
		}
		row = append(row, glyph{text: text, from: i, to: i + n, col: col, cells: cells})
		col += cells
		i += n
	}
	end()
	return rows
}

// marksUnder draws the marks of one row: ~~1~~ below each part, in as many lines as it takes for none to lie on another.
func marksUnder(row []glyph, marks []mark) (lines []string) {
	var drawn [][]byte
	for _, m := range marks {
		from, to := -1, -1
		for _, g := range row {
			if g.to > m.start && g.from < m.end {
				if from < 0 {
					from = g.col
				}
				to = g.col + g.cells
			}
		}
		number := strconv.Itoa(m.number)
		if from < 0 {
			continue
		}
		to = max(to, from+len(number))
		line := slices.IndexFunc(drawn, func(d []byte) bool { return len(d) < from || from == 0 && len(d) == 0 })
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
