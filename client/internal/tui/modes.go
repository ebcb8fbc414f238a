package tui

import "bytes"

const (
	pasteOn  = "\x1b[?2004h"
	pasteOff = "\x1b[?2004l"
	// wholeScreen has all of it scroll again. That alone would move the cursor.
	wholeScreen = "\x1b7\x1b[r\x1b8"
	// endString ends a string (a title, a graphic) that a program, killed, or a binary file left open: a terminal would
	// swallow everything behind it, the prompt too. Where none is open it does nothing.
	endString = "\x1b\\"
	// quiet is what no program may leave behind and what costs nothing to undo: an open string, line drawing, insert mode.
	quiet = endString + "\x0f\x1b(B\x1b[4l"
)

// ResetSequences returns what brings a terminal back from any mode that sublet, or a program that ran in it, may have
// left on (T6c): the alternate screen, synchronised output, mouse and focus reports, bracketed paste, the keypad, the
// kitty keyboard, a scroll region, a hidden cursor, colours. It is safe on a terminal where none of them is on: the alternate
// screen is left by 1047, which unlike 1049 does not move the cursor.
func ResetSequences() string {
	return quiet + "\x1b[?1047l\x1b[?2026l" + wholeScreen +
		"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1004l" +
		pasteOff + "\x1b[?1l\x1b>\x1b[?7h\x1b[=0;1u\x1b[>4;0m\x1b[?25h\x1b[m"
}

// trackedModes are the modes that a prompt must not find on, and mode 25 and 7, which it must not find off.
var trackedModes = []int{1049, 1047, 47, 2026, 2004, 1000, 1001, 1002, 1003, 1005, 1006, 1015, 1004, 1, 25, 7}

// modeTracker follows the modes that a program's output switches, so that what it leaves behind, killed or crashed,
// can be undone without disturbing a terminal that it left in order. The zero value is a terminal in order.
type modeTracker struct {
	odd    map[int]bool // modes that are not as they should be
	kitty  int          // entries pushed on the kitty keyboard's stack
	keypad bool
	margin bool   // only a part of the screen scrolls
	other  bool   // modifyOtherKeys is on
	part   []byte // an escape sequence cut by the end of a chunk
}

// longestMode bounds an escape sequence that is looked at.
const longestMode = 64

// scan reads a chunk of output.
func (t *modeTracker) scan(data []byte) {
	if len(t.part) > 0 {
		joined := append(t.part, data[:min(len(data), longestMode)]...)
		n, ok := t.sequence(joined)
		if !ok {
			if len(joined) < longestMode && len(data) < longestMode {
				t.part = joined
				return
			}
			n = len(t.part)
		}
		skip := max(0, n-len(t.part))
		t.part = nil
		data = data[min(skip, len(data)):]
	}
	for {
		at := bytes.IndexByte(data, 0x1b)
		if at < 0 {
			return
		}
		data = data[at:]
		n, ok := t.sequence(data)
		if !ok {
			if len(data) < longestMode {
				t.part = bytes.Clone(data)
				return
			}
			n = 1
		}
		data = data[n:]
	}
}

// sequence reads one escape sequence at the start of b. ok is false when b ends inside it.
func (t *modeTracker) sequence(b []byte) (n int, ok bool) {
	if len(b) < 2 {
		return 0, false
	}
	switch b[1] {
	case '=':
		t.keypad = true
		return 2, true
	case '>':
		t.keypad = false
		return 2, true
	case 'c': // full reset
		*t = modeTracker{}
		return 2, true
	case '[':
	default:
		return 1, true
	}
	i := 2
	for i < len(b) && b[i] >= 0x20 && b[i] <= 0x3f {
		i++
	}
	if i == len(b) {
		return i, i >= longestMode // longer than any that matters
	}
	final, params := b[i], b[2:i]
	if final == 'r' && (len(params) == 0 || params[0] != '?') { // a '?' is of XTRESTORE
		t.margin = len(params) > 0
	}
	if len(params) == 0 {
		return i + 1, true
	}
	switch {
	case params[0] == '?' && (final == 'h' || final == 'l'):
		for p := range bytes.SplitSeq(params[1:], []byte{';'}) {
			t.mode(number(p), final == 'h')
		}
	case params[0] == '>' && final == 'u':
		t.kitty = min(t.kitty+1, 64)
	case params[0] == '<' && final == 'u':
		t.kitty = max(0, t.kitty-max(1, number(params[1:])))
	case params[0] == '>' && final == 'm' && len(params) > 1 && params[1] == '4':
		t.other = len(params) > 3 && params[2] == ';' && params[3] != '0'
	}
	return i + 1, true
}

func (t *modeTracker) mode(n int, on bool) {
	for _, m := range trackedModes {
		if m != n {
			continue
		}
		if odd := on != (n == 25 || n == 7); odd {
			if t.odd == nil {
				t.odd = make(map[int]bool)
			}
			t.odd[n] = true
		} else {
			delete(t.odd, n)
		}
	}
}

// reset appends what puts the terminal in order, and forgets.
func (t *modeTracker) reset(b []byte) []byte {
	for _, m := range trackedModes {
		if !t.odd[m] {
			continue
		}
		final := byte('l')
		if m == 25 || m == 7 {
			final = 'h'
		}
		b = append(b, "\x1b[?"...)
		b = append(b, itoa(m)...)
		b = append(b, final)
	}
	if t.kitty > 0 {
		b = append(b, "\x1b[<"...)
		b = append(b, itoa(t.kitty)...)
		b = append(b, 'u')
	}
	if t.keypad {
		b = append(b, "\x1b>"...)
	}
	if t.margin {
		b = append(b, wholeScreen...)
	}
	if t.other {
		b = append(b, "\x1b[>4;0m"...)
	}
	*t = modeTracker{}
	return b
}

// number reads a small decimal number; anything else is 0.
func number(b []byte) int {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' || n > 1<<20 {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}
