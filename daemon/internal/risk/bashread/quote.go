package bashread

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unescapeDouble undoes the backslashes that count inside double quotes.
func unescapeDouble(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// escapes are the letters that stand for control characters in $'…'.
var escapes = map[byte]byte{'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': '\n', 'r': '\r', 't': '\t', 'v': 11}

// AnsiC decodes $'…'.
func AnsiC(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		// number reads up to most digits from s[i:] on, and leaves i at the last of them.
		number := func(base, most int) rune {
			end := i
			for end < len(s) && end-i < most && strings.IndexByte("0123456789abcdefABCDEF"[:base+base/16*6], s[end]) >= 0 {
				end++
			}
			n, _ := strconv.ParseUint(s[i:end], base, 32)
			i = end - 1
			return rune(n)
		}
		switch c := s[i]; {
		case escapes[c] != 0:
			b.WriteByte(escapes[c])
		case c == 'x' || c == 'u' || c == 'U':
			i++
			if n := number(16, map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]); c == 'x' {
				b.WriteByte(byte(n))
			} else {
				b.WriteRune(n)
			}
		case c >= '0' && c <= '7':
			b.WriteByte(byte(number(8, 3)))
		case c == 'c' && i+1 < len(s):
			i++
			b.WriteByte(s[i] & 0x1f)
		default: // \\ \' \" \?
			b.WriteByte(c)
		}
	}
	return b.String()
}

// maxBraces bounds the words that one word with braces becomes.
const maxBraces = 128

// expandBraces writes out {a,b} and {1..3}; ok is false where that would be too much.
func expandBraces(w *syntax.Word) (list []*syntax.Word, ok bool) {
	list = []*syntax.Word{{}}
	most := min(maxBraces, 64*maxBraces/max(1, len(w.Parts))) // fewer of a word with many parts: each copies them all
	for _, p := range w.Parts {
		br, is := p.(*syntax.BraceExp)
		if !is {
			for _, x := range list {
				x.Parts = append(x.Parts, p)
			}
			continue
		}
		var tails []*syntax.Word
		if br.Sequence {
			if tails = sequence(br); tails == nil {
				return nil, false
			}
		} else {
			for _, e := range br.Elems {
				sub, ok := expandBraces(e)
				if !ok {
					return nil, false
				}
				tails = append(tails, sub...)
			}
		}
		if len(list)*len(tails) > most {
			return nil, false
		}
		next := make([]*syntax.Word, 0, len(list)*len(tails))
		for _, head := range list {
			for _, t := range tails {
				next = append(next, &syntax.Word{Parts: append(append([]syntax.WordPart(nil), head.Parts...), t.Parts...)})
			}
		}
		list = next
	}
	return list, true
}

// sequence returns the words of {1..9..2} or {a..f}, nil where they are too many.
func sequence(br *syntax.BraceExp) (words []*syntax.Word) {
	number := func(i int) (int, bool) {
		if i >= len(br.Elems) {
			return 1, true
		}
		n, err := strconv.Atoi(br.Elems[i].Lit())
		return n, err == nil && n > -1e6 && n < 1e6
	}
	from, ok1 := number(0)
	to, ok2 := number(1)
	step, ok3 := number(2)
	letters := !ok1 || !ok2
	if letters {
		a, b := br.Elems[0].Lit(), br.Elems[1].Lit()
		if len(a) != 1 || len(b) != 1 {
			return nil
		}
		from, to = int(a[0]), int(b[0])
	}
	step = max(1, step, -step)
	if d := (to - from) / step; !ok3 || d > maxBraces || d < -maxBraces {
		return nil
	}
	if from > to {
		step = -step
	}
	for n := from; step > 0 && n <= to || step < 0 && n >= to; n += step {
		s := strconv.Itoa(n)
		if letters {
			s = string(rune(n))
		}
		words = append(words, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: s}}})
	}
	return words
}

// GlobMatch matches *, ? and literals; a [ matches any one character. Its time is bounded by the product of the lengths.
func GlobMatch(pattern, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && pattern[p] == '[':
			p += max(0, strings.IndexByte(pattern[p:], ']')) + 1
			i++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
