package dialect

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// volatile are variables that shells change by themselves.
var volatile = map[string]bool{"PWD": true, "OLDPWD": true, "_": true, "SHLVL": true, "COLUMNS": true, "LINES": true}

// Decisive reports whether a variable decides what a later, harmless command really runs.
func Decisive(name string) bool {
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

// Compare returns, sorted, which names b has and a has not, which have another value, and which only a has. Names that skip
// holds are left out.
func Compare(a, b map[string]string, skip map[string]bool) (c Change) {
	for name, is := range b {
		was, had := a[name]
		switch {
		case had && was == is || skip[name]:
		case had:
			c.Changed = append(c.Changed, name)
		default:
			c.Added = append(c.Added, name)
		}
	}
	for name := range a {
		if _, has := b[name]; !has && !skip[name] {
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

// Difference describes in one line what a command left different from a to b, "" for nothing. It holds no values and no
// control characters.
func Difference(a, b State) string {
	var parts, watch []string
	say := func(verb string, names []string) {
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
		parts = append(parts, "left you in "+ShortDir(b.Dir, b.Vars["HOME"]))
	}
	vars, local := Compare(a.Vars, b.Vars, volatile), Compare(a.Local, b.Local, volatile)
	// A variable that is exported from now on leaves one map and enters the other: that is one change.
	merge := func(x, y []string) []string { return slices.Compact(slices.Sorted(slices.Values(slices.Concat(x, y)))) }
	in := func(m map[string]string) func(string) bool {
		return func(name string) bool { _, ok := m[name]; return ok }
	}
	added := merge(slices.DeleteFunc(vars.Added, in(a.Local)), slices.DeleteFunc(local.Added, in(a.Vars)))
	changed := merge(merge(vars.Changed, local.Changed), slices.DeleteFunc(slices.Clone(vars.Removed), func(n string) bool { return !in(b.Local)(n) }))
	removed := merge(slices.DeleteFunc(vars.Removed, in(b.Local)), slices.DeleteFunc(local.Removed, in(b.Vars)))
	say("set", added)
	say("changed", changed)
	say("unset", removed)
	for _, name := range slices.Concat(added, changed, removed) {
		if Decisive(name) {
			watch = append(watch, name)
		}
	}
	aliases := Compare(a.Aliases, b.Aliases, nil)
	say("set alias", slices.Concat(aliases.Added, aliases.Changed))
	say("removed alias", aliases.Removed)
	functions := Compare(a.Functions, b.Functions, nil)
	say("defined function", slices.Concat(functions.Added, functions.Changed))
	say("removed function", functions.Removed)
	hashed := Compare(a.Hashed, b.Hashed, nil)
	say("made another file run as", slices.Concat(hashed.Added, hashed.Changed))
	say("put back what runs as", hashed.Removed)
	off := Without(b.Disabled, a.Disabled)
	say("switched off builtin", off)
	say("switched on builtin", Without(a.Disabled, b.Disabled))
	watch = slices.Concat(watch, hashed.Added, hashed.Changed, off)
	say("switched on", Without(b.Options, a.Options))
	say("switched off", Without(a.Options, b.Options))
	if a.Umask != b.Umask && a.Umask != "" && b.Umask != "" {
		parts = append(parts, "changed the umask to "+b.Umask)
	}
	if len(watch) > 0 {
		parts = append(parts, "look at "+strings.Join(watch, ", ")+": it decides what later commands run")
	}
	return printable(strings.Join(parts, ", "))
}

// ShortDir is dir as a person writes it: ~ for what begins with home.
func ShortDir(dir, home string) string {
	if home != "" && home != "/" {
		if dir == home {
			return "~"
		}
		if rest, ok := strings.CutPrefix(dir, home+"/"); ok {
			return "~/" + rest
		}
	}
	return dir
}

// printable makes control, bidi and zero-width characters visible: a directory's name is data.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
