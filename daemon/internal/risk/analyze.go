package risk

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	maxDepth   = 12 // of texts inside texts: sh -c, eval, functions, aliases
	maxReasons = 48 // the highest are kept
	maxTargets = 256
)

// Analyze judges a shell text that would run in c. It runs nothing and reads no file. It always returns, in time that is
// linear in the length of the text, and the same text in the same context has the same verdict. It is safe for
// concurrent use as long as c.Tracked is.
func Analyze(text string, c Context) (v Verdict) {
	a := newAnalysis(c, len(text))
	defer func() {
		// The parser is not ours, and the texts are hostile: what makes either panic is not examined, and is asked.
		if p := recover(); p != nil {
			why := "it could not be examined"
			v = Verdict{Level: High, Rest: High, Unread: true, Reach: ReachFree, Reasons: []Reason{{Text: why, Effect: Unknown, Level: High}}}
		}
	}()
	a.text(text)
	return a.finish(len(text))
}

// analysis is one run of the pipeline.
type analysis struct {
	*budget
	c        Context
	v        Verdict
	findings []finding
	cmd      int // index into v.Commands of the command being judged; -1: none
	src      source
	depth    int
	tracked  int               // calls of c.Tracked so far
	shadows  map[string]string // answers of c.Shadow
	unread   bool
	loose    bool     // PATH finds programs in the present folder first
	raising  bool     // what is judged is only a guess: see raiseBy
	active   []string // functions and aliases being expanded
	seen     flow     // what the commands since the last reset let in
	facts    facts
	kept     map[syntax.Node][]field  // see keep
	printed  map[syntax.Node]printed  // see expand
	mutated  map[syntax.Node]mutation // see mutations
	live     map[string]function      // functions of the live shell that have been parsed
}

// source is the text whose nodes are being walked.
type source struct {
	text  string
	outer *Span // set when offsets mean nothing there: every span is this one
}

// A finding is a reason with what else is known of it.
type finding struct {
	Reason
	hard bool // cannot be undone
	undo string
}

// newAnalysis prepares the analysis of size bytes of text.
func newAnalysis(c Context, size int) *analysis {
	if c.Cwd != "" {
		c.Cwd = cleanPath(c.Cwd)
	}
	if c.Home != "" {
		c.Home = cleanPath(c.Home)
	}
	if c.ProjectRoot == "" {
		c.ProjectRoot = c.Cwd
	} else {
		c.ProjectRoot = cleanPath(c.ProjectRoot)
	}
	if c.ProjectRoot == "/" || c.ProjectRoot != "" && c.ProjectRoot == c.Home {
		c.ProjectRoot = "" // a shell at home or at the root is in no project
	}
	if c.Dialect == "fish" {
		c.Aliases = nil // fish has none: its abbreviations are typed, and what alias makes is a function
	}
	b := &budget{limit: freeSteps + size*stepsPerByte}
	return &analysis{budget: b, c: c, cmd: -1, v: Verdict{Level: Low, Rest: Low}, loose: loosePath(c.Env["PATH"])}
}

// part prepares the analysis of something that may run. What it finds is kept by the caller, as far as that is wanted.
func (a *analysis) part(src source, raising bool) *analysis {
	v := Verdict{Level: Low, Rest: Low}
	return &analysis{budget: a.budget, c: a.c, cmd: -1, v: v, depth: a.depth + 1, facts: a.facts, src: src, raising: raising}
}

// loosePath tells that a PATH holds the present folder, or another that is not absolute, before the system's (T3h).
func loosePath(list string) bool {
	if list == "" {
		return false
	}
	for dir := range strings.SplitSeq(list, ":") {
		if !strings.HasPrefix(dir, "/") {
			return true
		}
		if systemBin(dir) {
			return false
		}
	}
	return false
}

// text judges the whole text.
func (a *analysis) text(text string) {
	if strings.TrimSpace(text) == "" {
		// T3n: a missing argument must not pass as a harmless command.
		a.note(Medium, Unknown, Span{0, len(text)}, "there is no command")
		return
	}
	ready, ok := a.gate(text)
	if !ok {
		return
	}
	a.src = source{text: ready}
	a.bounded(Span{0, len(text)}, func() {
		a.program(ready, a.start())
		if a.c.Dialect == "zsh" && a.unread { // what bash makes of it may be what it is meant to do
			a.c.Dialect = "bash"
			a.raiseBy(ready, Span{0, len(text)}, a.start())
		}
	})
}

// start is the state in which a text begins.
func (a *analysis) start() *state { return &state{budget: a.budget, cwd: a.c.Cwd} }

