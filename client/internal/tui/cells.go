package tui

import (
	"io"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// cells is the width of s on the screen; escape sequences have none.
func cells(s string) int {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return ansi.StringWidth(s)
		}
	}
	return len(s)
}

// fit cuts s, one line, to width cells and marks the cut with an ellipsis. Escape sequences survive.
func fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if cells(s) <= width {
		return s
	}
	return ansi.Truncate(s, width, "…")
}

// pad fills s with spaces to width cells.
func pad(s string, width int) string {
	if w := cells(s); w < width {
		return s + strings.Repeat(" ", width-w)
	}
	return s
}

// wrap breaks s at spaces, and where it must inside words, into lines of at most width cells. Styles that are open at a
// break are closed there and opened again on the next line, so that each line stands for itself.
func wrap(s string, width int) []string {
	return standalone(ansi.Wrap(s, max(1, width), ""))
}

// hardwrap breaks s into lines of at most width cells, wherever they end.
func hardwrap(s string, width int) []string {
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

// lastLines returns the last n of lines.
func lastLines(lines []string, n int) []string {
	return lines[max(0, len(lines)-max(0, n)):]
}

// indent puts prefix before each line.
func indent(lines []string, prefix string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = prefix + l
	}
	return out
}

// hanging puts lead before the first of lines, and as many spaces before the others.
func hanging(lead string, lines []string) []string {
	rest := strings.Repeat(" ", cells(lead))
	for i, l := range lines {
		lines[i] = lead + l
		lead = rest
	}
	return lines
}

// firstLine is the first line of s that is not blank, without its indentation.
func firstLine(s string) string {
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" {
			return l
		}
	}
	return ""
}

// plural writes n and its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return itoa(n) + " " + many
}
