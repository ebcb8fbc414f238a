package jsonrpc

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sublet/client/internal/gateway"
)

// block is a piece of content with structure of its own (F4 to F6).
type block struct {
	Type        string        `json:"type"` // text, code, diff, error, tool_output, interactive
	Language    string        `json:"language"`
	Content     string        `json:"content"`
	Metadata    blockMetadata `json:"metadata"`
	Annotations []annotation  `json:"annotations"`
}

type blockMetadata struct {
	File       string `json:"file,omitempty"`
	Lines      string `json:"lines,omitempty"` // such as 10-15
	Diff       bool   `json:"diff"`
	Executable bool   `json:"executable"`
	Execution  string `json:"execution_id,omitempty"` // tool_output, interactive: the tool's
}

type annotation struct {
	Line    int    `json:"line"` // of the content, from 1
	Type    string `json:"type"` // suggestion, note, warning, error
	Message string `json:"message"`
}

// fenced returns fenced code as a block: code, diff or error, by the language of the fence.
func fenced(p gateway.Piece) *block {
	b := &block{Content: p.Text, Annotations: []annotation{}}
	describe(b, p.Info)
	switch b.Type {
	case "diff":
		b.Language, b.Metadata.Diff = "diff", true
		fromDiff(b)
	case "error":
		b.Annotations = append(b.Annotations, places(b.Content)...)
	case "code":
		b.Annotations = append(b.Annotations, remarks(b.Content)...)
	}
	return b
}

// shells are the languages of code that can be run in the user's terminal.
var shells = map[string]bool{"bash": true, "sh": true, "shell": true, "zsh": true, "fish": true, "console": true, "shell-session": true}

var placeInInfo = gateway.Pattern(`^([^\s:=]*[./][^\s:]*)(?::(\d+(?:-\d+)?))?$`)

// describe parses a fence's info string: a language, then file=NAME, title=NAME, lines=10-15, or NAME:10-15.
func describe(b *block, info string) {
	fields := strings.Fields(info)
	for i, field := range fields {
		key, value, named := strings.Cut(field, "=")
		value = strings.Trim(value, `"'`)
		switch m := placeInInfo().FindStringSubmatch(field); {
		case named && (key == "file" || key == "title" || key == "filename" || key == "path"):
			b.Metadata.File = value
		case named && key == "lines":
			b.Metadata.Lines = value
		case m != nil:
			b.Metadata.File, b.Metadata.Lines = m[1], m[2]
		case i == 0 && !named:
			b.Language = strings.ToLower(strings.Trim(field, "{}."))
		}
	}
	switch b.Language {
	case "diff", "patch", "udiff":
		b.Type = "diff"
	case "error", "traceback", "stacktrace", "panic":
		b.Type, b.Language = "error", ""
	default:
		b.Type, b.Metadata.Executable = "code", shells[b.Language]
	}
}

var hunk = gateway.Pattern(`(?m)^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@`)

// fromDiff sets the file of a diff's first +++ line, and the lines that its first hunk has in the new file.
func fromDiff(b *block) {
	for line := range strings.Lines(b.Content) {
		if name, ok := strings.CutPrefix(line, "+++ "); ok && b.Metadata.File == "" {
			name, _, _ = strings.Cut(strings.TrimSpace(name), "\t")
			b.Metadata.File = strings.TrimPrefix(name, "b/")
		}
	}
	if m := hunk().FindStringSubmatch(b.Content); m != nil && b.Metadata.Lines == "" {
		first, _ := strconv.Atoi(m[1]) // only digits; too large a number becomes the largest int
		count := 1
		if m[2] != "" {
			count, _ = strconv.Atoi(m[2])
		}
		b.Metadata.Lines = fmt.Sprintf("%d-%d", first, first+max(count, 1)-1)
	}
}

var (
	placeInError = gateway.Pattern(`^\s*(?:-->\s*)?[^\s:]+:(\d+)(?::\d+)?:?\s*(?:(error|warning|note)\b[^:]*:\s*)?(.*)$`)
	remarkInCode = gateway.Pattern(`(?:^|\s)(?://|#|--|/\*|;)\s*(?i:(suggestion|hint|note|todo|fixme|warning|error))\s*:\s*(.+?)\s*(?:\*/)?$`)
)

// annotate returns what note makes of each line that a pattern matches, from the trimmed line and the submatches; note leaves Line unset.
func annotate(content string, pattern *regexp.Regexp, note func(line string, m []string) annotation) (list []annotation) {
	n := 0
	for line := range strings.Lines(content) {
		n++
		if m := pattern.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			a := note(strings.TrimSpace(line), m)
			a.Line = n
			list = append(list, a)
		}
	}
	return list
}

// places annotates the lines of an error that name a file and line.
func places(content string) []annotation {
	return annotate(content, placeInError(), func(line string, m []string) annotation {
		return annotation{Type: cmp.Or(m[2], "error"), Message: cmp.Or(m[3], line)}
	})
}

// remarks annotates lines of code with comments for the reader.
func remarks(content string) []annotation {
	return annotate(content, remarkInCode(), func(_ string, m []string) annotation {
		kind := strings.ToLower(m[1])
		switch kind {
		case "hint":
			kind = "suggestion"
		case "todo", "fixme":
			kind = "note"
		}
		return annotation{Type: kind, Message: m[2]}
	})
}
