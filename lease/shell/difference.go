package shell

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// noise are variables that bash itself keeps: their change is none.
var noise = map[string]bool{"PWD": true, "OLDPWD": true, "_": true, "SHLVL": true, "COLUMNS": true, "LINES": true}

// poisonous reports whether a variable decides what a later, harmless command really runs (T3g).
func poisonous(name string) bool {
	switch name {
	case "PATH", "PROMPT_COMMAND", "BASH_ENV", "ENV", "IFS", "PS0", "PS1", "PS4", "PAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE", "MANPAGER",
		"RIPGREP_CONFIG_PATH", "PYTHONSTARTUP", "PYTHONPATH", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT":
		return true
	}
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "GIT_")
}

// Difference is one line of what a command left different from a to b, "" for nothing. It holds no values, and no control characters.
func Difference(a, b State) string {
	var parts []string
	say := func(verb string, names []string) {
		if len(names) == 0 {
			return
		}
		const most = 5
		shown := names[:min(len(names), most)]
		text := verb + " " + strings.Join(shown, ", ")
		if more := len(names) - most; more > 0 {
			text += " and " + strconv.Itoa(more) + " more"
		}
		parts = append(parts, text)
	}
	if a.Dir != b.Dir {
		parts = append(parts, "left you in "+shortDir(b.Dir, b.Vars["HOME"]))
	}
	added, changed, removed := compare(a.Vars, b.Vars, noise)
	say("set", added)
	say("changed", changed)
	say("unset", removed)
	var watch []string
	for _, name := range slices.Concat(added, changed, removed) {
		if poisonous(name) {
			watch = append(watch, name)
		}
	}
	added, changed, removed = compare(a.Aliases, b.Aliases, nil)
	say("set alias", slices.Concat(added, changed))
	say("removed alias", removed)
	added, changed, removed = compare(a.Functions, b.Functions, nil)
	say("defined function", slices.Concat(added, changed))
	say("removed function", removed)
	var on, off []string
	for _, o := range b.Options {
		if !slices.Contains(a.Options, o) {
			on = append(on, o)
		}
	}
	for _, o := range a.Options {
		if !slices.Contains(b.Options, o) {
			off = append(off, o)
		}
	}
	say("switched on", on)
	say("switched off", off)
	if len(watch) > 0 {
		parts = append(parts, "look at "+strings.Join(watch, ", ")+": it decides what later commands run")
	}
	return printable(strings.Join(parts, ", "))
}

func compare(a, b map[string]string, skip map[string]bool) (added, changed, removed []string) {
	for _, name := range sortedNames(b) {
		old, had := a[name]
		switch {
		case skip[name]:
		case !had:
			added = append(added, name)
		case old != b[name]:
			changed = append(changed, name)
		}
	}
	for _, name := range sortedNames(a) {
		if _, has := b[name]; !has && !skip[name] {
			removed = append(removed, name)
		}
	}
	return added, changed, removed
}

func shortDir(dir, home string) string {
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

func sortedNames(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
