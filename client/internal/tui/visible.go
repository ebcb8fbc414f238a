package tui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible returns s with everything in it that could act on the terminal, or hide what it says, written out: control
// characters as ␛ and the like, bidirectional and zero-width ones as ⟨U+202E⟩. Line feeds stay, a tab becomes spaces,
// CR LF becomes LF. What models, files and programs wrote passes through here before it is drawn.
func visible(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	var prev rune
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "⟨%02X⟩", s[i])
		case r == '\n':
			b.WriteByte('\n')
		case r == '\t':
			b.WriteString("    ")
		case r == '\r' && i+1 < len(s) && s[i+1] == '\n':
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune('␡')
		case hidden(r) && !emojiJoin(r, prev, s[i+n:]):
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		default:
			b.WriteString(s[i : i+n])
		}
		prev = r
		i += n
	}
	return b.String()
}

// visibleLine is visible for text that must stay on one line: line feeds are shown too.
func visibleLine(s string) string {
	s = visible(s)
	if strings.IndexByte(s, '\n') < 0 {
		return s
	}
	return strings.ReplaceAll(s, "\n", "␤")
}

// plain reports whether s is printable ASCII and line feeds, as most text is.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 0x20 && c != '\n') || c >= 0x7f {
			return false
		}
	}
	return true
}

// hidden reports whether r shows nothing, or changes how its neighbours are shown.
func hidden(r rune) bool {
	switch {
	case r >= 0x80 && r < 0xa0: // C1 controls
		return true
	case r == 0xad || r == 0x34f || r == 0x61c || r == 0x115f || r == 0x1160 || r == 0x17b4 || r == 0x17b5:
		return true
	case r >= 0x180b && r <= 0x180f, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r == 0x3164 || r == 0xfeff || r == 0xffa0, r >= 0xfff0 && r <= 0xfffb:
		return true
	case r >= 0xfe00 && r <= 0xfe0f: // variation selectors
		return true
	case r >= 0xe0000 && r <= 0xe0fff: // tags and more selectors
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// emojiJoin reports whether r is the joiner or selector inside an emoji, where it is what one expects.
func emojiJoin(r, prev rune, rest string) bool {
	switch r {
	case 0xfe0f:
		return prev >= 0x2190 || prev == '#' || prev == '*' || (prev >= '0' && prev <= '9') || prev == 0xa9 || prev == 0xae
	case 0x200d:
		next, _ := utf8.DecodeRuneInString(rest)
		return prev >= 0x2190 && next >= 0x2190
	}
	return false
}
