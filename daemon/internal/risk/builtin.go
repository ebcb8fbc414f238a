package risk

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// builtinNames are what bash runs itself; no file and no PATH decides about them.
var builtinNames = lazySet(`. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable eval exec exit export
	false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source
	suspend test times trap true type typeset ulimit umask unalias unset wait`)

func isBuiltin(name string) bool { return builtinNames()[name] }

func (a *analysis) doEval(c *cmdCall) (ends bool) {
	a.runs()
	a.note(Low, Read, c.span, "runs text as a command")
	if len(c.fields) < 2 {
		return false
	}
	args := c.fields[1:]
	if args[0].s == "--" {
		args = args[1:]
	}
	f := field{s: joinFields(args), known: true, span: c.span}
	for i := range args {
		f.known = f.known && args[i].known
		f.flow |= args[i].flow
	}
	if f.flow&flowNet != 0 {
		a.note(Critical, RunCode, f.span, "runs what was just fetched from the network").cannotUndo()
	} else if f.opaque() {
		a.opaque()
		a.note(High, RunCode, f.span, "runs text that is not known here")
	}
	if strings.TrimSpace(strings.Trim(f.s, "\x00\x01")) == "" {
		return false
	}
	return a.inline(f.s, c.span, c.st)
}

func (a *analysis) doSource(c *cmdCall) {
	a.runs()
	if len(c.fields) < 2 {
		return
	}
	f := &c.fields[1]
	if f.s == "--" && len(c.fields) > 2 {
		f = &c.fields[2]
	}
	if f.flow&flowNet != 0 {
		a.note(Critical, RunCode, f.span, "runs what was just fetched from the network").cannotUndo()
		return
	}
	p := a.pathOf(f, c.st)
	if w, ok := a.facts.files[a.fileKey(f, c.st)]; ok {
		if w.flow&flowNet != 0 {
			a.note(Critical, RunCode, f.span, "runs what was just fetched from the network").cannotUndo()
			return
		}
		if w.text != nil {
			a.inline(*w.text, f.span, c.st)
			return
		}
	}
	base := f.s[strings.LastIndexByte(f.s, '/')+1:]
	switch {
	case f.s == "/dev/stdin" || f.s == "-" || strings.HasPrefix(f.s, "/dev/fd/"):
		if t := c.st.stdin.text; t != nil && f.s == "/dev/stdin" {
			a.inline(*t, f.span, c.st)
			return
		}
		a.note(High, RunCode, f.span, "runs what another program prints, in this shell")
	case p != "" && (strings.HasSuffix(p, "/bin/activate") || strings.HasSuffix(p, "/Scripts/activate")):
		a.note(Medium, ShellState, f.span, "switches to a virtual environment").canUndo("deactivate")
	case p != "" && a.zoneOf(p) == zoneStartup || base == ".cargo/env":
		a.note(Medium, ShellState, f.span, "reads your own start-up file again")
	case p != "" && under(p, a.c.ProjectRoot) && a.isTracked(p):
		a.note(Medium, RunCode, f.span, "runs "+show(f.s)+" in this shell")
	default:
		a.note(High, RunCode, f.span, "runs "+show(f.s)+", whose text is not known here, in this shell")
	}
	if p != "" && a.zoneOf(p) == zoneCredential {
		a.touch(Read, f, c.st, touchOptions{})
	}
	c.st.unknown(nil)
}

func (a *analysis) doExec(c *cmdCall) (ends bool) {
	a.runs()
	if c.tail == 0 {
		a.note(Medium, ShellState, c.span, "changes where this shell's input or output goes")
		return false
	}
	a.note(Medium, ShellState, c.span, "takes the place of the shell")
	a.runTail(c, c.st)
	return true
}

// doCommand judges command and builtin, which skip functions and aliases.
func (a *analysis) doCommand(c *cmdCall) (ends bool) {
	a.note(Low, Read, c.span, "looks up or runs a command, past functions and aliases")
	if c.name == "command" && c.has("-v", "-V") || c.tail == 0 {
		return false
	}
	a.runs()
	fs := c.fields[c.tail:]
	st := c.st
	keep := st.funcs
	st.funcs = nil
	live := a.c.Functions
	a.c.Functions = nil
	ends = a.exec(fs, st, c.tailSpan(), c.prefix)
	a.c.Functions = live
	if st.funcs == nil {
		st.funcs = keep
	}
	return ends
}

func (a *analysis) doTrap(c *cmdCall) {
	a.runs()
	if len(c.operands) < 2 {
		a.note(Low, Read, c.span, "lists or ends traps")
		return
	}
	f := &c.operands[0]
	if f.s == "-" || f.s == "" && f.known {
		a.note(Low, Read, c.span, "ends traps")
		return
	}
	level := Medium
	for _, sig := range c.operands[1:] {
		switch s := strings.ToUpper(strings.TrimPrefix(sig.s, "SIG")); s {
		case "DEBUG", "PROMPT", "RETURN", "ERR":
			level = High // runs around every later command
		}
	}
	a.note(level, ShellState, c.span, "plans code that runs on a signal or at the end")
	a.shellText(c, f, c.st)
}

