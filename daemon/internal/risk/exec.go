package risk

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// cmdCall is one simple command while it is judged.
type cmdCall struct {
	fields   []field // argv
	name     string  // of the program, without its folder
	spec     *spec
	st       *state
	span     Span
	opts     []option
	operands []field
	verb     int      // leading words that say what is done
	plain    []string // argv without options before the sub-command; nil: argv itself
	tail     int      // args=run: index of the first word of the command that is run; 0: none
	prefix   []string // variables set for this command
}

// option is one option as it was given.
type option struct {
	name string // -f, --force
	val  *field
	word int      // index in argv of the word that is its value; 0: none, or the value is in the option's own word
	spec *optSpec // nil: not in the table
	span Span
}

func (c *cmdCall) has(names ...string) bool { return c.opt(names...) != nil }

func (c *cmdCall) opt(names ...string) *option {
	c.st.spend(len(c.opts) / entriesMoved)
	for i := range c.opts {
		for _, n := range names {
			if o := &c.opts[i]; o.name == n || strings.HasPrefix(n, "--") && len(o.name) > 3 && strings.HasPrefix(n, o.name) {
				return o
			}
		}
	}
	return nil
}

// call judges a simple command as it stands in the text.
func (a *analysis) call(c *syntax.CallExpr, st *state) (ends bool) {
	if len(c.Args) == 0 {
		for _, as := range c.Assigns {
			a.assign(as, st, assignPlain)
		}
		return false
	}
	var prefix []string
	inner := st
	if len(c.Assigns) > 0 {
		inner = st.clone()
	}
	for _, as := range c.Assigns {
		a.assign(as, inner, assignPrefix)
		if as.Name != nil {
			prefix = append(prefix, as.Name.Value)
		}
	}
	delete(a.kept, c)
	if w := c.Args[0]; len(w.Parts) == 1 {
		if l, ok := w.Parts[0].(*syntax.Lit); ok {
			if done, ends := a.alias(l.Value, c, st); done {
				return ends
			}
		}
	}
	fs := a.words(c.Args, st)
	a.keep(c, fs)
	for len(fs) > 0 && fs[0].s == "" && fs[0].known && !fs[0].quoted {
		fs = fs[1:]
	}
	if len(fs) == 0 {
		return false
	}
	return a.exec(fs, st, a.span(c), prefix)
}

// exec judges a command whose words are known as far as they can be: by name, by what wraps it, by its line in the table.
func (a *analysis) exec(fs []field, st *state, sp Span, prefix []string) (ends bool) {
	if len(fs) == 0 {
		return false
	}
	cost := 25
	for i := range fs {
		cost += 1 + len(fs[i].s)/bytesParsed
	}
	a.spend(cost + len(st.cwd)/bytesCopied)
	if a.depth+len(a.active) > 4*maxDepth {
		a.unreadable(sp, "code inside code, too deep or too long to be examined")
		return false
	}
	a.depth++
	outer := a.cmd
	c := &cmdCall{fields: fs, st: st, span: sp, prefix: prefix}
	a.record(c)
	me := a.cmd
	ends = a.resolve(c)
	cmd := &a.v.Commands[me]
	cmd.Verb, cmd.Plain, cmd.Name = c.verb, c.plain, c.name
	if cmd.Level == 0 {
		cmd.Level = Low
	}
	a.cmd = outer
	a.depth--
	return ends
}

// record adds the command to those that rules match.
func (a *analysis) record(c *cmdCall) {
	cmd := Command{Span: c.span, Level: Low, Cwd: c.st.cwd}
	if len(c.st.alts) > 0 || c.st.remote {
		cmd.Cwd = ""
	}
	cmd.Argv = make([]string, len(c.fields))
	for i := range c.fields {
		f := &c.fields[i]
		if f.known {
			cmd.Argv[i] = f.s
		} else {
			cmd.Opaque = true
		}
	}
	a.v.Commands = append(a.v.Commands, cmd)
	a.cmd = len(a.v.Commands) - 1
}

