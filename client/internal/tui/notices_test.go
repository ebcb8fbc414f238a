package tui

import (
	"strings"
	"testing"

	"sublet/client/internal/tui/cells"
	"sublet/lease/shell"
	"sublet/wire"
)

// What is told of a shell that was started anew is longer than a window is wide: it is broken between words.
func TestRespawnIsToldInWholeWords(t *testing.T) {
	d := newDesk(t)
	why := "a borrowed command ended it: the shell was ended by SIGKILL and was started again where it was; its jobs, open descriptors and history of this session are gone"
	d.send(shell.Restarted{Why: why})
	got := d.printed()
	for _, l := range strings.Split(got, "\n") {
		if cells.Width(l) > 80 {
			t.Errorf("%q is wider than the window", l)
		}
	}
	if want := "● the shell was started again: " + why; strings.Join(strings.Fields(got), " ") != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A turn's last line is broken between words, too: in a narrow window the terminal broke it anywhere.
func TestEndOfATurnIsWrapped(t *testing.T) {
	d := newDesk(t)
	d.w = 30
	d.send(&wire.TurnStarted{Event: event(1), Prompt: "go"})
	d.send(&wire.AgentComplete{Event: event(2), Status: wire.StatusCancelled, DurationMS: 12_000, Usage: wire.Usage{Input: 6900, Output: 78}, Refused: make([]wire.RefusedTool, 2)})
	if got, want := d.printed(), "■ stopped · 12s · 6.9k in · 78\n  out · 2 calls not allowed"; !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
