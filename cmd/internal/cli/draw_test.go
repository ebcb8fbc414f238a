package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"sublet/daemon"
	"sublet/wire"
)

// The marks stand below the parts they are about, in cells, however wide the characters are.
func TestDrawMarks(t *testing.T) {
	for _, tt := range []struct {
		command string
		marked  []string // parts of it
		width   int
		want    string
	}{
		{"ls && rm -rf x", []string{"rm -rf x"}, 80, "ls && rm -rf x\n      ~~~1~~~~"},
		{"rm -rf x y", []string{"x", "y", "rm -rf x"}, 80, "rm -rf x y\n~~~1~~~~ 3\n       2"},
		{"echo 日本 x", []string{"x", "日本"}, 80, "echo 日本 x\n     ~1~~ 2"},
		{"a\tbc", []string{"bc"}, 80, "a    bc\n     1~"},
		{"a\x1b[2Jb", []string{"b"}, 80, "a^[[2Jb\n      1"},
		{"if x\nthen y\nfi", []string{"x\nthen y"}, 80, "if x\n   1\nthen y\n~~1~~~\nfi"},
		{"aaaaaaaaaaaaaaaaaaaa bbbb", []string{"bbbb"}, 20, "aaaaaaaaaaaaaaaaaaaa\n bbbb\n ~1~~"},
		{"x\xffy", []string{"y"}, 80, "x\uFFFDy\n  1"},
		{"", nil, 80, ""},
	} {
		var reasons []wire.Reason
		for _, part := range tt.marked {
			at := strings.Index(tt.command, part)
			reasons = append(reasons, wire.Reason{Span: &wire.Span{Start: at, End: at + len(part)}})
		}
		marks, _ := marksOf(tt.command, reasons)
		if got := strings.Join(drawMarks(tt.command, marks, tt.width), "\n"); got != tt.want {
			t.Errorf("%q, marked %q: got\n%s\nwant\n%s", tt.command, tt.marked, got, tt.want)
		}
	}
}

// Rows without marks are left out of a long text, and no row is wider than it may be.
func TestDrawLongText(t *testing.T) {
	command := strings.Repeat("echo a line of a long script\n", 200) + "rm -rf /\n" + strings.Repeat("x", 500)
	v := daemon.Explain(command, "/home/u/proj")
	marks, numbers := marksOf(command, v.Reasons)
	lines := drawMarks(command, marks, 40)
	for _, l := range lines {
		if ansi.StringWidth(l) > 40 {
			t.Errorf("%d cells wide: %q", ansi.StringWidth(l), l)
		}
	}
	if len(numbers) != len(v.Reasons) || !strings.Contains(strings.Join(lines, "\n"), "rm -rf /") {
		t.Errorf("got %d numbers for %d reasons", len(numbers), len(v.Reasons))
	}
	var plainMarks []mark
	at := strings.Index(command, "rm -rf")
	plainMarks = append(plainMarks, mark{at, at + 8, 1})
	if lines = drawMarks(command, plainMarks, 40); len(lines) != 4 || lines[0] != "…" || lines[3] != "…" {
		t.Errorf("got %q, want the marked row alone", lines)
	}
}

// What a mode would do is told with its reason; nothing of it steers the terminal.
func TestDrawVerdict(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	v, outcomes := daemon.ExplainModes("rm -rf / \x1b]0;x\x07", "/home/u/proj")
	a.drawVerdict("rm -rf / \x1b]0;x\x07", v)
	a.drawOutcomes(outcomes, "auto")
	got := out.String()
	for _, want := range []string{"critical\n", "\n  rm -rf / ^[]0;x^G\n", "cannot be undone", "  plan  refuses  ", "* auto  asks     critical is asked in every mode"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.ContainsAny(got, "\x1b\x07") {
		t.Errorf("control characters: %q", got)
	}
}
