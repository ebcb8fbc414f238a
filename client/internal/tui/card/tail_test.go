package card

import (
	"fmt"
	"slices"
	"testing"
)

func TestTail(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want []string
	}{
		{"a\r\nb\r\nc", []string{"a", "b", "c"}},
		{" 10%\r 50%\r100%\n", []string{"100%"}},
		{"long line\rshort\x1b[K\n", []string{"short"}},
		{"\x1b[32mgreen\x1b[m \x1b]0;title\aend", []string{"green end"}},
		{"back\b\bXY\n", []string{"baXY"}},
		{"a\tb", []string{"a       b"}},
		{"漢字\n", []string{"漢字"}},
		{"gone\n\x1b[2Jhere", []string{"gone", "here"}},
		{"\x1bP1$r\x1b\\dcs\x1b(B", []string{"dcs"}},
		{"evil \u202e\n", []string{"evil ⟨U+202E⟩"}},
		{"\x1b]52;c;aGVsbG8=\a\x1b]52;c;?\x1b\\\x1b[c\x1b[6n\x1b]11;?\aend\n", []string{"end"}}, // the clipboard, and what a terminal would answer
	} {
		for size := 1; size <= len(tc.in); size += 3 {
			var l Tail
			for c := range slices.Chunk([]byte(tc.in), size) {
				l.Write(c)
			}
			if got := l.Last(5); !slices.Equal(got, tc.want) {
				t.Errorf("%q in pieces of %d: got %q, want %q", tc.in, size, got, tc.want)
			}
		}
	}
	var l Tail
	for i := range 10_000 {
		l.Write([]byte(fmt.Sprintf("line %d\n", i)))
	}
	if len(l.raw) > 2*rawKept {
		t.Errorf("a tail must stay short: %d bytes", len(l.raw))
	}
	if got := string(func() []byte { l.Write([]byte("\x1b[1mPassword: ")); return l.Unfinished() }()); got != "\x1b[1mPassword: " {
		t.Errorf("unfinished: got %q", got)
	}
	l.Write([]byte("x\n\x1b[?1049h\x1b[Hscreen"))
	if got := string(l.FromAltScreen()); got != "\x1b[?1049h\x1b[Hscreen" {
		t.Errorf("from the alternate screen: got %q", got)
	}
}
