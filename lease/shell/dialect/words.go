package dialect

import (
	"slices"
	"strings"
)

// Quote makes one word of any text without NUL, for bash and zsh.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Words returns, sorted and each once, the words of a text of any shell that may name an alias or a function (letters, digits and
// the punctuation that people use in such names) or a variable (an identifier). Most of them name nothing: the caller looks them up.
func Words(text string) (words []string) {
	identifier := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r >= 0x80
	}
	words = strings.FieldsFunc(text, func(r rune) bool { return !identifier(r) && !strings.ContainsRune("-.:+@%,!?", r) })
	words = append(words, strings.FieldsFunc(text, func(r rune) bool { return !identifier(r) })...)
	slices.Sort(words)
	return slices.Compact(words)
}