func (a *analysis) doCd(c *cmdCall) {
	st := c.st
	a.note(Low, ShellState, c.span, "changes the folder")
	if c.name == "popd" {
		st.cwd, st.alts = "", nil
		return
	}
	if len(c.operands) == 0 {
		if c.name == "cd" {
			st.cwd, st.alts = a.c.Home, nil
			if v, ok := st.vars["HOME"]; ok {
				st.cwd = joinPath("", strings.Join(v.words, " "))
			}
		} else {
			st.cwd = ""
		}
		return
	}
	f := &c.operands[0]
	for _, n := range st.changed {
		if n == "CDPATH" {
			st.cwd, st.alts = "", nil
			return
		}
	}
	if f.s == string(unknownPart) && !f.guarded {
		// An empty variable: cd "" stays, and cd without a word goes home.
		from, home := st.cwd, f.many
		st.cwd, st.alts = "", nil
		st.mayBe(from)
		if home {
			st.mayBe(a.c.Home)
		}
		return
	}
	if f.s == "-" || f.opaque() || f.many || f.glob && strings.ContainsAny(f.s, "*?[") || strings.HasPrefix(f.s, "+") {
		st.cwd, st.alts = "", nil
		return
	}
	if f.s == "" {
		return
	}
	p := strings.ReplaceAll(f.s, string(tamePart), "_")
	if strings.HasPrefix(p, "/") {
		st.cwd, st.alts = cleanPath(p), nil
		return
	}
	// Relative to each of the folders it may be in.
	alts := st.alts
	st.alts = nil
	st.cwd = joinPath(st.cwd, p)
	for _, alt := range alts {
		st.mayBe(joinPath(alt, p))
	}
}

func (a *analysis) doExit(c *cmdCall) (ends bool) {
	level := Low
	says := "ends the list, loop or function"
	if c.name == "exit" || c.name == "logout" {
		says = "ends the shell or script"
	}
	a.note(level, ShellState, c.span, says)
	return true
}

func (a *analysis) doAlias(c *cmdCall) {
	if c.name == "unalias" {
		a.note(Medium, ShellState, c.span, "removes aliases from this shell")
		return
	}
	set := false
	for i := range c.operands {
		f := &c.operands[i]
		name, val, ok := strings.Cut(f.s, "=")
		if !ok {
			continue
		}
		set = true
		c.st.own()
		if c.st.aliases == nil {
			c.st.aliases = map[string]string{}
		}
		c.st.aliases[name] = strings.NewReplacer("\x00", "$_unknown", "\x01", "0").Replace(val)
		if lookup(name) != nil || isBuiltin(name) || strings.ContainsAny(name, "\x00\x01") {
			// Adding options to the same program is what aliases are for.
			first, _, _ := strings.Cut(val, " ")
			if first != name {
				a.note(High, ShellState, f.span, "an alias takes the place of the command "+show(name))
			}
		}
		if f.opaque() {
			a.note(High, RunCode, f.span, "an alias for text that is not known here")
			continue
		}
		a.active = append(a.active, "alias "+name)
		a.inline(val, f.span, c.st.clone())
		a.active = a.active[:len(a.active)-1]
	}
	if set {
		a.note(Medium, ShellState, c.span, "defines aliases for this shell").canUndo("unalias")
	} else {
		a.note(Low, Read, c.span, "lists aliases")
	}
}

func (a *analysis) doEcho(c *cmdCall) { a.note(Low, Read, c.span, "prints text") }

// doTee writes what it reads.
func (a *analysis) doTee(c *cmdCall) {
	a.note(Low, Read, c.span, "copies its input")
	for i := range c.operands {
		f := &c.operands[i]
		a.touch(Write, f, c.st, touchOptions{appends: c.has("-a", "--append")})
		a.facts.wrote(a.fileKey(f, c.st), written{flow: c.st.stdin.flow, text: c.st.stdin.text})
	}
}

// doHash judges hash and enable, which can put another program or code in the place of a command (T3h).
func (a *analysis) doHash(c *cmdCall) {
	switch {
	case c.name == "hash" && c.has("-p"):
		a.note(High, ShellState, c.span, "makes a command name run another file from now on")
	case c.name == "enable" && c.has("-f"):
		a.note(Critical, RunCode, c.span, "loads code into the shell").cannotUndo()
	case c.name == "enable" && (c.has("-n") || c.has("-d")):
		a.note(High, ShellState, c.span, "switches builtins of the shell off")
	default:
		a.note(Low, Read, c.span, "looks at what the shell knows of commands")
	}
}