func (a *analysis) runs() { a.v.Commands[a.cmd].Runs = true }

func (a *analysis) opaque() { a.v.Commands[a.cmd].Opaque = true }

// known judges a command by its line in the table.
func (a *analysis) known(c *cmdCall) (ends bool) {
	if a.loose || len(a.c.Poisoned) > 0 || len(c.st.changed) > 0 {
		a.poisoned(c)
	}
	if a.c.Shadow != nil {
		a.shadowed(c)
	}
	s := lookup(c.name)
	if s == nil {
		a.unknownProgram(c)
		return false
	}
	c.spec = s
	a.options(c)
	if helpOnly(c) {
		c.verb = 0
		a.note(Low, Read, c.span, "asks "+show(c.name)+" for help")
		return false
	}
	a.secrets(c)
	if c.name == "git" {
		a.gitGlobals(c)
	}
	if h := c.spec.handler; h != "" {
		return handlers()[h](a, c)
	}
	a.usual(c)
	return false
}

// helpOnly tells that a known program is only asked for its help or version.
func helpOnly(c *cmdCall) bool {
	n := len(c.fields)
	if n < 2 || c.spec.args == roleRun || c.spec.args == roleShell || c.spec.handler == "shell" || c.name == "test" || c.name == "[" {
		return n == 2 && c.fields[1].known &&
			(c.fields[1].s == "--help" || c.fields[1].s == "--version" || c.fields[1].s == "-V" && c.spec.handler == "ssh")
	}
	last := c.fields[n-1]
	if !last.known || isBuiltin(c.name) {
		return false
	}
	switch last.s {
	case "--help":
		return n <= c.verb+1
	case "--version":
		return n == 2
	case "-v":
		return n == 2 && (c.name == "mvn" || c.name == "gradle" || c.name == "ant")
	case "-V":
		return n == 2 && (c.spec.subs != nil || c.spec.handler == "scp")
	case "-version":
		return n == 2 && (c.spec.subs != nil || c.name == "java" || c.name == "javac" || c.name == "scala")
	case "help", "version":
		return n == 2 && c.spec.subs != nil
	}
	return false
}

// usual judges a command by level, options and roles of its line alone.
func (a *analysis) usual(c *cmdCall) {
	a.base(c)
	a.roles(c)
	if slices.Contains(c.spec.effects, RunCode) {
		a.dropsData(c)
	}
}

