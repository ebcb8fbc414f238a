package policy

import "strings"

// quoteWords writes argv so that parseWords reads exactly these words.
func quoteWords(argv []string) string {
	out := make([]string, len(argv))
	for i, s := range argv {
		out[i] = quoteWord(s)
	}
	return strings.Join(out, " ")
}

func quoteWord(s string) string {
	safe := s != ""
	for i := 0; i < len(s) && safe; i++ {
		c := s[i]
		safe = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_./:=,+@%^~{}[]!?#", c) >= 0 || c >= 0x80
	}
	if safe {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// quoteGlob makes every character of a path literal.
func quoteGlob(s string) string {
	if !strings.ContainsAny(s, `*?[]{}\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`*?[]{}\`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
