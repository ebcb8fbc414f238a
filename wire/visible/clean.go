package visible

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")
})

// Clean removes control sequences and control characters other than newline and tab from text that models, programs and
// servers wrote, and makes it valid UTF-8.
func Clean(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || r == unicode.ReplacementChar
	}) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = escapes().ReplaceAllString(s, "")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}
