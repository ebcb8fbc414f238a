package bashread

import "testing"

// A lone byte 0xEF, with which U+FFFD begins, was left, and the parser refused the text.
func TestMaskInvalid(t *testing.T) {
	for text, want := range map[string]string{"a\xff\xef": "a__", "\xef\xbfx": "__x", "\ufffdé": "\ufffdé"} {
		if got := maskInvalid(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
