package gateway

import (
	"strings"

	"sublet/wire/visible"
)

// Void returns the text for a void chunk in a protocol that cannot withdraw text.
func Void(why string) string {
	return "\n\n[The answer above is void, it is asked for again: " + why + "]\n\n"
}

// OneLine returns a text on one line of at most 200 bytes.
func OneLine(s string) string { return visible.Clip(strings.Join(strings.Fields(s), " "), 200) }

// Fence returns the run of at least three backticks or tildes with which a line of Markdown begins or ends code, and what follows
// it; "" for any other line.
func Fence(line string) (mark, info string) {
	s := strings.TrimRight(line, "\r\n")
	indent := len(s) - len(strings.TrimLeft(s, " "))
	s = s[indent:]
	if indent > 3 || len(s) < 3 || s[0] != '`' && s[0] != '~' {
		return "", ""
	}
	n := len(s) - len(strings.TrimLeft(s, s[:1]))
	info = strings.TrimSpace(s[n:])
	if n < 3 || s[0] == '`' && strings.Contains(info, "`") {
		return "", ""
	}
	return s[:n], info
}
