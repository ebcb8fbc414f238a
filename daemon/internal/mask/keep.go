package mask

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Secrets that are known by their value are masked wherever they stand, whatever they look like. A process has one set
// of them, since it has one user: the keys it was given to work with, and what the user typed without echo.
var known struct {
	mu          sync.RWMutex
	typed, keys []secret // guarded by mu; the newest last, and the longest first: one may be a part of another
}

type secret struct {
	forms []string // the longest first
	mask  string
}

const (
	minKept  = 8  // bytes; shorter values stand in too many texts
	minTyped = 4  // bytes; shorter ones stand in too many texts
	maxTyped = 16 // how many are remembered, the newest
	piece    = 6  // the least length of a piece that is hidden
	maxWhole = 64 // bytes of a secret up to which its pieces are hidden
)

// secrets returns the known secrets.
func secrets() []secret {
	known.mu.RLock()
	defer known.mu.RUnlock()
	return slices.Concat(known.typed, known.keys)
}

// Keep makes String hide these values from now on, in every text of this process. Values shorter than eight bytes
// are left out, since they would hide more than the secret. It is safe for concurrent use.
func Keep(values ...string) {
	known.mu.Lock()
	defer known.mu.Unlock()
	for _, v := range values {
		v = strings.TrimSpace(v)
		if len(v) < minKept || slices.ContainsFunc(known.keys, func(k secret) bool { return k.forms[0] == v }) {
			continue
		}
		known.keys = append(known.keys, secret{[]string{v}, placeholder("key", v)})
	}
	slices.SortStableFunc(known.keys, func(x, y secret) int { return len(y.forms[0]) - len(x.forms[0]) })
}

// KeepTyped makes String hide what the user typed without echo: as it is, in pieces of at least half of it, and in base64 and
// hexadecimal.
func KeepTyped(value string) {
	if len(value) < minTyped {
		return
	}
	forms := []string{value}
	if least := max(piece, (len(value)+1)/2); len(value) <= maxWhole {
		for i := 0; i+least <= len(value); i++ {
			for end := i + least; end <= len(value); end++ {
				forms = append(forms, value[i:end])
			}
		}
	}
	for _, format := range []string{"%x", "%X", "% x", "% X"} { // with blanks as od and hexdump print it
		forms = append(forms, fmt.Sprintf(format, value))
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 { // bytes of something else that share its first group of three bytes in four characters
			text := enc.EncodeToString(append(make([]byte, before), value...))
			first, last := []int{0, 2, 3}[before], len(text) // first: no bit before it is of something else's
			if (before+len(value))%3 != 0 {
				last-- // shares its bits with what follows
			}
			if last-first >= piece {
				forms = append(forms, text[first:last])
			}
		}
	}
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) })
	forms = slices.Compact(forms)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.typed = append(known.typed, secret{forms, typedMask})
	known.typed = known.typed[max(0, len(known.typed)-maxTyped):]
}

// knownBegun returns the length of the longest end of text that may be the beginning of a value that is known or was typed.
func knownBegun(text string) (longest int) {
	for _, k := range secrets() {
		for _, form := range k.forms {
			for n := min(len(form)-1, len(text)); n > longest; n-- {
				if strings.HasSuffix(text, form[:n]) {
					longest = n
				}
			}
		}
	}
	return longest
}

// typedMask says nothing about the secret: people's passwords are short.
const typedMask = maskedPrefix + "typed]"

// maskKept hides the values that are known.
func maskKept(s string) string {
	for _, k := range secrets() {
		for _, form := range k.forms {
			if strings.Contains(s, form) && !strings.Contains(k.mask, form) { // a part of the mask would be masked again and again
				s = strings.ReplaceAll(s, form, k.mask)
			}
		}
	}
	return s
}
