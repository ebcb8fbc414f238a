// Package visible makes text of models, files and programs safe to display: it cannot control the terminal, and every character
// is visible.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s for display. Control characters become ␛ and the like; bidirectional, zero-width and other invisible characters
// become ⟨U+202E⟩; invalid UTF-8 becomes ⟨FF⟩. Line feeds stay, CR LF becomes LF, and a tab becomes spaces up to the next column
// divisible by 8, where each character counts as one column. Blanks such as the no-break space stay.
func Text(s string) string { return rewrite(s, false) }

// Strip returns s without control characters, except line feeds and tabs, and without bidirectional controls; invalid UTF-8 becomes
// U+FFFD. It is for text that another program may read too, where the marks of Text would be in the way.
func Strip(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// Line is Text for one line: it also replaces line feeds.
func Line(s string) string { return strings.ReplaceAll(Text(s), "\n", "␤") }

// Exact is Text for text that a person approves character by character. It also replaces each CR, and each blank other than space
// and tab, because a shell does not split words there; it keeps tabs.
func Exact(s string) string { return rewrite(s, true) }

func rewrite(s string, exact bool) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	var prev rune
	after := 0 // index in b of the text after the last line feed or tab
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "⟨%02X⟩", s[i])
		case r == '\n':
			b.WriteByte('\n')
			after = b.Len()
		case exact && r == '\t':
			b.WriteByte('\t')
		case r == '\t':
			b.WriteString("        "[utf8.RuneCountInString(b.String()[after:])%8:])
			after = b.Len() // the column is divisible by 8 here
		case r == '\r' && !exact && strings.HasPrefix(s[i+1:], "\n"):
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune('␡')
		case hidden(r) && !emojiJoin(r, prev, s[i+n:]), exact && r > 0x7f && unicode.Is(unicode.Zs, r):
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		default:
			b.WriteString(s[i : i+n])
		}
		prev = r
		i += n
	}
	return b.String()
}

// plain reports whether s consists of printable ASCII and line feeds, as most text does.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 0x20 && c != '\n') || c >= 0x7f {
			return false
		}
	}
	return true
}

// hidden reports whether r is invisible, or changes how its neighbours are displayed.
func hidden(r rune) bool {
	const blankBraille = 0x2800
	return r == blankBraille || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// emojiJoin reports whether r is a joiner or selector inside an emoji, where it is legitimate.
func emojiJoin(r, prev rune, rest string) bool {
	const first = '‼' // of the emoji that are not in Latin-1
	switch r {
	case 0xfe0f: // variation selector 16: draw prev as an emoji
		return prev >= first || prev == '#' || prev == '*' || (prev >= '0' && prev <= '9') || prev == '©' || prev == '®'
	case 0x200d: // zero-width joiner
		next, _ := utf8.DecodeRuneInString(rest)
		return prev >= first && next >= first
	}
	return false
}

// Cut returns the beginning of s, of at most the given number of bytes, never cut inside a character.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:max(most, 0)]
}

// CutTail returns the end of s, of at most the given number of bytes, never cut inside a character.
func CutTail(s string, most int) string {
	if len(s) <= most {
		return s
	}
	i := len(s) - max(most, 0)
	for i < len(s) && s[i]&0xC0 == 0x80 {
		i++
	}
	return s[i:]
}

// Clip is Cut with an ellipsis behind what was cut.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return Cut(s, most) + "…"
}

// FirstLine returns the first line of s that is not blank, safe to display.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return Line(line)
}

// Fenced returns text as code in Markdown, in a fence longer than any in it.
func Fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}
