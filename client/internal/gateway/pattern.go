package gateway

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled when it is first used: the program starts many times for each time
// that it serves a foreign protocol.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
