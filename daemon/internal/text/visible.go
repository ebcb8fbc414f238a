// Package text makes text of a model, file or program safe to display.
package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible rewrites text of a model, file or program so that a person sees all of it: control characters (but newline
// and tab), bidirectional and zero-width marks, other invisible characters, variation selectors and bytes that are not
// UTF-8 become ⟨U+202E⟩, ⟨CR⟩ or ⟨0xFF⟩ (T3j). What is already visible is returned unchanged, so it may be applied twice.
func Visible(s string) string {
	i := 0
	for i < len(s) {
		c := s[i]
		if c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if hidden(r, n) {
			break
		}
		i += n
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 32)
	b.WriteString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			b.WriteString("⟨0x" + upperHex(uint64(s[i]), 2) + "⟩")
		case r == '\r':
			b.WriteString("⟨CR⟩")
		case r == 0x1b:
			b.WriteString("⟨ESC⟩")
		case hidden(r, n):
			b.WriteString("⟨U+" + upperHex(uint64(r), 4) + "⟩")
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

func upperHex(v uint64, width int) string {
	s := strings.ToUpper(strconv.FormatUint(v, 16))
	for len(s) < width {
		s = "0" + s
	}
	return s
}

// hidden tells whether a person would not see the character, or would see the text around it in another order.
func hidden(r rune, n int) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == utf8.RuneError && n <= 1, r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r < 0x300:
		return r == 0xad || r == 0xa0 // soft hyphen, no-break space
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef: // variation selectors
		return true
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0, r == 0x2800: // fillers that draw nothing
		return true
	}
	// Cf holds the bidirectional and zero-width marks and the tag characters; blanks other than the ordinary one are
	// shown too, since the shell does not split words at them.
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Co, unicode.Cs)
}
