package citest

import (
	"strings"
	"testing"
)

// However a stream is cut, no part of an update comes alone, and nothing is lost.
func TestFramesAreWhole(t *testing.T) {
	const first, second = "\x1b[?2026hone\x1b[?2026l", "\x1b[?2026htwo\x1b[Kthree\x1b[?2026l"
	stream := "a" + first + second + "b\x1b[1mc"
	for cut := range len(stream) {
		var f Frames
		before := string(f.Whole([]byte(stream[:cut])))
		all := before + string(f.Whole([]byte(stream[cut:])))
		if all != stream {
			t.Errorf("cut at %d: got %q", cut, all)
		}
		if strings.Count(before, "\x1b[?2026h") != strings.Count(before, "\x1b[?2026l") {
			t.Errorf("cut at %d: half an update is shown: %q", cut, before)
		}
	}
	var f Frames
	if got := string(f.Whole([]byte("$ "))); got != "$ " {
		t.Errorf("held back: %q", got)
	}
}
