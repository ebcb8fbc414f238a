// Package mask finds secrets in text and replaces them: keys of known formats, values whose name says that they are a
// secret, and values that the process was given. It decides nothing about commands or files.
package mask

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
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
		before := s
		for _, f := range forms() {
			s = f.mask(s)
		}
		if s = maskValues(s); s == before {
			break
		}
	}
	return s
}

// masked is a text of which parts are replaced, from its beginning to its end.
type masked struct {
	in   string
	out  strings.Builder
	last int // everything before it is in out
}

func (m *masked) replace(start, end int, kind string) {
	m.out.WriteString(m.in[m.last:start])
	m.out.WriteString(placeholder(kind, m.in[start:end]))
	m.last = end
}

func (m *masked) text() string {
	if m.last == 0 {
		return m.in
	}
	return m.out.String() + m.in[m.last:]
}

const maskedPrefix = "[masked:"

func placeholder(kind, secret string) string {
	sum := sha256.Sum256([]byte("sublet mask " + secret))
	return maskedPrefix + kind + ":" + hex.EncodeToString(sum[:2]) + "]"
}

// secretReference reports whether a value, which is not empty, only names where the secret is: $X, ${X}, $(cmd), %X%, <x>, {{x}}, ***.
func secretReference(v string) bool {
	switch {
	case v[0] == '$' && len(v) > 1 && (v[1] == '{' || v[1] == '(' || v[1] >= 'A' && v[1] <= 'Z' || v[1] >= 'a' && v[1] <= 'z' || v[1] == '_'):
		return true
	case v[0] == '%' || v[0] == '<' || strings.HasPrefix(v, "{{") || strings.HasPrefix(v, maskedPrefix):
		return true
	}
	return strings.Trim(v, "*x.X•-") == ""
}

func wordOnly(v string) bool {
	return strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.-") == ""
}

// notASecret reports whether the value of a name that means a secret is none: a boolean, a type, a placeholder.
func notASecret(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "null", "none", "nil", "undefined", "required", "optional", "string", "example", "changeme", "placeholder", "password", "secret", "token", "redacted", "masked", "hidden", "env", "file", "prompt", "yes", "test":
		return true
	}
	return false
}

// entropy is in bits for each byte.
func entropy(s string) float64 {
	var n [256]int
	for i := 0; i < len(s); i++ {
		n[s[i]]++
	}
	e := 0.0
	for _, c := range n {
		if c > 0 {
			p := float64(c) / float64(len(s))
			e -= p * math.Log2(p)
		}
	}
	return e
}
