package tui

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// editor is a line of text being written, with readline's emacs keys. It knows nothing of the screen; editorView draws
// it. Positions are bytes and always stand between characters as a person counts them (grapheme clusters).
type editor struct {
	text string
	pos  int

	undo []editorState
	kind editKind

	kills   []string // newest last
	yankAt  int      // where the last yank began, -1: the last action was no yank
	yankIdx int

	vi viState
}

type editorState struct {
	text string
	pos  int
}

type editKind int

const (
	editNone editKind = iota
	editInsert
	editKill
	editOther
)

const (
	maxUndo  = 500
	maxKills = 32
)

// set replaces the text and puts the cursor at its end; the old text can be had back with undo.
func (e *editor) set(text string) {
	if text == e.text {
		e.pos = len(text)
		return
	}
	e.save(editOther)
	e.text, e.pos = text, len(text)
}

// reset empties the editor after its text was used; nothing remains to undo.
func (e *editor) reset() {
	e.text, e.pos, e.undo, e.kind, e.yankAt = "", 0, nil, editNone, -1
	e.vi.record = nil
	e.viInsert()
}

// empty tells that there is no text.
func (e *editor) empty() bool { return e.text == "" }

// save remembers the state before a change. Typed characters are undone together, word by word; in vi mode all that was
// typed in one go.
func (e *editor) save(kind editKind) {
	if kind == editInsert && e.kind == editInsert && (e.vi.on || !strings.HasSuffix(e.text[:e.pos], " ")) {
		return
	}
	e.undo = append(e.undo, editorState{e.text, e.pos})
	if len(e.undo) > maxUndo {
		e.undo = slices.Delete(e.undo, 0, len(e.undo)-maxUndo)
	}
	e.kind = kind
	if kind != editOther {
		e.yankAt = -1
	}
}

// moved says that the cursor moved without a change.
func (e *editor) moved() { e.kind, e.yankAt = editNone, -1 }

func (e *editor) insert(s string) {
	e.save(editInsert)
	e.splice(e.pos, e.pos, s)
	e.kind = editInsert
}

// insertWhole inserts s as one step of undo: a paste or a completion.
func (e *editor) insertWhole(s string) {
	e.save(editOther)
	e.splice(e.pos, e.pos, s)
	e.kind = editOther
}

// splice replaces text[from:to] and leaves the cursor behind what was put in.
func (e *editor) splice(from, to int, s string) {
	e.text = e.text[:from] + s + e.text[to:]
	e.pos = from + len(s)
}

// replace is splice as a step of undo.
func (e *editor) replace(from, to int, s string) {
	e.save(editOther)
	e.splice(from, to, s)
}

func (e *editor) undoOnce() {
	if n := len(e.undo); n > 0 {
		e.text, e.pos = e.undo[n-1].text, e.undo[n-1].pos
		e.undo = e.undo[:n-1]
	}
	e.moved()
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

// wordEnd is the end of the word at or after pos.
func (e *editor) wordEnd(pos int) int {
	in := false
	for i, r := range e.text[pos:] {
		if wordRune(r) {
			in = true
		} else if in {
			return pos + i
		}
	}
	return len(e.text)
}

// wordStart is the start of the word at or before pos.
func (e *editor) wordStart(pos int) int {
	in := false
	for pos > 0 {
		r, n := utf8.DecodeLastRuneInString(e.text[:pos])
		if wordRune(r) {
			in = true
		} else if in {
			break
		}
		pos -= n
	}
	return pos
}

// fieldStart is the start of the run of non-spaces before pos (^W).
func (e *editor) fieldStart(pos int) int {
	s := strings.TrimRightFunc(e.text[:pos], unicode.IsSpace)
	i := strings.LastIndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return 0
	}
	_, n := utf8.DecodeRuneInString(s[i:])
	return i + n
}

// kill removes text[from:to] and keeps it for yank; kills in a row gather.
func (e *editor) kill(from, to int) {
	if from >= to {
		return
	}
	again := e.kind == editKill
	e.save(editKill)
	cut := e.text[from:to]
	if n := len(e.kills); again && n > 0 {
		if from < e.pos {
			e.kills[n-1] = cut + e.kills[n-1]
		} else {
			e.kills[n-1] += cut
		}
	} else {
		e.kills = append(e.kills, cut)
		if len(e.kills) > maxKills {
			e.kills = e.kills[1:]
		}
	}
	e.splice(from, to, "")
	e.kind = editKill
}

