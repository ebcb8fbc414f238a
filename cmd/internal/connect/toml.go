package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// errByHand reports a TOML file in a form that this program does not change.
var errByHand = errors.New("it is written in a way that sublet does not change; --print shows the settings to add by hand")

// lines is a TOML file. No library writes TOML with its comments and order kept, so it is changed line by line, and a parser
// checks that the result is the old settings and ours.
type lines []string

// table returns the index of a table's header and the one behind its last line that is not blank, -1 where there is none.
func (l lines) table(name string) (from, to int) {
	from = slices.IndexFunc(l, func(s string) bool { return header(s) == name })
	if from < 0 {
		return -1, -1
	}
	to = from + 1
	for to < len(l) && header(l[to]) == "" {
		to++
	}
	for to > from+1 && strings.TrimSpace(l[to-1]) == "" {
		to--
	}
	return from, to
}

// headerLine begins a table, or an element of a list of tables.
var headerLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\[\[?([^\[\]]+)\]\]?\s*(#.*)?$`) })

// header is the name of the table that a line begins, "" for another line.
func header(line string) string {
	if m := headerLine().FindStringSubmatch(line); m != nil {
		return strings.TrimSpace(m[1])
	}
	return ""
}

// key is the line of a key in a table, -1 where there is none.
func (l lines) key(from, to int, key string) int {
	for i := from + 1; i < to; i++ {
		name, _, ok := strings.Cut(l[i], "=")
		if ok && strings.TrimSpace(name) == key {
			return i
		}
	}
	return -1
}

func (l lines) set(table, key, value string) lines {
	from, to := l.table(table)
	line := key + " = " + value
	if from < 0 {
		if len(l) > 0 && strings.TrimSpace(l[len(l)-1]) != "" {
			l = append(l, "")
		}
		return append(l, "["+table+"]", line)
	}
	if i := l.key(from, to, key); i >= 0 {
		l[i] = line
		return l
	}
	return slices.Insert(l, to, line)
}

func (l lines) remove(table, key string) lines {
	from, to := l.table(table)
	if from < 0 {
		return l
	}
	if i := l.key(from, to, key); i >= 0 {
		l = slices.Delete(l, i, i+1)
		to--
	}
	if to == from+1 { // nothing is left of it
		if from > 0 && strings.TrimSpace(l[from-1]) == "" {
			from--
		}
		l = slices.Delete(l, from, to)
	}
	return l
}

// removeTables removes a table and those below it.
func (l lines) removeTables(name string) lines {
	for i := 0; i < len(l); i++ {
		h := header(l[i])
		if h != name && !strings.HasPrefix(h, name+".") {
			continue
		}
		from, to := i, i+1
		for to < len(l) && header(l[to]) == "" {
			to++
		}
		for to < len(l) && to > from+1 && strings.HasPrefix(strings.TrimSpace(l[to-1]), "#") {
			to-- // a comment above the next table is that one's
		}
		if to == len(l) && from > 0 && strings.TrimSpace(l[from-1]) == "" {
			from--
		}
		l = slices.Delete(l, from, to)
		i = from - 1
	}
	return l
}

func split(text []byte) lines {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func (l lines) text() []byte {
	if len(l) == 0 {
		return []byte{}
	}
	return []byte(strings.Join(l, "\n") + "\n")
}

// tomlValue is a value as TOML writes it, which for these is as JSON does.
func tomlValue(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.ReplaceAll(strings.TrimSpace(b.String()), `","`, `", "`), nil
}

func settings(text []byte) (map[string]any, error) {
	m := map[string]any{}
	return m, toml.Unmarshal(text, &m)
}

// at returns the value at a path, nil where there is none.
func at(m map[string]any, path []string) any {
	for i, name := range path {
		v, ok := m[name]
		if !ok {
			return nil
		}
		if i == len(path)-1 {
			return v
		}
		if m, ok = v.(map[string]any); !ok {
			return nil
		}
	}
	return nil
}

// put sets the value at a path in m, with the tables around it, or removes it (nil). changeTOML compares its result with that.
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
	if value == nil {
		delete(m, path[last])
		return
	}
	m[path[last]] = value
}

// changeTOML sets each value, or removes it (nil), and checks that nothing else became different. If nothing has to change, it
// returns text.
func changeTOML(text []byte, edits []edit) ([]byte, error) {
	want, err := settings(text)
	if err != nil {
		return nil, err
	}
	edits = slices.DeleteFunc(members(edits), func(e edit) bool { return same(at(want, e.path), e.value) })
	if len(edits) == 0 {
		return text, nil
	}
	l := split(text)
	for _, e := range edits {
		table, key := strings.Join(e.path[:len(e.path)-1], "."), e.path[len(e.path)-1]
		was := at(want, e.path)
		put(want, e.path, e.value)
		if _, whole := was.(map[string]any); whole && e.value == nil {
			l = l.removeTables(strings.Join(e.path, "."))
			continue
		}
		if e.value == nil {
			l = l.remove(table, key)
			continue
		}
		value, err := tomlValue(e.value)
		if err != nil {
			return nil, err
		}
		l = l.set(table, key, value)
	}
	got, err := settings(l.text())
	if err != nil || !same(got, want) {
		return nil, errByHand
	}
	return l.text(), nil
}

func takeBackTOML(text, old []byte, edits []edit) ([]byte, error) {
	was, err := settings(old)
	if err != nil {
		return nil, fmt.Errorf("its backup: %w", err)
	}
	var back []edit
	for _, e := range takenBack(edits, func(path []string) bool { return at(was, path) != nil }) {
		back = append(back, edit{path: e.path, value: at(was, e.path)})
	}
	return changeTOML(text, back)
}
