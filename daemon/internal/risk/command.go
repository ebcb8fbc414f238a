package risk

import (
	"cmp"
	"path"
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
	verb     int      // leading words that say what is done
	plain    []string // argv without options before the sub-command; nil: argv itself
	subs     []string // sub-commands that were found
	tail     int      // index of the first word of the command that is run; 0: none
}

// option is one option as it was given.
type option struct {
	name string // -f, --force
	val  *field
	spec *programs.Option // nil: not in the table
	span Span
}

func (c *call) has(names ...string) bool { return c.opt(names...) != nil }

func (c *call) opt(names ...string) *option {
	c.st.Spend(len(c.opts) / bashread.EntriesMoved)
	for i := range c.opts {
		for _, n := range names {
			if o := &c.opts[i]; o.name == n || strings.HasPrefix(n, "--") && len(o.name) > 3 && strings.HasPrefix(n, o.name) {
				return o
			}
		}
	}
	return nil
}

// val returns the value of an option, "" where it was not given.
func (c *call) val(names ...string) string {
	if o := c.opt(names...); o != nil && o.val != nil {
		return o.val.S
	}
	return ""
}

// sub returns the sub-command that was found.
func (c *call) sub() string { return strings.Join(c.subs, " ") }

// rest returns the command that a wrapper runs, and where it stands.
func (c *call) rest() ([]field, Span) {
	if c.tail == 0 || c.tail >= len(c.fields) {
		return nil, c.span
	}
	fs := c.fields[c.tail:]
	return fs, Span{Start: fs[0].Span.Start, End: max(fs[len(fs)-1].Span.End, fs[0].Span.Start)}
}

// Command implements bashread.Judge: it judges a command whose words are known as far as they can be, by its name, by what
// it wraps and by its line in the table.
func (a *analysis) Command(fs []field, st *state, sp Span) {
	if len(fs) == 0 {
		return
	}
	cost := 25 + len(st.Cwd)/bashread.BytesCopied
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
	a.Depth--
	a.Out = a.prints(c)
}

