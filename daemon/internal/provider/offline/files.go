package offline

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"sublet/daemon/internal/project"
	"sublet/wire/visible"
)

// entry is a line of ls -l.
type entry struct {
	mode, date, name, target string
	bytes                    uint64
}

func (e entry) dir() bool { return strings.HasPrefix(e.mode, "d") }

// lsLine: mode, links, owner, group, size (or device numbers), three words of date, name.
var lsLine = rx(`^([-dlbcpsD][-rwxsStTlL]{9})[.+@]?\s+\d+\s+\S+\s+\S+\s+(\d+|\d+,\s*\d+)\s+(\S+\s+\S+\s+\S+) (.+)$`)

func parseLs(text string) (list []entry) {
	for _, line := range splitLines(text) {
		m := lsLine().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		e := entry{mode: m[1], date: m[3], name: m[4]}
		e.bytes, _ = strconv.ParseUint(m[2], 10, 64) // a device has no size
		if e.mode[0] == 'l' {
			e.name, e.target, _ = strings.Cut(e.name, " -> ")
		}
		e.name, e.target = unquoted(e.name), unquoted(e.target)
		list = append(list, e)
	}
	return list
}

// unquoted takes off what ls puts round names on a terminal: quotes where the shell would want them, and a blank before
// the others to keep them in line.
func unquoted(name string) string {
	name = strings.TrimPrefix(name, " ")
	if n := len(name); n >= 2 && (name[0] == '\'' || name[0] == '"') && name[n-1] == name[0] {
		return strings.ReplaceAll(name[1:n-1], `'\''`, "'")
	}
	return name
}

// kinds has the names of files that show what a folder is, each with a description.
const kinds = "go.mod a Go module|Cargo.toml a Rust crate|package.json a Node.js package|pyproject.toml a Python project|requirements.txt a Python project|" +
	"pom.xml a Maven project|build.gradle a Gradle project|Gemfile a Ruby project|CMakeLists.txt a CMake project|Dockerfile with a container image|Makefile with a Makefile|.git a git repository"

// listing writes what ls -lA printed: folders first, sizes for people, and what kind of project it is.
func listing(j *job) string {
	r := j.results[0]
	list := parseLs(r.text)
	if !r.ok() {
		return trouble(r)
	}
	if len(list) == 0 {
		return block("", r.text, 40, true)
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		if a.dir() != b.dir() {
			return strings.Compare(b.mode[:1], a.mode[:1]) // d before the others
		}
		return strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name))
	})
	var rows [][]string
	total, dirs := uint64(0), 0
	for _, e := range list {
		row := []string{code(e.name), humanize.IBytes(e.bytes), e.date}
		switch {
		case e.dir():
			dirs++
			row[0], row[1] = code(e.name+"/"), ""
		case e.target != "":
			row[0], row[1] = row[0]+" → "+code(e.target), ""
		default:
			total += e.bytes
		}
		rows = append(rows, row)
	}
	where := "Here"
	if f := j.args["file"]; f != "" {
		where = "In " + code(f)
	}
	s := fmt.Sprintf("%s: **%s and %s (%s)**", where, count(dirs, "folder"), count(len(list)-dirs, "file"), humanize.IBytes(total))
	var says []string
	for k := range strings.SplitSeq(kinds, "|") {
		file, kind, _ := strings.Cut(k, " ")
		if slices.ContainsFunc(list, func(e entry) bool { return e.name == file }) && !slices.Contains(says, kind) {
			says = append(says, kind)
		}
	}
	if len(says) > 0 {
		s += "; " + strings.Join(says, ", ")
	}
	s += ".\n\n" + markdownTable([]string{"name", "size", "changed"}, rows[:min(len(rows), 30)])
	if n := len(rows) - 30; n > 0 {
		s += fmt.Sprintf("\n\nand %d more.", n)
	}
	return s
}

// about answers what a project does: the beginning of its README, what it is built with, what is in it. The first result is that of
// ls -lA, the second, if there is a README, that of the read tool.
func about(j *job) string {
	s := ""
	if len(j.results) > 1 && !j.last().isError {
		lines, _ := numbered(j.last().text)
		text := strings.TrimSpace(strings.Join(lines, "\n"))
		if paragraphs := strings.SplitN(text, "\n\n", 3); text != "" && !strings.Contains(paragraphs[0], "```") { // else a block of code would stay open
			s = "Its README begins:\n\n> " + strings.ReplaceAll(visible.Text(strings.Join(paragraphs[:min(len(paragraphs), 2)], "\n\n")), "\n", "\n> ") + "\n\n"
		}
	}
	if commands := project.Commands(project.Root(j.facts.Cwd)); len(commands) > 0 {
		s += "It is built and tested with:\n\n- " + visible.Text(strings.Join(commands, "\n- ")) + "\n\n"
	}
	return s + listing(j)
}

