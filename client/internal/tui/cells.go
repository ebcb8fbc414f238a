package tui

import (
	"strings"

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
	if width < 1 {
		width = 1
	}
	if cells(s) <= width && strings.IndexByte(s, '\n') < 0 {
		return []string{s}
	}
	return standalone(strings.Split(ansi.Wrap(s, width, ""), "\n"))
}

// hardwrap breaks s into lines of at most width cells, wherever they end.
func hardwrap(s string, width int) []string {
	if width < 1 {
		width = 1
	}
	if cells(s) <= width && strings.IndexByte(s, '\n') < 0 {
		return []string{s}
	}
	return standalone(strings.Split(ansi.Hardwrap(s, width, true), "\n"))
}

// standalone closes the styles open at the end of each line and opens them again on the next.
func standalone(lines []string) []string {
	open := ""
	for i, l := range lines {
		if open == "" && strings.IndexByte(l, '\x1b') < 0 {
			continue
		}
		carried := open
		for rest := l; ; {
			at := strings.Index(rest, "\x1b[")
			if at < 0 {
				break
			}
			rest = rest[at:]
			end := 2
			for end < len(rest) && (rest[end] < 0x40 || rest[end] > 0x7e) {
				end++
			}
			if end == len(rest) {
				break
			}
			if seq := rest[:end+1]; rest[end] == 'm' {
				if seq == "\x1b[m" || seq == "\x1b[0m" {
					open = ""
				} else {
					open += seq
				}
			}
			rest = rest[end+1:]
		}
		l = carried + l
		if open != "" {
			l += "\x1b[m"
		}
		lines[i] = l
	}
	return lines
}

// lastLines returns the last n of lines.
func lastLines(lines []string, n int) []string {
	if n < 0 {
		n = 0
	}
	if len(lines) > n {
		return lines[len(lines)-n:]
	}
	return lines
}

// indent puts prefix before each line.
func indent(lines []string, prefix string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = prefix + l
	}
	return out
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
