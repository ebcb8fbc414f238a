// Package line is the editor for the line in which a question is written: its keys, its layout and its history.
package line

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"

	"sublet/client/internal/tui/cells"
)

// Line is a text being edited, with the commonest of readline's emacs keys. Positions are byte offsets, and always between
// grapheme clusters.
//
// It is not the textarea of bubbles: that one counts code points (a Backspace takes half of é or of a flag), keeps nothing
// that was cut for ^Y, and displays bidirectional and zero-width characters of a paste unchanged.
type Line struct {
	Text string
	Pos  int // the cursor's position
	// Show makes a character visible, always in the same way; nil = visible.Line.
	Show func(string) string

	killed  string // what ^Y inserts
	killing bool   // the last key was a kill, so the next kill appends to killed
}

// Set replaces the text and puts the cursor at its end.
func (l *Line) Set(text string) { l.Text, l.Pos, l.killing = text, len(text), false }

// Empty reports whether there is no text.
func (l *Line) Empty() bool { return l.Text == "" }

// Insert inserts s at the cursor.
func (l *Line) Insert(s string) { l.splice(l.Pos, l.Pos, s) }

// splice replaces text[from:to] and puts the cursor after s.
func (l *Line) splice(from, to int, s string) {
	l.Text = l.Text[:from] + s + l.Text[to:]
	l.Pos, l.killing = from+len(s), false
}

// next and prev return the positions of the neighbouring grapheme clusters.
func (l *Line) next(pos int) int {
	c, _, _, _ := uniseg.FirstGraphemeClusterInString(l.Text[pos:], -1)
	return pos + len(c)
}

func (l *Line) prev(pos int) int {
	// Clusters can only be found forwards, so begin at the start of the line.
	at := l.lineStart(pos)
	if at == pos {
		return max(0, pos-1) // the line feed before it
	}
	for {
		n := l.next(at)
		if n >= pos {
			return at
		}
		at = n
	}
}

func (l *Line) lineStart(pos int) int { return strings.LastIndexByte(l.Text[:pos], '\n') + 1 }

func (l *Line) lineEnd(pos int) int {
	if i := strings.IndexByte(l.Text[pos:], '\n'); i >= 0 {
		return pos + i
	}
	return len(l.Text)
}

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || unicode.IsMark(r)
}

func otherRune(r rune) bool { return !wordRune(r) }

// wordEnd returns the end of the word at or after pos.
func (l *Line) wordEnd(pos int) int {
	word := strings.TrimLeftFunc(l.Text[pos:], otherRune)
	return len(l.Text) - len(strings.TrimLeftFunc(word, wordRune))
}

// wordStart returns the start of the word at or before pos.
func (l *Line) wordStart(pos int) int {
	word := strings.TrimRightFunc(l.Text[:pos], otherRune)
	return len(strings.TrimRightFunc(word, wordRune))
}

// fieldStart returns the start of the run of non-spaces before pos (^W).
func (l *Line) fieldStart(pos int) int {
	field := strings.TrimRightFunc(l.Text[:pos], unicode.IsSpace)
	return len(strings.TrimRightFunc(field, func(r rune) bool { return !unicode.IsSpace(r) }))
}

// kill removes text[from:to] and keeps it for ^Y; consecutive kills are joined.
func (l *Line) kill(from, to int) {
	if from >= to {
		return
	}
	cut := l.Text[from:to]
	switch {
	case !l.killing:
		l.killed = cut
	case from < l.Pos:
		l.killed = cut + l.killed
	default:
		l.killed += cut
	}
	l.splice(from, to, "")
	l.killing = true
}

// Vertical moves the cursor a line up or down within the text and reports whether there was one.
func (l *Line) Vertical(down bool) bool {
	start, end := l.lineStart(l.Pos), l.lineEnd(l.Pos)
	var at int // the start of the other line
	switch {
	case down && end < len(l.Text):
		at = end + 1
	case !down && start > 0:
		at = l.lineStart(start - 1)
	default:
		return false
	}
	col := cells.Width(l.Text[start:l.Pos])
	from := at
	end = l.lineEnd(at)
	for at < end && cells.Width(l.Text[from:l.next(at)]) <= col {
		at = l.next(at)
	}
	l.move(at)
	return true
}

// Clear removes the whole text, which ^Y brings back.
func (l *Line) Clear() {
	l.move(len(l.Text))
	l.kill(0, len(l.Text))
}

func (l *Line) move(pos int) { l.Pos, l.killing = pos, false }

// Key carries out a key as readline does, and reports whether it is one of the editor's. The caller handles the others first:
// Enter, Tab, ^C, ^D on an empty line, history.
func (l *Line) Key(k string) bool {
	switch k {
	case "ctrl+a", "home":
		l.move(l.lineStart(l.Pos))
	case "ctrl+e", "end":
		l.move(l.lineEnd(l.Pos))
	case "ctrl+b", "left":
		l.move(l.prev(l.Pos))
	case "ctrl+f", "right":
		l.move(l.next(l.Pos))
	case "alt+b", "ctrl+left", "alt+left":
		l.move(l.wordStart(l.Pos))
	case "alt+f", "ctrl+right", "alt+right":
		l.move(l.wordEnd(l.Pos))
	case "alt+<", "ctrl+home":
		l.move(0)
	case "alt+>", "ctrl+end":
		l.move(len(l.Text))
	case "backspace", "ctrl+h", "shift+backspace":
		if l.Pos > 0 {
			l.splice(l.prev(l.Pos), l.Pos, "")
		}
	case "delete", "ctrl+d":
		if l.Pos < len(l.Text) {
			l.splice(l.Pos, l.next(l.Pos), "")
		}
	case "ctrl+k":
		end := l.lineEnd(l.Pos)
		if end == l.Pos && end < len(l.Text) {
			end++
		}
		l.kill(l.Pos, end)
	case "ctrl+u":
		start := l.lineStart(l.Pos)
		if start == l.Pos && start > 0 {
			start--
		}
		l.kill(start, l.Pos)
	case "ctrl+w":
		l.kill(l.fieldStart(l.Pos), l.Pos)
	case "alt+backspace", "ctrl+alt+h":
		l.kill(l.wordStart(l.Pos), l.Pos)
	case "alt+d", "ctrl+delete":
		l.kill(l.Pos, l.wordEnd(l.Pos))
	case "ctrl+y":
		l.Insert(l.killed)
	default:
		return false
	}
	return true
}
