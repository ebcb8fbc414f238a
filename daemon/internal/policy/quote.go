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

var globQuoter = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, `\`, `\\`)

// QuoteGlob returns the glob that matches s alone.
func QuoteGlob(s string) string { return globQuoter.Replace(s) }