// base notes the level of the line, as the options change it.
func (a *analysis) base(c *cmdCall) {
	s := c.spec
	level := s.level
	says := s.says
	for i := range c.opts {
		if o := c.opts[i].spec; o != nil && o.lower && !switchedOff(c.opts[i].val) {
			level, says = Low, says+" (only shows it)"
			break
		}
	}
	if s.sub && len(c.operands) == 0 {
		level = min(level, Medium) // alone it shows its help, or does what everybody does with it
	}
	if s.bare && len(c.operands) == 0 && len(c.opts) == 0 || s.look && len(c.operands) == 0 {
		level, says = Low, says+" (only shows it)"
	}
	if s.sub && s.subs != nil && len(c.operands) > 0 && level < High {
		level = High
		says = "a sub-command of " + show(c.name) + " that is not known here"
	}
	if level > Low && slices.Contains(s.effects, Network) && (s.handler == "" || s.handler == "cloud") && c.name != "git" {
		if i := slices.IndexFunc(c.operands[:min(4, len(c.operands))], func(f field) bool { return deletes(&f) }); i >= 0 {
			a.note(Critical, Delete, c.operands[i].span, "deletes what is elsewhere, with "+show(c.operands[i].s)).cannotUndo()
		}
	}
	f := a.note(level, s.effects[0], c.span, says)
	if s.hard && level > Low {
		f.cannotUndo()
	}
	if s.undo != "" {
		f.canUndo(s.undo)
	}
	cmd := &a.v.Commands[a.cmd]
	if level > Low {
		for _, e := range s.effects[1:] {
			if !slices.Contains(cmd.Effects, e) {
				cmd.Effects = append(cmd.Effects, e)
			}
		}
	}
	if slices.Contains(s.effects, Network) && level >= High {
		// What it sends may be any of its words.
		for i := range c.operands {
			o := &c.operands[i]
			if a.secretWord(o, c.st) {
				a.touch(Read, o, c.st, touchOptions{})
			}
		}
	}
	if level >= Medium && (slices.Contains(s.effects, RunCode) || slices.Contains(s.effects, Privilege)) {
		for i := range c.operands {
			if o := &c.operands[i]; (o.flow|a.fileFlow(o, c.st))&flowNet != 0 {
				a.note(Critical, RunCode, o.span, "installs or runs what was just fetched from the network").cannotUndo()
			}
		}
	}
	if slices.Contains(s.effects, Network) && level > Low {
		a.seen |= flowNet
		a.facts.fetched = true
		if level >= High {
			a.facts.send = true
		}
	}
	if slices.Contains(s.effects, Secret) && level > Low {
		a.seen |= flowSecret
		a.facts.secret = true
	}
	if c.name == "nc" || c.name == "ncat" || c.name == "netcat" || c.name == "socat" {
		exec := c.opt("-e", "--exec", "-c", "--sh-exec")
		for i := range c.operands {
			if s := strings.ToLower(c.operands[i].s); c.name == "socat" && (strings.HasPrefix(s, "exec:") || strings.HasPrefix(s, "system:")) {
				exec = &option{span: c.operands[i].span}
			}
		}
		if exec != nil {
			a.note(Critical, RunCode, exec.span, "hands a program, a shell perhaps, to another machine").cannotUndo()
		}
	}
	for i := range c.opts {
		o := &c.opts[i]
		if o.spec != nil && o.spec.raise > 0 {
			says := o.spec.says
			if says == "" {
				says = "with " + o.name
			}
			a.note(o.spec.raise, o.spec.effect, o.span, says)
		}
	}
	c.spec = s
}

// deletes tells that a word of a program that works elsewhere says that something is deleted: delete, apps:destroy.
func deletes(f *field) bool {
	s := f.s[strings.LastIndexByte(f.s, ':')+1:]
	switch s {
	case "delete", "destroy", "drop", "purge", "terminate", "flushall", "undefine", "wipe", "del", "remove-all", "delete-all":
		return f.known
	}
	return false
}

// switchedOff tells that an option was given to say no: --dry-run=none.
func switchedOff(val *field) bool {
	if val == nil {
		return false
	}
	switch val.s {
	case "none", "false", "no", "0", "off":
		return true
	}
	return !val.known
}

// roles judges operands and values of options by what they mean.
func (a *analysis) roles(c *cmdCall) {
	for i := range c.opts {
		o := &c.opts[i]
		if o.val != nil && o.spec != nil {
			a.role(c, o.spec.value, o.val)
			a.maybeRead(c, o)
		}
	}
	ops := c.operands
	switch c.spec.args {
	case roleCopy, roleMove:
		a.copyMove(c, c.spec.args == roleMove)
	case rolePattern:
		if len(ops) > 0 && !c.has("-e", "--regexp", "-f", "--file") {
			ops = ops[1:]
		}
		tree := c.has("-r", "-R", "--recursive") || c.name == "rg" || c.name == "ag" || c.name == "ack" || c.name == "rga"
		for i := range ops {
			if ops[i].s != "-" {
				a.touch(Read, &ops[i], c.st, touchOptions{tree: tree})
			}
		}
	case roleMode:
		for i := range ops {
			if i > 0 {
				a.role(c, roleWrite, &ops[i])
			}
		}
	case roleArchive:
		for i := range ops {
			if i == 0 {
				a.role(c, roleWrite, &ops[i])
				continue
			}
			a.role(c, roleRead, &ops[i])
			if c.name == "zip" && c.has("-m", "--move") {
				a.touch(Delete, &ops[i], c.st, touchOptions{tree: c.has("-r", "--recurse-paths")})
			}
		}
	case roleFilter:
		for i := range ops {
			if i == 0 {
				a.role(c, roleRead, &ops[i])
			} else {
				a.role(c, roleWrite, &ops[i])
			}
		}
	case roleRun:
		a.runTail(c, c.st)
	default:
		for i := range ops {
			a.role(c, c.spec.args, &ops[i])
			if c.spec.args == roleScript {
				break
			}
		}
	}
}

