package card

import (
	"bytes"
	"strings"

	"sublet/client/internal/tui/cells"
	"sublet/lease/shell"
	"sublet/wire/visible"
)

const (
	rawKept  = 64 << 10 // bytes kept of a running command's output
	liveRaw  = 8 << 10  // of these, the bytes that are drawn while it runs
	tailCols = 1000     // wider than any window: lines are cut when they are drawn
)

// Tail is the end of a running command's output, for the lines below its header. The shell renders the result.
type Tail struct {
	raw   []byte
	Total int // line feeds seen
	lines []string
	stale bool // lines must be made again
}

// Write adds output.
func (t *Tail) Write(p []byte) {
	t.Total += bytes.Count(p, []byte{'\n'})
	t.stale = true
	t.raw = append(t.raw, p[max(0, len(p)-rawKept):]...)
	if len(t.raw) > 2*rawKept {
		t.raw = bytes.Clone(t.raw[len(t.raw)-rawKept:])
	}
}

// Last returns the last n lines, the unfinished one included.
func (t *Tail) Last(n int) []string {
	if t.stale {
		t.stale = false
		raw := t.raw
		if cut := len(raw) - liveRaw; cut > 0 { // begin at a line, if one begins there
			raw = raw[cut+bytes.IndexByte(raw[cut:], '\n')+1:]
		}
		t.lines = readable(raw)
	}
	return cells.Last(t.lines, n)
}

// Since returns the complete lines after the first n, as far as they are kept.
func (t *Tail) Since(n int) []string {
	return cells.Last(readable(t.raw[:bytes.LastIndexByte(t.raw, '\n')+1]), t.Total-n)
}

// readable returns raw output as the lines that a person would have read.
func readable(raw []byte) []string {
	text := strings.TrimSuffix(string(shell.Render(raw, tailCols)), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = visible.Line(strings.TrimRight(l, " "))
	}
	return lines
}

// Unfinished returns the raw output after the last line feed, such as a program's prompt.
func (t *Tail) Unfinished() []byte { return t.raw[bytes.LastIndexByte(t.raw, '\n')+1:] }

// FromAltScreen returns the raw output since the program switched to the alternate screen, as far as it is kept.
func (t *Tail) FromAltScreen() []byte {
	at := -1
	for _, seq := range []string{"\x1b[?1049h", "\x1b[?1047h", "\x1b[?47h"} {
		at = max(at, bytes.LastIndex(t.raw, []byte(seq)))
	}
	if at < 0 {
		return t.Unfinished()
	}
	return t.raw[at:]
}
