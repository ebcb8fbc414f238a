package lender

import (
	"bytes"
	"sync"
	"unicode"
	"unicode/utf8"

	"sublet/wire"
)

// typedSecret collects what the user types while a borrowed command reads without echo, line by line as the line discipline
// passes it to the command.
type typedSecret struct {
	mu sync.Mutex
	// below: guarded by mu
	on   bool
	line []byte
}

// maxSecret bounds a secret in bytes: a line in canonical mode has no more.
const maxSecret = 4095

// asked records whether a command reads without echo.
func (t *typedSecret) asked(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on = on; !on {
		clear(t.line)
		t.line = t.line[:0]
	}
}

// take adds typed bytes and returns the lines that they complete, edited by the line discipline's default characters.
func (t *typedSecret) take(keys []byte) (lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.on {
		return nil
	}
	for _, c := range keys {
		switch c {
		case '\r', '\n', 0x04: // Enter, ^D
			if len(t.line) > 0 {
				lines = append(lines, string(t.line))
			}
			fallthrough
		case 0x15, 0x03, 0x1c: // ^U, ^C, ^\
			clear(t.line)
			t.line = t.line[:0]
		case 0x17: // ^W: the last word and what follows it
			t.line = bytes.TrimRightFunc(t.line, func(r rune) bool { return !wordRune(r) })
			t.line = bytes.TrimRightFunc(t.line, wordRune)
		case 0x7f, 0x08:
			_, n := utf8.DecodeLastRune(t.line)
			t.line = t.line[:len(t.line)-n]
		default:
			if len(t.line) < maxSecret {
				t.line = append(t.line, c)
			}
		}
	}
	return lines
}

// wordRune reports whether r belongs to a word for ^W: n_tty.c of Linux.
func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// Typed takes what the user types for the borrowed command that has the keyboard, before the command gets it: what it reads
// without echo is sent to the daemon, which masks it.
func (l *Lender) Typed(keys []byte) {
	for _, line := range l.secrets.take(keys) {
		l.send(&wire.SecretTyped{Value: wire.OSString(line)})
	}
}
