package connect

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// tomlFile is a settings file in TOML. No library writes that with its comments, so it is changed line by line, and a parser checks
// that the result is the settings before and the change.
type tomlFile struct {
	tables   []tomlTable    // in their order; the first is what is above all headers
	settings map[string]any // without empty objects
}

// tomlTable is the lines of a table, with the comments above its header.
type tomlTable struct {
	name  string
	lines []string
}

func parseTOML(text []byte) (document, error) {
	f := &tomlFile{tables: []tomlTable{{}}, settings: map[string]any{}}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		last := &f.tables[len(f.tables)-1]
		if m := tableHeader().FindStringSubmatch(line); m != nil {
			n := len(last.lines)
			for n > 0 && strings.HasPrefix(strings.TrimSpace(last.lines[n-1]), "#") {
				n--
			}
			above := slices.Clone(last.lines[n:])
			last.lines = last.lines[:n]
			f.tables = append(f.tables, tomlTable{strings.TrimSpace(m[1]), above})
			last = &f.tables[len(f.tables)-1]
		}
		last.lines = append(last.lines, line)
	}
	err := toml.Unmarshal(text, &f.settings)
	prune(f.settings)
	return f, err
}

// tableHeader matches a line that begins a table, or an element of a list of tables.
var tableHeader = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\[\[?([^\[\]]+)\]\]?\s*(#.*)?$`) })

// prune removes empty objects from m.
func prune(m map[string]any) {
	for name, v := range m {
		if object, ok := v.(map[string]any); ok {
			if prune(object); len(object) == 0 {
				delete(m, name)
			}
		}
	}
}

// put sets the value at a path in m, with the objects around it, or removes it (nil).
func put(m map[string]any, path []string, value any) {
	last := len(path) - 1
	for _, name := range path[:last] {
		next, ok := m[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[name] = next
		}
		m = next
	}
	if m[path[last]] = value; value == nil {
		delete(m, path[last])
	}
}

// get implements document.
func (f *tomlFile) get(path []string) (value any) {
	value = f.settings
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// find returns the table that has the setting at a path, by its index, and the index of the setting's line in it; -1 where there is none.
func (f *tomlFile) find(path []string) (table, line int) {
	last := len(path) - 1
	table = slices.IndexFunc(f.tables, func(t tomlTable) bool { return t.name == strings.Join(path[:last], ".") })
	if table < 0 {
		return -1, -1
	}
	return table, slices.IndexFunc(f.tables[table].lines, func(line string) bool {
		name, _, ok := strings.Cut(line, "=")
		return ok && strings.TrimSpace(name) == path[last]
	})
}

// set implements document. The error is errByHand where the setting is not one line of a table of its own.
func (f *tomlFile) set(path []string, value any) error {
	last := len(path) - 1
	line, err := toml.Marshal(map[string]any{path[last]: value})
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(line))
	table, at := f.find(path)
	if table < 0 {
		end := &f.tables[len(f.tables)-1]
		if n := len(end.lines); n > 0 && !blank(end.lines[n-1]) {
			end.lines = append(end.lines, "")
		}
		f.tables = append(f.tables, tomlTable{name: strings.Join(path[:last], "."), lines: []string{"[" + strings.Join(path[:last], ".") + "]"}})
		table = len(f.tables) - 1
	}
	t := &f.tables[table]
	if at < 0 {
		for at = len(t.lines); at > 0 && blank(t.lines[at-1]); {
			at--
		}
		t.lines = slices.Insert(t.lines, at, "")
	}
	t.lines[at] = text
	return f.check(path, value)
}

// remove implements document: it removes the line of a setting, with its table if that has no other, or a table and those inside it. The
// error is errByHand where what is at path is written in another way.
func (f *tomlFile) remove(path []string) error {
	whole := strings.Join(path, ".")
	if table, at := f.find(path); at >= 0 {
		t := &f.tables[table]
		if t.lines = slices.Delete(t.lines, at, at+1); slices.IndexFunc(t.lines[1:], func(line string) bool { return !blank(line) }) < 0 {
			f.tables = slices.Delete(f.tables, table, table+1) // nothing is left of it
		}
	}
	f.tables = slices.DeleteFunc(f.tables, func(t tomlTable) bool { return t.name == whole || strings.HasPrefix(t.name, whole+".") })
	// Remove the empty line that set put above a new table.
	if end := &f.tables[len(f.tables)-1]; len(end.lines) > 0 && blank(end.lines[len(end.lines)-1]) {
		end.lines = end.lines[:len(end.lines)-1]
	}
	return f.check(path, nil)
}

// check returns errByHand unless the text is the settings as they were with a new value at path; nil = without one.
func (f *tomlFile) check(path []string, value any) error {
	put(f.settings, path, value)
	prune(f.settings)
	text, _ := f.text() // cannot fail
	got, err := parseTOML(text)
	if err != nil || !same(got.(*tomlFile).settings, f.settings) {
		return errByHand
	}
	return nil
}

func (f *tomlFile) text() ([]byte, error) {
	text := []byte{}
	for _, t := range f.tables {
		for _, line := range t.lines {
			text = append(text, line+"\n"...)
		}
	}
	return text, nil
}

// blank reports whether a line holds neither a setting nor a comment.
func blank(line string) bool { return strings.TrimSpace(line) == "" }
