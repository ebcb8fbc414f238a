package wire

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"sublet/wire/visible"
)

// CallSubject returns what a tool call works on, from its arguments in JSON, for people: its command, pattern, path or address, or
// a line for each task. It is "" if the arguments have none of them, and not safe to display.
func CallSubject(tool, arguments string) string {
	var a struct {
		Command, Pattern, Path, File, URL, Name string

		FilePath string `json:"file_path"`
		Tasks    []struct{ Role, Title, Prompt string }
	}
	_ = json.Unmarshal([]byte(arguments), &a) // incomplete JSON, or a value of another type, is not shown
	var lines []string
	for _, one := range a.Tasks {
		lines = append(lines, strings.TrimSpace(one.Role+": "+cmp.Or(one.Title, visible.FirstLine(one.Prompt))))
	}
	if tool == "grep" && a.Pattern != "" {
		a.Pattern = strconv.Quote(a.Pattern)
	}
	at := cmp.Or(a.Path, a.File, a.FilePath, a.URL, a.Name)
	return cmp.Or(strings.Join(lines, "\n"), a.Command, strings.TrimSpace(a.Pattern+" "+at))
}
