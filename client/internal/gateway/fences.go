package gateway

import (
	"bytes"
	"strings"
)

// Fences splits Markdown that arrives in pieces of any size into text and fenced code. Text passes at once, except the part of a line
// that may begin a fence, which waits for the rest of the line. The zero value is ready.
type Fences struct {
	held    []byte          // the part of the current line that waits
	midLine bool            // the beginning of the current line was passed on as text
	mark    string          // the characters that opened the current fence; "" = outside of one
	info    string          // what followed them
	code    strings.Builder // the code so far
	text    strings.Builder // not returned yet
}

// Piece is a part of Markdown: text, or the code of a fence without its last newline.
type Piece struct {
	Text string
	Code bool
	Info string // with Code: what follows the opening characters
}

// Add adds the next piece of the Markdown and returns what is complete.
func (f *Fences) Add(markdown string) (out []Piece) {
	for line := range strings.Lines(markdown) {
		f.held = append(f.held, line...)
		if strings.HasSuffix(line, "\n") {
			out = f.wholeLine(out)
		} else if f.mark == "" && (f.midLine || !mayOpen(f.held)) {
			f.text.Write(f.held)
			f.held, f.midLine = f.held[:0], true
		}
	}
	return f.flush(out)
}

// End returns what was held back, after the last piece. An unclosed fence contains what has arrived.
func (f *Fences) End() (out []Piece) {
	if len(f.held) > 0 {
		out = f.wholeLine(out)
	}
	if f.mark != "" {
		out = f.closeFence(out)
	}
	f.midLine = false
	return f.flush(out)
}

// wholeLine processes the line in held, which is complete.
func (f *Fences) wholeLine(out []Piece) []Piece {
	line := string(f.held)
	f.held = f.held[:0]
	mark, info := fence(line)
	switch {
	case f.midLine || f.mark == "" && mark == "":
		f.midLine = false
		f.text.WriteString(line)
	case f.mark == "":
		f.mark, f.info = mark, info
	case info == "" && strings.HasPrefix(mark, f.mark):
		return f.closeFence(out)
	default:
		f.code.WriteString(line)
	}
	return out
}

func (f *Fences) closeFence(out []Piece) []Piece {
	out = append(f.flush(out), Piece{Text: strings.TrimSuffix(f.code.String(), "\n"), Code: true, Info: f.info})
	f.mark = ""
	f.code.Reset()
	return out
}

// flush appends the text that was found since the last flush.
func (f *Fences) flush(out []Piece) []Piece {
	if f.text.Len() > 0 {
		out = append(out, Piece{Text: f.text.String()})
		f.text.Reset()
	}
	return out
}

// mayOpen reports whether the beginning of a line can be that of a fence.
func mayOpen(line []byte) bool {
	trimmed := bytes.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 {
		return false
	}
	beginning := trimmed[:min(len(trimmed), 3)]
	return bytes.HasPrefix([]byte("```"), beginning) || bytes.HasPrefix([]byte("~~~"), beginning)
}

// fence returns the run of at least three backticks or tildes with which a line of Markdown begins or ends code, and what follows
// it; "" for any other line.
func fence(line string) (mark, info string) {
	s := strings.TrimRight(line, "\r\n")
	indent := len(s) - len(strings.TrimLeft(s, " "))
	s = s[indent:]
	if indent > 3 || len(s) < 3 || s[0] != '`' && s[0] != '~' {
		return "", ""
	}
	n := len(s) - len(strings.TrimLeft(s, s[:1]))
	info = strings.TrimSpace(s[n:])
	if n < 3 || s[0] == '`' && strings.Contains(info, "`") {
		return "", ""
	}
	return s[:n], info
}
