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
	a.runs()
	name := strings.TrimRight(c.name, "0123456789.")
	a.namesSecrets(c)
	inPlace := (name == "perl" || name == "ruby") && c.has("-i")
	text := c.st.Stdin.Plain()
	given := a.texts(c, a.code)
	if inPlace {
		for k := range c.operands {
			a.edits(c, &c.operands[k])
		}
	}
	switch {
	case given:
	case c.lowered():
		a.note(Low, Read, c.span, "checks code, or shows settings")
	case len(c.operands) > 1 && c.operands[0].S == "eval":
		a.code(c, &c.operands[1])
	case len(c.operands) > 0 && c.operands[0].S != "-":
		a.runFile(c, &c.operands[0])
	case text != nil:
		a.code(c, &field{S: *text, Known: true, Span: c.span, Flow: c.st.Stdin.Flow})
	default:
		a.fromStdin(c, c.st)
	}
	a.matches(c)
}

// doEditor judges editors and debuggers, which take what they read for commands.
func (a *analysis) doEditor(c *call) {
	a.usual(c)
	if text := c.st.Stdin.Plain(); text != nil {
		a.role(c, programs.Code, &field{S: *text, Known: true, Span: c.span})
	}
}

// edits judges a file that code changes in place: what it holds then is not known.
func (a *analysis) edits(c *call, f *field) {
	a.touch(Write, f, c.st, touching{verb: "edits"})
	a.Wrote(bashread.Key(f, c.st), bashread.Written{})
}

// texts judges the values of options that are code, and those that name a file of it. It reports whether there was code.
func (a *analysis) texts(c *call, code func(c *call, f *field)) (given bool) {
	for i := range c.opts {
		switch o := &c.opts[i]; {
		case o.val == nil || o.spec == nil:
		case o.spec.Role == programs.Code:
			given = true
			code(c, o.val)
		case o.spec.Role == programs.Script:
			a.runFile(c, o.val)
		}
	}
	return given
}

// maxCode is the length of code that is examined, in bytes.
const maxCode = 16 << 10

// code judges the text of another language. It is not understood, so it is never low; what is in it that runs commands,
// deletes, writes or talks to the network raises it, and what looks like a shell command in it is judged as one.
func (a *analysis) code(c *call, f *field) {
	a.runs()
	text := a.codeText(f)
	a.note(Medium, RunCode, f.Span, "runs code given to "+show(c.name))
	switch {
	case a.runsFlow(f.Flow, f.Span):
	case expr("code-runs").MatchString(text):
		a.note(High, RunCode, f.Span, "runs code that starts programs or makes code of its own")
		a.commandsIn(text, f.Span, c.st)
	case expr("code-delete").MatchString(text):
		a.note(High, Delete, f.Span, "runs code that deletes").hard = true
	case expr("code-write").MatchString(text):
		a.note(High, Write, f.Span, "runs code that may write files")
	}
	if expr("code-makes").MatchString(text) && (expr("code-net").MatchString(text) || c.st.Stdin.Flow&flowNet != 0) {
		a.note(Critical, RunCode, f.Span, "runs code that fetches code, or is given it from the network, and runs that")
	}
	if expr("code-net").MatchString(text) {
		a.connects()
		a.note(High, Network, f.Span, "runs code that talks to the network")
	}
	if expr("code-secret").MatchString(text) || a.c.Secrets.Mentioned(text) {
		a.readsSecret(f, "secrets or variables by code")
	}
	a.wideLoss(text, f.Span)
	if slices.Contains([]string{"pwsh", "powershell", "nu", "xonsh", "elvish", "expect"}, c.name) {
		a.Maybe(strings.ReplaceAll(text, "spawn ", ""), f.Span, c.st) // they know the same programs
	}
}

// codeText returns what is examined of a program's text. One that is too long or not known is high.
func (a *analysis) codeText(f *field) string {
	if len(f.S) > maxCode || f.Opaque() {
		a.runs()
		a.opaque()
		a.note(High, RunCode, f.Span, "runs code that is too long to examine, or not known here")
	}
	text := f.S[:min(len(f.S), maxCode)]
	a.Spend(len(text) / bashread.BytesMatched)
	return text
}

