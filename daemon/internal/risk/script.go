package risk

import (
	"slices"
	"strings"

	"sublet/daemon/internal/risk/bashread"
)

// maxScripts bounds the scripts of one text that are judged by what they hold.
const maxScripts = 4

// Script is a file whose text a verdict relied on: the verdict holds as long as the file holds that text.
type Script struct {
	Path, Text string
	Venv       bool // it activates a virtual environment, and Text is what decides what that does
	from, to   int  // its commands in Verdict.Commands
}

// script judges a shell script that is run as a file by its text, where that is known and neither this text nor what it runs
// before may have changed it. It reports whether it did.
func (a *analysis) script(c *call, f *field, p string) bool {
	if a.c.Written == nil || p == "" || c.st.Remote || len(a.v.Scripts) >= maxScripts {
		return false
	}
	args := c.fields[1:]
	byName := f.S == c.fields[0].S // else a shell was given it
	if !byName {
		if !slices.Contains([]string{"bash", "sh", "dash"}, c.name) || len(c.operands) == 0 || c.operands[0].S != f.S {
			return false
		}
		args = c.operands[1:]
	}
	text, ok := a.c.Written(p)
	if !ok || len(text) > bashread.MaxText || byName && !expr("shell-run").MatchString(text) {
		return false
	}
	a.note(Low, Read, f.Span, "runs "+show(f.S)+", which an agent wrote; it is judged by its text")
	i := len(a.v.Scripts)
	a.v.Scripts = append(a.v.Scripts, Script{Path: p, Text: text, from: len(a.v.Commands)})
	a.Limit += 2 * len(text) * bashread.StepsPerByte
	dialect, aliases, functions := a.Dialect, a.Aliases, a.Functions
	defer func() { a.Dialect, a.Aliases, a.Functions = dialect, aliases, functions }()
	a.Dialect, a.Aliases, a.Functions = "bash", map[string][]string{}, nil
	st := c.st.Fresh(a.Env)
	st.Args, st.ArgsOK = args, !slices.ContainsFunc(args, func(f field) bool { return f.Many })
	a.Inline(text, f.Span, st)
	a.v.Scripts[i].to = len(a.v.Commands)
	return true
}

// noteChangedScripts adds a High finding for each script that was judged by its text, but may be changed before it has run to its end:
// by a command beside it that does more than read, or by one that writes or deletes its file. A chmod of the script is no change.
func (a *analysis) noteChangedScripts(whole Span) {
	for _, s := range a.v.Scripts {
		changed := false
		for i, c := range a.v.Commands {
			own := i >= s.from-1 && i < s.to // it starts the script, or is one of the script's
			changed = changed || c.Level > Low && c.Name != "chmod" && !own
		}
		for _, t := range a.v.Targets {
			mode := t.by >= 0 && a.v.Commands[t.by].Name == "chmod"
			is := t.Path == s.Path && !mode || t.Path == "" || strings.ContainsAny(t.Path, "*?[") || t.Tree && t.Path != s.Path && under(s.Path, t.Path)
			changed = changed || is && (t.Effect == Write || t.Effect == Delete)
		}
		if changed {
			a.note(High, RunCode, whole, "may change "+show(s.Path)+" before it is run to its end")
		}
	}
}
