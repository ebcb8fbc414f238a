package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"sublet/client/marks"
	"sublet/daemon"
	"sublet/daemon/config"
	"sublet/wire"
)

// Rows without marks are left out of a long text, and no row is wider than it may be.
func TestDrawLongText(t *testing.T) {
	command := strings.Repeat("echo a line of a long script\n", 200) + "rm -rf /\n" + strings.Repeat("x", 500)
	v := daemon.Explain(command, "/home/u/proj", config.Policy{})
	list, numbers := marks.Of(command, v.Reasons)
	lines := strings.Split(drawMarks(command, list, 38, "  ", manyRows), "\n")
	for _, l := range lines {
		if ansi.StringWidth(l) > 40 {
			t.Errorf("%d cells wide: %q", ansi.StringWidth(l), l)
		}
	}
	if len(numbers) != len(v.Reasons) || !strings.Contains(strings.Join(lines, "\n"), "rm -rf /") {
		t.Errorf("got %d numbers for %d reasons", len(numbers), len(v.Reasons))
	}
	at := strings.Index(command, "rm -rf")
	if got := drawMarks(command, []wire.Span{{Start: at, End: at + 8}}, 38, "  ", manyRows); got != "  …\n  rm -rf /\n  ~~~1~~~~\n  …\n" {
		t.Errorf("got %q, want the marked row alone", got)
	}
}

// What a mode would do is told with its reason; nothing of it steers the terminal.
func TestDrawVerdict(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	v, outcomes := daemon.ExplainModes("rm -rf / \x1b]0;x\x07", "/home/u/proj", config.Config{})
	a.drawVerdict("rm -rf / \x1b]0;x\x07", v)
	a.drawOutcomes(outcomes, "full")
	got := out.String()
	for _, want := range []string{"critical\n", "\n  rm -rf / ␛]0;x␇\n", "cannot be undone", "  plan  refuses  ", "* full  asks     critical is asked in every mode"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.ContainsAny(got, "\x1b\x07") {
		t.Errorf("control characters: %q", got)
	}
}
