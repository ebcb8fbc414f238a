package tui

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
)

const (
	// escWait is how long an escape byte may stay alone before it is the Escape key.
	escWait = 40 * time.Millisecond
	// maxPaste bounds a paste, in bytes. Of a longer one nothing is taken: half of a question is another question.
	maxPaste = 4 << 20
	// pasteRun is the number of printable characters read at once that can only be a paste, by a terminal without
	// bracketed paste. They are delivered as one, and so can never answer a question.
	pasteRun = 32
)

// paste is what was pasted, as the terminal sent it.
type paste struct {
	raw       []byte
	bracketed bool
}

// pasteTooLong is a paste of which nothing was taken.
type pasteTooLong struct{ bytes int }

// decoder turns what is typed into messages.
type decoder struct {
	events  uv.EventDecoder
	pending []byte // an incomplete sequence
	paste   []byte // nil: no bracketed paste is open
	pasted  int    // its length so far, also of what is not kept
}

// forget drops what is not complete yet.
func (k *decoder) forget() { k.pending, k.paste = nil, nil }

var (
	pasteStart = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// next reads one message at the start of b: 0 when b may be the beginning of a longer sequence. The message is nil for
// what nobody wants.
func (k *decoder) next(b []byte, expired bool) (int, tea.Msg) {
	if k.paste != nil {
		end := bytes.Index(b, pasteEnd)
		if end >= 0 {
			k.addPaste(b[:end])
			text := k.paste
			k.paste = nil
			if k.pasted > maxPaste {
				return end + len(pasteEnd), pasteTooLong{k.pasted}
			}
			return end + len(pasteEnd), paste{text, true}
		}
		keep := 0 // the end may have begun
		for i := min(len(pasteEnd)-1, len(b)); i > 0; i-- {
			if bytes.HasSuffix(b, pasteEnd[:i]) {
				keep = i
				break
			}
		}
		k.addPaste(b[:len(b)-keep])
		return len(b) - keep, nil
	}
	if bytes.HasPrefix(b, pasteStart) {
		k.paste, k.pasted = []byte{}, 0
		return len(pasteStart), nil
	}
	if n := printableRun(b); n >= pasteRun {
		return n, paste{b[:n:n], false}
	}
	if !expired && incomplete(b) {
		return 0, nil
	}
	n, ev := k.events.Decode(b)
	if n <= 0 {
		n = 1
	}
	switch ev := ev.(type) {
	case uv.UnknownEvent:
		if !expired && b[0] == 0x1b && len(b) < 256 && n == len(b) {
			return 0, nil
		}
		return n, nil
	case uv.KeyPressEvent:
		return n, tea.KeyPressMsg(ev)
	}
	return n, nil
}

func (k *decoder) addPaste(b []byte) {
	k.pasted += len(b)
	if room := maxPaste - len(k.paste); room < len(b) {
		b = b[:max(0, room)]
	}
	k.paste = append(k.paste, b...)
}

// text is the paste with line feeds at its line ends; terminals send carriage returns.
func (p paste) text() string {
	s := strings.ToValidUTF8(string(p.raw), "\ufffd")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.ReplaceAll(s, "\r", "\n")
}

// incomplete reports whether b begins with a part of a sequence or character whose rest may still come.
func incomplete(b []byte) bool {
	if b[0] != 0x1b {
		return b[0] >= 0xc0 && !utf8.FullRune(b)
	}
	if len(b) == 1 {
		return true
	}
	switch b[1] {
	case '[':
		for _, c := range b[2:] {
			if c >= 0x40 && c <= 0x7e {
				return false
			}
		}
		return len(b) < 64
	case 'O':
		return len(b) == 2
	case ']', 'P', '_', '^', 'X': // strings, ended by BEL or ST
		return len(b) < 4096 && !bytes.ContainsAny(b[2:], "\a\x9c") && !bytes.Contains(b[2:], []byte("\x1b\\"))
	case 0x1b:
		return len(b) == 2
	}
	return !utf8.FullRune(b[1:])
}

// printableRun is how many bytes at the start of b are printable characters without a control among them.
func printableRun(b []byte) int {
	n := 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if r < 0x20 || r == 0x7f || (r == utf8.RuneError && size == 1) {
			break
		}
		n += size
	}
	return n
}
