package risk

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxBraces bounds the words that one word with braces becomes.
const maxBraces = 128

// unescapeDouble undoes the backslashes that count inside double quotes.
func unescapeDouble(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansiC decodes $'…'.
func ansiC(s string) string {
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
		num := func(base, most int) rune {
			v := 0
			for n := 0; n < most && i+1 < len(s); n++ {
				d := digit(s[i+1])
				if d >= base {
					break
				}
				v = v*base + d
				i++
			}
			return rune(v)
		}
		switch c := s[i]; c {
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'e', 'E':
			b.WriteByte(27)
		case 'f':
			b.WriteByte(12)
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte(11)
		case 'x':
			b.WriteByte(byte(num(16, 2)))
		case 'u':
			b.WriteRune(num(16, 4))
		case 'U':
			b.WriteRune(num(16, 8))
		case '0', '1', '2', '3', '4', '5', '6', '7':
			i--
			b.WriteByte(byte(num(8, 3)))
		case 'c':
			if i++; i < len(s) {
				b.WriteByte(s[i] & 0x1f)
			}
		default: // \\ \' \" \?
			b.WriteByte(c)
		}
	}
	return b.String()
}

func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return 99
}

// expandBraces writes out {a,b} and {1..3}; ok is false when that would be too much.
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
			lits, ok := sequence(br)
			if !ok {
				return nil, false
			}
			for _, l := range lits {
				tails = append(tails, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: l}}})
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
				parts := append(append([]syntax.WordPart(nil), head.Parts...), t.Parts...)
				next = append(next, &syntax.Word{Parts: parts})
			}
		}
		list = next
	}
	return list, true
}

func sequence(br *syntax.BraceExp) ([]string, bool) {
	if len(br.Elems) < 2 {
		return nil, false
	}
	from, to := br.Elems[0].Lit(), br.Elems[1].Lit()
	step := 1
	if len(br.Elems) > 2 {
		n, ok := smallInt(br.Elems[2].Lit())
		if !ok {
			return nil, false
		}
		step = max(1, max(n, -n))
	}
	lo, ok1 := smallInt(from)
	hi, ok2 := smallInt(to)
	letters := false
	if !ok1 || !ok2 {
		if len(from) != 1 || len(to) != 1 {
			return nil, false
		}
		lo, hi, letters = int(from[0]), int(to[0]), true
	}
	var out []string
	emit := func(n int) {
		if letters {
			out = append(out, string(rune(n)))
		} else {
			out = append(out, itoa(n))
		}
	}
	if d := (hi - lo) / step; d > maxBraces || d < -maxBraces {
		return nil, false
	}
	if lo <= hi {
		for n := lo; n <= hi; n += step {
			emit(n)
		}
	} else {
		for n := lo; n >= hi; n -= step {
			emit(n)
		}
	}
	return out, true
}