// program parses and walks a text in the present source. Commands before a syntax error are judged too, since the shell
// runs a file line by line.
func (a *analysis) program(text string, st *state) (ends bool) {
	list, err := a.parse(text)
	ends = a.stmts(list, st)
	if err != nil {
		at := 0
		var pe syntax.ParseError
		if errors.As(err, &pe) {
			at = int(pe.Pos.Offset())
		}
		a.unread = true
		a.note(High, Unknown, a.at(at, len(text)), "its syntax could not be read, so what runs is not known")
		a.mended(text, err, st)
	}
	return ends
}

var openHeredoc = lazyRe("unclosed here-document `([A-Za-z0-9_]+)`")

// mended judges what bash makes of two errors of the parser: it ends an open here-document with the text, and takes
// $((…) …) for a substitution. What is High and above there counts.
func (a *analysis) mended(text string, err error, st *state) {
	if a.raising {
		return
	}
	if m := openHeredoc().FindStringSubmatch(err.Error()); m != nil {
		a.raiseBy(text+"\n"+m[1]+"\n", a.at(0, len(text)), st)
	} else if strings.Contains(text, "$((") {
		a.raiseBy(strings.ReplaceAll(text, "$((", "$( ("), a.at(0, len(text)), st)
	}
}

// span is where a node stands in the analyzed text.
func (a *analysis) span(n syntax.Node) Span {
	return a.at(int(n.Pos().Offset()), int(n.End().Offset()))
}

func (a *analysis) at(start, end int) Span {
	if a.src.outer != nil {
		return *a.src.outer
	}
	start, end = min(start, len(a.src.text)), min(end, len(a.src.text))
	return Span{start, max(start, end)}
}

// note records a finding, for the command that is being judged if there is one.
func (a *analysis) note(l Level, e Effect, sp Span, text string) *finding {
	if a.cmd >= 0 {
		c := &a.v.Commands[a.cmd]
		c.Level = max(c.Level, l)
		if !slices.Contains(c.Effects, e) {
			c.Effects = append(c.Effects, e)
		}
	} else {
		a.v.Rest = max(a.v.Rest, l)
	}
	for i := range a.findings {
		if f := &a.findings[i]; f.Text == text && f.Level == l && f.Effect == e && *f.Span == sp {
			return f
		}
	}
	if len(a.findings) >= 4*maxReasons {
		// Keep room for what is higher: replace the first that is lower.
		i := slices.IndexFunc(a.findings, func(f finding) bool { return f.Level < l })
		if i < 0 {
			return &finding{}
		}
		a.v.Level = max(a.v.Level, a.findings[i].Level)
		a.findings = slices.Delete(a.findings, i, i+1)
	}
	s := sp
	a.findings = append(a.findings, finding{Reason: Reason{Text: text, Span: &s, Effect: e, Level: l}})
	return &a.findings[len(a.findings)-1]
}

// maxUndo is how many steps back a hint names; more are nobody's plan.
const maxUndo = 3

// undoHint is the way back: what was done last is undone first.
func (a *analysis) undoHint() string {
	var steps []string
	for i := len(a.findings) - 1; i >= 0; i-- {
		if how := a.findings[i].undo; how != "" && !slices.Contains(steps, how) {
			steps = append(steps, how)
		}
	}
	if len(steps) > maxUndo {
		return ""
	}
	return strings.Join(steps, ", then ")
}

func (f *finding) cannotUndo() *finding        { f.hard = true; return f }
func (f *finding) canUndo(how string) *finding { f.undo = how; return f }

// finish combines the findings to the verdict.
func (a *analysis) finish(size int) Verdict {
	a.combine(Span{0, size})
	v := &a.v
	v.Unread = a.unread
	v.Level = max(v.Level, v.Rest)
	for i := range v.Commands {
		v.Level = max(v.Level, v.Commands[i].Level)
	}
	v.Reversible = true
	for i := range a.findings {
		f := &a.findings[i]
		switch {
		case f.hard || f.Level >= Critical:
			v.Reversible = false
		case f.Level >= High && (f.Effect == Unknown || f.Effect == Network || f.Effect == Secret || f.Effect == RunCode):
			v.Reversible = false // what was sent, seen or run by code that is not known stays so
		}
	}
	if v.Reversible {
		v.UndoHint = a.undoHint()
	}
	fs := a.findings
	if len(fs) > maxReasons {
		slices.SortStableFunc(fs, func(x, y finding) int { return cmp.Compare(y.Level, x.Level) })
		fs = fs[:maxReasons]
	}
	slices.SortStableFunc(fs, func(x, y finding) int { return cmp.Compare(x.Span.Start, y.Span.Start) })
	v.Reasons = make([]Reason, len(fs))
	for i := range fs {
		v.Reasons[i] = fs[i].Reason
		if sp := v.Reasons[i].Span; sp.Start == 0 && sp.End >= size {
			v.Reasons[i].Span = nil
		}
	}
	v.Reach = needs(a.src.text, *v, a.c.ProjectRoot)
	return *v
}
