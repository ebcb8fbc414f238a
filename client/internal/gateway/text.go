package gateway

import (
	"errors"
	"strings"

	"sublet/wire"
)

// IsDelegate reports whether an agent works for another one: a task's name carries its number. What it says is part of a
// tool's result, not of the answer.
func IsDelegate(agent string) bool {
	_, number, ok := strings.Cut(agent, "-")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// Void returns what goes out as text in a protocol that cannot take text back, where the answer so far is void.
func Void(why string) string {
	return "\n\n[The answer above is void, it is asked for again: " + why + "]\n\n"
}

// Clip bounds text of the other side that goes into an answer or the log, at most bytes and never in a character.
func Clip(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// OneLine is a text in one line of at most 200 bytes.
func OneLine(s string) string { return Clip(strings.Join(strings.Fields(s), " "), 200) }

// Hint is what to do about an error; "" where it does not say.
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
