package tui

import (
	"strings"

	"sublet/wire/visible"
)

// looksLikeDiff reports whether text is a unified diff.
func looksLikeDiff(text string) bool {
	return strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "@@ ") || strings.HasPrefix(text, "diff --git ") ||
		(strings.Contains(text, "\n--- ") && strings.Contains(text, "\n+++ ") && strings.Contains(text, "\n@@ "))
}

// renderDiff colours a unified diff, at most height lines of it (0: all), each cut to width (0: not cut).
func renderDiff(th *theme, text string, width, height int) []string {
	var out []string
	lines := strings.Split(strings.TrimRight(visible.Text(text), "\n"), "\n")
	left := 0
	if height > 0 && len(lines) > height {
		left = len(lines) - height + 1
		lines = lines[:height-1]
	}
	for _, l := range lines {
		if width > 0 {
			l = fit(l, width)
		}
		switch {
		case strings.HasPrefix(l, "+++ "), strings.HasPrefix(l, "--- "), strings.HasPrefix(l, "diff "):
			l = th.bold.Render(l)
		case strings.HasPrefix(l, "@@"):
			l = th.hunk.Render(l)
		case strings.HasPrefix(l, "+"):
			l = th.added.Render(l)
		case strings.HasPrefix(l, "-"):
			l = th.removed.Render(l)
		}
		out = append(out, l)
	}
	if left > 0 {
		out = append(out, th.dim.Render(fit("… "+plural(left, "more line", "more lines"), max(width, 20))))
	}
	return out
}
