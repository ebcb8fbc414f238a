package dialect

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"sublet/wire/visible"
)

// Volatile reports whether a variable is left out of a State: all shells change it by themselves, or the integration uses it.
func Volatile(name string) bool {
	switch name {
	case "_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES":
		return true
	}
	return strings.HasPrefix(name, "__sublet_")
}

// decisive reports whether a variable can decide which program a later, harmless command really runs.
func decisive(name string) bool {
	switch name {
	case "PATH", "PROMPT_COMMAND", "BASH_ENV", "ENV", "ZDOTDIR", "IFS", "PS0", "PS1", "PS4", "PAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN",
		"LESSCLOSE", "MANPAGER", "RIPGREP_CONFIG_PATH", "PYTHONSTARTUP", "PYTHONPATH", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT":
		return true
	}
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "GIT_")
}

// A Change is what differs between two states, by name.
type Change struct {
	Added, Changed, Removed []string
}

// Compare returns, sorted, which names b has and a has not, which have another value, and which only a has. Names for which
// skip reports true are left out.
func Compare(a, b map[string]string, skip func(name string) bool) (c Change) {
	for name, is := range b {
		was, had := a[name]
		switch {
		case had && was == is || skip(name):
		case had:
			c.Changed = append(c.Changed, name)
		default:
			c.Added = append(c.Added, name)
		}
	}
	for name := range a {
		if _, has := b[name]; !has && !skip(name) {
			c.Removed = append(c.Removed, name)
		}
	}
	slices.Sort(c.Added)
	slices.Sort(c.Changed)
	slices.Sort(c.Removed)
	return c
}

// Without returns what of list is not in other.
func Without(list, other []string) (rest []string) {
	for _, s := range list {
		if !slices.Contains(other, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

// autoloaded returns a predicate on names of functions. It reports whether zsh had the function marked for autoload in a and has loaded
// its text in b: that is not a change by a command.
func autoloaded(a, b map[string]string) func(name string) bool {
	return func(name string) bool {
		_, has := b[name]
		return has && strings.HasPrefix(a[name], "builtin autoload -X")
	}
}

// Difference describes in one line what a command changed, given the states before (a) and after it (b); "" for nothing. It
// holds no values and no control characters. What hooks and plug-ins change is left out: variables that are not exported and whose
// names begin with _, functions that were loaded, and PS1 where hooks have set it.
func Difference(a, b State) string {
	var parts, watch []string
	list := func(verb string, names []string) {
		if len(names) == 0 {
			return
		}
		const most = 5
		text := verb + " " + strings.Join(names[:min(len(names), most)], ", ")
		if more := len(names) - most; more > 0 {
			text += " and " + strconv.Itoa(more) + " more"
		}
		parts = append(parts, text)
	}
	if a.Dir != b.Dir {
		parts = append(parts, "moved to "+ShortDir(b.Dir, b.Vars["HOME"]))
	}
	export := func(_, value string) string { return "export " + value }
	vars := Compare(variables(a, export), variables(b, export), func(name string) bool {
		_, was := a.Vars[name]
		_, is := b.Vars[name]
		return strings.HasPrefix(name, "_") && !was && !is || name == "PS1" && b.Painted
	})
	list("set", vars.Added)
	list("changed", vars.Changed)
	list("unset", vars.Removed)
	for _, name := range slices.Concat(vars.Added, vars.Changed, vars.Removed) {
		if decisive(name) {
			watch = append(watch, name)
		}
	}
	for _, kind := range []struct {
		is, gone string
		a, b     map[string]string
		decisive bool
	}{
		{"set alias", "removed alias", a.Aliases, b.Aliases, false},
		{"defined function", "removed function", a.Functions, b.Functions, false},
		{"made another file run as", "put back what runs as", a.Hashed, b.Hashed, true},
	} {
		c := Compare(kind.a, kind.b, autoloaded(kind.a, kind.b))
		list(kind.is, slices.Concat(c.Added, c.Changed))
		list(kind.gone, c.Removed)
		if kind.decisive {
			watch = slices.Concat(watch, c.Added, c.Changed)
		}
	}
	off := Without(b.Disabled, a.Disabled)
	list("switched off builtin", off)
	list("switched on builtin", Without(a.Disabled, b.Disabled))
	watch = slices.Concat(watch, off)
	list("switched on", Without(b.Options, a.Options))
	list("switched off", Without(a.Options, b.Options))
	if a.Umask != b.Umask {
		parts = append(parts, "changed the umask to "+b.Umask)
	}
	if len(watch) > 0 {
		parts = append(parts, "look at "+strings.Join(watch, ", ")+": it decides what later commands run")
	}
	return visible.Line(strings.Join(parts, ", "))
}

// variables returns exported and other variables in one map. export makes the value of an exported one differ from that of a
// variable that is not, so that exporting counts as a change.
func variables(st State, export func(name, value string) string) map[string]string {
	m := make(map[string]string, len(st.Vars)+len(st.Local))
	for name, value := range st.Vars {
		m[name] = export(name, value)
	}
	maps.Copy(m, st.Local)
	return m
}

// ShortDir is dir as a person writes it: ~ for what begins with home.
func ShortDir(dir, home string) string {
	if home != "" {
		if dir == home {
			return "~"
		}
		if rest, ok := strings.CutPrefix(dir, home+"/"); ok {
			return "~/" + rest
		}
	}
	return dir
}