func (e *editor) yank() {
	if len(e.kills) == 0 {
		return
	}
	e.yankIdx = len(e.kills) - 1
	at := e.pos
	e.insertWhole(e.kills[e.yankIdx])
	e.yankAt = at
}

// yankPop replaces what was just yanked by the kill before it.
func (e *editor) yankPop() {
	if e.yankAt < 0 || len(e.kills) == 0 {
		return
	}
	at := e.yankAt
	e.yankIdx = (e.yankIdx + len(e.kills) - 1) % len(e.kills)
	e.replace(at, e.pos, e.kills[e.yankIdx])
	e.yankAt = at
}

func (e *editor) transpose() {
	at := e.pos
	if at == len(e.text) {
		at = e.prev(at)
	}
	if at == 0 || at == len(e.text) {
		return
	}
	p, n := e.prev(at), e.next(at)
	e.replace(p, n, e.text[at:n]+e.text[p:at])
}

// word applies f to the next word, as M-u, M-l and M-c do.
func (e *editor) word(f func(string) string) {
	end := e.wordEnd(e.pos)
	if end > e.pos {
		e.replace(e.pos, end, f(e.text[e.pos:end]))
	}
}

func capitalized(s string) string {
	i := strings.IndexFunc(s, wordRune)
	if i < 0 {
		return s
	}
	_, n := utf8.DecodeRuneInString(s[i:])
	return s[:i] + strings.ToUpper(s[i:i+n]) + strings.ToLower(s[i+n:])
}

// vertical moves the cursor a line up or down within the text and reports whether there was one.
func (e *editor) vertical(down bool) bool {
	start := e.lineStart(e.pos)
	col := cells(e.text[start:e.pos])
	var from int
	if down {
		end := e.lineEnd(e.pos)
		if end == len(e.text) {
			return false
		}
		from = end + 1
	} else {
		if start == 0 {
			return false
		}
		from = e.lineStart(start - 1)
	}
	end := e.lineEnd(from)
	at := from
	for at < end && cells(e.text[from:e.next(at)]) <= col {
		at = e.next(at)
	}
	e.pos = at
	e.moved()
	return true
}

// key does what readline does for a key and reports whether it knew it. Keys with a meaning of their own to the screen
// (Enter, Tab, ^C, ^D on an empty line, history) are not for the editor.
func (e *editor) key(k string) bool {
	switch k {
	case "ctrl+a", "home":
		e.pos = e.lineStart(e.pos)
		e.moved()
	case "ctrl+e", "end":
		e.pos = e.lineEnd(e.pos)
		e.moved()
	case "ctrl+b", "left":
		e.pos = e.prev(e.pos)
		e.moved()
	case "ctrl+f", "right":
		e.pos = e.next(e.pos)
		e.moved()
	case "alt+b", "ctrl+left", "alt+left":
		e.pos = e.wordStart(e.pos)
		e.moved()
	case "alt+f", "ctrl+right", "alt+right":
		e.pos = e.wordEnd(e.pos)
		e.moved()
	case "alt+<", "ctrl+home":
		e.pos = 0
		e.moved()
	case "alt+>", "ctrl+end":
		e.pos = len(e.text)
		e.moved()
	case "backspace", "ctrl+h", "shift+backspace":
		if e.pos > 0 {
			e.save(editOther)
			e.splice(e.prev(e.pos), e.pos, "")
		}
	case "delete", "ctrl+d":
		if e.pos < len(e.text) {
			e.save(editOther)
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
		e.yank()
	case "alt+y":
		e.yankPop()
	case "ctrl+t":
		e.transpose()
	case "alt+u":
		e.word(strings.ToUpper)
	case "alt+l":
		e.word(strings.ToLower)
	case "alt+c":
		e.word(capitalized)
	case "ctrl+_", "ctrl+/", "ctrl+7", "ctrl+shift+-":
		e.undoOnce()
	case "alt+r": // readline's revert-line
		for len(e.undo) > 0 {
			e.undoOnce()
		}
	default:
		return false
	}
	return true
}
