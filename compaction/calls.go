package compaction

import (
	"encoding/json"
	"fmt"
	"strings"
)

// readOf describes what a call of the read tool read: "main.go", "main.go (from line 10)". It returns "" for invalid arguments.
func readOf(arguments string) string {
	type piece struct{ Offset, Limit int }
	var a struct {
		Path string
		piece
		Ranges []piece
	}
	if json.Unmarshal([]byte(arguments), &a) != nil || a.Path == "" {
		return ""
	}
	if len(a.Ranges) == 0 {
		a.Ranges = []piece{a.piece}
	}
	var pieces []string
	for _, p := range a.Ranges {
		switch {
		case p.Offset > 0 && p.Limit > 0:
			pieces = append(pieces, fmt.Sprintf("lines %d to %d", p.Offset, p.Offset+p.Limit-1))
		case p.Offset > 0:
			pieces = append(pieces, fmt.Sprintf("from line %d", p.Offset))
		case p.Limit > 0:
			pieces = append(pieces, fmt.Sprintf("the first %d lines", p.Limit))
		}
	}
	what := line(a.Path, maxLine)
	if len(pieces) > 0 {
		what += " (" + line(strings.Join(pieces, ", "), maxLine) + ")"
	}
	return what
}

// openSteps returns the unfinished steps in the result of a call of the todo or the plan tool.
func openSteps(result string) (open []string) {
	for l := range strings.Lines(result) {
		if strings.HasPrefix(l, "[ ] ") || strings.HasPrefix(l, "[>] ") {
			open = append(open, line(l[len("[ ] "):], maxLine))
		}
	}
	return open
}
