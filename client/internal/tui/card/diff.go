package card

import (
	"strings"

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

// Diff colours a unified diff, each line cut to width columns (0 = not cut).
func Diff(th *style.Theme, text string, width int) []string {
	lines := strings.Split(strings.TrimRight(th.Mark(visible.Text(text)), "\n"), "\n")
	for i, l := range lines {
		if width > 0 {
			lines[i] = cells.Fit(l, width)
		}
	}
	return (&markdown.Renderer{Profile: th.Profile}).Diff(lines)
}
