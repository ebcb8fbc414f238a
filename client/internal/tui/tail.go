package tui

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const (
	tailLines = 200     // lines kept of a running command's output
	tailWidth = 2 << 10 // bytes kept of one line
	rawKept   = 64 << 10
)

// tail is the last lines of a program's output as a person would read them: carriage returns and backspaces do what
// they do, colours and other sequences are gone, control characters are shown. It is what stands under a running
// command; the result is rendered by the shell.
type tail struct {
	lines  []string // complete
	line   []rune   // being written
	col    int      // in line
	total  int      // lines seen
	state  tailState
	part   []byte // an incomplete character
	number []byte // parameters of the escape sequence
	raw    []byte // the last bytes as they came, for the keyboard's hand-over
}

type tailState int

const (
	tailText tailState = iota
	tailEsc
	tailCSI
	tailString    // OSC, DCS and the like, until BEL or ST
	tailStringEsc // an escape byte inside one
	tailSkip      // one more byte: charset selections
)

// write adds output. It never fails.
func (t *tail) write(p []byte) {
	t.keepRaw(p)
	if len(t.part) > 0 {
		p = append(t.part, p...)
		t.part = nil
	}
	for len(p) > 0 {
		if c := p[0]; c < utf8.RuneSelf || t.state != tailText {
			t.byte(c)
			p = p[1:]
			continue
		}
		r, n := utf8.DecodeRune(p)
		if r == utf8.RuneError && !utf8.FullRune(p) {
			t.part = append([]byte(nil), p...)
			return
		}
		t.put(r)
		p = p[n:]
	}
}

func (t *tail) byte(c byte) {
	switch t.state {
	case tailEsc:
		switch c {
		case '[':
			t.state, t.number = tailCSI, t.number[:0]
		case ']', 'P', '_', '^', 'X':
			t.state = tailString
		case '(', ')', '*', '+', '#', '%':
			t.state = tailSkip
		default:
			t.state = tailText
		}
	case tailCSI:
		if c >= 0x40 && c <= 0x7e {
			t.csi(c)
			t.state = tailText
		} else if len(t.number) < 32 {
			t.number = append(t.number, c)
		}
	case tailString:
		switch c {
		case 0x07:
			t.state = tailText
		case 0x1b:
			t.state = tailStringEsc
		}
	case tailStringEsc, tailSkip:
		t.state = tailText
	default:
		switch c {
		case 0x1b:
			t.state = tailEsc
		case '\n':
			t.newline()
		case '\r':
			t.col = 0
		case '\b':
			t.col = max(0, t.col-1)
		case '\t':
			for next := t.col/8*8 + 8; t.col < next; {
				t.put(' ')
			}
		case 0x07, 0x00, 0x0e, 0x0f:
		default:
			if c < 0x20 {
				t.put(0x2400 + rune(c))
			} else {
				t.put(rune(c))
			}
		}
	}
}

// csi does what matters for the reading of a line: erasing, and moving within it.
func (t *tail) csi(final byte) {
	n := number(t.number)
	switch final {
	case 'K':
		switch n {
		case 0:
			t.line = t.line[:min(t.col, len(t.line))]
		case 2:
			t.line = t.line[:0]
		}
	case 'G':
		t.col = min(max(0, n-1), tailWidth)
	case 'C':
		t.col = min(t.col+max(1, n), tailWidth)
	case 'D':
		t.col = max(0, t.col-max(1, n))
	case 'J':
		if n >= 2 {
			t.lines, t.line, t.col = nil, t.line[:0], 0
		}
	}
}

func (t *tail) put(r rune) {
	if t.col >= tailWidth {
		return
	}
	for len(t.line) < t.col {
		t.line = append(t.line, ' ')
	}
	if t.col < len(t.line) {
		t.line[t.col] = r
	} else {
		t.line = append(t.line, r)
	}
	t.col++
}

func (t *tail) newline() {
	t.lines = append(t.lines, strings.TrimRight(string(t.line), " "))
	t.line, t.col = t.line[:0], 0
	t.total++
	if len(t.lines) > 2*tailLines {
		t.lines = append([]string(nil), t.lines[len(t.lines)-tailLines:]...)
	}
}

// last returns the last n lines, the unfinished one included.
func (t *tail) last(n int) []string {
	lines := t.lines
	if cur := strings.TrimRight(string(t.line), " "); cur != "" {
		lines = append(lines[:len(lines):len(lines)], cur)
	}
	out := make([]string, 0, n)
	for _, l := range lastLines(lines, n) {
		out = append(out, visibleLine(l))
	}
	return out
}

// since returns the complete lines after the first n, as far as they are kept.
func (t *tail) since(n int) []string {
	var out []string
	for _, l := range lastLines(t.lines, t.total-n) {
		out = append(out, visibleLine(l))
	}
	return out
}

// unfinished is the raw output since the last line feed: the question that a program waits with.
func (t *tail) unfinished() []byte {
	for i := len(t.raw) - 1; i >= 0; i-- {
		if t.raw[i] == '\n' {
			return t.raw[i+1:]
		}
	}
	return t.raw
}

// fromAltScreen is the raw output since the program took the alternate screen, as far as it is kept.
func (t *tail) fromAltScreen() []byte {
	s := string(t.raw)
	at := max(strings.LastIndex(s, "\x1b[?1049h"), strings.LastIndex(s, "\x1b[?1047h"), strings.LastIndex(s, "\x1b[?47h"))
	if at < 0 {
		return t.unfinished()
	}
	return t.raw[at:]
}

// keepRaw keeps the last bytes of output without reading them.
func (t *tail) keepRaw(p []byte) {
	if len(p) > rawKept {
		p = p[len(p)-rawKept:]
	}
	t.raw = append(t.raw, p...)
	if len(t.raw) > 2*rawKept {
		t.raw = append([]byte(nil), t.raw[len(t.raw)-rawKept:]...)
	}
}

// tookScreen tells that output p, the last that was kept, switched to the alternate screen.
func (t *tail) tookScreen(p []byte) bool {
	const longest = len("\x1b[?1049h")
	end := t.raw[max(0, len(t.raw)-len(p)-longest):]
	return bytes.Contains(end, []byte("\x1b[?1049h")) || bytes.Contains(end, []byte("\x1b[?1047h")) || bytes.Contains(end, []byte("\x1b[?47h"))
}
