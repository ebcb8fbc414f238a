package tui

import (
	"strings"
	"unicode"

	"sublet/client/internal/tui/cells"

	"github.com/rivo/uniseg"
)

// editor is the text of a question being written, with the commonest of readline's emacs keys. It draws nothing;
// editorView does. Positions are bytes and always stand between characters as a person counts them (grapheme clusters).
//
// It is not the textarea of bubbles: that one counts code points (a Backspace takes half of é or of a flag), keeps nothing
// that was cut for ^Y, and shows bidirectional and zero-width characters of a paste as they are.
type editor struct {
	text string
	pos  int

	killed  string // what ^Y inserts
	killing bool   // the last key was a kill: the next one gathers
}

// set replaces the text and puts the cursor at its end.
func (e *editor) set(text string) { e.text, e.pos, e.killing = text, len(text), false }

func (e *editor) empty() bool { return e.text == "" }

func (e *editor) insert(s string) { e.splice(e.pos, e.pos, s) }

// splice replaces text[from:to] and leaves the cursor behind what was put in.
func (e *editor) splice(from, to int, s string) {
	e.text = e.text[:from] + s + e.text[to:]
	e.pos, e.killing = from+len(s), false
}

// next and prev are the positions of the neighbouring characters.
func (e *editor) next(pos int) int {
	if pos >= len(e.text) {
		return len(e.text)
	}
	c, _, _, _ := uniseg.FirstGraphemeClusterInString(e.text[pos:], -1)
	return pos + len(c)
}

func (e *editor) prev(pos int) int {
	// From the start of the line: a cluster cannot be found backwards.
	at := e.lineStart(pos)
	if at == pos {
		return max(0, pos-1) // the line feed before it
	}
	for {
		n := e.next(at)
		if n >= pos {
			return at
		}
		at = n
	}
}

func (e *editor) lineStart(pos int) int { return strings.LastIndexByte(e.text[:pos], '\n') + 1 }

func (e *editor) lineEnd(pos int) int {
	if i := strings.IndexByte(e.text[pos:], '\n'); i >= 0 {
		return pos + i
	}
	return len(e.text)
}

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r >= 0x300 && unicode.IsMark(r)
}

func otherRune(r rune) bool { return !wordRune(r) }

// wordEnd is the end of the word at or after pos.
func (e *editor) wordEnd(pos int) int {
	word := strings.TrimLeftFunc(e.text[pos:], otherRune)
	return len(e.text) - len(strings.TrimLeftFunc(word, wordRune))
}

// wordStart is the start of the word at or before pos.
func (e *editor) wordStart(pos int) int {
	word := strings.TrimRightFunc(e.text[:pos], otherRune)
	return len(strings.TrimRightFunc(word, wordRune))
}

// fieldStart is the start of the run of non-spaces before pos (^W).
func (e *editor) fieldStart(pos int) int {
	field := strings.TrimRightFunc(e.text[:pos], unicode.IsSpace)
	return len(strings.TrimRightFunc(field, func(r rune) bool { return !unicode.IsSpace(r) }))
}

// kill removes text[from:to] and keeps it for ^Y; kills in a row gather.
func (e *editor) kill(from, to int) {
	if from >= to {
		return
	}
	cut := e.text[from:to]
	switch {
	case !e.killing:
		e.killed = cut
	case from < e.pos:
		e.killed = cut + e.killed
	default:
		e.killed += cut
	}
	e.splice(from, to, "")
	e.killing = true
}

// vertical moves the cursor a line up or down within the text and reports whether there was one.
func (e *editor) vertical(down bool) bool {
	start, end := e.lineStart(e.pos), e.lineEnd(e.pos)
	var at int // the start of the other line
	switch {
	case down && end < len(e.text):
		at = end + 1
	case !down && start > 0:
		at = e.lineStart(start - 1)
	default:
		return false
	}
	col := cells.Width(e.text[start:e.pos])
	from := at
	end = e.lineEnd(at)
	for at < end && cells.Width(e.text[from:e.next(at)]) <= col {
		at = e.next(at)
	}
	e.move(at)
	return true
}

func (e *editor) move(pos int) { e.pos, e.killing = pos, false }

// key does what readline does for a key and reports whether the editor knows it. Keys with a meaning of their own to the
// screen (Enter, Tab, ^C, ^D on an empty line, history) are not for the editor.
func (e *editor) key(k string) bool {
	switch k {
	case "ctrl+a", "home":
		e.move(e.lineStart(e.pos))
	case "ctrl+e", "end":
		e.move(e.lineEnd(e.pos))
	case "ctrl+b", "left":
		e.move(e.prev(e.pos))
	case "ctrl+f", "right":
		e.move(e.next(e.pos))
	case "alt+b", "ctrl+left", "alt+left":
		e.move(e.wordStart(e.pos))
	case "alt+f", "ctrl+right", "alt+right":
		e.move(e.wordEnd(e.pos))
	case "alt+<", "ctrl+home":
		e.move(0)
	case "alt+>", "ctrl+end":
		e.move(len(e.text))
	case "backspace", "ctrl+h", "shift+backspace":
		if e.pos > 0 {
			e.splice(e.prev(e.pos), e.pos, "")
		}
	case "delete", "ctrl+d":
		if e.pos < len(e.text) {
			e.splice(e.pos, e.next(e.pos), "")
		}
	case "ctrl+k":
		end := e.lineEnd(e.pos)
		if end == e.pos && end < len(e.text) {
			end++
		}
		e.kill(e.pos, end)
	case "ctrl+u":
		start := e.lineStart(e.pos)
		if start == e.pos && start > 0 {
			start--
		}
		e.kill(start, e.pos)
	case "ctrl+w":
		e.kill(e.fieldStart(e.pos), e.pos)
	case "alt+backspace", "ctrl+alt+h":
		e.kill(e.wordStart(e.pos), e.pos)
	case "alt+d", "ctrl+delete":
		e.kill(e.pos, e.wordEnd(e.pos))
	case "ctrl+y":
		e.insert(e.killed)
	default:
		return false
	}
	return true
}
