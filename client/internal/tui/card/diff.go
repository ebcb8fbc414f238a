package card

import (
	"strings"

	"github.com/dustin/go-humanize/english"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/markdown"
	"sublet/client/internal/tui/style"
	"sublet/wire/visible"
)

// looksLikeDiff reports whether text is a unified diff.
func looksLikeDiff(text string) bool {
	return strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "@@ ") || strings.HasPrefix(text, "diff --git ") ||
		(strings.Contains(text, "\n--- ") && strings.Contains(text, "\n+++ ") && strings.Contains(text, "\n@@ "))
}

// Diff colours a unified diff: at most height lines (0 = all), each cut to width columns (0 = not cut).
func Diff(th *style.Theme, text string, width, height int) []string {
	lines := strings.Split(strings.TrimRight(th.Mark(visible.Text(text)), "\n"), "\n")
	left := 0
	if height > 0 && len(lines) > height {
		left = len(lines) - height + 1
		lines = lines[:height-1]
	}
	for i, l := range lines {
		if width > 0 {
			lines[i] = cells.Fit(l, width)
		}
	}
	lines = markdown.ColorDiff(lines, th.Bold.Render, th.Accent.Render, th.Good.Render, th.Bad.Render)
	if left > 0 {
		lines = append(lines, th.Dim.Render(cells.Fit("… "+english.Plural(left, "more line", ""), max(width, 20))))
	}
	return lines
}
