package term

import (
	"regexp"
	"sync"
)

// A line that asks for something ends in a question, a prompt or a choice in brackets. Progress bars end otherwise.
var (
	looksLikeQuestion = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)([?:$]|[^#]#|[^=-]>|[\[(][a-z0-9/,?| -]+[\])]|--more--.*) ?$`)
	})
	asksForKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\b(press|hit)\b.*\b(enter|return|key|ctrl-c)\b`) })
)

// lineAsks reports whether the line before the cursor asks for something, or the one above an empty line for a key. It is a hint,
// used if nothing better is known.
func (s *screen) lineAsks() bool {
	y := s.y
	if y > 0 && len(s.at(y).cells) == 0 {
		return asksForKey().Match(s.at(y - 1).append(nil))
	}
	line := s.at(y).append(nil)
	return s.x >= len(s.at(y).cells) && (looksLikeQuestion().Match(line) || asksForKey().Match(line))
}
