package mask

import (
	"strings"
	"unsafe"
)

// String replaces secrets of known formats in a text: keys of AWS, GitHub, GitLab, Anthropic, OpenAI, Slack, Stripe, Google,
// npm, PyPI, SendGrid, Hugging Face and others, JSON web tokens, private keys in PEM, Authorization headers, passwords in
// URLs, the values of assignments whose name says that it is a secret, random-looking values of
// variables and of headers beginning with X-, and the values given to Keep. Each becomes `[masked:KIND:xxxx]`, where
// xxxx distinguishes two secrets and reveals nothing of them. The rest of the text is unchanged, byte for byte; a
// text without secrets is returned as it is. String(String(s)) is String(s). Time grows linearly with the text.
func String(s string) string {
	s = maskKept(s)
	// A second look finds what stood in the name of a secret, and makes twice the same as once.
	for range 8 {
		m := masker{in: s, tokens: tokens()}
		m.run()
		if m.last == 0 {
			break
		}
		m.out.WriteString(s[m.last:])
		s = m.out.String()
	}
	return s
}

// Bytes is String for bytes. It returns b itself when nothing was masked, else a new slice.
func Bytes(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	s := unsafe.String(&b[0], len(b)) // read only, and not kept: Mask copies what it changes
	masked := String(s)
	if unsafe.StringData(masked) == &b[0] {
		return b
	}
	return []byte(masked)
}

type masker struct {
	in     string
	tokens *tokenTable
	out    strings.Builder
	last   int // everything before it is in out

	// What was last found, since what begins within it ends where it does.
	words, keys, body, values, bare run
	pem                             int // where the next end of a PEM block is; not known before m.pem
}

// A run is a stretch of bytes of one class.
type run struct{ from, end int }

// endAt is the end of the run that holds i, or i.
func (r *run) endAt(s string, i int, of uint8) int {
	if i < r.from || i >= r.end {
		r.from, r.end = i, i
		for r.end < len(s) && class[s[r.end]]&of != 0 {
			r.end++
		}
	}
	return r.end
}

// replace masks in[start:end], which lies behind all that was masked before. It returns end: what comes next.
func (m *masker) replace(start, end int, kind string) int {
	m.out.WriteString(m.in[m.last:start])
	m.out.WriteString(placeholder(kind, m.in[start:end]))
	m.last = end
	return end
}

const maskedPrefix = "[masked:"

// Classes of bytes.
const (
	letterByte = 1 << iota // a letter or a digit
	nameByte               // what names of variables are made of
	keyedByte              // what keys are made of
	wordByte               // what names of any kind are made of
	valueByte              // what long values without order are made of
	bareByte               // what values are made of that are not quoted
	nothing                // no secret and no name begins with it, but in a line's first place
)

var class = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			t[c] = letterByte | nameByte | keyedByte | wordByte | valueByte
		case c == '_':
			t[c] = nameByte | keyedByte | wordByte | valueByte
		case c == '-':
			t[c] = keyedByte | wordByte | valueByte
		case c == '.':
			t[c] = wordByte | valueByte | nothing
		case c == '+', c == '/', c == '=':
			t[c] = valueByte | nothing
		case c != '[' && c != ':':
			t[c] = nothing
		}
		if c > ' ' && strings.IndexByte("\"',;&)}|`<", byte(c)) < 0 {
			t[c] |= bareByte
		}
	}
	return t
}()

func keyByte(c byte) bool { return class[c]&keyedByte != 0 }

func isNameByte(c byte) bool { return class[c]&nameByte != 0 }

// run goes through the text once. Every check at a position looks ahead by a bounded number of bytes or masks what it
// looked at; most positions need none.
func (m *masker) run() {
	s := m.in
	for i := 0; i < len(s); {
		if i > 0 {
			before := s[i-1]
			switch now := class[s[i]]; {
			case now&letterByte != 0 && class[before]&letterByte != 0: // inside a word
				for i++; i < len(s) && class[s[i]]&letterByte != 0; i++ {
				}
				continue
			case now&nothing != 0 && before != '\n':
				i++
				continue
			}
		}
		i = m.at(i)
	}
}

// at masks what begins at i, and returns where to go on.
func (m *masker) at(i int) (next int) {
	s := m.in
	c := s[i]
	if c == '[' && strings.HasPrefix(s[i:], maskedPrefix) {
		i += len(maskedPrefix)
		if end := strings.IndexByte(s[i:min(len(s), i+32)], ']'); end >= 0 {
			i += end + 1
		}
		return i
	}
	wordStart := i == 0 || !isNameByte(s[i-1])
	if m.tokens.mayBegin(s, i) && (i == 0 || class[s[i-1]]&letterByte == 0) {
		if end, kind := m.knownToken(i); end > i && i >= m.last {
			return m.replace(i, end, kind)
		}
	}
	if next := m.form(i, c, wordStart); next > i {
		return next
	}
	if wordStart && isNameByte(c) {
		end := min(m.words.endAt(s, i, wordByte), i+128)
		if c == 'p' {
			if start, stop := loginEntry(s, end, i); stop > start {
				return m.replace(start, stop, "password")
			}
		}
		if mayAssign(s, i, end) {
			if start, stop, kind := m.assignment(i, end); stop > start {
				return m.replace(start, stop, kind)
			}
		}
	}
	return i + 1
}

// form masks a secret at i that is known by what stands around it, and returns where to go on; i where there is none.
func (m *masker) form(i int, c byte, wordStart bool) (next int) {
	s := m.in
	if c == '-' && strings.HasPrefix(s[i:], "-----BEGIN ") {
		if end := m.pemBlock(i); end > i {
			return m.replace(i, end, "private-key")
		}
	}
	if c == ':' && strings.HasPrefix(s[i:], "://") {
		if start, end := userinfo(s, i+3); end > start {
			return m.replace(start, end, "password")
		}
		if start, end := hook(s, i+3); end > start {
			return m.replace(start, end, "webhook")
		}
		return i + 3
	}
	if c == 'L' && wordStart {
		if end := packedKey(s, i); end > i {
			return m.replace(i, end, "private-key")
		}
	}
	if c == '-' && (i == 0 || s[i-1] <= ' ') && i+1 < len(s) {
		if start, end := optionSecret(s, i); end > start {
			return m.replace(start, end, "password")
		}
	}
	if i == 0 || s[i-1] == '\n' {
		if start, end := passwordLine(s, i); end > start {
			return m.replace(start, end, "password")
		}
	}
	return i
}
