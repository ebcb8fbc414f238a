package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/dustin/go-humanize/english"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/keys"
)

// handed takes what was written to the terminal since the last call, without colours.
func (d *desk) handed() string {
	d.paint.Flush()
	text := ansi.Strip(d.out.Raw()[d.read:])
	d.read = len(d.out.Raw())
	return text
}

// A borrowed command that asks is answered by a person who sees what it asks about: the lines before the question went
// with the live part, and `Do you want to continue? [Y/n]` stood alone under the header.
func TestWhatAQuestionIsAboutIsShown(t *testing.T) {
	d := newDesk(t)
	d.wait(time.Hour)
	d.send(leasedStart("x1", "apt remove python"))
	d.send(output("x1", "old\rThe following packages will be \x1b[1mREMOVED\x1b[m:\r\n  python apt\r\nContinue? [y/N] "))
	d.send(leasedKeyboard("x1", "input"))
	got := d.handed()
	at := -1
	for _, want := range []string{"apt remove python\r\n", "until it ends", "The following packages will be REMOVED:\r\n", "  python apt\r\nContinue? [y/N] "} {
		next := strings.Index(got, want)
		if next <= at {
			t.Errorf("%q is not there, or not in its place:\n%s", want, got)
		}
		at = next
	}
	// Asked again, after the keyboard was the editor's, it shows what is new.
	d.send(output("x1", "y\r\n"))
	d.send(leasedKeyboard("x1", ""))
	d.wait(handLinger)
	d.send(output("x1", "Removing apt\r\nReally? [y/N] "))
	d.handed()
	d.send(leasedKeyboard("x1", "input"))
	if got := d.handed(); !strings.Contains(got, "until it ends") || !strings.HasSuffix(got, "\r\nRemoving apt\r\nReally? [y/N] ") || strings.Contains(got, "REMOVED") {
		t.Errorf("asked again:\n%s", got)
	}
	// A program that takes the screen draws it itself.
	d.send(leasedStart("x2", "vim"))
	d.send(leasedEnd("x1", 0))
	d.send(output("x2", "loading\r\n\x1b[?1049hwhole screen"))
	d.handed()
	d.send(leasedKeyboard("x2", "screen"))
	if got := d.handed(); strings.Contains(got, "loading") {
		t.Errorf("before the whole screen:\n%s", got)
	}
}

// The keyboard goes to a command that has begun: what reads the terminal before (what an earlier one left behind took the
// line that begins it) had the user's keys under a header without a name.
func TestNoHandOverBeforeTheCommand(t *testing.T) {
	d := newDesk(t)
	d.wait(time.Hour)
	d.send(leasedKeyboard("x1", "input"))
	if d.keys.Routed() == keys.ToProgram {
		t.Fatal("the keyboard went to a command that has not begun")
	}
	d.send(leasedStart("x1", "make"))
	if d.keys.Routed() != keys.ToProgram || !strings.Contains(d.handed(), "bash  make") {
		t.Error("it has begun, and does not have the keyboard")
	}
	d.send(leasedEnd("x1", 0))
	d.handed()
	d.send(leasedKeyboard("x2", "input"))
	d.send(leasedKeyboard("x2", ""))
	d.send(leasedStart("x2", "true"))
	if d.keys.Routed() == keys.ToProgram {
		t.Error("the keyboard went to a command that does not ask any more")
	}
}

// However much a command printed before it asks, the sign that it has the keyboard stays on the screen, and a line tells
// what is missing.
func TestAQuestionLeavesItsSignOnTheScreen(t *testing.T) {
	for _, n := range []int{0, 1, 18, 19, 20, 21, 22, 30, 5000} {
		for _, long := range []int{0, 100, 1000} {
			d := newDesk(t)
			d.wait(time.Hour)
			d.send(leasedStart("x1", "install"))
			var text strings.Builder
			for i := range n {
				fmt.Fprintf(&text, "line %d%s\r\n", i, strings.Repeat("x", long))
			}
			d.send(output("x1", text.String()+"sure? "))
			d.send(leasedKeyboard("x1", "input"))
			got := d.handed()
			rows, shown := 0, strings.Count(got, "line ")
			_, below, _ := strings.Cut(got, "install\r\n")
			for _, l := range strings.Split(below, "\r\n") {
				rows += max(1, (cells.Width(l)+79)/80)
			}
			if rows > 23 {
				t.Errorf("%d lines of %d: %d rows in a window of 24", n, long, rows)
			}
			if left := n - strings.Count(got, "line "); left > 0 != strings.Contains(got, fmt.Sprintf("… %s before", english.Plural(left, "more line", ""))) {
				t.Errorf("%d lines of %d: %d are not shown:\n%s", n, long, left, got)
			}
			if long < 1000 && n > 0 && (shown == 0 || rows < min(n, 18)) {
				t.Errorf("%d lines of %d: only %d shown", n, long, shown)
			}
		}
	}
}
