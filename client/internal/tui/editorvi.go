package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// viState is readline's vi mode on top of an editor, for those who have `set -o vi` or its line in ~/.inputrc. Keys with
// a meaning of their own to the screen come back from viKey as an action.
type viState struct {
	on      bool
	command bool     // keys are commands, not text
	typed   []string // of the command that is not complete yet
	find    viCommand
	change  []string // the keys of the last change, for `.`
	record  []string // those of the change that goes on
	replay  bool     // they are being played
}

// viCommand is one command, complete.
type viCommand struct {
	count int // 1 without one
	given bool
	op    string // "d", "c" or "y" before a motion
	name  string
	arg   string // the character of f, F, t, T and r
}

// viMaxCount bounds a count, so that 999999999x is no work.
const viMaxCount = 4096

// setVi switches vi mode; a line begins in insert mode.
func (e *editor) setVi(on bool) {
	if e.vi.on != on {
		e.vi = viState{on: on}
	}
}

// viInsert ends the command mode, viEscape begins it: the cursor then stands on a character, not behind one.
func (e *editor) viInsert() { e.vi.command, e.vi.typed = false, nil }

func (e *editor) viEscape() {
	if !e.vi.replay && e.vi.record != nil {
		e.vi.change = append(e.vi.record, "esc")
		e.vi.record = nil
	}
	if !e.vi.command && e.pos > e.lineStart(e.pos) {
		e.pos = e.prev(e.pos)
	}
	e.vi.command, e.vi.typed = true, nil
	e.moved()
}

// viNote remembers a key of insert mode for `.`.
func (e *editor) viNote(k, text string) {
	if e.vi.record != nil && !e.vi.replay {
		e.vi.record = append(e.vi.record, firstOf(text, k))
	}
}

// viKey takes a key of command mode. The action, where there is one, is the screen's: up, down, search, comment or edit.
func (e *editor) viKey(k string) (action string) {
	if k == "space" {
		k = " "
	}
	e.vi.typed = append(e.vi.typed, k)
	c, state := parseVi(e.vi.typed)
	if state == viMore {
		return ""
	}
	keys := e.vi.typed
	e.vi.typed = nil
	if state == viBad {
		return ""
	}
	switch c.name {
	case "k", "-", "up", "ctrl+p":
		return "up"
	case "j", "+", "down", "ctrl+n":
		return "down"
	case "/", "?":
		return "search"
	case "#":
		return "comment"
	case "v":
		return "edit"
	case ".":
		e.viRepeat()
		return ""
	}
	changes := c.op == "d" || c.op == "c" || c.op == "" && strings.Contains("xXDCsSrpP~iIaA", c.name)
	e.viDo(c)
	if changes && !e.vi.replay {
		if e.vi.command {
			e.vi.change = keys
		} else {
			e.vi.record = keys
		}
	}
	return ""
}

// viRepeat does the last change again.
func (e *editor) viRepeat() {
	if e.vi.replay || len(e.vi.change) == 0 {
		return
	}
	e.vi.replay = true
	for _, k := range e.vi.change {
		switch {
		case e.vi.command:
			e.viKey(k)
		case k == "esc":
			e.viEscape()
		case !e.key(k):
			e.insert(k)
		}
	}
	e.vi.replay = false
}

// States of a command that is being typed.
const (
	viMore = iota
	viDone
	viBad
)

// viSimple are the commands of one key, viMotions those that move, also behind an operator.
const (
	viSimple  = "kj+-/?#.vxXDCYsSpP~iIaAuU"
	viMotions = "hl0^$wWbBeE%|;,"
)

// parseVi reads a command from its keys.
func parseVi(keys []string) (viCommand, int) {
	c := viCommand{count: 1}
	count := func() {
		n := 0
		for len(keys) > 0 && len(keys[0]) == 1 && (keys[0] >= "1" && keys[0] <= "9" || n > 0 && keys[0] == "0") {
			n = min(viMaxCount, 10*n+int(keys[0][0]-'0'))
			keys = keys[1:]
		}
		if n > 0 {
			c.count, c.given = min(viMaxCount, c.count*n), true
		}
	}
	count()
	if len(keys) > 0 && (keys[0] == "d" || keys[0] == "c" || keys[0] == "y") {
		c.op, keys = keys[0], keys[1:]
		count()
	}
	if len(keys) == 0 {
		return c, viMore
	}
	c.name, keys = keys[0], keys[1:]
	switch c.name {
	case " ", "right":
		c.name = "l"
	case "left", "backspace", "ctrl+h":
		c.name = "h"
	case "home":
		c.name = "0"
	case "end":
		c.name = "$"
	case "delete":
		c.name = "x"
	case "up", "down", "ctrl+p", "ctrl+n":
		return c, viDone
	}
	switch {
	case strings.Contains("fFtT", c.name), c.name == "r" && c.op == "":
		if len(keys) == 0 {
			return c, viMore
		}
		c.arg = keys[0]
		if utf8.RuneCountInString(c.arg) != 1 {
			return c, viBad
		}
		return c, viDone
	case len(c.name) == 1 && strings.Contains(viMotions, c.name), c.op != "" && c.op == c.name:
		return c, viDone
	case c.op == "" && len(c.name) == 1 && strings.Contains(viSimple, c.name):
		return c, viDone
	}
	return c, viBad
}

