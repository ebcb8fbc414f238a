package risk

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
)

// expr returns the regular expression of that name in the file code.txt of package programs, which must have it.
func expr(name string) *regexp.Regexp { return programs.Expression(name) }

// doCode judges interpreters of other languages by their program: the value of an option, a file, or what they read.
func (a *analysis) doCode(c *call) {
	name := strings.TrimRight(c.name, "0123456789.")
	text := c.st.Stdin.Plain()
	if (name == "perl" || name == "ruby") && c.has("-i") {
		for k := range c.operands {
			a.edits(c, &c.operands[k])
		}
	}
	switch {
	case c.given(programs.Code):
	case c.lowered():
		a.note(Low, Read, c.span, "checks code, or shows settings")
	case len(c.operands) > 1 && c.operands[0].S == "eval":
		a.code(c, &c.operands[1])
	case len(c.operands) > 0 && c.operands[0].S != "-":
		a.runFile(c, &c.operands[0])
	case text != nil:
		a.code(c, &field{S: *text, Known: true, Span: c.span, Flow: c.st.Stdin.Flow})
	default:
		a.fromStdin(c, c.st.Clone())
	}
}

// doEditor judges editors and debuggers, which take what they read for commands.
func (a *analysis) doEditor(c *call) {
	a.roles(c)
	if text := c.st.Stdin.Plain(); text != nil {
		a.role(c, programs.Code, &field{S: *text, Known: true, Span: c.span})
	}
}

// edits judges a file that code changes in place: what it holds then is not known.
func (a *analysis) edits(c *call, f *field) {
	a.touch(Write, f, c.st, touching{verb: "edits"})
	a.Wrote(bashread.Key(f, c.st), bashread.Output{}, false)
}

// given reports whether an option has a value with one of these roles.
func (c *call) given(roles ...string) bool {
	return slices.ContainsFunc(c.opts, func(o option) bool { return o.val != nil && o.spec != nil && slices.Contains(roles, o.spec.Role) })
}

// maxCode is the length of code that is examined, in bytes.
const maxCode = 16 << 10

// code judges the text of another language. It is not understood, so it is never low; what is in it that runs commands,
// deletes, writes or talks to the network raises it, and what looks like a shell command in it is judged as one.
func (a *analysis) code(c *call, f *field) {
	a.note(Medium, RunCode, f.Span, "runs code given to "+show(c.name))
	f = a.examined(f, f.Opaque())
	a.runsFlow(f.Flow, f.Span)
	a.rules("code", f, c)
	if a.Seen&flowNet != 0 && expr("code-makes").MatchString(f.S) {
		a.note(Critical, RunCode, f.Span, "runs code that fetches code, or is given it from the network, and runs that")
	}
	if a.c.Secrets.Mentioned(f.S) {
		a.note(High, Secret, f.Span, "reads secrets by code")
	}
	a.rules("loss", f, c)
	if slices.Contains([]string{"pwsh", "powershell", "nu", "xonsh", "elvish", "expect"}, c.name) { // they run programs as a shell does
		a.Maybe(f.S, f.Span, c.st)
	}
}

// examined returns the part of a program's text that is examined. One that is longer is high, and so is one that is not known.
func (a *analysis) examined(f *field, unknown bool) *field {
	if len(f.S) > maxCode || unknown {
		a.command().Runs = true
		a.note(High, RunCode, f.Span, "runs code that is too long to examine, or not known here")
	}
	return f.With(f.S[:min(len(f.S), maxCode)])
}

// rules judges a text by the rules of a language in code.txt of package programs, and reports whether it runs code by one of them.
func (a *analysis) rules(language string, f *field, c *call) (runs bool) {
	a.Spend(1 + len(f.S)/bashread.BytesMatched)
	for _, m := range programs.Rules(language) {
		runs = a.matched(m, f, c) && m.Effect == RunCode || runs
	}
	return runs
}

// matched judges a text by an expression of the table, and reports whether that matches.
func (a *analysis) matched(m programs.Match, f *field, c *call) bool {
	all := m.Re.FindAllStringSubmatch(f.S, -1)
	if len(all) == 0 {
		return false
	}
	if m.Role != "" {
		for _, found := range all {
			a.role(c, m.Role, f.With(cmp.Or(found[1], unknownPart)))
		}
		return true
	}
	if a.note(m.Raise, m.Effect, f.Span, m.Says); m.Effect == RunCode {
		a.givenCode(f, c)
	}
	return true
}

