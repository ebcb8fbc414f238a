package tui

import (
	_ "embed"
	"strings"
	"testing"

	"sublet/client/internal/tui/markdown"
	"sublet/client/internal/tui/screentest"
	"sublet/client/internal/tui/style"
)

func TestMarkdownGolden(t *testing.T) {
	th := screentest.Theme()
	md := &markdown.Renderer{Profile: th.Profile}
	for _, s := range screentest.Sizes {
		var lines []string
		var stream markdown.Stream
		blocks := stream.Add(sampleMarkdown)
		if rest := stream.Finish(); rest != "" {
			blocks = append(blocks, rest)
		}
		for _, b := range blocks {
			lines = append(lines, strings.Split(md.Render(b, s.W-1), "\n")...)
			lines = append(lines, "")
		}
		screentest.Golden(t, "markdown-"+s.Name, lines, 200, 0)
	}
}

//go:embed markdown/testdata/sample.md
var sampleMarkdown string

// Two colours at most say more than words: what is risky and what is gone.
func TestColours(t *testing.T) {
	th := screentest.Theme()
	if got, want := th.Level("critical"), "\x1b[1;31mcritical\x1b[m"; got != want {
		t.Errorf("critical: got %q, want %q", got, want)
	}
	plain := style.New([]string{"TERM=xterm-256color", "NO_COLOR=yes"})
	for _, s := range []string{plain.Level("critical"), plain.Good.Render("x")} {
		if strings.Contains(s, "\x1b[3") {
			t.Errorf("NO_COLOR: got colour in %q", s)
		}
	}
	if out := (&markdown.Renderer{Profile: plain.Profile}).Render("```go\nvar a = 1\n```\n\n`x`", 60); strings.Contains(out, "\x1b[3") || strings.Contains(out, "\x1b[9") {
		t.Errorf("NO_COLOR: got colour in Markdown %q", out)
	}
	for env, dark := range map[string]bool{"15;0": true, "0;15": false, "0;default;15": false, "12;8": true, "": true} {
		if got := style.New([]string{"TERM=xterm-256color", "COLORFGBG=" + env}).Dark; got != dark {
			t.Errorf("COLORFGBG=%s: got dark %v, want %v", env, got, dark)
		}
	}
}
