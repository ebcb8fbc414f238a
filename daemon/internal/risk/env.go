package risk

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
)

// harmlessValue reports whether the variable of that name, whose line in the table is v, cannot change what runs once it has the value f.
// Empty, it has no effect, except for the variables named here: an empty PATH, for one, is the current folder.
func harmlessValue(name string, v programs.Variable, f *field) bool {
	if f.S == "" {
		return f.Known && !slices.Contains([]string{"PATH", "HOME", "IFS"}, name) && !strings.HasPrefix(name, "HIST")
	}
	return f.Known && v.Harmless(f.S)
}

// plainValue matches values that are no path, no address, no option and no code.
var plainValue = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[\w*][\w.,:=+@%*#-]*(?:\s+|$))*$`) })

// inert reports whether a variable that is set in the user's shell cannot make what the user runs there next load, run or ask
// something else. v is the name's line in the table, with Level 0 if it has none. The value f decides, since the programs that read a
// variable of some name are not all known: if the line's level is above Low, f must be harmless; without a line, f must be plain, and empty
// if the name ends as those of settings do. PATH is judged by pathLevel.
func inert(name string, v programs.Variable, f *field) bool {
	switch {
	case name == "PATH", v.Level == Low, v.Level > Low && name != "IFS" && harmlessValue(name, v, f): // IFS splits what the user's commands expand
		return true
	case v.Level > Low:
		return false
	case slices.ContainsFunc(programs.Places("settings"), func(end string) bool { return strings.HasSuffix(name, end) }):
		return f.Known && f.S == ""
	}
	return f.Known && plainValue().MatchString(f.S)
}

// assigns notes that the text sets a variable in the shell itself.
func (s *shellText) assigns(name string, v programs.Variable, f *field) {
	s.changes = true
	if !inert(name, v, f) {
		s.affectsNext = true
		if v.Level <= Low {
			s.decides = append(s.decides, name)
		}
	}
}

// Assign implements bashread.Judge: it judges the assignment of a variable and remembers it for the commands that follow.
func (a *analysis) Assign(name string, f *field, st *state, kind bashread.Assignment, sp Span) {
	// As a number, an index or a prompt it is expanded once more: x='a[$(rm z)]' and $((x)) run rm.
	a.EvalText(f.S, st, sp)
	v := programs.VariableOf(name)
	prefix := kind == bashread.Prefix
	if !prefix && a.Outermost() {
		a.shell.assigns(name, v, f)
	}
	switch {
	case name == "", strings.Contains(name, unknownPart):
		a.note(High, ShellState, sp, "sets a variable whose name is not known here")
		return
	case v.Level <= Low, st.Remote, harmlessValue(name, v, f) && (prefix || name != "IFS"):
		return
	}
	level := v.Level
	switch {
	case name == "PATH":
		level = a.c.pathLevel(f)
	case prefix && level == Critical && !v.Code: // it ends with the one command
		level = High
	}
	if v.Code && f.Known && strings.TrimSpace(f.S) != "" && !strings.HasPrefix(name, "PS") { // a prompt runs only what it expands
		a.Inline(strings.ReplaceAll(strings.TrimLeft(f.S, "|-"), "%s", "_"), sp, st.Clone()) // LESSOPEN='|cmd %s'
	}
	eff := ShellState
	switch {
	case prefix, kind == bashread.Plain && (name == "CC" || name == "CXX" || name == "HOME" && f.Known):
		eff, prefix = RunCode, true
	case level == Critical:
		eff = Persistence
	}
	a.note(level, eff, sp, "sets "+show(name)+", which "+v.What)
	if !prefix && level >= High && !slices.Contains(st.Changed, name) {
		st.Changed = append(slices.Clip(st.Changed), name)
	}
}

// pathLevel returns the level of a new PATH: a folder before the old one can replace any program, and one that agents write in can
// have any that is missing elsewhere.
func (c Context) pathLevel(f *field) Level {
	s := f.S
	if old := c.Env["PATH"]; old != "" {
		s = strings.Replace(s, old, bashread.OldPath, 1)
	}
	kept := false
	for dir := range strings.SplitSeq(s, ":") {
		switch {
		case dir == bashread.OldPath:
			kept = true
		case !strings.HasPrefix(dir, "/"), !kept && !systemBin(dir), c.ProjectRoot != "" && under(dir, c.ProjectRoot), c.inTemporary(dir): // an empty entry is the current folder
			return High
		}
	}
	if !kept && !f.Known || f.Opaque() {
		return High
	}
	return Medium
}

// Exported implements bashread.Judge.
func (a *analysis) Exported(name string, st *state, sp Span) {
	a.shell.changes = a.shell.changes || a.Outermost()
	v := programs.VariableOf(name)
	old, known := st.Var(name)
	if v.Level >= High && !(known && len(old.Words) == 1 && harmlessValue(name, v, &field{S: old.Words[0], Known: true})) {
		a.note(High, ShellState, sp, "hands on "+show(name)+", which "+v.What)
	}
}

// Redirect implements bashread.Judge.
func (a *analysis) Redirect(f *field, st *state, writes, appends bool) {
	switch {
	case !writes:
		a.touch(Read, f, st, touching{})
	case appends:
		a.touch(Write, f, st, touching{verb: "appends to"})
	default:
		a.touch(Write, f, st, touching{})
	}
}

// poisoned notes that a command may depend on a variable, alias or function that was changed.
func (a *analysis) poisoned(c *call) {
	if len(a.c.Poisoned)+len(c.st.Changed) == 0 || a.builtin(c.name) && !slices.Contains([]string{"cd", "history", "fc", "read"}, c.name) {
		return
	}
	a.Spend(len(c.st.Changed) / 2)
	for _, n := range slices.Concat(a.c.Poisoned, c.st.Changed) {
		if n == c.name || programs.VariableOf(n).Concerns(c.name) {
			a.note(High, RunCode, c.span, show(n)+" was changed and may decide what "+show(c.name)+" does")
			return
		}
	}
}

// builtin reports whether the shell runs a name itself.
func (a *analysis) builtin(name string) bool {
	return programs.Builtin(name) && !slices.Contains(a.c.Disabled, name)
}

// shadowSteps is what a call of Context.Shadow costs of the budget: about the time to look into the folders of a PATH.
const shadowSteps = 100

// shadowed judges a name by which the shell runs another file than the system's: one that hash was given, or that PATH finds where agents
// write. What it does is not known by its name.
func (a *analysis) shadowed(c *call) {
	switch {
	case c.st.Remote, a.builtin(c.name):
		return
	case programs.Builtin(c.name):
		a.note(High, RunCode, c.span, "the builtin "+show(c.name)+" is switched off in your shell, so that a program of that name runs")
	}
	file := a.c.Hashed[c.name]
	if systemBin(path.Dir(file)) && path.Base(file) == c.name {
		file = ""
	}
	if file == "" && a.c.Shadow != nil {
		a.Spend(shadowSteps)
		file = a.c.Shadow(c.name)
	}
	switch {
	case file == "":
	case packaged(file), a.isTracked(file):
		a.note(Medium, RunCode, c.span, "your shell finds "+show(c.name)+" in the project")
	default:
		a.command().Runs = true
		a.note(High, RunCode, c.span, "your shell runs "+show(file)+" by the name "+show(c.name)+", and its text is not known here")
	}
}
