package keys

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

const (
	// escWait is how long an escape byte may stay alone before it is the Escape key.
	escWait = 40 * time.Millisecond
	// pasteRun is the number of printable characters read at once that can only be a paste, by a terminal without
	// bracketed paste. They are delivered as one, and so can never answer a question.
	pasteRun = 32
	// maxSequence bounds an escape sequence, in bytes. One whose end does not come is then decoded as what it is so far.
	maxSequence = 4 << 10
)

// A Key has its name, such as "ctrl+a", and the text that it writes.
type Key struct{ Name, Text string }

// Switch is the key that the user chose to switch between command mode and AI mode.
type Switch struct{}

// Enter is a chunk that is a key which may switch to AI mode, by itself. The event loop takes the screen for it, and passes it if the
// shell has given the screen up. If not, as while AI mode is on, the chunk is input like any other.
type Enter string

// Paste is what was pasted, as the terminal sent it.
type Paste struct {
	raw       []byte
	bracketed bool
}

// decoder turns what is typed into messages.
type decoder struct {
	events  uv.EventDecoder
	pending []byte // an incomplete sequence
	paste   []byte // nil: no bracketed paste is open
}

// forget drops what is incomplete.
func (k *decoder) forget() { k.pending, k.paste = nil, nil }

var (
	pasteStart = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// next decodes one message at the start of b and returns its length, or 0 if b may be the beginning of a longer sequence: with
// expired, nothing more followed within escWait, so that it is not. The message is nil for a sequence that is ignored.
func (k *decoder) next(b []byte, expired bool) (int, any) {
	if k.paste != nil {
		end := bytes.Index(b, pasteEnd)
		if end >= 0 {
			text := append(k.paste, b[:end]...)
			k.paste = nil
			return end + len(pasteEnd), Paste{text, true}
		}
		keep := min(len(b), len(pasteEnd)-1) // the end may have begun
		k.paste = append(k.paste, b[:len(b)-keep]...)
		return len(b) - keep, nil
	}
	if bytes.HasPrefix(b, pasteStart) {
		k.paste = []byte{}
		return len(pasteStart), nil
	}
	run := bytes.IndexFunc(b, func(r rune) bool { return r < 0x20 || r == 0x7f || r == utf8.RuneError })
	if run < 0 {
		run = len(b)
	}
	if run >= pasteRun {
		return run, Paste{b[:run:run], false}
	}
	if !expired && incomplete(b) {
		return 0, nil
	}
	n, ev := k.events.Decode(b)
	n = max(1, n)
	if press, ok := ev.(uv.KeyPressEvent); ok {
		name := press.String()
		if name == "ctrl+alt+c" { // Esc and ^C that came at once
			name = "ctrl+c"
		}
		return n, Key{name, press.Text}
	}
	return n, nil
}

// Text returns the paste with line feeds at its line ends, where terminals send carriage returns.
func (p Paste) Text() string {
	s := strings.ToValidUTF8(string(p.raw), "\ufffd")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.ReplaceAll(s, "\r", "\n")
}

// incomplete reports whether b is the beginning of a sequence or character whose rest may follow.
func incomplete(b []byte) bool {
	rest := bytes.TrimPrefix(b, []byte{0x1b})
	switch {
	case len(rest) == 0, string(b) == "\x1bO", string(b) == "\x1b\x1b", rest[0] >= 0xc0 && !utf8.FullRune(rest):
		return true
	case strings.IndexByte("]P_^X", rest[0]) >= 0: // a string, which ESC \ may end
		b = bytes.TrimSuffix(b, []byte{0x1b})
	}
	_, _, n, state := ansi.DecodeSequence(b, ansi.NormalState, nil)
	return state != ansi.NormalState && n == len(b) && n < maxSequence
}
