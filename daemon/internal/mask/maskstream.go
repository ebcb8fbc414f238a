package mask

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Stream masks a text that arrives in pieces, in which a secret may be cut anywhere. It passes on what a continuation can
// no longer change and holds the rest back: most often nothing. The zero value is ready; it is for one goroutine.
type Stream struct {
	before string // the end of what was passed on, as it came: what follows is masked by it
	held   string
}

const (
	maxHeld   = 16 << 10 // bytes that are held back; a private key is shorter
	maxBefore = 200      // bytes: a name and what is between it and its value are shorter than half of that
)

// Add takes the next piece and returns what can be shown of all that came, masked.
func (s *Stream) Add(piece string) string {
	if piece == "" {
		return ""
	}
	text := s.before + s.held + piece
	k := settled(text, len(s.before))
	if len(text)-k > maxHeld {
		k = len(text)
	}
	return s.pass(text, k)
}

// Flush returns what was held back, masked: nothing follows.
func (s *Stream) Flush() string {
	text := s.before + s.held
	out := s.pass(text, len(text))
	*s = Stream{}
	return out
}

// pass masks the text up to k, of which s.before is out already.
func (s *Stream) pass(text string, k int) string {
	out, ok := strings.CutPrefix(String(text[:k]), String(s.before))
	if !ok { // what follows s.before changes how it is masked
		out = String(text[len(s.before):k])
	}
	s.held = text[k:]
	if s.before = text[:k]; len(s.before) > maxBefore {
		s.before = s.before[len(s.before)-maxBefore:]
		if at := strings.IndexAny(s.before[:maxBefore/2], " \n"); at >= 0 { // later ones may be between a name and its value
			s.before = s.before[at:]
		}
	}
	return out
}

// probes are continuations that make a secret of what may be the beginning of one.
var probes = [...]string{"k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEuX1", " k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEuX1", ":k9Jx2mQ7vR4t@h", "k9Jx2mQ7vR4tYb8LwZ1nCd5H@h", "=k9Jx2mQ7vR4tYb8L"}

// settled returns the length of the longest beginning of text that is masked in the same way whatever follows, as far as probes
// show. It is least or more: that much was passed on already.
func settled(text string, least int) int {
	limit := len(text)
	if at := strings.LastIndex(text, pemBegin); at >= least {
		if _, end, ok := strings.Cut(text[at:], "-----END "); !ok || !strings.Contains(end, "-----") {
			limit = at
		}
	}
	limit -= max(len(begun().FindString(text[:limit])), knownBegun(text[:limit]))
	var follows [len(probes)]string
	for i, p := range probes {
		follows[i] = String(text + p)
	}
	// The end of the text, else the beginning of one of its last words.
	const most = 24 // ends that are tried, to bound the time; after them all is held back
	for tries, k := 0, limit; k > least && tries < most; tries++ {
		masked := String(text[:k])
		if !slices.ContainsFunc(follows[:], func(f string) bool { return !strings.HasPrefix(f, masked) }) {
			return k
		}
		k = strings.LastIndexAny(text[:k-1], " \t\n\"'") + 1
	}
	return least
}

// begun matches the end of a text that is a key, or may be the beginning of one. A name that means a secret may be passed on: it is not
// masked itself, and Stream.before keeps it for its value.
var begun = sync.OnceValue(func() *regexp.Regexp {
	starts := []string{packedBegin}
	for _, of := range tokens() {
		starts = append(starts, of.words...)
	}
	var keys, pem []string
	for _, start := range starts {
		for n := range start {
			keys = append(keys, regexp.QuoteMeta(start[:n+1]))
		}
		keys = append(keys, regexp.QuoteMeta(start)+`[\w.-]+`)
	}
	for n := range pemBegin {
		pem = append(pem, pemBegin[:n+1])
	}
	return regexp.MustCompile(`(?:` + strings.Join(pem, "|") + `|(?:\b|_)(?:` + strings.Join(keys, "|") + `))$`)
})