// foundText writes what the grep tool found.
func foundText(j *job) string {
	r := j.last()
	text := j.args["text"]
	if text == "" {
		text = "TODO"
	}
	switch {
	case r.isError:
		return trouble(r)
	case strings.HasPrefix(r.text, "no match in "):
		return "Nothing: " + code(text) + " is in none of the files here. (What git ignores and hidden files are left out.)"
	}
	files := map[string]bool{}
	var shown []string
	for _, line := range r.lines() {
		if m := hit().FindStringSubmatch(line); m != nil {
			files[m[1]] = true
			shown = append(shown, m[1]+":"+m[2]+": "+strings.TrimSpace(visible.Clip(m[3], 160)))
		}
	}
	if len(shown) == 0 {
		return block("", r.text, 30, true)
	}
	return fmt.Sprintf("%s is in %s, %s.\n\n", code(text), count(len(files), "file"), count(len(shown), "line")) + block("", strings.Join(shown, "\n"), 25, true)
}

// hit is a line of the grep tool: path:line:text.
var hit = rx(`^(.+?):(\d+):(.*)$`)

// numbered takes the read tool's line numbers off. more is set where the file goes on.
func numbered(text string) (lines []string, more bool) {
	for _, l := range strings.Split(text, "\n") {
		n, rest, ok := strings.Cut(l, "\t")
		if _, err := strconv.Atoi(strings.TrimSpace(n)); ok && err == nil {
			lines = append(lines, strings.TrimSuffix(rest, "\r"))
		} else if strings.HasPrefix(l, "[lines ") && strings.Contains(l, "more follows") {
			more = true
		}
	}
	return lines, more
}

// shown answers with a file's text.
func shown(j *job) string {
	lines, more := numbered(j.last().text)
	name := code(j.args["file"])
	if len(lines) == 0 {
		return name + " is empty."
	}
	s := name + ", " + count(len(lines), "line")
	if more {
		s = name + ", the first " + count(len(lines), "line")
	}
	return s + ":\n\n" + block(language(j.args["file"]), strings.Join(lines, "\n"), 120, true)
}

// unread answers why a file could not be read.
func unread(j *job) string {
	r, name := j.last(), code(j.args["file"])
	switch {
	case strings.Contains(r.text, "no such file"), strings.Contains(r.text, "does not exist"):
		return "There is no " + name + " here. Ask “find file " + visible.Line(j.args["file"]) + "” to look for it below this folder."
	case strings.Contains(r.text, "is a directory"), strings.Contains(r.text, "not a regular file"):
		return name + " is a folder or something else that is no plain file. Ask “what is in " + visible.Line(j.args["file"]) + "”."
	case strings.Contains(r.text, ", not text"):
		return name + " is no text."
	}
	return "I could not read or change " + name + ": " + visible.Line(firstLine(r.text)) + "."
}

// language is what a block of code with a file's text is marked with.
func language(name string) string {
	if ext := strings.TrimPrefix(path.Ext(name), "."); ext != "" {
		return strings.ToLower(ext)
	}
	return strings.ToLower(path.Base(name)) // makefile, dockerfile
}

// outline finds the lines that say what is in a file, in most languages.
var outline = rx(`^(?:\s*(?:export |default |async |pub(?:\([^)]*\))? |public |private |protected |static )*(?:func|type|def|class|fn|struct|enum|trait|interface|module|function) (?:\([^)]*\) )?(\w+)|#+ (.+)|\[+([^\]]+)\]|([\w.-]+):(?:[^=]|$))`)

// explainFile answers what a file is: what can be counted of it, and its first comment.
func explainFile(j *job) string {
	lines, more := numbered(j.last().text)
	name := code(j.args["file"])
	if len(lines) == 0 {
		return name + " is empty."
	}
	s := name + " has "
	if more {
		s += "at least "
	}
	s += count(len(lines), "line") + "."
	first := strings.TrimLeft(lines[0], "/#*-;\"' ")
	if strings.HasPrefix(lines[0], "#!") && len(lines) > 1 {
		s += " It is a script for " + code(path.Base(strings.Fields(lines[0] + " sh")[0])) + "."
		first = strings.TrimLeft(lines[1], "# ")
	}
	if first != "" && first != lines[0] && first != lines[min(1, len(lines)-1)] {
		s += " It says of itself: " + quoteText(visible.Clip(first, 200))
	}
	var names []string
	for _, l := range lines {
		if m := outline().FindStringSubmatch(l); m != nil {
			if n := code(strings.TrimSpace(strings.Join(m[1:], ""))); !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	if len(names) > 0 {
		s += fmt.Sprintf("\n\nIn it, %s: %s.", count(len(names), "name"), join(names, 25))
	}
	return s + "\n\n" + block(language(j.args["file"]), strings.Join(lines, "\n"), 20, true) + "\n\nThis is what can be counted; what it means takes a real model."
}
