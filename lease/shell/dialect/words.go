package dialect

import (
	"strconv"
	"strings"
)

// Quote makes one word of any text without NUL, for bash and zsh.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ReadWord reads one word as shells print it for reading back: "…", '…', $'…', \c, (…) and plain text, in any sequence.
// It returns its value and how many bytes it took. The value of an array is its text.
func ReadWord(s string) (value string, n int) {
	if len(s) > 0 && s[0] == '"' { // nearly each: nothing in it to take off, nothing behind it
		if end := strings.IndexAny(s[1:], "\"\\") + 1; end > 0 && s[end] == '"' && (end+1 == len(s) || s[end+1] == '\n') {
			return s[1:end], end + 1
		}
	}
	var b strings.Builder
	i := 0
	for i < len(s) {
		switch c := s[i]; {
		case c == '\n' || c == ' ':
			return b.String(), i
		case c == '"':
			i = readDouble(&b, s, i+1)
		case c == '\'':
			j := strings.IndexByte(s[i+1:], '\'')
			if j < 0 {
				return b.String(), len(s)
			}
			b.WriteString(s[i+1 : i+1+j])
			i += j + 2
		case c == '$' && strings.HasPrefix(s[i:], "$'"):
			i = readANSI(&b, s, i+2)
		case c == '(':
			end := arrayEnd(s, i)
			b.WriteString(s[i:end])
			i = end
		case c == '\\' && i+1 < len(s):
			b.WriteByte(s[i+1])
			i += 2
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), i
}

func readDouble(b *strings.Builder, s string, i int) int {
	for i < len(s) {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\", s[i+1]) >= 0:
			b.WriteByte(s[i+1])
			i += 2
		default:
			b.WriteByte(c)
			i++
		}
	}
	return i
}

var ansiEscapes = map[byte]byte{
	'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11, '\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

func readANSI(b *strings.Builder, s string, i int) int {
	for i < len(s) {
		c := s[i]
		if c == '\'' {
			return i + 1
		}
		if c != '\\' || i+1 >= len(s) {
			b.WriteByte(c)
			i++
			continue
		}
		e := s[i+1]
		if r, ok := ansiEscapes[e]; ok {
			b.WriteByte(r)
			i += 2
			continue
		}
		base, from, most := 8, i+1, 3
		switch e {
		case 'x':
			base, from, most = 16, i+2, 2
		case 'u':
			base, from, most = 16, i+2, 4
		case 'U':
			base, from, most = 16, i+2, 8
		}
		j := from
		for j < len(s) && j < from+most {
			if _, err := strconv.ParseUint(s[j:j+1], base, 8); err != nil {
				break
			}
			j++
		}
		v, err := strconv.ParseUint(s[from:j], base, 32)
		if err != nil {
			b.WriteByte(c)
			i++
			continue
		}
		if e == 'u' || e == 'U' {
			b.WriteRune(rune(v))
		} else {
			b.WriteByte(byte(v))
		}
		i = j
	}
	return i
}

// arrayEnd is the position behind the parenthesis that closes the one at i.
func arrayEnd(s string, i int) int {
	var skip strings.Builder
	for i++; i < len(s); {
		switch c := s[i]; {
		case c == ')':
			return i + 1
		case c == '"':
			i = readDouble(&skip, s, i+1)
		case c == '$' && strings.HasPrefix(s[i:], "$'"):
			i = readANSI(&skip, s, i+2)
		case c == '\'':
			j := strings.IndexByte(s[i+1:], '\'')
			if j < 0 {
				return len(s)
			}
			i += j + 2
		case c == '\\':
			i += 2
		default:
			i++
		}
	}
	return len(s)
}

// Words returns what a text of any shell may name: its runs of characters that commands' names are made of, and the
// identifiers in them, each once.
func Words(text string) (words []string) {
	seen := make(map[string]bool)
	add := func(list []string) {
		for _, w := range list {
			if !seen[w] {
				seen[w] = true
				words = append(words, w)
			}
		}
	}
	identifier := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r >= 0x80
	}
	add(strings.FieldsFunc(text, func(r rune) bool { return !identifier(r) && !strings.ContainsRune("-.:+@%,!?", r) }))
	add(strings.FieldsFunc(text, func(r rune) bool { return !identifier(r) }))
	return words
}
