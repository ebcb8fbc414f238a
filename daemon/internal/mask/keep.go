package mask

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Secrets that are known by their value are masked wherever they stand, whatever they look like. A process has one set
// of them, since it has one user: they are the keys it was given to work with.
var kept struct {
	mu   sync.Mutex             // for writers
	list atomic.Pointer[[]keep] // replaced, never changed in place
}

type keep struct{ value, mask string }

const (
	minKept = 8   // bytes; shorter values stand in too many texts
	maxKept = 256 // values: a daemon is given a handful
)

// Keep makes String hide these values from now on, in every text of this process. Values shorter than eight bytes
// are left out, since they would hide more than the secret. It is safe for concurrent use.
func Keep(values ...string) {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	var list []keep
	if old := kept.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	for _, v := range values {
		v = strings.TrimSpace(v)
		if len(v) < minKept || len(list) >= maxKept || slices.ContainsFunc(list, func(k keep) bool { return k.value == v }) {
			continue
		}
		list = append(list, keep{v, placeholder("key", v)})
	}
	// The longest first: one may be a part of another.
	slices.SortStableFunc(list, func(x, y keep) int { return len(y.value) - len(x.value) })
	kept.list.Store(&list)
}

// typed are the forms of what the user typed without echo, those of the newest last.
var typed struct {
	mu    sync.Mutex                    // for writers
	forms atomic.Pointer[[]typedSecret] // replaced, never changed in place
}

type typedSecret struct {
	forms  []string // the longest first
	longer []string // those with which every other form begins
}

const (
	minTyped = 4  // bytes; shorter ones stand in too many texts
	maxTyped = 16 // how many are remembered
	piece    = 6  // the least length of a piece that is hidden
	maxWhole = 64 // bytes of a secret up to which its pieces are hidden
)

// KeepTyped makes String hide what the user typed without echo: as it is, in pieces of at least half of it, and in base64 and
// hexadecimal.
func KeepTyped(value string) {
	if len(value) < minTyped {
		return
	}
	var forms, longer []string
	if least := max(piece, (len(value)+1)/2); len(value) <= maxWhole {
		for i := 0; i+least <= len(value); i++ {
			longer = append(longer, value[i:])
			for n := least; i+n < len(value); n++ {
				forms = append(forms, value[i:i+n])
			}
		}
	}
	longer = append(longer, value, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))))
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 { // bytes of something else that share its first group of three bytes in four characters
			text := enc.EncodeToString(append(make([]byte, before), value...))
			first, last := []int{0, 2, 3}[before], len(text) // first: no bit before it is of something else's
			if (before+len(value))%3 != 0 {
				last-- // shares its bits with what follows
			}
			if last-first >= piece {
				longer = append(longer, text[first:last])
			}
		}
	}
	forms = append(forms, longer...)
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) })
	forms = slices.Compact(forms)
	typed.mu.Lock()
	defer typed.mu.Unlock()
	var all []typedSecret
	if old := typed.forms.Load(); old != nil {
		all = slices.Clone(*old)
	}
	if all = append(all, typedSecret{forms, longer}); len(all) > maxTyped {
		all = all[1:]
	}
	typed.forms.Store(&all)
}

// maskTyped hides what was typed. The mask says nothing about the secret: people's passwords are short.
func maskTyped(s string) string {
	all := typed.forms.Load()
	if all == nil {
		return s
	}
	for _, secret := range *all {
		for _, f := range secret.forms {
			if strings.Contains(s, f) && !strings.Contains(typedMask, f) { // a part of the mask would be masked again and again
				s = strings.ReplaceAll(s, f, typedMask)
			}
		}
	}
	return s
}

// knownBegun returns the length of the longest end of text that may be the beginning of a value that is known or was typed.
func knownBegun(text string) (longest int) {
	check := func(secret string) {
		for n := min(len(secret)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				longest = n
			}
		}
	}
	if list := kept.list.Load(); list != nil {
		for _, k := range *list {
			check(k.value)
		}
	}
	if all := typed.forms.Load(); all != nil {
		for _, secret := range *all {
			for _, f := range secret.longer {
				check(f)
			}
		}
	}
	return longest
}

const typedMask = maskedPrefix + "typed]"

// maskKept hides the values that are known.
func maskKept(s string) string {
	s = maskTyped(s)
	list := kept.list.Load()
	if list == nil {
		return s
	}
	for _, k := range *list {
		if strings.Contains(s, k.value) {
			s = strings.ReplaceAll(s, k.value, k.mask)
		}
	}
	return s
}
