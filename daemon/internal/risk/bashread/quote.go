package bashread

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// doubleQuoted undoes the backslashes that count inside double quotes.
var doubleQuoted = strings.NewReplacer(`\$`, "$", "\\`", "`", `\"`, `"`, `\\`, `\`, "\\\n", "")

// inHereText undoes those that count in a here-document.
var inHereText = strings.NewReplacer(`\$`, "$", "\\`", "`", `\\`, `\`, "\\\n", "")

// AnsiC decodes $'…'.
func AnsiC(s string) string {
	text, _, err := expand.Format(&expand.Config{}, s, nil) // nil stands for one that all share
	if err != nil {
		return s
	}
	return text
}

// maxBraces bounds the words that one word with braces becomes.
const maxBraces = 128

// expandBraces writes out {a,b} and {1..3}; ok is false where that would be too much.
func expandBraces(w *syntax.Word) (list []*syntax.Word, ok bool) {
	most := min(maxBraces, 64*maxBraces/max(1, len(w.Parts))) // fewer of a word with many parts: each copies them all
	for x, err := range expand.BracesSeq(&expand.Config{}, w) {
		if err != nil || len(list) == most {
			return nil, false
		}
		list = append(list, x)
	}
	return list, true
}
