package risk

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Guards in front of the parser: nesting costs it more than linear time and overflows its stack (64 KiB of "(" took
// 4.1 s, 3 MB killed the process). At these limits the worst text found takes the parser about 50 ms. Brackets are
// counted, not balanced, since quoting could hide a closing one; commands that people and models write stay far below.
const (
	// MaxText is the longest text that is read, in bytes. A longer one is High and asked in every mode.
	MaxText = 64 << 10
	// MaxNesting is the most brackets, compound keywords and backquotes a text may hold to be read.
	MaxNesting = 2500
)

// gate judges the text as bytes, before any parser. It returns the text to parse, of the same length, or ok false when
// it must not be parsed; a.unread is set then.
func (a *analysis) gate(text string) (out string, ok bool) {
	whole := Span{0, len(text)}
	if len(text) > MaxText {
		a.unreadable(whole, "the text is longer than 64 KiB and was not examined")
		return "", false
	}
	if brackets(text) > MaxNesting {
		a.unreadable(whole, "the text is nested too deeply to be examined")
		return "", false
	}
	if plain(text) {
		return text, true
	}
	if !utf8.ValidString(text) {
		// bash runs such bytes, the parser refuses them: they are judged as if they were underscores, and never trusted.
		a.note(High, Unknown, whole, "holds bytes that are not UTF-8")
		text = maskInvalid(text)
	}
	a.hiddenText(text)
	if strings.HasSuffix(text, "\\") {
		a.note(High, Unknown, Span{len(text) - 1, len(text)}, "ends in a backslash, which shells read differently")
	}
	if strings.IndexByte(text, '#') >= 0 && (strings.Contains(text, "\\\n") || strings.Contains(text, "\\\r")) {
		text = a.endComments(text)
	}
	return text, true
}

// plain tells that a text is printable ASCII, blanks and newlines, without a backslash: nothing for the gate to look at.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' || c == '\\' {
			return false
		}
	}
	return true
}

// brackets counts whatever makes the parser recurse.
func brackets(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '{', '[', '`', '?':
			n++
		case 'f', 'n', 'e', 'o': // if, then, while, until, case, do, time, coproc end in one of these
			if i+1 < len(s) && (s[i+1] == ' ' || s[i+1] == '\n' || s[i+1] == '\t' || s[i+1] == ';') && keywordBefore(s[:i+1]) {
				n++
			}
		case 'l', 'r', 'c', 't': // until, for, coproc, select
			if i+1 < len(s) && (s[i+1] == ' ' || s[i+1] == '\n' || s[i+1] == '\t') && keywordBefore(s[:i+1]) {
				n++
			}
		}
	}
	return n
}

func keywordBefore(s string) bool {
	i := len(s)
	for i > 0 && s[i-1] >= 'a' && s[i-1] <= 'z' {
		i--
		if len(s)-i > 8 {
			return false
		}
	}
	switch s[i:] {
	case "if", "elif", "else", "then", "while", "until", "do", "for", "case", "select", "time", "coproc", "function":
		return true
	}
	return false
}

func maskInvalid(s string) string {
	b := []byte(s)
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			b[i] = '_'
			n = 1
		}
		i += n
	}
	return string(b)
}

// hiddenText finds characters that make the text look other than it is (T3j).
func (a *analysis) hiddenText(text string) {
	found := map[string]bool{}
	for i, r := range text {
		var what string
		switch {
		case r == '\n' || r == '\t' || r >= 0x20 && r < 0x7f:
			continue
		case r == '\r':
			what = "holds a carriage return, which can hide text on screen and which shells read differently"
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			what = "holds control characters, which can change what is shown"
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
			what = "holds characters that change the direction of text, so that it reads other than it runs"
		case r == 0x200b, r == 0x2060, r == 0xfeff, r == 0xad, r >= 0xe0000 && r <= 0xe007f, r == 0x3164, r == 0x115f, r == 0x1160, r == 0xffa0:
			what = "holds characters that cannot be seen"
		case r == 0xa0, r >= 0x2000 && r <= 0x200a, r == 0x202f, r == 0x205f, r == 0x3000, r == 0x2028, r == 0x2029:
			what = "holds blanks that the shell does not take for blanks"
		default:
			continue
		}
		if !found[what] {
			found[what] = true
			a.note(High, Unknown, Span{i, i + utf8.RuneLen(r)}, what)
		}
	}
}

// endComments undoes a difference between parser and shell (T3k, measured with mvdan.cc/sh 3.14.1 and bash 5.2): after
// `# text \` the parser goes on reading the next line as part of the same command, the shell begins a new one. The
// backslash of such a comment is replaced by a blank, which keeps every offset.
func (a *analysis) endComments(text string) string {
	b := []byte(text)
	p := syntax.NewParser(syntax.KeepComments(true))
	for range 16 {
		a.spend(1 + len(b)/bytesParsed)
		f, _ := p.Parse(bytes.NewReader(b), "")
		if f == nil {
			return string(b)
		}
		changed := false
		syntax.Walk(f, func(n syntax.Node) bool {
			c, ok := n.(*syntax.Comment)
			if !ok {
				return true
			}
			start := int(c.Hash.Offset())
			if start >= len(b) || b[start] != '#' {
				return true
			}
			line := b[start:]
			if nl := bytes.IndexByte(line, '\n'); nl >= 0 {
				line = line[:nl]
			}
			for end := len(line); end > 1 && (line[end-1] == '\\' || line[end-1] == '\r'); end-- {
				if line[end-1] == '\\' {
					line[end-1] = ' '
					changed = true
				}
			}
			return true
		})
		if !changed {
			return string(b)
		}
	}
	a.note(High, Unknown, Span{0, len(text)}, "shells and parsers disagree about where its comments end")
	return string(b)
}

// unreadable notes that a text was not examined: High, and asked in every mode.
func (a *analysis) unreadable(sp Span, why string) {
	a.unread = true
	a.note(High, Unknown, sp, why)
}
