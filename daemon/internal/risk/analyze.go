package risk

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
	"sublet/wire/visible"
)

type (
	field = bashread.Field
	state = bashread.State
)

const (
	unknownPart = string(bashread.UnknownPart)
	tamePart    = string(bashread.TamePart)
	flowNet     = bashread.Net
	flowSecret  = bashread.Secret
)

const (
	maxReasons = 48 // the highest are kept
	maxUndo    = 3  // steps back that a hint names
)

// Analyze judges a shell text that would run in c. It always returns, in time that is linear in the length of the text, and
// the same text in the same context has the same verdict. It is safe for concurrent use as long as c.Tracked and c.Shadow
// are.
func Analyze(text string, c Context) Verdict {
	a := newAnalysis(c, len(text))
	a.text(text)
	return a.finish(text)
}

// analysis judges one text. It is the bashread.Judge of its reader.
type analysis struct {
	*bashread.Reader
	c        Context
	v        Verdict
	findings []finding
	cmd      int           // index into v.Commands of the command being judged; -1: none
	rest     Command       // what belongs to no command
	guess    int           // above 0, what is read may not be a command: see Maybe
	tracked  int           // calls of c.Tracked so far
	past     bool          // the next command is no function
	ever     bashread.Flow // of all that was read: Seen without an end
	trees    []string
	links    []link
	shell    shellText
}

// link is a symbolic link that this text makes; both paths are absolute.
type link struct{ from, to string }

// A finding is a reason with what else is known of it.
type finding struct {
	Reason // without its Span
	at     Span
	hard   bool // cannot be undone
	undo   string
}

// newAnalysis returns the analysis of a text of size bytes, whose steps are bounded by that.
func newAnalysis(c Context, size int) *analysis {
	c.Cwd, c.Home, c.ProjectRoot = bashread.Absolute("", c.Cwd), bashread.Absolute("", c.Home), bashread.Absolute("", cmp.Or(c.ProjectRoot, c.Cwd))
	if c.ProjectRoot == "/" || c.ProjectRoot == c.Home {
		c.ProjectRoot = "" // a shell at home or at the root is in no project
	}
	a := &analysis{c: c, cmd: -1, rest: Command{Level: Low}, v: Verdict{Level: Low}}
	aliases := map[string][]string{} // also those that this text defines
	if c.Dialect != "fish" {         // which expands the live shell's while one types
		for name, value := range c.Aliases {
			aliases[name] = []string{value}
		}
	}
	a.Reader = &bashread.Reader{
		Judge:   a,
		Files:   map[string]bashread.Output{},
		Budget:  bashread.Budget{Limit: bashread.FreeSteps + size*bashread.StepsPerByte},
		Context: bashread.Context{Home: c.Home, Dialect: c.Dialect, Aliases: aliases, Functions: c.Functions, Env: c.Env},
	}
	return a
}

func systemBin(dir string) bool { return programs.In("bin", path.Clean(dir)) }

// text judges the whole text.
func (a *analysis) text(text string) {
	whole := Span{Start: 0, End: len(text)}
	if strings.TrimSpace(text) == "" {
		a.note(Medium, Unknown, whole, "there is no command") // a missing argument is not a harmless command
		return
	}
	done := a.Bounded(func() {
		a.Read(text, a.Start(a.c.Cwd))
		if a.Dialect == "zsh" && a.v.Unread { // what bash makes of it may be what it is meant to do
			a.Dialect = "bash"
			a.Maybe(text, whole, a.Start(a.c.Cwd))
		}
	})
	if !done {
		a.cmd, a.guess = -1, 0
		found := a.findings
		a.findings = nil
		a.Unread(whole, "it is too complicated to judge")
		a.findings = append(a.findings, found...) // behind it: finish keeps the first maxReasons of a level
	}
}

// Note implements bashread.Judge.
func (a *analysis) Note(l Level, e Effect, sp Span, text string) { a.note(l, e, sp, text) }

// Unread implements bashread.Judge.
func (a *analysis) Unread(sp Span, why string) {
	if a.guess == 0 {
		a.v.Unread = true
		a.note(High, Unknown, sp, why)
	}
}

// note records a finding, for the command that is being judged if there is one. The caller may complete what it returns, until the
// next note.
func (a *analysis) note(l Level, e Effect, sp Span, text string) *finding {
	if l > Low {
		a.taint(e)
	}
	if a.guess > 0 && (l < High || e == Unknown) {
		return &finding{}
	}
	cmd := a.command()
	cmd.Level = max(cmd.Level, l)
	a.effect(e)
	a.v.Level = max(a.v.Level, l)
	// What was deleted, sent, seen or run by code that is not known stays so.
	hard := l >= Critical || l == High && slices.Contains([]Effect{Delete, Unknown, Network, Secret, RunCode}, e)
	a.findings = append(a.findings, finding{Reason: Reason{Text: text, Effect: e, Level: l}, at: sp, hard: hard})
	return &a.findings[len(a.findings)-1]
}

