package cells

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Whatever the text, no line is wider than asked for, so that nothing of it is cut off on the screen. A word with hyphens at the
// end of a full line was.
func TestWrap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		text := make([]byte, 1+random.IntN(40))
		for i := range text {
			text[i] = "ab- -c"[random.IntN(6)]
		}
		width := 1 + random.IntN(12)
		lines := Wrap(string(text), width)
		for _, l := range lines {
			if Width(l) > width {
				t.Fatalf("%q in %d cells: got %q", text, width, lines)
			}
		}
		letters := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if got, want := letters(strings.Join(lines, "")), letters(string(text)); got != want {
			t.Fatalf("%q in %d cells: got %q, lost something", text, width, lines)
		}
	}
}
