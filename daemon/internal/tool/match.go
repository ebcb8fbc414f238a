package tool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxLiterals = 16 // searched for at once

// lineMatcher finds the lines that a regular expression matches. If every match must contain one of a few literals, it searches
// for these first, because package regexp takes twenty times as long for each byte. It is for one goroutine.
type lineMatcher struct {
	re         *regexp.Regexp
	literals   [][]byte
	ignoreCase bool   // the literals are folded
	literal    bool   // re is one literal, so a line that contains it matches
	folded     []byte // the text, folded; reused
}

// newLineMatcher returns an error for a pattern that is invalid, or of which every match contains a line end.
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
	if m.ignoreCase = folds(tree); m.ignoreCase {
		for i, l := range m.literals {
			m.literals[i] = appendFolded(nil, l)
		}
	}
	m.literal = tree.Op == syntax.OpLiteral && len(m.literals) == 1 && !m.ignoreCase
	return m, nil
}

// folds reports whether any part of re ignores case.
func folds(re *syntax.Regexp) bool {
	return re.Flags&syntax.FoldCase != 0 || slices.ContainsFunc(re.Sub, folds)
}

// spansLines reports whether every match of re contains a line end.
func spansLines(re *syntax.Regexp) bool {
	return re.Op == syntax.OpLiteral && slices.Contains(re.Rune, '\n') ||
		(re.Op == syntax.OpConcat || re.Op == syntax.OpCapture || re.Op == syntax.OpPlus) && slices.ContainsFunc(re.Sub, spansLines)
}

// mayMatch reports whether a line of text can match.
func (m *lineMatcher) mayMatch(text []byte) bool {
	if len(m.literals) == 0 {
		return true
	}
	if m.ignoreCase {
		m.folded = appendFolded(m.folded[:0], text)
		text = m.folded
	}
	return slices.ContainsFunc(m.literals, func(l []byte) bool { return bytes.Contains(text, l) })
}

// match reports whether re matches a line, which has no line end but may have a carriage return.
func (m *lineMatcher) match(line []byte) bool {
	return m.mayMatch(line) && (m.literal || m.re.Match(bytes.TrimSuffix(line, []byte("\r"))))
}

// appendFolded appends text to dst with bit 5 of each byte set. That is the only bit in which the cases of a letter differ, but other
// characters become equal, too, such as [ and {.
func appendFolded(dst, text []byte) []byte {
	at := len(dst)
	dst = append(dst, text...)
	rest := dst[at:]
	for ; len(rest) >= 8; rest = rest[8:] {
		binary.NativeEndian.PutUint64(rest, binary.NativeEndian.Uint64(rest)|0x2020202020202020)
	}
	for i := range rest {
		rest[i] |= 0x20
	}
	return dst
}

// required returns texts of which every match of re, which is simplified, contains at least one; nil if it finds none.
func required(re *syntax.Regexp) [][]byte {
	switch re.Op {
	case syntax.OpLiteral:
		return literals(re.Rune, re.Flags&syntax.FoldCase != 0)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		var best [][]byte
		for _, sub := range re.Sub {
			if l := required(sub); len(l) > 0 && shortestLength(l) > shortestLength(best) {
				best = l
			}
		}
		return best
	case syntax.OpAlternate:
		var all [][]byte
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

// shortestLength returns the length of the shortest element, 0 for none.
func shortestLength(list [][]byte) int {
	if len(list) == 0 {
		return 0
	}
	return len(slices.MinFunc(list, func(a, b []byte) int { return len(a) - len(b) }))
}

// literals returns the runes as text. If case is ignored, that is the longest ASCII part without letters that have other forms:
// K and S have some beyond ASCII.
func literals(runes []rune, fold bool) [][]byte {
	if slices.Contains(runes, utf8.RuneError) {
		return nil // it also matches invalid UTF-8
	}
	best := string(runes)
	if fold {
		best = ""
		for part := range strings.FieldsFuncSeq(string(runes), func(r rune) bool { return r >= utf8.RuneSelf || strings.ContainsRune("KkSs", r) }) {
			if len(part) > len(best) {
				best = part
			}
		}
	}
	if best == "" {
		return nil
	}
	return [][]byte{[]byte(best)}
}
