package mask

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"sync"
)

func placeholder(kind, secret string) string {
	sum := sha256.Sum256([]byte("sublet mask " + secret))
	return maskedPrefix + kind + ":" + hex.EncodeToString(sum[:2]) + "]"
}

// tokenKind is a key that is known by how it begins.
type tokenKind struct {
	prefix string
	more   int // the least number of key characters that follow
	kind   string
}

//go:embed tokens.txt
var tokenText string

// tokenTable has the known keys by their first byte, and which may be the second and the third: sets of their low six bits.
type tokenTable [256]struct {
	second, third uint64
	kinds         []tokenKind
}

var tokens = sync.OnceValue(func() *tokenTable {
	t := new(tokenTable)
	for line := range strings.Lines(tokenText) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		more, err := strconv.Atoi(f[1])
		if err != nil {
			panic(err) // a test reads the table first
		}
		for _, prefix := range f[2:] {
			of := &t[prefix[0]]
			of.second |= 1 << (prefix[1] & 63)
			of.third |= 1 << (prefix[2] & 63)
			of.kinds = append(of.kinds, tokenKind{prefix, more, f[0]})
		}
	}
	return t
})

// mayBegin rules out most words that are no known key.
func (t *tokenTable) mayBegin(s string, i int) bool {
	if i+2 >= len(s) {
		return false
	}
	of := &t[s[i]]
	return (of.second>>(s[i+1]&63))&(of.third>>(s[i+2]&63))&1 != 0
}

// secretReference reports whether a value only names where the secret is: $X, ${X}, $(cmd), %X%, <x>, {{x}}, ***.
func secretReference(v string) bool {
	switch {
	case v == "":
		return true
	case v[0] == '$' && len(v) > 1 && (v[1] == '{' || v[1] == '(' || v[1] >= 'A' && v[1] <= 'Z' || v[1] >= 'a' && v[1] <= 'z' || v[1] == '_'):
		return true
	case v[0] == '%' || v[0] == '<' || strings.HasPrefix(v, "{{") || strings.HasPrefix(v, "[masked:"):
		return true
	}
	return strings.Trim(v, "*x.X•-") == ""
}

func wordOnly(v string) bool {
	for i := 0; i < len(v); i++ {
		if c := v[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// notASecret has values of such names that mean something else.
func notASecret(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "null", "none", "nil", "undefined", "required", "optional", "string", "example", "changeme", "placeholder", "password", "secret", "token", "redacted", "masked", "hidden", "env", "file", "prompt", "yes", "test":
		return true
	}
	return false
}

// entropy is in bits for each byte.
func entropy(s string) float64 {
	if s == "" {
		return 0
	}
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
