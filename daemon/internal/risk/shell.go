package risk

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
)

func (a *analysis) doTrap(c *call) {
	if len(c.operands) < 2 || c.operands[0].S == "-" || c.operands[0].S == "" {
		a.shell.affectsNext = a.shell.affectsNext || len(c.operands) > 0 // what the user starts later would ignore Ctrl-C, or the user's traps are gone
		return
	}
	a.note(Medium, ShellState, c.span, "plans code that runs on a signal or at the end")
	a.shellText(c.operands[0], c.st)
}

// doCd judges cd, pushd and popd, and sets the folder in which the following commands run: st.Cwd, with st.Alts for others that are
// possible. Cwd is "" where the folder cannot be known.
func (a *analysis) doCd(c *call) {
	st := c.st
	from, alts := st.Cwd, st.Alts
	st.Cwd, st.Alts = "", nil
	if len(c.operands) == 0 {
		if c.name == "cd" {
			st.Cwd = a.c.Home
		}
		return
	}
	f := &c.operands[0]
	p := strings.ReplaceAll(f.S, tamePart, "_")
	switch {
	case slices.Contains(st.Changed, "CDPATH"), c.name == "popd":
	case f.S == unknownPart && !f.Guarded: // an empty variable: cd "" stays, and cd without a word goes home
		st.MayBe(from)
		if f.Many {
			st.MayBe(a.c.Home)
		}
	case f.S == "-", f.Opaque(), f.Many, f.Glob && strings.ContainsAny(f.S, "*?["), strings.HasPrefix(f.S, "+"):
	default: // relative to each of the folders it may be in
		st.Cwd = bashread.Absolute(from, p)
		if !path.IsAbs(p) {
			for _, alt := range alts {
				st.MayBe(bashread.Absolute(alt, p))
			}
		}
	}
}

func (a *analysis) doAlias(c *call) {
	for i := range c.operands {
		f := &c.operands[i]
		name, val, ok := strings.Cut(f.S, "=")
		if !ok && c.name == "alias" {
			continue // it is listed
		}
		// The change holds only from some line on, and where this command runs: before and elsewhere the name has the values
		// that it had, or is a command.
		if !slices.Contains(a.Aliases[name], name) {
			a.Aliases[name] = append(a.Aliases[name], name)
		}
		if !ok {
			continue
		}
		a.Aliases[name] = append(a.Aliases[name], val)
		if first, _, _ := strings.Cut(val, " "); first != name {
			c.st.Changed = append(slices.Clip(c.st.Changed), name)
			if programs.Known(name) || strings.ContainsAny(name, "\x00\x01") {
				a.note(High, ShellState, f.Span, "an alias takes the place of the command "+show(name))
			}
		}
		a.Active = append(a.Active, "alias "+name)
		a.Inline(val, f.Span, c.st.Clone())
		a.Active = a.Active[:len(a.Active)-1]
	}
}

func (a *analysis) doUnset(c *call) {
	for i := range c.operands {
		f := &c.operands[i]
		a.EvalText(f.S, c.st, f.Span)
		v := programs.VariableOf(f.S)
		if c.has("-f") || f.Opaque() || v.Level >= Medium {
			a.note(Medium, ShellState, c.span, "removes what later commands use")
		}
		_, function := a.c.Functions[f.S]
		if function || c.has("-f", "-m") || !harmlessValue(f.S, v, &field{Known: true}) { // without PATH, bash runs ./ls for ls
			a.shell.affects(f.S)
		}
		c.st.Set(f.S, bashread.Value{})
		if c.has("-f") {
			c.st.Hide()
		}
	}
}

// doSet judges set: it lists the variables, switches options, or sets the positional parameters.
func (a *analysis) doSet(c *call) {
	args := c.fields[1:]
	if len(args) == 0 {
		a.note(Medium, Secret, c.span, bashread.PrintsVariables)
		return
	}
	for i := 0; i < len(args); i++ {
		switch s := args[i].S; {
		case s == "-" && i+1 == len(args): // the arguments stay
		case s == "--" || s == "-":
			c.st.Args, c.st.ArgsOK = args[i+1:], true
			i = len(args)
		case len(s) > 1 && (s[0] == '-' || s[0] == '+'):
			a.shell.affectsNext = true // set -e ends the user's shell
			long := strings.HasSuffix(s, "o") && i+1 < len(args)
			if strings.ContainsRune(s, 'e') || long && args[i+1].S == "errexit" {
				c.st.Errexit = s[0] == '-'
			}
			if long {
				i++
			}
		default:
			c.st.Args, c.st.ArgsOK = args[i:], true
			i = len(args)
		}
	}
}

