package shell

import (
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

// Difference is one line of what a command left different from a to b, "" for nothing. It holds no values
// and no control characters.
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
		parts = append(parts, "left you in "+ShortDir(b.Dir, b.Vars["HOME"]))
	}
	added, changed, removed := compare(a.Vars, b.Vars, noise)
	if a.kept != nil && b.kept != nil {
		more, other, fewer := compare(a.kept, b.kept, nil)
		others := func(name string) bool { return !b.owns(name) }
		in := func(m map[string]string) func(string) bool {
			return func(name string) bool { _, ok := m[name]; return ok }
		}
		added = slices.Concat(added, slices.DeleteFunc(slices.DeleteFunc(more, in(a.Vars)), others))
		removed = slices.Concat(slices.DeleteFunc(removed, in(b.kept)), slices.DeleteFunc(slices.DeleteFunc(fewer, in(b.Vars)), others))
		changed = slices.Concat(changed, slices.DeleteFunc(other, others))
		for name, was := range a.Vars { // no longer exported
			if is, kept := b.kept[name]; kept && valueOf(is) != was {
				changed = append(changed, name)
			}
		}
		for name, is := range b.Vars {
			if was, had := a.Vars[name]; had && was == is && strings.Trim(a.marks[name], "rx") != strings.Trim(b.marks[name], "rx") {
				changed = append(changed, name)
			}
		}
		slices.Sort(changed)
	}
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
	added, changed, removed = compare(a.Hashed, b.Hashed, nil)
	say("made another file run as", slices.Concat(added, changed))
	say("put back what runs as", removed)
	say("switched off builtin", without(b.Disabled, a.Disabled))
	say("switched on builtin", without(a.Disabled, b.Disabled))
	say("loaded builtin", without(b.Loaded, a.Loaded))
	say("removed builtin", without(a.Loaded, b.Loaded))
	watch = append(watch, added...)
	watch = append(watch, changed...)
	watch = append(watch, without(b.Disabled, a.Disabled)...)
	watch = append(watch, without(b.Loaded, a.Loaded)...)
	say("switched on", without(b.Options, a.Options))
	say("switched off", without(a.Options, b.Options))
	if a.umask != b.umask && a.umask != "" && b.umask != "" {
		parts = append(parts, "changed the umask to "+b.umask)
	}
	lost := tellMore(a, b, say)                           // what Undo cannot put back
	if a.files != nil && b.files != nil && b.own == nil { // else a prompt hook may have done it
		added, changed, removed = compare(a.files, b.files, nil)
		say("opened", added)
		say("sent elsewhere", changed)
		say("closed", removed)
		lost = slices.Concat(lost, changed, removed)
	}
	if len(lost) > 0 {
		parts = append(parts, "cannot be put back: "+strings.Join(lost, ", "))
	}
	if len(watch) > 0 {
		parts = append(parts, "look at "+strings.Join(watch, ", ")+": it decides what later commands run")
	}
	return printable(strings.Join(parts, ", "))
}

// owns tells whether a change of a variable that is not exported is for the command to answer for, not for a prompt hook.
// What decides what later commands run is told whoever changed it, but for the prompt, which many hooks make anew each time.
func (st State) owns(name string) bool {
	return st.own == nil || st.own[name] || poisonous(name) && name != "PS1"
}

// without is what of list is not in other.
func without(list, other []string) (rest []string) {
	for _, s := range list {
		if !slices.Contains(other, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

// compare tells, sorted, which names b has and a has not, which have other values, and which only a has.
func compare(a, b map[string]string, skip map[string]bool) (added, changed, removed []string) {
	for name, is := range b {
		was, had := a[name]
		switch {
		case had && was == is || skip[name]:
		case had:
			changed = append(changed, name)
		default:
			added = append(added, name)
		}
	}
	for name := range a {
		if _, has := b[name]; !has && !skip[name] {
			removed = append(removed, name)
		}
	}
	slices.Sort(added)
	slices.Sort(changed)
	slices.Sort(removed)
	return added, changed, removed
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
