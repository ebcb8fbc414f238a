package dialect

import "strings"

// Quote makes one word of any text without NUL, for bash and zsh.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Words returns what a text of any shell may name: its runs of characters that commands' names are made of, and the
// identifiers in them, each once.
func Words(text string) (words []string) {
	seen := make(map[string]bool)
	add := func(list []string) {
		for _, w := range list {
			if !seen[w] {
				seen[w] = true
				words = append(words, w)
			}
		}
	}
	identifier := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r >= 0x80
	}
	add(strings.FieldsFunc(text, func(r rune) bool { return !identifier(r) && !strings.ContainsRune("-.:+@%,!?", r) }))
	add(strings.FieldsFunc(text, func(r rune) bool { return !identifier(r) }))
	return words
}
