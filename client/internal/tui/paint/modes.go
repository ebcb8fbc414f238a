package paint

import (
	"bytes"
	"slices"
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

// modeSwitch is a terminal mode that output has changed, and the sequences that change it back (off) and again (on).
type modeSwitch struct {
	name    string // of the mode; a later change of the same mode replaces this one
	off, on string
	program bool // reset when the program ends, and not set again for the line editor
}

// modeTracker follows the modes that a program's output sets, so that those that it leaves set, such as when it is killed, can be
// reset, and nothing else is written. The zero value is a terminal with default modes.
type modeTracker struct {
	odd    []modeSwitch // modes that differ from the default, in the order in which they were set
	kitty  int          // entries pushed on the kitty keyboard's stack
	parser *ansi.Parser
}

// scan reads a chunk of output.
func (t *modeTracker) scan(data []byte) {
	if t.parser == nil {
		t.parser = ansi.NewParser()
		t.parser.SetDataSize(64) // strings are not used
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

// set records whether s differs from the default.
func (t *modeTracker) set(s modeSwitch, odd bool) {
	t.odd = slices.DeleteFunc(t.odd, func(o modeSwitch) bool { return o.name == s.name })
	if odd {
		t.odd = append(t.odd, s)
	}
}

func (t *modeTracker) escape(cmd ansi.Cmd) {
	switch cmd {
	case '=', '>':
		t.set(modeSwitch{name: "keypad", off: "\x1b>", on: "\x1b="}, cmd == '=')
	case 'c': // full reset
		*t = modeTracker{parser: t.parser}
	}
}

func (t *modeTracker) csi(cmd ansi.Cmd, params ansi.Params) {
	n, _, _ := params.Param(0, 0)
	level, _, _ := params.Param(1, 0)
	switch final := cmd.Final(); {
	case cmd == 'r':
		t.set(modeSwitch{name: "margin", off: wholeScreen, program: true}, len(params) > 0)
	case cmd.Prefix() == '?' && (final == 'h' || final == 'l'):
		params.ForEach(0, func(_, n int, _ bool) { t.mode(n, final == 'h') })
	case cmd.Prefix() == '>' && final == 'm' && n == 4:
		t.set(modeSwitch{name: "modifyOtherKeys", off: "\x1b[>4;0m", on: "\x1b[>4;" + strconv.Itoa(level) + "m"}, level > 0)
	case cmd.Prefix() == '=' && final == 'u': // flags of the kitty keyboard, set without pushing
		t.set(modeSwitch{name: "flags", off: "\x1b[=0u", program: true}, n != 0)
	case cmd.Prefix() == '>' && final == 'u':
		t.kitty = min(t.kitty+1, 64) // a program may push without end; a terminal bounds its stack, too
	case cmd.Prefix() == '<' && final == 'u':
		t.kitty = max(0, t.kitty-max(1, n))
	}
}

// mode records a DEC private mode that a prompt needs off, or on: 25 (cursor) and 7 (wrap).
func (t *modeTracker) mode(n int, on bool) {
	s := modeSwitch{name: strconv.Itoa(n), off: ansi.ResetMode(ansi.DECMode(n)), on: ansi.SetMode(ansi.DECMode(n))}
	switch n {
	case 25, 7:
		s.off, s.on, on = s.on, s.off, !on
	case 1049, 1047, 47, 2026:
		s.program = true
	case 2004, 1000, 1001, 1002, 1003, 1005, 1006, 1015, 1004, 1:
	default:
		return
	}
	t.set(s, on)
}

func (t *modeTracker) has(name string) bool {
	return slices.ContainsFunc(t.odd, func(o modeSwitch) bool { return o.name == name })
}

// reset appends the sequences that restore the default modes, and forgets the changes.
func (t *modeTracker) reset(b []byte) []byte {
	for _, s := range t.odd {
		b = append(b, s.off...)
	}
	if t.kitty > 0 {
		b = append(b, "\x1b[<"+strconv.Itoa(t.kitty)+"u"...)
	}
	*t = modeTracker{parser: t.parser}
	return b
}

// suspend appends the sequences that switch off the modes that a shell's line editor has set (bracketed paste, focus reports,
// CSI-u keys); resume appends those that switch them on again.
func (t *modeTracker) suspend(b []byte) []byte {
	for _, s := range t.odd {
		if !s.program {
			b = append(b, s.off...)
		}
	}
	if t.kitty > 0 || t.has("flags") {
		b = append(b, "\x1b[>0u"...) // pushes an entry of the kitty keyboard's stack, with all flags off
	}
	return b
}

func (t *modeTracker) resume(b []byte) []byte {
	if t.kitty > 0 || t.has("flags") {
		b = append(b, "\x1b[<u"...) // pops that entry
	}
	for _, s := range t.odd {
		if !s.program {
			b = append(b, s.on...)
		}
	}
	return b
}
