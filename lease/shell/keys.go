package shell

import (
	"bytes"
	"time"
	"unicode/utf8"
)

// typing is what is known of the user's line from the keys since the prompt. The hold key, which Shell.take types to have the
// editor block, works in the editor's normal state only. Plain keys leave it in that; any other (a search, a menu, ^V, Enter)
// may not.
type typing struct {
	keys   bool      // some key was typed
	other  bool      // one of them was not plain
	filled bool      // the last one put a character into the line
	broke  bool      // the last one was ^C, which the shell may not have seen yet
	last   time.Time // of the last one
	paste  []byte    // in a bracketed paste, its last bytes, which may begin pasteEnd; nil outside of one
}

var (
	pasteBegin = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
	arrows     = [][]byte{
		[]byte("\x1b[A"), []byte("\x1b[B"), []byte("\x1b[C"), []byte("\x1b[D"), []byte("\x1bOA"), []byte("\x1bOB"), []byte("\x1bOC"), []byte("\x1bOD"),
		[]byte("\x1bb"), []byte("\x1bf"), []byte("\x1b[H"), []byte("\x1b[F"), []byte("\x1bOH"), []byte("\x1bOF"), []byte("\x1b[3~"),
		[]byte("\x1b[I"), []byte("\x1b[O"), // no keys, but reports: the terminal has the focus, or lost it
	}
)

// take records the keys p, typed at now. It stops at the first key that is not plain: other then stays set until the prompt.
func (t *typing) take(p []byte, now time.Time) {
	t.last = now
	for len(p) > 0 {
		t.keys = true
		if t.paste != nil {
			t.filled = true
			p = t.pasted(p)
			continue
		}
		n := t.plain(p)
		if n == 0 {
			t.other = true
			return
		}
		p = p[n:]
	}
}

// pasted continues the paste with p, and returns what follows its end.
func (t *typing) pasted(p []byte) []byte {
	p = append(t.paste, p...)
	i := bytes.Index(p, pasteEnd)
	if i < 0 {
		t.paste = bytes.Clone(p[max(0, len(p)-len(pasteEnd)+1):])
		return nil
	}
	t.paste = nil
	return p[i+len(pasteEnd):]
}

// plain returns the length of the plain key at the start of p, 0 if there is none. The beginning of a paste counts as one.
func (t *typing) plain(p []byte) int {
	t.filled, t.broke = false, false
	switch c := p[0]; {
	case bytes.HasPrefix(p, pasteBegin):
		t.paste = []byte{}
		return len(pasteBegin)
	case c == 0x1b:
		for _, key := range arrows {
			if bytes.HasPrefix(p, key) {
				return len(key)
			}
		}
		return 0
	case c == 0x03: // ^C
		t.broke = true
		return 1
	case c == 0x7f || bytes.IndexByte([]byte("\x01\x02\x05\x06\x08\x0b\x0c\x15\x17\x19"), c) >= 0: // Backspace, ^A ^B ^E ^F ^H ^K ^L ^U ^W ^Y
		return 1
	case c < 0x20:
		return 0
	case c < utf8.RuneSelf:
		t.filled = true
		return 1
	default:
		_, n := utf8.DecodeRune(p)
		t.filled = true
		return n
	}
}