// command returns the command that is being judged; rest stands for one where there is none.
func (a *analysis) command() *Command {
	if a.cmd < 0 {
		return &a.rest
	}
	return &a.v.Commands[a.cmd]
}

// effect records an effect of the command that is being judged.
func (a *analysis) effect(e Effect) {
	if cmd := a.command(); !slices.Contains(cmd.Effects, e) {
		cmd.Effects = append(cmd.Effects, e)
	}
}

// taint records that data may come from the network, or hold a secret, where a command has that effect.
func (a *analysis) taint(e Effect) {
	fl := map[Effect]bashread.Flow{Network: flowNet, Secret: flowSecret}[e]
	a.Seen |= fl
	a.ever |= fl
}

// Maybe implements bashread.Judge: it judges a text that may be a command, and keeps only findings of High and above: a text that is not a
// command would give others.
func (a *analysis) Maybe(text string, sp Span, st *state) {
	if len(text) > 4096 || bashread.Brackets(text) > 200 || strings.TrimSpace(text) == "" {
		return
	}
	a.guess++
	a.Inline(text, sp, st.Clone())
	a.guess--
}

// finish combines the findings to the verdict.
func (a *analysis) finish(text string) Verdict {
	v := &a.v
	whole := Span{Start: 0, End: len(text)}
	if a.cmd = -1; a.ever == flowNet|flowSecret {
		a.note(Critical, Secret, whole, "reads secrets and talks to the network: they may leave this machine")
	}
	a.noteChangedScripts(whole)
	seen := map[finding]bool{} // a loop's body is judged more than once
	a.findings = slices.DeleteFunc(a.findings, func(f finding) bool {
		again := seen[f]
		seen[f] = true
		return again
	})
	v.Reversible = true
	var undo []string
	for i := len(a.findings) - 1; i >= 0; i-- { // what was done last is undone first
		f := &a.findings[i]
		v.Reversible = v.Reversible && !f.hard
		if f.undo != "" && !slices.Contains(undo, f.undo) {
			undo = append(undo, f.undo)
		}
	}
	if v.Reversible && len(undo) <= maxUndo {
		v.UndoHint = strings.Join(undo, ", then ")
	}
	slices.SortStableFunc(a.findings, func(x, y finding) int { return cmp.Compare(y.Level, x.Level) })
	a.findings = a.findings[:min(len(a.findings), maxReasons)]
	slices.SortStableFunc(a.findings, func(x, y finding) int { return cmp.Compare(x.at.Start, y.at.Start) })
	for i := range a.findings {
		f := &a.findings[i]
		r := f.Reason
		if f.at.Start > 0 || f.at.End < len(text) {
			r.Span = &f.at
		}
		v.Reasons = append(v.Reasons, r)
	}
	v.Rest, v.Reach = a.rest.Level, a.needs(text)
	return *v
}

// AnalyzeFile judges what a file tool would do. Reading is low unless the file holds secrets; writing is judged by where the
// file is, as a command that writes it would be. Its paths are absolute, with symbolic links resolved. A call of another
// program's tool is High: nothing is known of what it does.
func AnalyzeFile(f FileAction, c Context) Verdict {
	a := newAnalysis(c, math.MaxInt32) // a call of a tool names few files
	st := a.Start("")                  // no path is relative to a folder
	for _, p := range f.Reads {
		a.touch(Read, &field{S: p, Known: true}, st, touching{})
	}
	for _, p := range f.Writes {
		a.touch(Write, &field{S: p, Known: true}, st, touching{})
	}
	if f.Network != "" {
		a.note(Medium, Network, Span{}, "fetches from "+show(f.Network))
		a.host(&field{S: f.Network})
	}
	if f.Server != "" {
		a.note(High, Unknown, Span{}, "calls a tool of the MCP server "+show(f.Server)+": what it does is not known here")
	}
	v := a.finish("")
	v.Reach = needsFiles(v, f)
	return v
}

var (
	shownParts = strings.NewReplacer("\x00", "…", "\x01", "…")
	oneLine    = strings.NewReplacer("\n", "⏎", "\t", " ")
)

// show writes a word for a reason: unknown parts as …, nothing invisible, not too long.
func show(s string) string {
	return visible.Clip(oneLine.Replace(visible.Exact(shownParts.Replace(s))), 80)
}
