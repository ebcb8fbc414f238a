package compaction

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// readOf returns the path of a call of the read tool and the lines it asked for, as "10-29,40-"; "" for all lines. The path is "" for
// invalid arguments.
func readOf(arguments string) (path, lines string) {
	type piece struct{ Offset, Limit int }
	var a struct {
		Path string
		piece
		Ranges []piece
	}
	if json.Unmarshal([]byte(arguments), &a) != nil {
		return "", ""
	}
	if len(a.Ranges) == 0 {
		a.Ranges = []piece{a.piece}
	}
	var pieces []string
	for _, p := range a.Ranges {
		switch {
		case p.Limit > 0:
			first := max(p.Offset, 1)
			pieces = append(pieces, fmt.Sprintf("%d-%d", first, first+p.Limit-1))
		case p.Offset > 0:
			pieces = append(pieces, fmt.Sprintf("%d-", p.Offset))
		}
	}
	return line(a.Path, maxLine), strings.Join(pieces, ",")
}

// addRead adds lines of a file, "" for all, to the file's entry, as long as that has at most maxLine bytes. The entry becomes the newest.
func addRead(reads []string, path, lines string) []string {
	entry := path
	if lines != "" {
		entry += ":" + lines
	}
	if i := slices.IndexFunc(reads, func(r string) bool { return r == path || strings.HasPrefix(r, path+":") }); i >= 0 {
		old := reads[i]
		reads = slices.Delete(reads, i, i+1)
		switch {
		case lines == "":
		case old == path || len(old)+len(lines) >= maxLine || slices.Contains(strings.Split(old[len(path)+1:], ","), lines):
			entry = old
		default:
			entry = old + "," + lines
		}
	}
	return append(reads, entry)
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
