package tool

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

const (
	maxLiterals   = 16  // searched for at once
	firstNonASCII = 128 // byte
)

// lineMatcher finds the lines that a regular expression matches. If every match must contain one of a few literals, it searches
// for these first and matches only their lines, because package regexp takes twenty times as long for each byte.
type lineMatcher struct {
	re       *regexp.Regexp
	literals []literal
	exact    bool // a line with a literal matches without evaluating re
}

func newLineMatcher(pattern string) (lineMatcher, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return lineMatcher{}, err
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return lineMatcher{}, err
	}
	if spansLines(tree) {
		return lineMatcher{}, errors.New("contains a line end, which no line has; search for one of the lines, with context")
	}
	m := lineMatcher{re: re, literals: required(tree.Simplify())}
	m.exact = len(m.literals) == 1 && tree.Op == syntax.OpLiteral && string(m.literals[0].text) == string(tree.Rune)
	return m, nil
}

// spansLines reports whether every match of re contains a line end.
func spansLines(re *syntax.Regexp) bool {
	return re.Op == syntax.OpLiteral && slices.Contains(re.Rune, '\n') ||
		(re.Op == syntax.OpConcat || re.Op == syntax.OpCapture || re.Op == syntax.OpPlus) && slices.ContainsFunc(re.Sub, spansLines)
}

// begin resets the matcher for another text.
func (m *lineMatcher) begin() {
	for i := range m.literals {
		l := &m.literals[i]
		l.next, l.cases = -1, [2]int{-1, -1}
	}
}

// first returns the first matching line of another text.
func (m *lineMatcher) first(text []byte) (start, end int) {
	m.begin()
	return m.next(text, 0)
}

// next returns the first matching line at or after byte pos, without its end; start is -1 if there is none. pos must begin a
// line, and not decrease from call to call.
func (m *lineMatcher) next(text []byte, pos int) (start, end int) {
	for pos < len(text) {
		start := pos
		if len(m.literals) > 0 {
			at := m.literal(text, pos)
			if at < 0 {
				return -1, -1
			}
			start = bytes.LastIndexByte(text[pos:at], '\n') + 1 + pos
			pos = at
		}
		end := bytes.IndexByte(text[pos:], '\n') + pos
		if end < pos {
			end = len(text)
		}
		if m.exact || m.re.Match(bytes.TrimSuffix(text[start:end], []byte("\r"))) {
			return start, end
		}
		pos = end + 1
	}
	return -1, -1
}

// literal returns the index of the first literal, -1 if there is none.
func (m *lineMatcher) literal(text []byte, pos int) int {
	first := len(text)
	for i := range m.literals {
		l := &m.literals[i]
		if l.next < pos {
			l.next = l.index(text, pos)
		}
		first = min(first, l.next)
	}
	if first == len(text) {
		return -1
	}
	return first
}

// literal is a text to search for.
type literal struct {
	text  []byte
	fold  bool   // ignore case; text is then lower case ASCII
	rare  int    // with fold: index of the rarest byte of text, which is searched for first
	next  int    // index of the next occurrence; the length of the searched text = none
	cases [2]int // index of the next rare byte in lower and upper case
}

// index returns the index of the next occurrence of l from pos on.
func (l *literal) index(text []byte, pos int) int {
	if !l.fold {
		if i := bytes.Index(text[pos:], l.text); i >= 0 {
			return pos + i
		}
		return len(text)
	}
	lower := l.text[l.rare]
	upper := lower
	if lower >= 'a' && lower <= 'z' {
		upper -= 'a' - 'A'
	}
	for from := pos + l.rare; ; {
		for i, c := range []byte{lower, upper} {
			if l.cases[i] >= from {
				continue
			}
			l.cases[i] = len(text)
			if from < len(text) {
				if n := bytes.IndexByte(text[from:], c); n >= 0 {
					l.cases[i] = from + n
				}
			}
		}
		at := min(l.cases[0], l.cases[1])
		if at == len(text) {
			return at
		}
		if start := at - l.rare; start+len(l.text) <= len(text) && foldEqual(text[start:start+len(l.text)], l.text) {
			return start
		}
		from = at + 1
	}
}

func foldEqual(text, lower []byte) bool {
	for i, c := range text {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// required returns texts of which every match of re contains at least one; nil if it finds none.
func required(re *syntax.Regexp) []literal {
	switch re.Op {
	case syntax.OpLiteral:
		return literals(re.Rune, re.Flags&syntax.FoldCase != 0)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []literal
		for _, sub := range re.Sub {
			if l := required(sub); len(l) > 0 && shortest(l) > shortest(best) {
				best = l
			}
		}
		return best
	case syntax.OpAlternate:
		var all []literal
		for _, sub := range re.Sub {
			l := required(sub)
			if len(l) == 0 {
				return nil
			}
			all = append(all, l...)
		}
		if len(all) <= maxLiterals {
			return all
		}
	}
	return nil
}

func shortest(list []literal) int {
	n := 0
	for i, l := range list {
		if i == 0 || len(l.text) < n {
			n = len(l.text)
		}
	}
	return n
}

// literals returns the runes as text. If case is ignored, that is the longest ASCII part without letters that have other forms:
// K and S have some beyond ASCII.
func literals(runes []rune, fold bool) []literal {
	if !fold {
		if slices.Contains(runes, utf8.RuneError) {
			return nil // it also matches invalid UTF-8
		}
		return []literal{{text: []byte(string(runes))}}
	}
	var best, part []byte
	for _, r := range append(slices.Clip(runes), firstNonASCII) { // which ends the last part
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		if r < firstNonASCII && r != 'k' && r != 's' {
			part = append(part, byte(r))
			continue
		}
		if len(part) > len(best) {
			best = slices.Clone(part)
		}
		part = part[:0]
	}
	if len(best) == 0 {
		return nil
	}
	l := literal{text: best, fold: true}
	for i, c := range best {
		if frequency(c) < frequency(best[l.rare]) {
			l.rare = i
		}
	}
	return []literal{l}
}

// frequency lists bytes by their frequency in source text, the rarest first.
func frequency(c byte) int {
	return bytes.IndexByte([]byte("~`@$^?#%!&\\+Q|ZJX'Kz<>VqYjWHU[]{}GBk*xFw;/MOPNvLDRCyIb:AgTSEhm0,12=-9876543\"pufd()clsoainrt_.e\t\n "), c)
}
