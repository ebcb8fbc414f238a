package term

import (
	"regexp"
	"sync"
)

// What a line looks like that asks for something, by how it ends: a question, a prompt, a choice in brackets. Progress bars
// end otherwise.
var (
	asking = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)([?:$]|[^#]#|[^=-]>|[\[(][a-z0-9/,?| -]+[\])]|--more--.*) ?$`)
	})
	press = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\b(press|hit)\b.*\b(enter|return|key|ctrl-c)\b`) })
)

// asks reports whether the line that the cursor stands behind asks for something, or the one above it for a key. It is a hint,
// used if nothing better is known.
func (s *screen) asks() bool {
	if s.alt {
		return false
	}
	y := s.y
	if y > 0 && len(s.at(y).cells) == 0 {
		return press().Match(s.at(y - 1).append(nil))
	}
	line := s.at(y).append(nil)
	return s.x >= len(s.at(y).cells) && (asking().Match(line) || press().Match(line))
}