// doRead judges builtins that fill variables with what is not known here.
func (a *analysis) doRead(c *call) {
	in := c.st.Stdin
	for i := range c.operands {
		value := field{S: unknownPart, Flow: in.Flow}
		switch text := in.Plain(); {
		case len(c.operands) > 1 || c.name != "read":
		case text != nil && !c.has("-a", "-d", "-n", "-N"):
			line, _, _ := strings.Cut(*text, "\n")
			value.S = strings.TrimSpace(line)
		case in.List != "":
			value.S, value.Glob = in.List, true
		}
		a.fills(&c.operands[i], value, c.st)
	}
}

// fills judges a word that names a variable, perhaps with an index, which a command gives this value.
func (a *analysis) fills(f *field, value field, st *state) {
	a.EvalText(f.S, st, f.Span)
	name, _, _ := strings.Cut(f.S, "[")
	a.Assign(name, &value, st, bashread.Plain, f.Span)
	st.Set(name, bashread.Value{Words: []string{value.S}, Flow: value.Flow, Glob: value.Glob})
}

// doShell judges sh, bash and the like: -c text, a file, or what they read.
func (a *analysis) doShell(c *call) {
	st := c.st.Fresh(a.Env)
	st.Errexit = c.has("-e")
	switch {
	case c.has("-c") && len(c.operands) == 0:
	case c.has("-c"):
		st.Args, st.ArgsOK = nil, true
		if len(c.operands) > 1 {
			st.Set("0", bashread.Value{Words: []string{c.operands[1].S}, Flow: c.operands[1].Flow})
			st.Args = c.operands[2:]
		}
		a.shellText(c.operands[0], st)
	case len(c.operands) > 0 && !c.has("-s") && c.operands[0].S != "-":
		if c.has("-n") && c.name != "fish" {
			a.touch(Read, &c.operands[0], c.st, touching{})
		} else {
			a.runFile(c, &c.operands[0])
		}
	default:
		a.fromStdin(c, st)
	}
}

// doKill judges kill, pkill, killall and skill: what ends the shell, its window or the daemon is critical.
func (a *analysis) doKill(c *call) {
	if !c.lowered() && a.endsUs(c) {
		a.note(Critical, Signal, c.span, "sends a signal to your shell, its window or the daemon")
	}
}

// endsUs reports whether a signal goes to the shell, its window or the daemon, or may: by number, by name, by user, terminal
// or session, to the process group, or to what a command looks up by such a name.
func (a *analysis) endsUs(c *call) bool {
	names := []string{"sublet", cmp.Or(a.c.Dialect, "bash"), "bash"}
	named := func(s string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.Contains(s, n) })
	}
	unknown := c.name != "killall5" // whom it is about
	for i := 1; i < len(c.fields); i++ {
		f := &c.fields[i]
		before := c.fields[i-1].S
		if before == "-s" || before == "-n" || before == "--signal" {
			continue
		}
		n, err := strconv.Atoi(f.S)
		switch {
		case f.Flow&bashread.Self != 0, c.name != "kill" && expr("kills-many").MatchString(f.S):
			return true
		case f.Opaque(), n < 0 && i == 1, f.S == "--":
		case err == nil:
			if n == 0 || slices.Contains(a.c.Own, max(n, -n)) { // 0 is the shell's own process group
				return true
			}
			unknown = false
		case strings.HasPrefix(f.S, "-"), c.name == "kill":
		default:
			unknown = false
			re, err := regexp.Compile(f.S[:min(len(f.S), 256)])
			if named(f.S) || f.S == "" || c.name == "pkill" && (err != nil || slices.ContainsFunc(names, re.MatchString)) {
				return true
			}
		}
	}
	text := strings.NewReplacer("[", "", "]", "").Replace(a.Text()) // ps | grep '[s]ublet'
	return c.name == "killall5" || unknown && named(text) && expr("looks-up").MatchString(text)
}
