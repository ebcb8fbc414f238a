package tui

import (
	"strings"
	"testing"

	"sublet/client/internal/tui/cells"
	"sublet/lease/shell"
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
	if want := "● the shell was started anew: " + why; strings.Join(strings.Fields(got), " ") != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
