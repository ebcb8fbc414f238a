package jsonrpc

import (
	"bytes"
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

const (
	maxBlock   = 1 << 20 // bytes of one block; a longer one is sent as several
	maxOpening = 4 << 10 // bytes of a line that begins a block, with its newline; a longer one is text
)

// piece is a result of a splitter: text, or a block.
type piece struct {
	text  string
	block *block
}

// splitter finds fenced code, diffs and errors in a text that arrives in pieces of any size. Plain text passes at once, except the
// part of a line that may begin a block, which waits for the rest of the line.
type splitter struct {
	held    []byte          // the part of the current line that waits
	midLine bool            // the beginning of the current line was passed on as plain text
	state   string          // of what body has the lines: "", fence, diff, error, or maybe: a --- line, which begins a diff if a +++ line follows
	fence   string          // the characters that opened a fence
	info    string          // the text after them
	body    bytes.Buffer    // the block so far
	plain   strings.Builder // text for flush
}

// add adds the next piece of the text and returns what is complete.
func (s *splitter) add(text string) (out []piece) {
	for text != "" {
		i := strings.IndexByte(text, '\n')
		if i < 0 {
			s.held = append(s.held, text...)
			out = s.partialLine(out)
			break
		}
		s.held = append(s.held, text[:i+1]...)
		text = text[i+1:]
		out = s.wholeLine(out)
	}
	return s.flush(out)
}

// end returns what was held back, after the last piece.
func (s *splitter) end() (out []piece) {
	if len(s.held) > 0 {
		out = s.wholeLine(out)
	}
	return s.flush(s.finish(out))
}

// flush appends the plain text that was found since the last flush.
func (s *splitter) flush(out []piece) []piece {
	if s.plain.Len() == 0 {
		return out
	}
	out = append(out, piece{text: s.plain.String()})
	s.plain.Reset()
	return out
}

// partialLine processes a line that has not ended.
func (s *splitter) partialLine(out []piece) []piece {
	switch {
	case s.state == "" && (s.midLine || len(s.held) > maxOpening || !mayBegin(string(s.held))):
		s.plain.Write(s.held)
		s.held, s.midLine = s.held[:0], true
	case s.state == "maybe" && len(s.held) > maxOpening:
		return s.partialLine(s.finish(out)) // the --- line and this one are text
	case s.state != "" && s.body.Len()+len(s.held) > maxBlock:
		if s.body.Len() == 0 { // a line is cut only if it is longer than a block
			s.body.Write(s.held)
			s.held = s.held[:0]
		}
		out = s.emit(out)
	}
	return out
}

// wholeLine processes a whole line.
func (s *splitter) wholeLine(out []piece) []piece {
	line := string(s.held)
	s.held = s.held[:0]
	if s.midLine {
		s.midLine = false
		s.plain.WriteString(line)
		return out
	}
	switch s.state {
	case "fence":
		if mark, info := gateway.Fence(line); info == "" && strings.HasPrefix(mark, s.fence) {
			return s.finish(out)
		}
	case "diff":
		if !diffLine(line) {
			return s.begin(s.finish(out), line)
		}
	case "error":
		if strings.TrimSpace(line) == "" {
			return s.begin(s.finish(out), line)
		}
	case "maybe":
		if !strings.HasPrefix(line, "+++ ") || len(line) > maxOpening {
			return s.begin(s.finish(out), line)
		}
		s.state = "diff"
	default:
		return s.begin(out, line)
	}
	s.body.WriteString(line)
	if s.body.Len() > maxBlock {
		out = s.emit(out)
	}
	return out
}

// begin processes the first line of the next block or text.
func (s *splitter) begin(out []piece, line string) []piece {
	if len(line) > maxOpening {
		s.plain.WriteString(line)
		return out
	}
	if mark, info := gateway.Fence(line); mark != "" {
		s.state, s.fence, s.info = "fence", mark, info
		return out
	}
	switch {
	case strings.HasPrefix(line, "diff --git "):
		s.state = "diff"
	case strings.HasPrefix(line, "--- "):
		s.state = "maybe"
	case errorLine().MatchString(line):
		s.state = "error"
	default:
		s.plain.WriteString(line)
		return out
	}
	s.body.WriteString(line)
	return out
}

// finish ends the current block, if there is one.
func (s *splitter) finish(out []piece) []piece {
	if s.state == "maybe" {
		s.plain.Write(s.body.Bytes())
	} else if s.state != "" && (s.body.Len() > 0 || s.state == "fence") {
		out = s.emit(out)
	}
	s.state, s.fence, s.info = "", "", ""
	s.body.Reset()
	return out
}

// emit appends what was collected as a block. It keeps state, so that the rest of a block over maxBlock becomes another one.
func (s *splitter) emit(out []piece) []piece {
	content := strings.TrimSuffix(s.body.String(), "\n")
	s.body.Reset()
	b := &block{Type: s.state, Content: content, Annotations: []annotation{}}
	if s.state == "fence" {
		describe(b, s.info)
	}
	switch b.Type {
	case "diff":
		b.Language, b.Metadata.Diff = "diff", true
		fromDiff(b)
	case "error":
		b.Annotations = append(b.Annotations, places(content)...)
	case "code":
		b.Annotations = append(b.Annotations, remarks(content)...)
	}
	return append(s.flush(out), piece{block: b})
}

var (
	errorLine  = gateway.Pattern(`^(?:Traceback \(most recent call last\):|[Ee]rror(?:\[\w+\])?: |panic: |fatal: )`)
	beginnings = []string{"```", "~~~", "diff --git ", "--- ", "Traceback (most recent call last):", "error: ", "Error: ", "error[", "Error[", "panic: ", "fatal: "}
)

// mayBegin reports whether the beginning of a line can be that of a block.
func mayBegin(line string) bool {
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 {
		return false
	}
	for _, b := range beginnings {
		if strings.HasPrefix(b, trimmed) || strings.HasPrefix(trimmed, b) {
			return true
		}
	}
	return false
}

func diffLine(line string) bool {
	for _, p := range []string{
		"+", "-", "@@", " ", "\\ No newline", "diff --git ", "index ", "new file mode", "deleted file mode", "old mode", "new mode",
		"similarity index", "rename from", "rename to", "copy from", "copy to", "Binary files",
	} {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
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

const (
	maxAnnotations = 100  // of one block
	maxRemarked    = 2000 // bytes of a line; a longer one gets none
)

var (
	placeInError = gateway.Pattern(`^\s*(?:-->\s*)?[^\s:]+:(\d+)(?::\d+)?:?\s*(?:(error|warning|note)\b[^:]*:\s*)?(.*)$`)
	remarkInCode = gateway.Pattern(`(?:^|\s)(?://|#|--|/\*|;)\s*(?i:(suggestion|hint|note|todo|fixme|warning|error))\s*:\s*(.+?)\s*(?:\*/)?$`)
)

// annotate returns what note makes of each line that a pattern matches, from the trimmed line and the submatches; note leaves Line unset.
func annotate(content string, pattern *regexp.Regexp, note func(line string, m []string) annotation) (list []annotation) {
	n := 0
	for line := range strings.Lines(content) {
		n++
		if len(line) > maxRemarked || len(list) == maxAnnotations {
			continue
		}
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
