package paint

import (
	"bytes"
	"strconv"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

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
// left on: the alternate screen, synchronised output, mouse and focus reports, bracketed paste, the keypad, the
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
	flags  bool         // kitty keyboard flags were set without pushing
	keypad bool
	margin bool   // only a part of the screen scrolls
	other  string // the level of modifyOtherKeys; "" = off
	parser *ansi.Parser
}

// scan reads a chunk of output.
func (t *modeTracker) scan(data []byte) {
	if t.parser == nil {
		t.parser = ansi.NewParser()
		t.parser.SetDataSize(64) // no string matters
		t.parser.SetHandler(ansi.Handler{HandleEsc: t.escape, HandleCsi: t.csi})
	}
	for len(data) > 0 {
		if t.parser.State() == parser.GroundState {
			at := bytes.IndexByte(data, 0x1b)
			if at < 0 {
				return
			}
			data = data[at:]
		}
		t.parser.Advance(data[0])
		data = data[1:]
	}
}

func (t *modeTracker) escape(cmd ansi.Cmd) {
	switch cmd {
	case '=', '>':
		t.keypad = cmd == '='
	case 'c': // full reset
		*t = modeTracker{parser: t.parser}
	}
}

func (t *modeTracker) csi(cmd ansi.Cmd, params ansi.Params) {
	n, _, _ := params.Param(0, 0)
	level, _, _ := params.Param(1, 0)
	switch {
	case cmd == 'r':
		t.margin = len(params) > 0
	case cmd.Prefix() == '?' && (cmd.Final() == 'h' || cmd.Final() == 'l'):
		params.ForEach(0, func(_, n int, _ bool) { t.mode(n, cmd.Final() == 'h') })
	case cmd.Prefix() == '>' && cmd.Final() == 'u':
		t.kitty = min(t.kitty+1, 64)
	case cmd.Prefix() == '<' && cmd.Final() == 'u':
		t.kitty = max(0, t.kitty-max(1, n))
	case cmd.Prefix() == '=' && cmd.Final() == 'u':
		t.flags = n != 0
	case cmd.Prefix() == '>' && cmd.Final() == 'm' && n == 4:
		if t.other = ""; level > 0 {
			t.other = strconv.Itoa(level)
		}
	}
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
	b = t.set(b, false, func(int) bool { return true })
	if t.kitty > 0 {
		b = append(b, "\x1b[<"+strconv.Itoa(t.kitty)+"u"...)
	}
	if t.flags {
		b = append(b, "\x1b[=0u"...)
	}
	if t.margin {
		b = append(b, wholeScreen...)
	}
	*t = modeTracker{parser: t.parser}
	return b
}

// screenMode reports whether a line editor does not leave a mode on, and it must not be switched on again later.
func screenMode(n int) bool { return n == 1049 || n == 1047 || n == 47 || n == 2026 }

// suspend appends what switches off the modes that a shell's line editor asked for (bracketed paste, focus reports, CSI-u
// keys), and resume what switches them on again.
func (t *modeTracker) suspend(b []byte) []byte {
	b = t.set(b, false, func(n int) bool { return !screenMode(n) })
	if t.kitty > 0 || t.flags {
		b = append(b, "\x1b[>0u"...)
	}
	return b
}

func (t *modeTracker) resume(b []byte) []byte {
	if t.kitty > 0 || t.flags {
		b = append(b, "\x1b[<u"...)
	}
	return t.set(b, true, func(n int) bool { return !screenMode(n) })
}

// Set appends what makes the modes that which chooses odd again, or as they should be.
func (t *modeTracker) set(b []byte, odd bool, which func(int) bool) []byte {
	for _, n := range trackedModes {
		if !t.odd[n] || !which(n) {
			continue
		}
		final := byte('l')
		if odd != (n == 25 || n == 7) {
			final = 'h'
		}
		b = append(append(b, "\x1b[?"+strconv.Itoa(n)...), final)
	}
	keypad, other := "\x1b>", "0"
	if odd {
		keypad, other = "\x1b=", t.other
	}
	if t.keypad {
		b = append(b, keypad...)
	}
	if t.other != "" {
		b = append(b, "\x1b[>4;"+other+"m"...)
	}
	return b
}
