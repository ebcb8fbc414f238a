package risk

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
)

// call is one simple command while it is judged.
type call struct {
	fields   []field // argv
	name     string  // of the program, without its folder
	spec     *programs.Spec
	st       *state
	span     Span
	opts     []option
	operands []field
	verb     int      // how many leading words of argv name the program and its sub-command; 0: see optionsLast
	plain    []string // argv with its options last, for rules to match; nil: argv itself
	subs     []string // sub-commands that were found
	list     string   // a pattern of the paths that find prints; "": not known
	tail     int      // index of the first word of the command that is run; 0: none
}

type option struct {
	name   string // -f, --force
	val    *field
	spec   *programs.Option // nil: not in the table
	span   Span
	behind int // how many operands stand before it
}

func (c *call) has(names ...string) bool { return c.opt(names...) != nil }

// opt returns the first option of one of these names, nil if there is none.
func (c *call) opt(names ...string) *option {
	c.st.Spend(len(c.opts) / bashread.EntriesMoved)
	for i := range c.opts {
		if c.opts[i].is(names...) {
			return &c.opts[i]
		}
	}
	return nil
}

// is reports whether an option is one of these names, or the beginning of a long one.
func (o *option) is(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return o.name == n || strings.HasPrefix(n, "--") && len(o.name) > 3 && strings.HasPrefix(n, o.name)
	})
}

// sub returns the sub-command that was found.
func (c *call) sub() string { return strings.Join(c.subs, " ") }

// rest returns the command that a wrapper runs (tail), and where it stands in the text.
func (c *call) rest() ([]field, Span) {
	if c.tail == 0 || c.tail >= len(c.fields) {
		return nil, c.span
	}
	fs := c.fields[c.tail:]
	return fs, Span{Start: fs[0].Span.Start, End: max(fs[len(fs)-1].Span.End, fs[0].Span.Start)}
}

// commandSteps is what judging a command costs of the budget, besides its words: as long as reading about 25 words.
const commandSteps = 25

// Command implements bashread.Judge: it judges a command whose words are known as far as they can be, by its name, by what
// it wraps and by its line in the table.
func (a *analysis) Command(fs []field, st *state, sp Span) {
	if len(fs) == 0 {
		return
	}
	cost := commandSteps + len(st.Cwd)/bashread.BytesCopied
	for i := range fs {
		cost += 1 + len(fs[i].S)/bashread.BytesParsed
	}
	a.Spend(cost)
	if a.Depth+len(a.Active) > 4*bashread.MaxDepth {
		a.Unread(sp, "code inside code, too deep or too long to be examined")
		return
	}
	a.Depth++
	c := &call{fields: fs, st: st, span: sp}
	outer := a.cmd
	if a.guess == 0 {
		a.record(c)
	}
	me := a.cmd
	a.resolve(c)
	if a.guess == 0 {
		cmd := &a.v.Commands[me]
		cmd.Verb, cmd.Plain, cmd.Name = c.verb, c.plain, c.name
	}
	a.cmd = outer
	if a.Depth--; a.guess == 0 && a.Outermost() {
		a.inShell(c, &a.v.Commands[me])
	}
	a.Out = a.prints(c)
}

// record adds the command to the verdict's, which the rules of the policy match.
func (a *analysis) record(c *call) {
	cmd := Command{Level: Low, Cwd: c.st.Cwd, Argv: make([]string, len(c.fields))}
	if len(c.st.Alts) > 0 || c.st.Remote {
		cmd.Cwd = ""
	}
	for i := range c.fields {
		if f := &c.fields[i]; f.Known {
			cmd.Argv[i] = f.S
		} else {
			cmd.Opaque = true
		}
	}
	a.v.Commands = append(a.v.Commands, cmd)
	a.cmd = len(a.v.Commands) - 1
}

// resolve finds what the name of a command means: function, builtin, program, file.
func (a *analysis) resolve(c *call) {
	past := a.past
	a.past = false
	a.usesSecret(c)
	f := &c.fields[0]
	if f.Opaque() || f.Many || f.Glob && f.S != "[" || f.S == "" && !f.Known {
		a.command().Runs = true
		a.command().Opaque = true
		if a.runsFlow(f.Flow, f.Span) {
			return
		}
		a.note(High, Unknown, f.Span, "what it runs is not known here")
		if len(c.fields) > 1 && f.Many { // `$X rm -rf /` with an empty X runs the rest
			a.Command(c.fields[1:], c.st.Clone(), c.span)
		}
		return
	}
	if strings.ContainsAny(f.S, " \t;") { // a wrapper may hand it to a shell
		a.Maybe(bashread.Join(c.fields, c.span).S, c.span, c.st)
	}
	c.name = f.Base()
	a.poisoned(c)
	if strings.IndexByte(f.S, '/') >= 0 {
		a.byPath(c)
		return
	}
	called, known := false, false
	if !past {
		called, known = a.Function(c.fields, c.st, c.span)
	}
	if called {
		a.command().Runs = true
		if known {
			a.note(Low, Read, c.span, "calls the function "+show(c.name))
		} else {
			a.note(High, RunCode, c.span, "calls the function "+show(c.name)+" of your shell, whose code is not known here")
		}
		return
	}
	a.shadowed(c)
	a.byTable(c)
}

// byPath judges a command that names a file: ./x, bin/x, /usr/bin/x.
func (a *analysis) byPath(c *call) {
	f := &c.fields[0]
	if f.Known && path.IsAbs(f.S) && systemBin(path.Dir(f.S)) {
		a.runsFlow(a.flowOf(path.Clean(f.S)), f.Span)
		a.byTable(c)
		return
	}
	if c.name == "sublet" { // wherever it was installed
		a.byTable(c)
	}
	c.verb = 1
	a.runFile(c, f)
}