// doBind judges builtins that register code for keys or completion.
func (a *analysis) doBind(c *cmdCall) {
	code := false
	for i := range c.opts {
		o := &c.opts[i]
		switch {
		case c.name == "bind" && (o.name == "-x" || o.name == "-f") || c.name != "bind" && (o.name == "-F" || o.name == "-C"):
			code = true
			if o.val != nil && (o.name == "-C" || o.name == "-x") {
				v := *o.val
				if _, cmd, ok := strings.Cut(v.s, ":"); ok && o.name == "-x" {
					v.s = strings.Trim(strings.TrimSpace(cmd), `"`)
				}
				a.shellText(c, &v, c.st)
			}
		case c.name != "bind" && o.name == "-W" && o.val != nil: // its words are expanded once more
			if o.val.opaque() {
				a.note(High, RunCode, c.span, "expands text that is not known here")
			}
			a.evalText(o.val.s, c.st, c.span)
		}
	}
	if c.name == "compgen" && !code {
		a.note(Low, Read, c.span, "lists possible completions")
		return
	}
	if code || len(c.operands) > 0 && c.name == "bind" {
		a.note(High, ShellState, c.span, "registers code that runs on keys or completion")
		return
	}
	a.note(Medium, ShellState, c.span, "changes keys or completion of this shell")
}

// doJobs judges the command that jobs -x runs, in the shell itself.
func (a *analysis) doJobs(c *cmdCall) {
	a.base(c)
	if c.has("-x") && c.tail > 0 {
		a.runs()
		a.exec(c.fields[c.tail:], c.st, c.tailSpan(), c.prefix)
	}
}

func (a *analysis) doKill(c *cmdCall) {
	if c.has("-l", "-L", "--list", "--table") {
		a.note(Low, Read, c.span, "lists signals")
		return
	}
	level, says := High, "sends a signal to processes"
	for i := range c.fields[1:] {
		f := &c.fields[i+1]
		s := f.s
		if strings.HasPrefix(s, "%") || s == "\x01" {
			level = Medium
			says = "sends a signal to a job of this shell"
		}
		if s == "-1" && i > 0 || s == "1" && i > 0 && (c.fields[i].s != "-s" && c.fields[i].s != "-n") || s == "-1" && c.name == "kill" && len(c.fields) == 2 {
			level, says = Critical, "sends a signal to every process, or to the first one"
			break
		}
		if s == "-0" || s == "0" && i > 0 && c.fields[i].s == "-s" {
			level, says = Low, "asks whether a process lives"
			break
		}
	}
	if level > Low && a.endsUs(c) {
		level, says = Critical, "sends a signal to your shell, its window or the daemon"
	}
	f := a.note(level, Signal, c.span, says)
	if level >= High {
		f.cannotUndo()
	}
}

// endsUs reports whether a signal goes to the shell, its window or the daemon, or may: by number, by name, by user, terminal
// or session, to the process group, or to what a command looks up by such a name.
func (a *analysis) endsUs(c *cmdCall) bool {
	names := []string{"sublet", cmp.Or(a.c.Dialect, "bash"), "bash"}
	named := func(s string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.Contains(s, n) })
	}
	if c.name == "killall5" {
		return true
	}
	unknown := true // whom it is about
	for i := range c.fields[1:] {
		f := &c.fields[i+1]
		s := f.s
		option := strings.HasPrefix(s, "-") && len(s) > 1 && (s[1] < '0' || s[1] > '9')
		switch {
		case f.flow&flowSelf != 0:
			return true
		case f.opaque():
			continue
		case option && c.name != "kill": // by user, group, parent, session or terminal
			if strings.ContainsAny(s[1:min(len(s), 2)], "uUGPt") || strings.HasPrefix(s, "--") && (strings.Contains(s, "id") || strings.Contains(s, "user") ||
				strings.Contains(s, "parent") || strings.Contains(s, "session") || strings.Contains(s, "terminal") || strings.Contains(s, "inverse")) || s == "-v" {
				return true
			}
			continue
		case option:
			continue
		}
		if n, err := strconv.Atoi(s); err == nil {
			if n < 0 && i == 0 { // the signal
				continue
			}
			if n == 0 && i > 0 && !signalOption(c, i) || n == 0 && len(c.fields) == 2 || slices.Contains(a.c.Own, max(n, -n)) {
				return true // 0 is the shell's own process group
			}
			unknown = false
			continue
		}
		if c.name == "kill" {
			continue
		}
		if i == 0 || !signalOption(c, i) {
			unknown = false
			if named(s) || s == "." || s == "" {
				return true
			}
			if re, err := regexp.Compile(s); c.name == "pkill" && len(s) <= 256 && (err != nil || slices.ContainsFunc(names, re.MatchString)) {
				return true
			}
		}
	}
	text := strings.NewReplacer("[", "", "]", "").Replace(a.src.text) // ps | grep '[s]ublet'
	return unknown && named(text) && (strings.Contains(a.src.text, "pgrep") || strings.Contains(a.src.text, "pidof") || strings.Contains(a.src.text, "ps "))
}

// signalOption reports whether the word before the i-th argument takes it as the signal's name.
func signalOption(c *cmdCall, i int) bool {
	before := c.fields[i].s
	return i > 0 && (before == "-s" || before == "-n" || before == "--signal")
}