// anySecret notes secrets among all words of a program that takes its script from one of them: which word that is
// depends on options.
func (a *analysis) anySecret(c *cmdCall) {
	for i := range c.fields[1:] {
		f := &c.fields[i+1]
		if f.opaque() || strings.HasPrefix(f.s, "-") {
			continue
		}
		if a.secretWord(f, c.st) {
			a.touch(Read, f, c.st, touchOptions{})
		}
	}
}

// maybeRead guards readers against an option that the table takes for one with a value: cat -n .env.
func (a *analysis) maybeRead(c *cmdCall, o *option) {
	switch c.spec.args {
	case roleRead, rolePattern, roleFilter:
	default:
		return
	}
	switch o.name {
	case "-e", "--regexp", "-g", "--glob", "--iglob", "--include", "--exclude", "--exclude-dir", "--label":
		if c.spec.args == rolePattern {
			return
		}
	}
	if o.spec.value != roleText || o.val.span == o.span || o.val.opaque() {
		return
	}
	if a.secretWord(o.val, c.st) {
		a.touch(Read, o.val, c.st, touchOptions{})
	}
}

// role judges one word.
func (a *analysis) role(c *cmdCall, r role, f *field) {
	switch r {
	case roleRead:
		if f.s != "-" {
			a.touch(Read, f, c.st, touchOptions{})
		}
	case roleWrite:
		if f.s != "-" {
			a.touch(Write, f, c.st, touchOptions{})
			a.facts.wrote(a.fileKey(f, c.st), written{flow: a.seen & flowNet})
		}
	case roleDelete:
		a.touch(Delete, f, c.st, touchOptions{})
	case roleScript:
		a.runFile(c, f)
	case roleShell:
		a.shellText(c, f, c.st)
	case roleCode:
		a.runs()
		a.note(High, RunCode, f.span, "runs code that is given to "+show(c.name))
	case roleURL, roleHost:
		a.address(f)
	}
}

// pathOf is the absolute path of a known word, else "".
func (a *analysis) pathOf(f *field, st *state) string {
	a.spend((len(st.cwd) + len(f.s)) / bytesCopied)
	if !f.known {
		return ""
	}
	return joinPath(st.cwd, f.s)
}

// address notes the host of a URL, of user@host:path or of a plain host.
func (a *analysis) address(f *field) {
	if h := hostOf(f.s); h != "" {
		a.host(h)
	}
}

func hostOf(s string) string {
	if i := strings.Index(s, "://"); i >= 0 {
		s = s[i+3:]
	}
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	if i := strings.IndexByte(s, ':'); i >= 0 && !strings.HasPrefix(s, "[") {
		s = s[:i]
	}
	if strings.ContainsAny(s, "\x00\x01 ") {
		return ""
	}
	return strings.ToLower(s)
}

// secrets notes secrets that are handed to a program by its words.
func (a *analysis) secrets(c *cmdCall) {
	if c.name == "test" || c.name == "[" || c.name == "unset" {
		return
	}
	for i := range c.fields {
		f := &c.fields[i]
		if f.flow&flowSecret != 0 && c.spec != nil && c.spec.handler == "sql" {
			a.note(Medium, Secret, f.span, "logs in to a database with a secret")
			return
		}
		if f.flow&flowSecret != 0 {
			a.seen |= flowSecret
			a.facts.secret = true
			a.note(High, Secret, f.span, "uses a secret: what runs gets it, and may show it")
			return
		}
	}
}
