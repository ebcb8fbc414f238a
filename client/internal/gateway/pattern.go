package gateway

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled on first use, since most runs of the program serve no foreign protocol.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
