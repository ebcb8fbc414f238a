package text

import (
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestVisible: nothing that is shown in a question is hidden, moved or executed by the terminal (T3j, P8).
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n": "plain\ttext\n", "a\rb": "a␍b", "\x1b[2J": "␛[2J", "a\u202eb": "a⟨U+202E⟩b", "a\u200bb": "a⟨U+200B⟩b", "\xff": "⟨FF⟩", "é日本": "é日本", "\x00": "␀", "\u009b": "⟨U+009B⟩", "\u00a0": "⟨U+00A0⟩", "\u2066": "⟨U+2066⟩",
		"\ufeff": "⟨U+FEFF⟩", "\U000e0041": "⟨U+E0041⟩", "\u00ad": "⟨U+00AD⟩", "\x7f": "␡", "\u3164": "⟨U+3164⟩",
	} {
		if got := Visible(text); got != want {
			t.Errorf("Visible(%q) = %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		once := Visible(s)
		if Visible(once) != once || !utf8.ValidString(once) {
			t.Fatalf("Visible(%q) = %q is not visible", s, once)
		}
	})
}
