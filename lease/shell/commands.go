package shell

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// standardBuiltins are those that every bash from 4.4 on brings along; others were loaded from a file.
var standardBuiltins = strings.Fields(`. : [ alias bg bind break builtin caller cd command compgen complete compopt
	continue declare dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local
	logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true
	type typeset ulimit umask unalias unset wait`)

// readCommands reads what `hash -l` and `enable -n` or `enable -a` print: which names mean something else than builtins and
// PATH say (T3h).
func (sn *snapshot) readCommands(text string) {
	sn.hash = make(map[string]string)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "builtin hash -p "); ok {
			file, n := readWord(rest)
			if name, ok := strings.CutPrefix(rest[n:], " "); ok {
				name, _ = readWord(name)
				sn.hash[name] = file
			}
		} else if name, ok := strings.CutPrefix(line, "enable -n "); ok {
			sn.State.Disabled = append(sn.State.Disabled, name)
		} else if name, ok := strings.CutPrefix(line, "enable "); ok {
			if !slices.Contains(standardBuiltins, name) {
				sn.State.Loaded = append(sn.State.Loaded, name)
			}
		}
	}
	slices.Sort(sn.State.Disabled)
	slices.Sort(sn.State.Loaded)
}

// usualFile remembers where names of the hash table were found along PATH, so that each is looked for once.
type usualFile struct {
	path  string            // the value of PATH that it holds for
	found map[string]string // name to file
}

// strange are the names of a hash table that run another file than the first along path.
func (u *usualFile) strange(table map[string]string, path string) map[string]string {
	if u.path != path || u.found == nil {
		u.path, u.found = path, make(map[string]string)
	}
	odd := make(map[string]string)
	for name, file := range table {
		if u.found[name] == file {
			continue
		}
		if first := lookPath(name, path); first == file {
			u.found[name] = file
		} else {
			odd[name] = file
		}
	}
	return odd
}

// lookPath is the first file along path that bash would run by a name; "" = none.
func lookPath(name, path string) string {
	for dir := range strings.SplitSeq(path, ":") {
		file := dir + "/" + name // as bash writes it, not cleaned
		if strings.HasSuffix(dir, "/") {
			file = dir + name
		}
		if !filepath.IsAbs(file) || dir == "" {
			continue // bash does not remember those
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}
