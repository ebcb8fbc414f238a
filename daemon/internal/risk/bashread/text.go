package bashread

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/programs"
)

// gate judges a text as bytes, before the parser sees it. It returns the text to parse, of the same length; ok is false
// where it must not be parsed.
func (r *Reader) gate(text string) (out string, ok bool) {
	whole := Span{0, len(text)}
	switch {
	case len(text) > MaxText:
		r.Judge.Unread(whole, "the text is longer than 64 KiB and was not examined")
		return "", false
	case Brackets(text) > MaxNesting:
		r.Judge.Unread(whole, "the text is nested too deeply to be examined")
		return "", false
	case plain(text):
		return text, true
	}
	if !utf8.ValidString(text) {
		// bash runs such bytes and the parser refuses them: they are judged as if they were underscores.
		r.Judge.Note(programs.High, programs.Unknown, whole, "holds bytes that are not UTF-8")
		text = maskInvalid(text)
	}
	r.hiddenText(text)
	if strings.HasSuffix(text, "\\") {
		r.Judge.Note(programs.High, programs.Unknown, Span{len(text) - 1, len(text)}, "ends in a backslash, which shells read differently")
	}
	if strings.IndexByte(text, '#') >= 0 && (strings.Contains(text, "\\\n") || strings.Contains(text, "\\\r")) {
		text = r.endComments(text)
	}
	return text, true
}

// plain reports whether a text is printable ASCII, blanks and newlines, without a backslash.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' || c == '\\' {
			return false
		}
	}
	return true
}

var nestingWords = programs.Words("if elif else then while until do for case select time coproc function")

// Brackets counts what makes the parser recurse.
func Brackets(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '(' || c == '{' || c == '[' || c == '`' || c == '?':
			n++
		case (c == ' ' || c == '\n' || c == '\t' || c == ';') && i > 0 && s[i-1] >= 'a' && s[i-1] <= 'z':
			start := i
			for start > 0 && i-start <= 8 && s[start-1] >= 'a' && s[start-1] <= 'z' {
				start--
			}
			if nestingWords[s[start:i]] {
				n++
			}
		}
	}
	return n
}

func maskInvalid(s string) string {
	b := []byte(s)
	for i := 0; i < len(b); {
		c, n := utf8.DecodeRune(b[i:])
		if c == utf8.RuneError && n <= 1 {
			b[i], n = '_', 1
		}
		i += n
	}
	return string(b)
}

const hidesReturn = "holds a carriage return, which can hide text on screen and which shells read differently"

// hiddenText finds characters that make the text look other than it is.
func (r *Reader) hiddenText(text string) {
	found := map[string]bool{}
	for i, c := range text {
		what := ""
		switch {
		case c == '\n' || c == '\t' || c >= 0x20 && c < 0x7f:
			continue
		case c == '\r':
			what = hidesReturn
		case c < 0x20 || c >= 0x7f && c < 0xa0:
			what = "holds control characters, which can change what is shown"
		case c >= 0x202a && c <= 0x202e, c >= 0x2066 && c <= 0x2069, c == 0x200e, c == 0x200f, c == 0x061c:
			what = "holds characters that change the direction of text, so that it reads other than it runs"
		case c == 0x200b, c == 0x2060, c == 0xfeff, c == 0xad, c >= 0xe0000 && c <= 0xe007f, c == 0x3164, c == 0x115f, c == 0x1160, c == 0xffa0:
			what = "holds characters that cannot be seen"
		case c == 0xa0, c >= 0x2000 && c <= 0x200a, c == 0x202f, c == 0x205f, c == 0x3000, c == 0x2028, c == 0x2029:
			what = "holds blanks that the shell does not take for blanks"
		}
		if what != "" && !found[what] {
			found[what] = true
			r.Judge.Note(programs.High, programs.Unknown, Span{i, i + utf8.RuneLen(c)}, what)
		}
	}
}

// endComments undoes a difference between parser and shell (mvdan.cc/sh 3.14.1, bash 5.2): after `# text \` the parser
// reads the next line as part of the same command, and the shell begins a new one. The backslash is replaced by a blank.
func (r *Reader) endComments(text string) string {
	b := []byte(text)
	p := syntax.NewParser(syntax.KeepComments(true))
	for range 16 {
		r.Spend(1 + len(b)/BytesParsed)
		f, _ := p.Parse(bytes.NewReader(b), "")
		changed := false
		if f != nil {
			syntax.Walk(f, func(n syntax.Node) bool {
				c, ok := n.(*syntax.Comment)
				if start := 0; ok {
					if start = int(c.Hash.Offset()); start >= len(b) || b[start] != '#' {
						return true
					}
					line, _, _ := bytes.Cut(b[start:], []byte("\n"))
					for end := len(line); end > 1 && (line[end-1] == '\\' || line[end-1] == '\r'); end-- {
						if line[end-1] == '\\' {
							line[end-1], changed = ' ', true
						}
					}
				}
				return true
			})
		}
		if !changed {
			return string(b)
		}
	}
	r.Judge.Note(programs.High, programs.Unknown, Span{0, len(text)}, "shells and parsers disagree about where its comments end")
	return string(b)
}

// span is where a node stands in the outermost text.
func (r *Reader) span(n syntax.Node) Span { return r.at(int(n.Pos().Offset()), int(n.End().Offset())) }

func (r *Reader) at(start, end int) Span {
	if r.src.outer != nil {
		return *r.src.outer
	}
	start, end = min(start, len(r.src.text)), min(end, len(r.src.text))
	return Span{start, max(start, end)}
}
