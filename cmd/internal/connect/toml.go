package connect

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// tomlFile changes a TOML file.
var tomlFile = syntax{
	parse: toml.Unmarshal,
	set: func(l lines, path []string, value string) (lines, error) {
		table, key := tableKey(path)
		return l.set(table, key, value), nil
	},
	remove: func(l lines, path []string) (lines, error) {
		if whole := strings.Join(path, "."); slices.ContainsFunc(l, func(s string) bool { return header(s) == whole }) {
			return l.removeTables(whole), nil
		}
		table, key := tableKey(path)
		return l.remove(table, key), nil
	},
}

// tableKey splits the path of a setting into the name of its table and its key there.
func tableKey(path []string) (table, key string) {
	last := len(path) - 1
	return strings.Join(path[:last], "."), path[last]
}

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
	for to > from+1 && blank(l[to-1]) {
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
		if len(l) > 0 && !blank(l[len(l)-1]) {
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
		if from > 0 && blank(l[from-1]) {
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
		for to < len(l) && to > from+1 && comment(l[to-1]) {
			to-- // a comment above the next table is that one's
		}
		if to == len(l) && from > 0 && blank(l[from-1]) {
			from--
		}
		l = slices.Delete(l, from, to)
		i = from - 1
	}
	return l
}
