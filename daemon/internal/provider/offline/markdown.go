package offline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"mvdan.cc/sh/v3/syntax"

	"sublet/wire/visible"
)

// quote returns any text as one shell word.
func quote(s string) string {
	word, err := syntax.Quote(strings.ReplaceAll(s, "\x00", ""), syntax.LangBash)
	if err != nil { // a NUL is the one thing that bash cannot quote
		return "''"
	}
	return word
}

// fileWord returns a file's name as one shell word: a leading ~ is the home folder, a leading dash is not an option.
func fileWord(name string) string {
	switch rest, home := strings.CutPrefix(name, "~/"); {
	case name == "~":
		return "~"
	case home:
		return "~/" + quote(rest)
	case strings.HasPrefix(name, "-"), strings.HasPrefix(name, "+"):
		return quote("./" + name)
	}
	return quote(name)
}

// code is text as inline code, whatever is in it. Control characters become visible.
func code(s string) string {
	s = visible.Line(s)
	if s == "" {
		return "(empty)"
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 || strings.HasPrefix(s, "`") {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// block returns a block of code, at most maxLines lines and 6,000 bytes of text: its end, or its beginning where head is set. Of a
// text without words it is empty.
func block(language, text string, maxLines int, head bool) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i := range lines {
		lines[i] = visible.Clip(visible.Text(lines[i]), 300)
	}
	left := 0
	for len(lines) > maxLines || len(lines) > 1 && len(strings.Join(lines, "\n")) > 6000 {
		if head {
			lines = lines[:len(lines)-1]
		} else {
			lines = lines[1:]
		}
		left++
	}
	out := visible.Fenced(language, strings.Join(lines, "\n"))
	switch {
	case left > 0 && head:
		out += fmt.Sprintf("\n%s more.", count(left, "line"))
	case left > 0:
		out = fmt.Sprintf("The last %s:\n\n", count(len(lines), "line")) + out
	}
	return out
}

// firstLine returns the first line of s, with … if there are others.
func firstLine(s string) string {
	line, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if more {
		line += " …"
	}
	return line
}

func quoteText(s string) string { return "“" + strings.TrimRight(visible.Line(s), ". ") + ".”" }

// markdownTable is a Markdown table; cells are plain text and escaped here.
func markdownTable(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| ")
			b.WriteString(strings.NewReplacer("|", `\|`, "\n", " ").Replace(c))
			b.WriteByte(' ')
		}
		b.WriteString("|\n")
	}
	line(head)
	marks := make([]string, len(head))
	for i := range marks {
		marks[i] = "---"
		if len(rows) > 0 && len(rows[0]) > i && isNumber().MatchString(rows[0][i]) {
			marks[i] = "---:"
		}
	}
	line(marks)
	for _, r := range rows {
		line(r)
	}
	return strings.TrimRight(b.String(), "\n")
}

var isNumber = rx(`^[+-]?[\d.,]+ ?(?:%|[KMGTP]?i?B?)?$`)

// count is "1 file", "3 files", "1,204 files".
func count(n int, noun string) string {
	return humanize.Comma(int64(n)) + " " + english.PluralWord(n, noun, "")
}

// join writes names in a sentence: "a, b and c"; more than most are counted.
func join(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
	}
	return english.WordSeries(names, "and")
}

// trouble describes the failure of a command, for the end of an answer: its output and what that means.
func trouble(r result) string {
	what := code(firstLine(r.command))
	if r.tool != "bash" || r.command == "" {
		what = "the " + r.tool + " tool"
	}
	s := "That failed: " + what
	switch {
	case r.stopped == "job":
		return what + " has not ended: it goes on as a background job; `sublet job ls` shows it."
	case r.stopped == "timeout":
		s = "It took too long: " + what + " was ended"
	case r.exit > 0:
		s += fmt.Sprintf(" ended with exit code %d", r.exit)
	}
	if strings.TrimSpace(r.text) == "" {
		return s + " and printed nothing."
	}
	s += ".\n\n" + block("", r.text, 20, false)
	if e := explain(r.command, r.exit, r.text); e != "" {
		s += "\n\n" + e
	}
	return s
}
