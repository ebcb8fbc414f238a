package gateway

import (
	"errors"
	"strings"

	"sublet/wire"
	"sublet/wire/visible"
)

// IsDelegate reports whether an agent works for another one: its name ends in a number. Its text is part of a tool's result, not
// of the answer.
func IsDelegate(agent string) bool {
	_, number, ok := strings.Cut(agent, "-")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// Void returns the text for a void chunk in a protocol that cannot withdraw text.
func Void(why string) string {
	return "\n\n[The answer above is void, it is asked for again: " + why + "]\n\n"
}

// OneLine returns a text on one line of at most 200 bytes.
func OneLine(s string) string { return visible.Clip(strings.Join(strings.Fields(s), " "), 200) }

// Hint returns an error's hint, "" if it has none.
func Hint(err error) string {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return e.Hint
	}
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return h.Hint()
	}
	return ""
}
