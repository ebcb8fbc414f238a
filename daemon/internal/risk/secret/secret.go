// Package secret is the table of the files and folders that hold keys, passwords and the like: the names of secrets.txt, and
// what the user adds to them and takes out. What is asked about, what the kernel hides from a command and what tools that
// search leave out all follow it. It reads no secret.
package secret

import (
	_ "embed"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sublet/daemon/internal/risk/programs"
)

//go:embed secrets.txt
var text string

// list returns the names of a section of secrets.txt.
func list(section string) []string { return sections()[section] }

var sections = sync.OnceValue(func() map[string][]string { return programs.Sections(text) })

// Table is the built-in table with the user's changes to it. The zero value is the built-in one of a user without a home.
type Table struct {
	home         string
	closed, open []string // what the user added and took out: absolute and clean
}

// New returns the table of a user whose home is given, with the paths that they add and take out: absolute, or below ~. A
// path that is a link counts with what it leads to.
func New(home string, add, remove []string) Table {
	expand := func(paths []string) (list []string) {
		for _, p := range paths {
			if rest, ok := strings.CutPrefix(p, "~"); ok {
				p = home + rest
			}
			p = path.Clean(p)
			list = append(list, p)
			if real, err := filepath.EvalSymlinks(p); err == nil && real != p {
				list = append(list, real)
			}
		}
		return list
	}
	return Table{home, expand(add), expand(remove)}
}

// Override returns the user's setting for a path, whose segments may be patterns: that it is secret (closed), that it is not
// (open), or none. Of several settings the one about the nearest folder counts.
func (t Table) Override(p string) (closed, open bool) {
	nearest := 0
	for _, dir := range t.open {
		if len(dir) > nearest && Under(p, dir) {
			nearest, open = len(dir), true
		}
	}
	for _, dir := range t.closed {
		if len(dir) > nearest && Match(p, []string{dir}) {
			nearest, closed, open = len(dir), true, false
		}
	}
	return closed, open
}

// Holds reports whether a file holds secrets.
func (t Table) Holds(p string) bool {
	closed, open := t.Override(p)
	return closed || !open && (InSystem(p) || Named(path.Base(p)) || t.home != "" && p != t.home && Under(p, t.home) && InHome(strings.TrimPrefix(p[len(t.home):], "/")))
}

// Named is the function Named for a path of which the user may say that it is not secret.
func (t Table) Named(p string) bool {
	_, open := t.Override(p)
	return !open && Named(path.Base(p))
}

// Mentioned reports whether a text, as code in any language, has a path of the table among its words.
func (t Table) Mentioned(text string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune("'\"`()[]{}<>,;=+|&", r) }), func(word string) bool {
		p := word
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			p = path.Join(t.home, rest)
		}
		if closed, open := t.Override(path.Clean(p)); closed || open {
			return closed
		}
		for rest, more := strings.TrimLeft(word, "/"), true; more; _, rest, more = strings.Cut(rest, "/") {
			if first, _, _ := strings.Cut(rest, "/"); slices.Contains(list("names"), first) || slices.ContainsFunc(list("home"), func(dir string) bool { return Under(rest, dir) }) {
				return true
			}
		}
		return InSystem(word)
	})
}

// Hidden returns what a command must not read that runs in a project's folder, whether it exists or not: what the table has
// of the system, of the home, and of the names in that folder.
func (t Table) Hidden(project string) []string {
	all := append(slices.Clone(list("system")), t.closed...)
	add := func(dir, name string) {
		if dir != "" && dir != "/" {
			all = append(all, path.Join(dir, name))
		}
	}
	for _, name := range list("home") {
		add(t.home, name)
	}
	for _, name := range list("names") {
		if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "id_") {
			add(t.home, name)
		}
		add(project, name)
	}
	var hidden []string
	for _, p := range all {
		if _, open := t.Override(p); !open {
			hidden = append(hidden, t.around(p)...)
		}
	}
	slices.Sort(hidden)
	return slices.Compact(hidden)
}

// around returns p alone or, if the user took out paths below it, the files and folders in p that hold none of these paths.
func (t Table) around(p string) []string {
	if !slices.ContainsFunc(t.open, func(dir string) bool { return Under(dir, p) }) {
		return []string{p}
	}
	entries, err := os.ReadDir(p)
	if err != nil {
		return []string{p}
	}
	var beside []string
	for _, e := range entries {
		if below := path.Join(p, e.Name()); !slices.Contains(t.open, below) {
			beside = append(beside, t.around(below)...)
		}
	}
	return beside
}

// InSystem reports whether a path is a secret of the operating system.
func InSystem(p string) bool { return Match(p, list("system")) }

// InHome reports whether a path that begins in a home folder is secret by its place there.
func InHome(rest string) bool { return !public(path.Base(rest)) && Match(rest, list("home")) }

func public(base string) bool {
	return slices.Contains(list("public"), base) || programs.Ends(base, list("public-ends"))
}

// Named reports whether files of a name, which may be a pattern, hold keys, tokens or passwords, wherever they are.
func Named(base string) bool {
	switch {
	case slices.Contains(list("names"), base):
		return true
	case public(base), base == "*.asc": // these are signatures for the most part
		return false
	case strings.HasPrefix(base, ".env."), strings.HasSuffix(base, ".env"), programs.Ends(base, list("ends")):
		return true
	}
	// A pattern for keys of SSH, or for one of the names that begin with a dot.
	return strings.ContainsAny(base, "*?[") && strings.Trim(base, "*?") != "" && (strings.HasPrefix(base, "id_") || base[0] == '.' && Match(base, list("names")))
}

// Under reports whether a cleaned path is dir or lies below it.
func Under(p, dir string) bool {
	return dir == "/" || dir != "" && strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

// Match reports whether p is one of the list or lies below one; segments of p may be patterns.
func Match(p string, list []string) bool {
	if slices.ContainsFunc(list, func(d string) bool { return Under(p, d) }) {
		return true
	}
	if !strings.ContainsAny(p, "*?[") {
		return false
	}
	ps := strings.Split(p, "/")
	for _, d := range list {
		if ds := strings.Split(d, "/"); len(ps) >= len(ds) && slices.EqualFunc(ps[:len(ds)], ds, func(p, d string) bool {
			return p == d || strings.ContainsAny(p, "*?[") && globMatch(p, d) && (p[0] == '.' || d == "" || d[0] != '.')
		}) {
			return true
		}
	}
	return false
}

var brackets = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[[^]]*\]?`) })

// globMatch matches *, ? and literals; a [ matches any one character.
func globMatch(pattern, s string) bool {
	ok, err := path.Match(brackets().ReplaceAllString(pattern, "?"), s)
	return ok || err != nil
}
