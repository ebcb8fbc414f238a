package offline

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"

	"sublet/wire/visible"
)

// rx compiles an expression when it is first used.
func rx(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// placeholder is {name}, {1.column}, {name 20} or {name|default} in a step or an answer of the table.
var placeholder = rx(`\{([a-z]+|1\.[A-Za-z]+)(?:([ |])([^{}]*))?\}`)

// next returns the call that follows the results so far, nil when there is enough to answer.
func (in *intent) next(j *job) *call {
	used := 0
	for _, s := range in.steps {
		k := *j
		k.results = j.results[:used]
		if s.after == "run" && used > 0 && !k.last().ok() {
			return nil
		}
		c, ok := s.call(&k)
		if !ok {
			return nil
		}
		if used == len(j.results) {
			return c
		}
		used++
	}
	return nil
}

// call fills in the placeholders of a step; ok is false where one has no value.
func (s *step) call(j *job) (c *call, ok bool) {
	ok = true
	text := placeholder().ReplaceAllStringFunc(s.text, func(match string) string {
		m := placeholder().FindStringSubmatch(match)
		v, found := value(j, m[1], s.tool == "bash")
		switch {
		case !found && m[2] == "|":
			return m[3]
		case !found:
			ok = false
		case s.tool != "bash":
			raw, err := json.Marshal(v)
			ok = ok && err == nil
			return string(raw)
		}
		text, _ := v.(string)
		return text
	})
	if s.tool == "bash" {
		return bash(s.purpose, text), ok
	}
	return &call{tool: s.tool, args: json.RawMessage(text)}, ok
}

// value is what a placeholder of a step stands for: an argument of the prompt, which is quoted for a command, or what values.go works out.
func value(j *job, name string, quoted bool) (any, bool) {
	text, ok := j.args[name]
	switch {
	case !ok:
		if f := values[name]; f != nil {
			return f(j)
		}
		return nil, false
	case quoted:
		return fileWord(text), true
	case name == "n":
		n, err := strconv.Atoi(text)
		return n, err == nil
	}
	return text, true
}

// read takes the rows out of all results, each once. columns are those of the first pattern.
func (in *intent) read(j *job) (columns []string, list []map[string]string) {
	seen := map[string]bool{}
	for _, r := range j.results {
		for _, line := range r.lines() {
			for _, re := range in.rows {
				m := re.FindStringSubmatch(line)
				key := strings.Join(strings.Fields(line), " ")
				if m == nil || seen[key] {
					continue
				}
				seen[key] = true
				row := map[string]string{}
				for i, name := range re.SubexpNames() {
					row[name] = strings.TrimPrefix(strings.TrimSpace(m[i]), "./")
				}
				list = append(list, row)
				break
			}
		}
	}
	if len(in.rows) > 0 {
		columns = slices.DeleteFunc(slices.Clone(in.rows[0].SubexpNames()), func(s string) bool { return s == "" })
	}
	return columns, list
}

// cell writes a value of a column for an answer.
func cell(column, text string) string {
	switch column {
	case "file", "folder", "commit", "branch", "program", "at":
		if text != "" {
			return code(text)
		}
	case "KiB", "lines":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return humanize.Comma(n)
		}
	}
	return visible.Line(visible.Clip(text, 90))
}

// write is the answer of an intent once its calls are done.
func (in *intent) write(j *job) string {
	r := j.last()
	if len(j.results) > 0 {
		for _, list := range [][]condition{in.when, in.shared} {
			for _, c := range list {
				if m := c.pattern.FindStringSubmatch(r.text); m != nil {
					return in.expand(j, c.says, m, c.pattern.SubexpNames())
				}
			}
		}
	}
	_, rows := in.read(j)
	nothing := r.ok() && len(j.results) == 1 && strings.TrimSpace(r.text) == ""
	if len(in.rows) > 0 {
		nothing = r.ok() && len(rows) == 0
	}
	switch {
	case len(j.results) == 0 && in.lacks != "":
		return in.lacks
	case in.none != "" && nothing:
		return in.expand(j, in.none, nil, nil)
	case strings.HasPrefix(in.answer, "@"):
		return answers[in.answer[1:]](j)
	case !r.ok() && in.fail != "" && r.stopped == "":
		return in.expand(j, in.fail, nil, nil)
	case !r.ok():
		return trouble(r)
	case len(in.rows) > 0 && len(rows) == 0:
		return block("", r.text, 20, true)
	}
	return in.expand(j, in.answer, nil, nil)
}

// expand fills in the placeholders of an answer, and the groups, with their names, of the condition that it belongs to.
func (in *intent) expand(j *job, text string, groups, names []string) string {
	for i := len(groups) - 1; i > 0; i-- { // $10 before $1
		group := groups[i]
		if names[i] != "count" {
			group = code(group)
		}
		text = strings.ReplaceAll(text, "$"+strconv.Itoa(i), strings.ReplaceAll(group, "{", "{\x00")) // a group's { begins no placeholder
	}
	text = placeholder().ReplaceAllStringFunc(text, func(match string) string {
		m := placeholder().FindStringSubmatch(match)
		return in.part(j, m[1], m[3])
	})
	return strings.TrimSpace(strings.ReplaceAll(text, "\x00", ""))
}

// part returns what a placeholder of an answer stands for; option is what follows its name.
func (in *intent) part(j *job, name, option string) string {
	r := j.last()
	most, _ := strconv.Atoi(option) // a number for those that take one
	columns, rows := in.read(j)
	switch name {
	case "out":
		return block("", r.text, most, true)
	case "diff":
		return block("diff", r.text, most, true)
	case "tail":
		return block("", r.text, most, false)
	case "rest":
		_, rest, _ := strings.Cut(strings.TrimSpace(r.text), "\n")
		return block("", rest, most, true)
	case "first":
		return code(firstLine(r.text))
	case "command":
		return code(visible.Clip(r.command, 200))
	case "exit":
		return strconv.Itoa(r.exit)
	case "count":
		return count(len(rows), option)
	case "table":
		cells := make([][]string, 0, len(rows))
		for _, row := range rows[:min(len(rows), 40)] {
			line := make([]string, len(columns))
			for i, c := range columns {
				line[i] = cell(c, row[c])
			}
			cells = append(cells, line)
		}
		return markdownTable(columns, cells)
	case "n":
		return j.args["n"]
	}
	if column, ok := strings.CutPrefix(name, "1."); ok && len(rows) > 0 {
		return cell(column, rows[0][column])
	}
	if text, ok := j.args[name]; ok {
		return code(text)
	}
	if f := values[name]; f != nil {
		if v, ok := f(j); ok {
			text, _ := v.(string)
			return text
		}
	}
	return ""
}
