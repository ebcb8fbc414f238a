package tui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"sublet/client/internal/tui/cells"
	"sublet/lease/shell"
	"sublet/wire"
)

// What a result tells the model of how a command ended, the card's last line tells the user: a cancelled `sleep` had a blank
// line and three notes of it above.
func TestCardTellsTheEndOnce(t *testing.T) {
	for _, c := range []struct {
		status, signal, output, want string
		exit                         *int
	}{
		{wire.StatusCancelled, "SIGINT", "\n[ended: it was cut off]\n[exit code 130]\n[cancelled]", "■ bash  x · cancelled · exit 130 · SIGINT", ptr(130)},
		{wire.StatusTimeout, "SIGINT", "[ended: it ran longer than 2m0s]\n[exit code 130]", "✗ bash  x · timed out · exit 130 · SIGINT", ptr(130)},
		{wire.StatusError, "SIGKILL", "[ended by SIGKILL]", "✗ bash  x · failed · SIGKILL", nil},
		{wire.StatusSuccess, "", "[ended: well]\n[cancelled]", "✓ bash  x\n  │ [ended: well]\n  │ [cancelled]\n  └ exit 0", ptr(0)}, // its own words
	} {
		card := &card{tool: "bash", command: "x", status: c.status, signal: c.signal, exit: c.exit, output: []byte(c.output)}
		if got := ansi.Strip(card.Finished(testTheme(), 80)); got != c.want {
			t.Errorf("%q: got\n%s\nwant\n%s", c.output, got, c.want)
		}
	}
}

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

// The card of a background job says that it goes on; one that was not started, and ran to its end, does not.
func TestCardOfAJob(t *testing.T) {
	for _, exit := range []*int{nil, ptr(0)} {
		c := &card{tool: "bash", command: "make", args: `{"command":"make","background":true}`, status: wire.StatusSuccess, exit: exit, done: true}
		if got := strings.Contains(c.Finished(testTheme(), 100), "goes on in the background"); got != (exit == nil) {
			t.Errorf("with exit status %v: goes on: %v", exit, got)
		}
	}
}
