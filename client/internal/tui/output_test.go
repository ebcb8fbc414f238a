package tui

import (
	"fmt"
	"strings"
	"testing"
)

// What waits while the user's own program has the screen is bounded: the older half is left out, and a line reports that.
func TestWhatWaitsIsBounded(t *testing.T) {
	d := newDesk(t)
	d.own.has, d.own.screen = false, taking
	for i := range 3 * maxOut {
		d.send(then(func() { d.note(fmt.Sprintf("note %d.", i)) }))
	}
	if len(d.model.out) > maxOut {
		t.Errorf("%d entries wait", len(d.model.out))
	}
	d.own.screen = weHave
	d.send(redraw{})
	text := d.printed()
	if strings.Count(text, "left out; /resume prints it again") != 1 || !strings.Contains(text, fmt.Sprintf("note %d.", 3*maxOut-1)) || strings.Contains(text, "note 0.") {
		t.Errorf("printed %.200q", text)
	}
}
