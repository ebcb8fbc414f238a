package tui

import (
	"strings"
	"unicode/utf8"
)

// viMotion is where a motion leads from the cursor; inclusive: an operator takes the character there along.
func (e *editor) viMotion(c viCommand) (to int, inclusive, ok bool) {
	start, end := e.lineStart(e.pos), e.lineEnd(e.pos)
	switch c.name {
	case "h":
		return e.viLeft(e.pos, c.count, start), false, true
	case "l":
		return e.viRight(e.pos, c.count, end), false, true
	case "0":
		return start, false, true
	case "^":
		return e.viNonBlank(start), false, true
	case "$":
		return end, false, true
	case "|":
		return e.viRight(start, c.count-1, end), false, true
	case "w", "W", "b", "B", "e", "E":
		at := e.pos
		for range c.count {
			at = e.viWord(at, c.name)
		}
		return at, c.name == "e" || c.name == "E", true
	case "%":
		to, ok = e.viPartner()
		return to, true, ok
	case "f", "F", "t", "T":
		e.vi.find = c
		return e.viFind(c)
	case ";", ",":
		f := e.vi.find
		if f.name == "" {
			return e.pos, false, false
		}
		f.count = c.count
		if c.name == "," {
			f.name = map[string]string{"f": "F", "F": "f", "t": "T", "T": "t"}[f.name]
		}
		return e.viFind(f)
	}
	return e.pos, false, false
}

// viClass tells spaces, words and other characters apart; for W, B and E all but spaces are one.
func viClass(r rune, big bool) int {
	switch {
	case r == ' ' || r == '\t' || r == '\n':
		return 0
	case big || wordRune(r):
		return 1
	}
	return 2
}

// viWord is the next word's start (w), this or the last word's start (b), this or the next word's end (e).
func (e *editor) viWord(at int, name string) int {
	big := name[0] < 'a'
	class := func(i int) int {
		r, _ := utf8.DecodeRuneInString(e.text[i:])
		return viClass(r, big)
	}
	switch strings.ToLower(name) {
	case "w":
		if at < len(e.text) {
			for here := class(at); at < len(e.text) && here != 0 && class(at) == here; {
				at = e.next(at)
			}
		}
		for at < len(e.text) && class(at) == 0 {
			at = e.next(at)
		}
	case "b":
		for at > 0 && class(e.prev(at)) == 0 {
			at = e.prev(at)
		}
		if at > 0 {
			for here := class(e.prev(at)); at > 0 && class(e.prev(at)) == here; {
				at = e.prev(at)
			}
		}
	case "e":
		if at < len(e.text) {
			at = e.next(at)
		}
		for at < len(e.text) && class(at) == 0 {
			at = e.next(at)
		}
		if at == len(e.text) {
			return max(0, e.prev(at))
		}
		for here := class(at); e.next(at) < len(e.text) && class(e.next(at)) == here; {
			at = e.next(at)
		}
	}
	return at
}

// viFind is where the count'th such character stands on the cursor's line.
func (e *editor) viFind(c viCommand) (to int, inclusive, ok bool) {
	start, end := e.lineStart(e.pos), e.lineEnd(e.pos)
	at := e.pos
	switch c.name {
	case "f", "t":
		for range c.count {
			next := e.next(at)
			if next >= end {
				return e.pos, false, false
			}
			i := strings.Index(e.text[next:end], c.arg)
			if i < 0 {
				return e.pos, false, false
			}
			at = next + i
		}
		if c.name == "t" {
			at = e.prev(at)
		}
		return at, true, true
	default:
		for range c.count {
			i := strings.LastIndex(e.text[start:at], c.arg)
			if i < 0 {
				return e.pos, false, false
			}
			at = start + i
		}
		if c.name == "T" {
			at = e.next(at)
		}
		return at, false, true
	}
}

// viPartner is the bracket that belongs to the first one at or behind the cursor.
func (e *editor) viPartner() (int, bool) {
	const open, closing = "([{", ")]}"
	i := strings.IndexAny(e.text[e.pos:], open+closing)
	if i < 0 {
		return e.pos, false
	}
	at := e.pos + i
	mine, depth := e.text[at], 0
	if k := strings.IndexByte(open, mine); k >= 0 {
		for j := at; j < len(e.text); j++ {
			switch e.text[j] {
			case mine:
				depth++
			case closing[k]:
				depth--
			}
			if depth == 0 {
				return j, true
			}
		}
		return e.pos, false
	}
	partner := open[strings.IndexByte(closing, mine)]
	for j := at; j >= 0; j-- {
		switch e.text[j] {
		case mine:
			depth++
		case partner:
			depth--
		}
		if depth == 0 {
			return j, true
		}
	}
	return e.pos, false
}