// wideLoss finds code that deletes the root, home or the system, works on a device or writes a start-up file.
func (a *analysis) wideLoss(text string, sp Span) {
	if m := expr("code-loss").FindStringSubmatch(text); m != nil {
		a.note(Critical, Delete, sp, "runs code that deletes "+show(m[1]))
	}
	if expr("code-device").MatchString(text) {
		a.note(Critical, Write, sp, "runs code that works on a device")
	}
	if expr("code-starts").MatchString(text) && expr("code-write").MatchString(text) {
		a.note(Critical, Persistence, sp, "runs code that writes a start-up file")
	}
}

// commandsIn judges, as shell commands, the strings in a piece of code and what follows a ! or another word that hands the rest
// of a line to a shell. Only what is High or Critical in them is kept: see Maybe.
func (a *analysis) commandsIn(text string, sp Span, st *state) {
	a.Spend(1 + len(text)/bashread.BytesMatched)
	var quoted []string
	for _, m := range expr("code-string").FindAllStringSubmatch(text, -1) {
		s := strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\n`, "\n", `\\`, `\`).Replace(m[1] + m[2] + m[3])
		quoted = append(quoted, shellQuote(s))
		a.Maybe(s, sp, st)
	}
	if len(quoted) > 1 { // ['rm', '-rf', '/']
		a.Maybe(strings.Join(quoted, " "), sp, st)
	}
	for _, at := range expr("code-line").FindAllStringIndex(text, 8) {
		line, _, _ := strings.Cut(text[at[1]:], "\n")
		if strings.HasPrefix(text[at[0]:], "qx") {
			line = strings.TrimRight(line, ")}]; ")
		}
		a.Maybe(line, sp, st)
	}
}

// givenCode judges the commands and files in a text that a program runs and that is not understood.
func (a *analysis) givenCode(f *field, st *state) {
	a.runs()
	a.commandsIn(f.S, f.Span, st)
	a.wideLoss(f.S, f.Span)
	for _, m := range expr("code-file").FindAllStringSubmatch(f.S, -1) {
		a.touch(Write, f.With(m[1]), st, touching{})
	}
}

// doAwk judges awk: its programs can run commands and write files.
func (a *analysis) doAwk(c *call) {
	a.filter(c, a.awkProgram, c.val("-i", "--include") == "inplace", "", "-f", "--file", "-E", "--exec")
}

// doSed judges sed: scripts can run commands (e, s///e) and write files (w, s///w); -i writes its files.
func (a *analysis) doSed(c *call) {
	suffix, inPlace := sedInPlace(c)
	a.filter(c, a.sedScript, inPlace, suffix, "-f", "--file")
}

// filter judges a call of awk or sed. Its program text, which code judges, is the first operand unless an option has it or one of the
// options files names a file that has it. The other operands are files: read or, if inPlace, edited, with a copy that ends in suffix.
func (a *analysis) filter(c *call, code func(c *call, f *field), inPlace bool, suffix string, files ...string) {
	a.base(c)
	ops := c.operands
	if !a.texts(c, code) && !c.has(files...) && len(ops) > 0 {
		code(c, &ops[0])
		ops = ops[1:]
	}
	for i := range ops {
		f := &ops[i]
		if !inPlace {
			a.touch(Read, f, c.st, touching{})
			continue
		}
		a.edits(c, f)
		if suffix != "" {
			copied := f.With(f.S + suffix)
			if strings.Contains(suffix, "*") { // sed puts the name of the file in its place
				copied.S, copied.Glob = suffix, true
			}
			a.touch(Write, copied, c.st, touching{verb: "keeps a copy as"})
		}
	}
	a.namesSecrets(c)
}

func (a *analysis) awkProgram(c *call, f *field) {
	text := a.codeText(f)
	bare := expr("code-string").ReplaceAllString(text, `""`)
	if expr("awk-runs").MatchString(bare) {
		a.note(High, RunCode, f.Span, "an awk program that runs commands")
		a.givenCode(f, c.st)
		fl := c.st.Stdin.Flow
		for i := range c.operands {
			fl |= c.operands[i].Flow | a.FileFlow(&c.operands[i], c.st)
		}
		a.runsFlow(fl, f.Span)
		_, value, _ := strings.Cut(c.val("-v", "--assign"), "=") // -v c='rm -rf /' and system(c)
		a.Maybe(value, f.Span, c.st)
	}
	if strings.Contains(bare, ">") {
		for _, m := range expr("awk-write").FindAllStringSubmatch(text, -1) {
			a.touch(Write, &field{S: cmp.Or(m[1], unknownPart), Known: m[1] != "", Span: f.Span}, c.st, touching{})
		}
	}
	for _, m := range expr("awk-read").FindAllStringSubmatch(text, -1) {
		a.touch(Read, &field{S: m[1], Known: true, Span: f.Span}, c.st, touching{})
	}
	if strings.Contains(bare, "ENVIRON") {
		a.note(Medium, Secret, f.Span, "an awk program that reads variables of the environment")
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

// sedInPlace reports whether -i edits the files in place, and returns the suffix of the copies that it keeps; "" if it keeps none.
func sedInPlace(c *call) (suffix string, inPlace bool) {
	for _, f := range c.fields[1:] {
		if m := expr("sed-in-place").FindStringSubmatch(f.S); m != nil {
			return strings.TrimPrefix(m[1], "="), true
		}
	}
	return "", false
}

func (a *analysis) sedScript(c *call, f *field) {
	if a.Spend(1 + len(f.S)/bashread.BytesMatched); len(f.S) > maxCode || !f.Opaque() && sedPlain().MatchString(f.S) {
		if len(f.S) > maxCode {
			a.note(High, RunCode, f.Span, "a sed script that is too long to examine")
		}
		return
	}
	if f.Opaque() {
		a.opaque()
	}
	a.note(Medium, Unknown, f.Span, "a sed script that was not understood")
	if f.Opaque() && !strings.HasPrefix(strings.TrimLeft(f.S, "0123456789,$ "), "s") {
		a.note(High, RunCode, f.Span, "a sed script that is not known here")
	}
	for _, m := range expr("sed-runs").FindAllStringSubmatch(f.S, -1) {
		a.note(High, RunCode, f.Span, "a sed script that runs commands")
		a.shellText(*f.With(m[1]), c.st)
	}
	if expr("sed-eval").MatchString(f.S) {
		a.runs()
		a.note(High, RunCode, f.Span, "a sed script that runs what it made as a command")
		for part := range strings.FieldsFuncSeq(strings.ReplaceAll(f.S, `\/`, "\x02"), func(r rune) bool { return strings.ContainsRune("/|#,@", r) }) {
			a.Maybe(strings.ReplaceAll(part, "\x02", "/"), f.Span, c.st)
		}
	}
	for _, m := range expr("sed-file").FindAllStringSubmatch(f.S, -1) {
		a.touch(Write, f.With(m[1]), c.st, touching{})
	}
}

// doSQL judges clients of databases by the statements that they are given.
func (a *analysis) doSQL(c *call) {
	a.base(c)
	a.optionRoles(c)
	texts := a.statements(c)
	f := bashread.Join(texts, c.span) // all of them, each on a line of its own
	f.S = ""
	onlyReads := len(texts) > 0
	for i := range texts {
		f.S += texts[i].S + "\n"
		onlyReads = onlyReads && expr("sql-read").MatchString(texts[i].S)
	}
	a.Spend(len(f.S) / bashread.BytesMatched)
	for _, m := range expr("sql-file").FindAllStringSubmatch(f.S, -1) {
		a.touch(Write, f.With(m[1]), c.st, touching{})
	}
	if wide := expr("sql-wide").FindString(f.S); wide != "" && !strings.Contains(strings.ToLower(wide), "where") {
		a.note(Critical, Delete, f.Span, "drops or empties data")
	}
	switch {
	case expr("sql-runs").MatchString(f.S):
		a.note(High, RunCode, f.Span, "a statement that runs programs or reaches files")
		a.givenCode(&f, c.st)
	case f.Opaque(), len(texts) == 0 && !c.lowered():
		a.opaque()
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
	if a.Spend(1 + len(f.S)/bashread.BytesMatched); expr("drops-words").MatchString(f.S) {
		a.note(Critical, Delete, c.span, "drops or empties the database")
	}
}