// viDo does a command that changes the line or moves in it.
func (e *editor) viDo(c viCommand) {
	switch {
	case c.op != "":
		e.viOperate(c)
	case strings.Contains(viMotions+"fFtT", c.name):
		if to, _, ok := e.viMotion(c); ok {
			e.pos = to
			e.moved()
		}
	default:
		e.viSimple(c)
	}
	if e.vi.command {
		e.viSettle()
	}
}

// viSettle puts the cursor onto the last character of its line where it stands behind it.
func (e *editor) viSettle() {
	if e.pos == e.lineEnd(e.pos) && e.pos > e.lineStart(e.pos) {
		e.pos = e.prev(e.pos)
	}
}

// viSimple does a command that is no motion.
func (e *editor) viSimple(c viCommand) {
	start, end := e.lineStart(e.pos), e.lineEnd(e.pos)
	forward := func() int { return e.viRight(e.pos, c.count, end) }
	switch c.name {
	case "i":
	case "I":
		e.pos = start
	case "a":
		e.pos = e.viRight(e.pos, 1, end)
	case "A":
		e.pos = end
	case "x":
		e.viKill(e.pos, forward())
	case "X":
		e.viKill(e.viLeft(e.pos, c.count, start), e.pos)
	case "s":
		e.viKill(e.pos, forward())
	case "S":
		e.viKill(start, end)
	case "D", "C":
		e.viKill(e.pos, end)
	case "Y":
		e.viKeep(e.pos, end)
	case "p", "P":
		e.viPut(c)
	case "r":
		e.viEach(c, forward(), func(string) string { return c.arg })
		e.pos = e.viLeft(e.pos, 1, start)
	case "~":
		e.viEach(c, forward(), viSwapCase)
	case "u":
		for range c.count {
			e.undoOnce()
		}
	case "U":
		for len(e.undo) > 0 {
			e.undoOnce()
		}
	}
	if strings.Contains("iIaAsSC", c.name) {
		e.moved()
		e.viInsert()
	}
}

// viPut puts what was killed last behind the cursor (p) or before it (P).
func (e *editor) viPut(c viCommand) {
	if len(e.kills) == 0 {
		return
	}
	text := strings.Repeat(e.kills[len(e.kills)-1], min(c.count, max(1, viMaxCount/max(1, len(e.kills[len(e.kills)-1])))))
	if c.name == "p" {
		e.pos = e.viRight(e.pos, 1, e.lineEnd(e.pos))
	}
	e.insertWhole(text)
	if text != "" {
		e.pos = e.prev(e.pos)
	}
}

// viEach replaces each character from the cursor to end.
func (e *editor) viEach(c viCommand, end int, f func(string) string) {
	if e.pos >= end {
		return
	}
	var b strings.Builder
	for at := e.pos; at < end; at = e.next(at) {
		b.WriteString(f(e.text[at:e.next(at)]))
	}
	e.replace(e.pos, end, b.String())
}

func viSwapCase(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if unicode.IsUpper(r) {
		return string(unicode.ToLower(r)) + s[n:]
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

// viOperate deletes, changes or keeps what a motion goes over.
func (e *editor) viOperate(c viCommand) {
	from, to := e.lineStart(e.pos), e.lineEnd(e.pos)
	if c.name != c.op {
		at, inclusive, ok := e.viMotion(c)
		if !ok {
			return
		}
		from, to = min(e.pos, at), max(e.pos, at)
		if inclusive && to < len(e.text) {
			to = e.next(to)
		}
		if c.op == "c" && (c.name == "w" || c.name == "W") { // the spaces behind the word stay
			for to > from && viBlank(e.text, to-1) {
				to--
			}
			if to == from {
				to = e.viRight(from, 1, e.lineEnd(from))
			}
		}
	}
	if c.op == "y" {
		e.viKeep(from, to)
		return
	}
	e.viKill(from, to)
	if c.op == "c" {
		e.moved()
		e.viInsert()
	}
}

// viKill removes text and keeps it, as one step of undo; viKeep only keeps it. Neither gathers with the one before.
func (e *editor) viKill(from, to int) {
	if from < to {
		e.kind = editNone
		e.kill(from, to)
		e.kind = editNone
	}
}

func (e *editor) viKeep(from, to int) {
	if from < to {
		e.kills = append(e.kills, e.text[from:to])
		if len(e.kills) > maxKills {
			e.kills = e.kills[1:]
		}
	}
}

func (e *editor) viRight(at, n, end int) int {
	for ; n > 0 && at < end; n-- {
		at = e.next(at)
	}
	return min(at, end)
}

func (e *editor) viLeft(at, n, start int) int {
	for ; n > 0 && at > start; n-- {
		at = e.prev(at)
	}
	return max(at, start)
}

// viNonBlank is the first character of a line that is no space.
func (e *editor) viNonBlank(start int) int {
	for start < len(e.text) && viBlank(e.text, start) {
		start++
	}
	return start
}

func viBlank(s string, at int) bool { return s[at] == ' ' || s[at] == '\t' }
