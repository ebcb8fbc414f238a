// Package cells measures and breaks text in cells of a terminal.
package cells

import (
	"io"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Width is the width of s on the screen; escape sequences have none.
func Width(s string) int {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return ansi.StringWidth(s)
		}
	}
	return len(s)
}

// Fit cuts s, one line, to width cells and marks the cut with an ellipsis. Escape sequences survive.
func Fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if Width(s) <= width {
		return s
	}
	return ansi.Truncate(s, width, "…")
}

// Pad fills s with spaces to width cells.
func Pad(s string, width int) string {
	if w := Width(s); w < width {
		return s + strings.Repeat(" ", width-w)
	}
	return s
}

// Wrap breaks s at spaces, and where it must inside words, into lines of at most width cells. Styles that are open at a
// break are closed there and opened again on the next line, so that each line stands for itself.
func Wrap(s string, width int) []string {
	return Hardwrap(ansi.Wrap(s, max(1, width), ""), width) // ansi.Wrap leaves a word with hyphens at the end of a full line too wide
}

// Hardwrap breaks s into lines of at most width cells, wherever they end.
func Hardwrap(s string, width int) []string {
	return standalone(ansi.Hardwrap(s, max(1, width), true))
}

// standalone closes the styles open at the end of each line and opens them again on the next.
func standalone(s string) []string {
	if strings.IndexByte(s, '\x1b') >= 0 && strings.IndexByte(s, '\n') >= 0 {
		var b strings.Builder
		w := lipgloss.NewWrapWriter(&b)
		_, _ = io.WriteString(w, s)
		_ = w.Close()
		s = b.String()
	}
	return strings.Split(s, "\n")
}

// Last returns the last n of lines.
func Last(lines []string, n int) []string {
	return lines[max(0, len(lines)-max(0, n)):]
}

// Indent puts prefix before each line.
func Indent(lines []string, prefix string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = prefix + l
	}
	return out
}

// Hanging puts lead before the first of lines, and as many spaces before the others. It changes and returns lines.
func Hanging(lead string, lines []string) []string {
	rest := strings.Repeat(" ", Width(lead))
	for i, l := range lines {
		lines[i] = lead + l
		lead = rest
	}
	return lines
}