// record adds the command to those that rules match.
func (a *analysis) record(c *call) {
	cmd := Command{Span: c.span, Level: Low, Cwd: c.st.Cwd, Argv: make([]string, len(c.fields))}
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

// runs notes that the command runs what its words name or hold.
func (a *analysis) runs() {
	if a.cmd >= 0 {
		a.v.Commands[a.cmd].Runs = true
	}
}

func (a *analysis) opaque() {
	if a.cmd >= 0 {
		a.v.Commands[a.cmd].Opaque = true
	}
}

// resolve finds what the name of a command means: function, builtin, program, file.
func (a *analysis) resolve(c *call) {
	f := &c.fields[0]
	if f.Opaque() || f.Many || f.Glob && f.S != "[" || f.S == "" && !f.Known {
		a.runs()
		a.opaque()
		if a.runsFlow(f.Flow, f.Span) {
			return
		}
		a.note(High, Unknown, f.Span, "what it runs is not known here")
		if len(c.fields) > 1 && f.Many { // `$X rm -rf /` with an empty X runs the rest
			a.Command(c.fields[1:], c.st.Clone(), c.span)
		}
		a.usesSecret(c)
		return
	}
	if strings.Contains(f.S, tamePart) {
		a.opaque()
	}
	if strings.ContainsAny(f.S, " \t;") { // a wrapper may hand it to a shell
		a.maybe(bashread.Join(c.fields, c.span).S, c.span, c.st)
	}
	if strings.IndexByte(f.S, '/') >= 0 {
		a.byPath(c)
		return
	}
	c.name = f.S
	if slices.Contains(a.c.Poisoned, c.name) {
		a.poisoned(c)
	}
	switch called, known := a.Function(c.fields, c.st, c.span); {
	case called && !known:
		a.runs()
		a.note(High, RunCode, c.span, "calls the function "+show(c.name)+" of your shell, whose code is not known here")
		return
	case called:
		a.runs()
		a.note(Low, Read, c.span, "calls the function "+show(c.name))
		return
	}
	if file, hashed := a.c.Hashed[c.name]; hashed && !a.builtin(c.name) && !c.st.Remote {
		a.hashed(c, file)
	}
	if !programs.Builtin(c.name) || a.builtin(c.name) {
		a.known(c)
		return
	}
	a.note(Medium, RunCode, c.span, "the builtin "+show(c.name)+" is switched off in your shell, so that a program of that name runs")
	before := c.st.Cwd
	a.known(c)
	c.st.MayBe(before) // a program cannot leave the folder
}

// builtin reports whether the shell runs a name itself.
func (a *analysis) builtin(name string) bool {
	return programs.Builtin(name) && !slices.Contains(a.c.Disabled, name)
}

// hashed judges the file that the hash table of the live shell names, besides the program of that name, which other
// programs start.
func (a *analysis) hashed(c *call, file string) {
	if path.Base(file) == c.name && path.IsAbs(file) && systemBin(path.Dir(file)) {
		return
	}
	a.note(Medium, RunCode, c.span, "your shell runs "+show(file)+" by the name "+show(c.name))
	if !strings.Contains(file, "/") {
		file = "./" + file
	}
	fs := slices.Clone(c.fields)
	fs[0] = field{S: file, Known: true, Span: fs[0].Span}
	a.byPath(&call{fields: fs, st: c.st.Clone(), span: c.span})
}

// byPath judges a command that names a file: ./x, bin/x, /usr/bin/x.
func (a *analysis) byPath(c *call) {
	f := &c.fields[0]
	c.name = f.Base()
	if f.Known && path.IsAbs(f.S) && systemBin(path.Dir(f.S)) {
		a.runsFlow(a.flowOf(path.Clean(f.S)), f.Span)
		a.known(c)
		return
	}
	c.verb = 1
	a.usesSecret(c)
	a.runFile(c, f)
}

// runFile judges a file that is run as code.
func (a *analysis) runFile(c *call, f *field) {
	a.runs()
	p := bashread.Path(f, c.st)
	if p != "" {
		p = a.followLinks(p)
	}
	key := p
	if key == "" {
		key = bashread.Key(f, c.st)
	}
	w := a.Files[key]
	switch {
	case a.runsFlow(f.Flow|w.Flow|a.flowOf(key), f.Span):
	case f.S == "/dev/stdin":
		a.fromStdin(c)
	case f.Opaque(), strings.HasPrefix(f.S, "/dev/"):
		a.opaque()
		a.note(High, RunCode, f.Span, "runs a file whose text is not known here")
	case w.Text != nil && shellFile(f.S, *w.Text):
		a.note(Medium, RunCode, f.Span, "runs "+show(f.S)+", which this text wrote")
		a.Inline(*w.Text, f.Span, c.st.Clone())
	case a.script(c, f, p):
	case p == "", !under(p, a.c.ProjectRoot):
		a.note(High, RunCode, f.Span, "runs "+show(f.S)+", whose text is not known here")
	case slices.Contains([]string{"gradlew", "mvnw", "configure", "manage.py", "bootstrap.sh", "autogen.sh"}, f.Base()):
		a.note(Medium, RunCode, f.Span, "runs the project's "+show(f.Base()))
		a.dropsData(c)
	case packaged(p) && programs.Lookup(f.Base()) != nil && programs.Lookup(f.Base()).Level <= Medium:
		a.note(Medium, RunCode, f.Span, "runs "+show(f.Base())+" of the project's packages")
	case a.isTracked(p):
		a.note(Medium, RunCode, f.Span, "runs "+show(f.S)+", a file of the project in version control")
	default:
		a.note(High, RunCode, f.Span, "runs "+show(f.S)+", whose text is not known here")
	}
}

// packaged reports whether a file is a program of the project's packages.
func packaged(p string) bool {
	return strings.Contains(p, "/node_modules/.bin/") || strings.Contains(p, "/venv/bin/") || strings.Contains(p, "/.venv/bin/")
}

func shellFile(name, text string) bool {
	if line, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(line, "#!") {
		return strings.Contains(line, "sh")
	}
	return !strings.Contains(path.Base(name), ".") || strings.HasSuffix(name, "sh")
}

// known judges a command by its line in the table.
func (a *analysis) known(c *call) {
	a.poisoned(c)
	a.shadowed(c)
	if c.spec = programs.Lookup(c.name); c.spec == nil {
		a.usesSecret(c)
		c.verb = 1
		a.note(High, Unknown, c.span, show(c.name)+" is not known here, so what it does is not either")
		a.namesSecrets(c)
		return
	}
	a.options(c)
	if helpOnly(c) {
		c.verb = 0
		a.note(Low, Read, c.span, "asks "+show(c.name)+" for help")
		return
	}
	a.usesSecret(c)
	if c.name == "git" {
		a.doGit(c)
		return
	}
	if h := handlers()[c.spec.Handler]; h != nil {
		h(a, c)
		return
	}
	a.usual(c)
}

// helpOnly reports whether a known program is only asked for its help or version.
func helpOnly(c *call) bool {
	n := len(c.fields)
	last := &c.fields[n-1]
	switch {
	case n < 2 || !last.Known || programs.Builtin(c.name):
		return false
	case n == 2 && (last.S == "--help" || last.S == "--version"):
		return true
	case c.spec.Args == programs.Run || c.spec.Args == programs.Join || c.spec.Args == programs.Shell || c.spec.Handler == "shell":
		return n == 2 && last.S == "-V" && c.spec.Handler == "remote"
	case last.S == "--help":
		return n <= c.verb+1
	}
	return n == 2 && (c.spec.Subs != nil || c.spec.Handler == "code") && slices.Contains([]string{"-V", "-v", "-VV", "-h", "-version", "help", "version"}, last.S)
}

// options splits argv into sub-command, options and operands by what the table knows of them.
func (a *analysis) options(c *call) {
	args := c.fields[1:]
	c.verb = 1
	straight := true // no options so far
	runs := func() bool { return c.spec.Args == programs.Run || c.spec.Args == programs.Join }
	for i := 0; i < len(args) && c.tail == 0; i++ {
		f := &args[i]
		switch {
		case f.S == "--" && f.Known:
			if runs() {
				if at := i + 2 + max(0, c.spec.Skip-len(c.operands)); at < len(c.fields) {
					c.tail = at
				}
			}
			c.operands = append(c.operands, args[i+1:]...)
			i = len(args)
		case len(f.S) > 1 && (f.S[0] == '-' || f.S[0] == '+' && c.spec.Opts[f.S] != nil):
			straight = false
			i = c.option(args, i)
		case len(c.operands) == 0 && f.Known && c.spec.Subs[f.S] != nil:
			c.spec = c.spec.Subs[f.S]
			if c.subs = append(c.subs, f.S); straight {
				c.verb++
			}
		case runs() && len(c.operands) >= c.spec.Skip:
			c.tail = i + 1
		default:
			c.operands = append(c.operands, *f)
		}
	}
	for i := range c.opts {
		if o := c.spec.Option(c.opts[i].name); o != nil { // given before the sub-command that knows it: npm -g install x
			c.opts[i].spec = o
		}
	}
	if !straight && len(c.subs) > 0 && c.verb <= len(c.subs) {
		// Options stood before the sub-command: rules that forbid see the command without them, too.
		c.plain = append([]string{c.fields[0].S}, c.subs...)
		for i := range c.operands {
			c.plain = append(c.plain, c.operands[i].S)
		}
		for i := range c.opts {
			c.plain = append(c.plain, c.opts[i].name)
		}
		c.verb = 0
	}
}

// option reads the option at args[i] and returns the index of its last word.
func (c *call) option(args []field, i int) int {
	f := &args[i]
	s := f.S
	add := func(name string, o *programs.Option, val *field) {
		c.opts = append(c.opts, option{name: name, val: val, spec: o, span: f.Span})
	}
	next := func(o *programs.Option) *field {
		if o == nil || o.Role == "" || i+1 >= len(args) {
			return nil
		}
		i++
		return &args[i]
	}
	name, val, joined := strings.Cut(s, "=")
	o := c.spec.Option(name)
	long := strings.HasPrefix(s, "--")
	switch {
	case (long || c.spec.LongNames()) && joined:
		add(name, o, f.With(val))
		return i
	case long || c.spec.LongNames() && (o != nil || len(s) == 2), o != nil && len(s) > 2 && !joined:
		add(name, o, next(o))
		return i
	}
	// A cluster, -rf, or a value in the same word, -ofile.
	for k := 1; k < len(s); k++ {
		name := s[:1] + s[k:k+1]
		o := c.spec.Option(name)
		if o != nil && o.Role != "" {
			if k+1 < len(s) {
				add(name, o, f.With(strings.TrimPrefix(s[k+1:], "=")))
			} else {
				add(name, o, next(o))
			}
			return i
		}
		if add(name, o, nil); c.spec.LongNames() {
			add(s, nil, nil)
			break
		}
	}
	return i
}

// usual judges a command by its line alone.
func (a *analysis) usual(c *call) {
	a.base(c)
	a.roles(c)
}

// base notes the level of the line, as options and expressions change it.
func (a *analysis) base(c *call) {
	s := c.spec
	level, says := s.Level, s.Says
	switch {
	case c.lowered(), s.Bare && len(c.operands)+len(c.opts) == 0, s.Look && len(c.operands) == 0:
		level, says = Low, says+" (only shows it)"
	case s.Sub && len(c.operands) == 0:
		level = min(level, Medium) // alone it shows its help, or does what everybody does with it
	case s.Sub && s.Subs != nil && level < High:
		level, says = High, "a sub-command of "+show(c.name)+" that is not known here"
	}
	f := a.note(level, s.Effects[0], c.span, says)
	f.hard = f.hard || s.Hard && level > Low
	f.undo = s.Undo
	if s.Runs {
		a.runs()
	}
	if level > Low {
		a.effects(c)
	} else if i := slices.IndexFunc(c.opts, func(o option) bool { return o.spec == nil }); i >= 0 && !s.Plain && !programs.Builtin(c.name) {
		a.note(Medium, Unknown, c.opts[i].span, "with "+show(c.opts[i].name)+", which is not known here")
	}
	a.raises(c)
	a.matches(c)
	if s.Has(RunCode) {
		a.dropsData(c)
	}
}

// raises notes what options make of a command.
func (a *analysis) raises(c *call) {
	for i := range c.opts {
		o := &c.opts[i]
		if o.spec != nil && o.spec.Raise > 0 && !(c.dry() && o.spec.Effect != RunCode) {
			a.note(o.spec.Raise, o.spec.Effect, o.span, cmp.Or(o.spec.Says, "with "+o.name))
			if o.spec.Effect == RunCode {
				a.runs()
			}
		}
	}
}

// lowered reports whether an option was given that makes the command low.
func (c *call) lowered() bool {
	return slices.ContainsFunc(c.opts, func(o option) bool { return o.spec != nil && o.spec.Lower && !switchedOff(o.val) })
}

// dry reports whether a command only shows what it would do.
func (c *call) dry() bool {
	o := c.spec.Option("--dry-run")
	return o != nil && o.Lower && c.lowered() && c.has("--dry-run", "-n", "--dryrun")
}

// effects notes what the effects of a line mean for the rest of the text.
func (a *analysis) effects(c *call) {
	s := c.spec
	if a.cmd >= 0 {
		cmd := &a.v.Commands[a.cmd]
		for _, e := range s.Effects[1:] {
			if !slices.Contains(cmd.Effects, e) {
				cmd.Effects = append(cmd.Effects, e)
			}
		}
	}
	if s.Has(Network) {
		a.connects()
		if c.st.Stdin.Flow&flowSecret != 0 {
			a.note(Critical, Secret, c.span, "sends secrets over the network")
		}
		for i := range c.operands[:min(4, len(c.operands))] {
			if o := &c.operands[i]; o.Known && deletes(o.S) {
				a.note(Critical, Delete, o.Span, "deletes what is elsewhere, with "+show(o.S))
			}
		}
	}
	if s.Has(Secret) {
		a.Seen |= flowSecret
		a.secret = true
	}
	if s.Has(Network) || s.Has(RunCode) || s.Has(Secret) {
		a.namesSecrets(c)
	}
	if s.Has(RunCode) || s.Has(Privilege) {
		for i := range c.operands {
			if o := &c.operands[i]; (o.Flow|a.flowOf(bashread.Key(o, c.st)))&flowNet != 0 {
				a.note(Critical, RunCode, o.Span, "installs or runs what was just fetched from the network")
			}
		}
	}
}

// deletes reports whether a word of a program that works elsewhere says that something is deleted: delete, apps:destroy.
func deletes(s string) bool {
	verb, what, _ := strings.Cut(s[strings.LastIndexByte(s, ':')+1:], "-")
	return slices.Contains([]string{"delete", "destroy", "drop", "purge", "terminate", "flushall", "undefine", "wipe", "del"}, verb) && what != "tags"
}

// matches judges the words of a command by the expressions of its line.
func (a *analysis) matches(c *call) {
	for s := c.spec; s != nil; s = s.Up {
		for _, m := range s.Match {
			if m.Whole {
				f := bashread.Join(c.fields[1:], c.span)
				if a.Spend(len(f.S) / bashread.BytesMatched); m.Re.MatchString(f.S) {
					a.matched(m, &f, c.st)
				}
				continue
			}
			for i := range c.fields[1:] {
				f := &c.fields[i+1]
				if a.Spend(1 + len(f.S)/bashread.BytesParsed); m.Re.MatchString(f.S) {
					a.matched(m, f, c.st)
				}
			}
		}
	}
}

// matched judges a word that an expression of the table matches.
func (a *analysis) matched(m programs.Match, f *field, st *state) {
	a.note(m.Raise, m.Effect, f.Span, m.Says)
	switch m.Effect {
	case RunCode:
		a.runs()
		a.commandsIn(f.S, f.Span, st)
		_, val, _ := strings.Cut(f.S, "=")
		a.maybe(strings.NewReplacer("$(shell ", "$(", "$$", "$").Replace(val), f.Span, st)
	case Secret:
		a.Seen |= flowSecret
		a.secret = true
	}
}

// switchedOff reports whether an option was given to say no: --dry-run=none.
func switchedOff(val *field) bool {
	return val != nil && (!val.Known || slices.Contains([]string{"none", "false", "no", "0", "off"}, val.S))
}

// roles judges operands and values of options by what they mean.
func (a *analysis) roles(c *call) {
	a.optionRoles(c)
	ops, role := c.operands, c.spec.Args
	switch role {
	case programs.Copy, programs.Move:
		a.copies(c, role == programs.Move)
		return
	case programs.Run:
		a.runTail(c, c.st)
		return
	case programs.Join:
		fs, sp := c.rest()
		f := bashread.Join(fs, sp)
		f.S = strings.NewReplacer(" Enter", "\n", " C-m", "\n", " C-j", "\n").Replace(f.S) // keys that tmux sends
		a.shellText(f, c.st)
		return
	case programs.Pattern:
		if len(ops) > 0 && !c.has("-e", "--regexp", "-f", "--file") {
			ops = ops[1:]
		}
		role = programs.Reads
	case programs.Mode:
		ops, role = ops[min(1, len(ops)):], programs.Writes
	}
	if role == programs.Begins && len(ops) == 1 && !c.has("-f", "--prefix") {
		ops = append(slices.Clip(ops), field{S: "x", Known: true, Span: c.span})
	}
	for i := range ops {
		one := operandRole(role, i)
		if one == programs.Writes && c.lowered() {
			one = programs.Reads
		}
		if a.role(c, one, &ops[i]); c.spec.Lose || c.has("-m") && role == programs.Archive && i > 0 {
			a.touch(Delete, &ops[i], c.st, touching{tree: true})
		}
		if role == programs.Script {
			break
		}
	}
	if !slices.Contains(c.spec.Effects, ShellState) && role != programs.Text {
		a.namesSecrets(c)
	}
}

// operandRole returns what the i-th operand means.
func operandRole(role string, i int) string {
	switch {
	case role == programs.Archive && i == 0, role == programs.Filter && i > 0:
		return programs.Writes
	case role == programs.Archive, role == programs.Filter, role == programs.Begins && i == 0:
		return programs.Reads
	}
	return role
}

func (a *analysis) optionRoles(c *call) {
	for i := range c.opts {
		if o := &c.opts[i]; o.val != nil && o.spec != nil {
			a.role(c, o.spec.Role, o.val)
		}
	}
}

// namesSecrets judges each word that names keys or passwords as one that is read: which words are files depends on options.
func (a *analysis) namesSecrets(c *call) {
	for i := range c.fields[1:] {
		f := &c.fields[i+1]
		if strings.HasPrefix(f.S, "-") || c.spec != nil && c.spec.Args == programs.Pattern && len(c.operands) > 0 && f.Span == c.operands[0].Span {
			continue
		}
		if _, file, ok := strings.Cut(f.S, ":"); ok && c.name == "git" {
			f = f.With(file) // HEAD:.env
		}
		if a.secretWord(f, c.st) {
			a.touch(Read, f, c.st, touching{})
		}
	}
}

// role judges one word.
func (a *analysis) role(c *call, role string, f *field) {
	tree := c.has("-r", "-R", "-a", "--recursive", "--archive") || c.name == "rg" || c.name == "ag"
	switch role {
	case programs.Reads:
		a.touch(Read, f, c.st, touching{tree: tree})
	case programs.Sends:
		a.sends(f, c.st)
	case programs.Writes:
		a.touch(Write, f, c.st, touching{})
		a.Wrote(bashread.Key(f, c.st), bashread.Written{Flow: a.Seen & flowNet})
	case programs.Deletes:
		a.touch(Delete, f, c.st, touching{tree: tree, safe: c.name == "rmdir"})
	case programs.Script:
		a.runFile(c, f)
	case programs.Shell:
		a.shellText(*f, c.st)
	case programs.Tool:
		if first, _, _ := strings.Cut(f.S, " "); !slices.Contains([]string{"", "ssh", "gzip", "bzip2", "xz", "zstd", "lz4", "pigz", "unzstd"}, first) {
			a.note(High, RunCode, f.Span, show(c.name)+" runs a program that is named here")
			a.shellText(*f, c.st)
		} else if first == "ssh" {
			a.maybe(f.S+" _", f.Span, c.st)
		}
	case programs.Code:
		a.runs()
		a.note(High, RunCode, f.Span, "runs code that is given to "+show(c.name))
		a.commandsIn(f.S, f.Span, c.st)
	case programs.Make:
		a.maybe(strings.NewReplacer("$(shell ", "$(", "$$", "$").Replace(f.S), f.Span, c.st)
	case programs.Begins:
		g := f.With(f.S + "*")
		g.Glob = true
		a.touch(Write, g, c.st, touching{})
	case programs.URL, programs.Host:
		a.host(f)
	}
}

// sends judges a file whose text is sent, which stands behind an @ where there is one: @file, name=@file, name@file.
func (a *analysis) sends(f *field, st *state) {
	i := strings.IndexByte(f.S, '@')
	if form := strings.Index(f.S, "=<"); i < 0 && form >= 0 {
		i = form + 1
	}
	if i >= 0 {
		name, _, _ := strings.Cut(f.S[i+1:], ";")
		a.touch(Read, f.With(name), st, touching{verb: "sends"})
	}
}

// runTail judges the command that a wrapper runs, and returns of how many words it is.
func (a *analysis) runTail(c *call, st *state) int {
	a.runs()
	fs, sp := c.rest()
	st = st.Clone()
	for len(fs) > 0 { // sudo A=1 cmd
		name, val, ok := strings.Cut(fs[0].S, "=")
		if !ok || !bashread.NameLike(name) {
			break
		}
		a.Assign(name, fs[0].With(val), st, bashread.Prefix, fs[0].Span)
		st.Set(name, bashread.Value{Words: []string{val}, Flow: fs[0].Flow, Handed: true}) // a shell below sees it
		fs = fs[1:]
	}
	a.Command(fs, st, sp)
	return len(fs)
}

// shellText judges a word that a command gives to a shell.
func (a *analysis) shellText(f field, st *state) {
	a.runs()
	switch {
	case a.runsFlow(f.Flow, f.Span):
	case f.Opaque():
		a.opaque()
		a.note(High, RunCode, f.Span, "runs text that is not known here")
	}
	if strings.TrimSpace(strings.Trim(f.S, "\x00\x01")) != "" {
		a.Inline(f.S, f.Span, st.Clone())
	}
}

// runsFlow notes that code runs which nobody could read before, by where it came from, and reports whether that is so.
func (a *analysis) runsFlow(fl bashread.Flow, sp Span) bool {
	switch {
	case fl&flowNet != 0:
		a.note(Critical, RunCode, sp, "runs what was just fetched from the network")
	case fl&bashread.Decoded != 0:
		a.note(Critical, RunCode, sp, "runs what was decoded here, so that it cannot be read")
	}
	return fl&(flowNet|bashread.Decoded) != 0
}

// fromStdin judges a program that runs what it reads.
func (a *analysis) fromStdin(c *call) {
	in := c.st.Stdin
	a.runs()
	switch {
	case a.runsFlow(in.Flow, c.span):
	case in.Any:
		a.opaque()
		a.note(High, RunCode, c.span, show(c.name)+" runs what it is given, and that is not known here")
	default:
		a.note(High, RunCode, c.span, show(c.name)+" runs what is typed into it")
	}
}

// usesSecret notes secrets that are handed to a program by its words.
func (a *analysis) usesSecret(c *call) {
	if c.name == "test" || c.name == "[" || c.name == "unset" {
		return
	}
	for i := range c.fields {
		if f := &c.fields[i]; f.Flow&flowSecret != 0 {
			if c.spec != nil && c.spec.Handler == "sql" {
				a.note(Medium, Secret, f.Span, "logs in to a database with a secret")
				return
			}
			a.Seen |= flowSecret
			a.secret = true
			a.note(High, Secret, f.Span, "uses a secret: what runs gets it, and may show it")
			return
		}
	}
}
