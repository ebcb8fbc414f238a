package dialect

import (
	"slices"
	"strings"
)

// Quote makes one word of any text without NUL, for bash and zsh.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Getenv returns the value of a variable in an environment as that of os.Environ, "" if it is not set.
func Getenv(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// Words returns, each once, all words of a shell text that may be names of commands, functions, aliases or variables. It does not
// parse: it splits at what such a name cannot hold, once for commands (as g++ or a-b) and once more for variables.
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
