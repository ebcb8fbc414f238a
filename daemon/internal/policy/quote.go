package policy

import (
	"strings"

	"sublet/daemon/internal/risk"
)

// quoteWords writes argv so that parseWords reads exactly these words.
func quoteWords(argv []string) string {
	out := make([]string, len(argv))
	for i, s := range argv {
		out[i] = risk.ShellWord(s)
	}
	return strings.Join(out, " ")
}

// globQuoter makes every character of a path literal.
var globQuoter = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, `\`, `\\`)

func quoteGlob(s string) string { return globQuoter.Replace(s) }