// runFile judges a file that is run as code: by its text if this text wrote it or it can be read (script), else by where it is.
// What runs before it may change a file that this text wrote: what that holds is judged, and is High.
func (a *analysis) runFile(c *call, f *field) {
	a.command().Runs = true
	sourced, st := c.name == "source" || c.name == ".", c.st
	if !sourced {
		st = st.Clone()
	}
	key := a.followLinks(bashread.Key(f, c.st))
	p := bashread.Absolute("", key) // "" in a folder that is not known
	w, spec, inProject := a.Files[key], programs.Lookup(f.Base()), under(p, a.c.ProjectRoot)
	switch {
	case a.runsFlow(f.Flow|w.Flow|a.flowOf(key), f.Span):
	case f.S == "/dev/stdin":
		a.fromStdin(c, st)
	case f.Opaque(), strings.HasPrefix(f.S, "/dev/"):
		a.command().Opaque = true
		a.note(High, RunCode, f.Span, "runs a file whose text is not known here")
	case w.Text != nil && (sourced || shellFile(f.S, *w.Text)):
		a.note(High, RunCode, f.Span, "runs "+show(f.S)+", which this text wrote, and which may be another by then")
		a.Inline(*w.Text, f.Span, st)
	case sourced && path.Base(p) == "activate":
		a.note(Medium, ShellState, f.Span, "switches to a virtual environment").undo = "deactivate"
	case a.script(c, f, p):
	case inProject && slices.Contains([]string{"gradlew", "mvnw", "configure", "manage.py", "bootstrap.sh", "autogen.sh"}, f.Base()):
		a.note(Medium, RunCode, f.Span, "runs the project's "+show(f.Base()))
		a.dropsData(c)
	case inProject && packaged(p) && spec != nil && spec.Level <= Medium && spec.Handler != "code":
		a.note(Medium, RunCode, f.Span, "runs "+show(f.Base())+" of the project's packages")
	case inProject && a.isTracked(p):
		a.note(Medium, RunCode, f.Span, "runs "+show(f.S)+", a file of the project in version control")
	default:
		a.note(High, RunCode, f.Span, "runs "+show(f.S)+", whose text is not known here")
	}
}

// packaged reports whether a file is a program that a package manager put into the project.
func packaged(p string) bool {
	return strings.Contains(p, "/node_modules/.bin/") || strings.Contains(p, "/venv/bin/") || strings.Contains(p, "/.venv/bin/")
}

func shellFile(name, text string) bool {
	if line, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(line, "#!") {
		return strings.Contains(line, "sh")
	}
	return !strings.Contains(path.Base(name), ".") || strings.HasSuffix(name, "sh")
}

// byTable judges a command by its entry in the table of package programs.
func (a *analysis) byTable(c *call) {
	if c.spec = programs.Lookup(c.name); c.spec == nil {
		a.unknown(c)
		return
	}
	c.unbundle()
	a.options(c)
	if helpOnly(c) {
		c.verb = 0
		a.note(Low, Read, c.span, "asks "+show(c.name)+" for help")
		return
	}
	c.enter()
	a.level(c)
	a.matches(c)
	a.optionRoles(c)
	handler := c.spec.Handler
	if c.name == "git" { // also of its sub-commands
		handler = "git"
	}
	if h := handlers[handler]; h != nil {
		h(a, c)
	} else {
		a.roles(c)
	}
	if c.name == "git" || c.mayRead() {
		a.namesSecrets(c)
	}
}

// mayRead reports whether a command may read files that its words name, beside those that the roles of its line find.
func (c *call) mayRead() bool {
	switch s := c.spec; {
	case s.Args[0] == programs.Shell:
		return false
	case s.Has(RunCode), (s.Has(Network) || s.Has(Secret)) && !c.lowered(): // ssh-keygen -l shows no key
		return true
	default:
		found := c.wraps() || s.Args[0] == programs.Copy || s.Args[0] == programs.Move
		return !found && !s.Has(ShellState) && s.Args[len(s.Args)-1] != programs.Text
	}
}

// optionStart matches the option before a value in the same word: -cVALUE, --command=VALUE.
var optionStart = regexp.MustCompile(`^(--?[\w-]+=|-\w)`)

// maxTails bounds how often the words of an unknown program are judged as a command: the cost would be quadratic in their number.
const maxTails = 4

// unknown judges a program that is not in the table of package programs: by what its words name, and as a wrapper of a command.
func (a *analysis) unknown(c *call) {
	c.verb = 1
	a.note(High, Unknown, c.span, show(c.name)+" is not known here, so what it does is not either")
	a.namesSecrets(c)
	for i, tails := 1, 0; i < len(c.fields); i++ {
		f := &c.fields[i]
		if p := bashread.Path(f, c.st); p != "" && !c.st.Remote && a.placeOf(p).write == Critical { // of others the note above is enough
			a.touch(Write, f, c.st, touching{verb: "may write"})
		}
		switch {
		case tails >= maxTails:
		case strings.ContainsAny(f.S, " \n;{$"):
			a.Maybe(optionStart.ReplaceAllString(f.S, ""), f.Span, c.st)
		case programs.Lookup(f.Base()) != nil && (!programs.Builtin(f.S) || f.S == "kill"): // a wrapper runs programs; kill is one too
			tails++
			a.guess++
			a.Command(c.fields[i:], c.st.Clone(), c.span)
			a.guess--
		}
	}
}