// givenCode judges a text that a program runs and that is not understood: as shell commands, the strings in it and what follows a !
// or another word that hands the rest of a line to a shell. Only what is High or Critical in them is kept: see Maybe.
func (a *analysis) givenCode(f *field, c *call) {
	a.command().Runs = true
	a.Spend(1 + len(f.S)/bashread.BytesMatched)
	var quoted []string
	for _, m := range expr("code-string").FindAllStringSubmatch(f.S, -1) {
		s := strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\n`, "\n", `\\`, `\`).Replace(m[1] + m[2] + m[3])
		quoted = append(quoted, shellQuote(s))
		a.Maybe(s, f.Span, c.st)
	}
	if len(quoted) > 1 { // ['rm', '-rf', '/']
		a.Maybe(strings.Join(quoted, " "), f.Span, c.st)
	}
	for _, at := range expr("code-line").FindAllStringIndex(f.S, 8) {
		line, _, _ := strings.Cut(f.S[at[1]:], "\n")
		if strings.HasPrefix(f.S[at[0]:], "qx") {
			line = strings.TrimRight(line, ")}]; ")
		}
		a.Maybe(line, f.Span, c.st)
	}
	a.rules("loss", f, c)
}

// doFilter judges awk and sed. Their program is the first operand unless an option has it, or names a file that has it. The other
// operands are files: read or, with -i, edited. Of sed, -i may have the end of the name of a copy.
func (a *analysis) doFilter(c *call) {
	ops := c.operands
	if !c.given(programs.Code, programs.Script) && len(ops) > 0 {
		a.program(c, &ops[0])
		ops = ops[1:]
	}
	var inPlace []string
	for i := 1; i < len(c.fields) && inPlace == nil; i++ {
		inPlace = expr("in-place").FindStringSubmatch(c.fields[i].S)
	}
	for i := range ops {
		f := &ops[i]
		if inPlace == nil {
			a.touch(Read, f, c.st, touching{})
			continue
		}
		a.edits(c, f)
		if suffix := strings.TrimPrefix(inPlace[1], "="); suffix != "" {
			copied := f.With(f.S + suffix)
			if strings.Contains(suffix, "*") { // sed puts the name of the file in its place
				copied.S, copied.Glob = suffix, true
			}
			a.touch(Write, copied, c.st, touching{verb: "keeps a copy as"})
		}
	}
}

// program judges a program of awk or a script of sed.
func (a *analysis) program(c *call, f *field) {
	language, unknown := "awk", f.Opaque()
	if strings.HasSuffix(c.name, "sed") {
		if !unknown && len(f.S) <= maxCode && sedPlain().MatchString(f.S) {
			return
		}
		a.note(Medium, Unknown, f.Span, "a sed script that was not understood")
		language, unknown = "sed", unknown && !strings.HasPrefix(strings.TrimLeft(f.S, "0123456789,$ "), "s")
	}
	if f = a.examined(f, unknown); a.rules(language, f, c) {
		fl := c.st.Stdin.Flow
		for i := range c.fields {
			fl |= c.fields[i].Flow | a.FileFlow(&c.fields[i], c.st)
			a.values(&c.fields[i], c.st) // -v c='rm -rf /' and system(c)
		}
		a.runsFlow(fl, f.Span)
	}
}

// sedPlain matches scripts of sed whose commands neither run commands nor name files. A part of the expression in <> stands for
// one alternative for each of the usual delimiters, in place of §.
var sedPlain = sync.OnceValue(func() *regexp.Regexp {
	parts := regexp.MustCompile(`<([^>]*)>`).ReplaceAllStringFunc(expr("sed-plain").String(), func(part string) string {
		var alts []string
		for d := range strings.SplitSeq(`/ \| # , @ : ! _ % ~ ; \+`, " ") {
			alts = append(alts, strings.ReplaceAll(part[1:len(part)-1], "§", d))
		}
		return "(?:" + strings.Join(alts, "|") + ")"
	})
	return regexp.MustCompile(parts)
})

// doSQL judges clients of databases by the statements that they are given.
func (a *analysis) doSQL(c *call) {
	texts := a.statements(c)
	f := bashread.Join(texts, c.span) // all of them, each on a line of its own
	f.S = ""
	onlyReads := len(texts) > 0
	for i := range texts {
		f.S += texts[i].S + "\n"
		onlyReads = onlyReads && expr("sql-read").MatchString(texts[i].S)
	}
	runs := a.rules("sql", &f, c)
	if slices.ContainsFunc(expr("sql-update").FindAllString(f.S, -1), func(s string) bool { return !strings.Contains(strings.ToLower(s), "where") }) {
		a.note(Critical, Delete, f.Span, "changes all rows of a table")
	}
	switch {
	case runs:
	case f.Opaque(), len(texts) == 0 && !c.lowered():
		a.command().Opaque = true
		a.note(High, Unknown, c.span, "runs statements that are not known here")
	case len(texts) > 0 && !onlyReads, expr("sql-writ").MatchString(f.S):
		a.note(High, Write, f.Span, "changes a database").hard = true
	}
}

// statements returns what a client of a database is given: by options, by its operands or by its input. The first operand of
// one without a server is the file with the data.
func (a *analysis) statements(c *call) (texts []field) {
	for i := range c.opts {
		if o := &c.opts[i]; o.val != nil && o.spec != nil && o.spec.Role == programs.Text {
			texts = append(texts, *o.val)
		}
	}
	switch ops := c.operands; {
	case len(ops) == 0:
	case !c.spec.Has(Network):
		a.touch(Read, &ops[0], c.st, touching{})
		texts = append(texts, ops[1:]...)
	case strings.HasSuffix(c.name, "-cli"): // redis-cli; the operands of other clients with a server name the database
		texts = append(texts, bashread.Join(ops, c.span))
	}
	if in := c.st.Stdin.Plain(); len(texts) == 0 && in != nil {
		texts = append(texts, field{S: *in, Known: true, Span: c.span})
	}
	return texts
}

// dropsData judges the tasks that are named to a framework's own command, as in rails db:drop.
func (a *analysis) dropsData(c *call) {
	f := bashread.Join(c.fields[1:], c.span)
	a.rules("tasks", &f, c)
}
