package risk

import (
	"slices"
	"strings"

	"sublet/daemon/internal/mask"
)

func (a *analysis) doUnset(c *cmdCall) {
	level := Low
	for i := range c.operands {
		f := &c.operands[i]
		a.evalText(f.s, c.st, f.span)
		if f.opaque() {
			level = max(level, Medium)
			continue
		}
		if poisonOf(f.s).level >= Medium {
			level = max(level, Medium)
		}
		c.st.set(f.s, value{unset: true})
		if c.has("-f") {
			c.st.own()
			delete(c.st.funcs, f.s)
			level = max(level, Medium)
		}
	}
	a.note(level, ShellState, c.span, "removes variables or functions of this shell")
}

func (a *analysis) doSet(c *cmdCall) {
	args := c.fields[1:]
	if len(args) == 0 {
		a.seen |= flowSecret
		a.facts.secret = true
		a.note(Medium, Secret, c.span, "prints all variables, with the secrets among them")
		return
	}
	level := Low
	for i := 0; i < len(args); i++ {
		f := &args[i]
		s := f.s
		switch {
		case f.opaque():
			level = max(level, Medium)
		case s == "--" || s == "-":
			c.st.args, c.st.argsOK = args[i+1:], true
			i = len(args)
		case s == "-o" || s == "+o":
			if i+1 < len(args) {
				i++
				switch o := args[i].s; {
				case o == "errexit":
					c.st.errexit = s == "-o"
				case o == "history" || o == "allexport" || o == "posix":
					level = max(level, Medium)
				}
			}
		case strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+"):
			if strings.ContainsRune(s, 'e') {
				c.st.errexit = s[0] == '-'
			}
			if strings.ContainsRune(s, 'a') {
				level = max(level, Medium)
			}
			if strings.HasSuffix(s, "o") && i+1 < len(args) {
				i++
			}
		default:
			c.st.args, c.st.argsOK = args[i:], true
			i = len(args)
		}
	}
	a.note(level, ShellState, c.span, "sets options of the shell")
}

// doRead judges builtins that fill variables with what is not known here.
func (a *analysis) doRead(c *cmdCall) {
	a.note(Low, ShellState, c.span, "reads into a variable")
	ops := c.operands
	if o := c.opt("-a"); o != nil && o.val != nil {
		ops = append(slices.Clip(ops), *o.val)
	}
	if o := c.opt("-C"); o != nil && o.val != nil && c.name != "read" {
		a.shellText(c, o.val, c.st)
	}
	if c.name == "getopts" && len(ops) > 1 {
		ops = ops[1:2]
	}
	for i := range ops {
		f := &ops[i]
		a.evalText(f.s, c.st, f.span)
		if f.opaque() {
			a.note(High, ShellState, f.span, "sets a variable whose name is not known here")
			continue
		}
		v := field{s: string(unknownPart), flow: c.st.stdin.flow}
		a.poison(f.s, &v, c.st, assignPlain, c.span)
		if nameLike(f.s) {
			v := value{words: []string{string(unknownPart)}, flow: c.st.stdin.flow}
			if t := c.st.stdin.text; t != nil && c.name == "read" && len(ops) == 1 && !c.has("-a", "-d", "-n", "-N") {
				line, _, _ := strings.Cut(*t, "\n")
				v.words[0] = strings.TrimSpace(line)
			}
			if l := c.st.stdin.list; l != "" && len(ops) == 1 {
				v.words[0], v.glob = l, true
			}
			c.st.set(f.s, v)
		}
	}
}

// doWait judges wait: -p names a variable, whose index is evaluated.
func (a *analysis) doWait(c *cmdCall) {
	a.note(Low, Read, c.span, "waits for jobs")
	if o := c.opt("-p"); o != nil && o.val != nil {
		a.evalText(o.val.s, c.st, o.span)
		v := field{s: string(tamePart)}
		a.poison(o.val.s, &v, c.st, assignPlain, o.span)
		c.st.unknown([]string{o.val.s})
	}
}

// doTest judges [ and test: an index in a name is evaluated (T3c).
func (a *analysis) doTest(c *cmdCall) {
	a.note(Low, Read, c.span, "tests a condition")
	args := c.fields[1:]
	for i := range args {
		switch args[i].s {
		case "-v", "-R":
			if i+1 < len(args) {
				a.evalText(args[i+1].s, c.st, args[i+1].span)
			}
		case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
			for _, k := range []int{i - 1, i + 1} {
				if k >= 0 && k < len(args) {
					a.evalText(args[k].s, c.st, args[k].span)
				}
			}
		}
	}
}

// doExport judges export, declare, local and readonly where they are called by name (command export …).
func (a *analysis) doExport(c *cmdCall) {
	kind := assignPlain
	if c.name == "export" || c.has("-x") {
		kind = assignExport
	}
	a.note(Low, ShellState, c.span, "sets variables")
	for i := range c.operands {
		f := &c.operands[i]
		if f.opaque() && !strings.Contains(strings.SplitN(f.s, "\x00", 2)[0], "=") {
			a.note(High, ShellState, f.span, "sets variables whose names are not known here")
			continue
		}
		if c.has("-i", "-n") {
			a.evalText(f.s, c.st, f.span)
		}
		a.assignText(f, c.st, kind)
	}
}

func (a *analysis) doPrintf(c *cmdCall) {
	a.note(Low, Read, c.span, "prints text")
	if len(c.fields) < 3 {
		return
	}
	switch s := c.fields[1].s; {
	case s == "-v":
		a.setBy(c, c.fields[2].s, 2)
	case strings.HasPrefix(s, "-v"):
		a.setBy(c, s[2:], 1)
	}
}

func (a *analysis) setBy(c *cmdCall, name string, i int) {
	f := &c.fields[i]
	a.evalText(name, c.st, f.span)
	if strings.ContainsAny(name, "\x00\x01") {
		a.note(High, ShellState, f.span, "sets a variable whose name is not known here")
		return
	}
	v := field{s: string(unknownPart)}
	if s, ok := printfText(c.fields[min(i+1, len(c.fields)):]); ok {
		v.s, v.known = s, !strings.ContainsAny(s, "\x00\x01")
	}
	a.poison(name, &v, c.st, assignPlain, c.span)
	base, _, _ := strings.Cut(name, "[")
	c.st.set(base, value{words: []string{v.s}})
}

// doPrintenv judges printenv: single variables whose names do not look like secrets are harmless.
func (a *analysis) doPrintenv(c *cmdCall) {
	harmless := len(c.operands) > 0
	for i := range c.operands {
		f := &c.operands[i]
		harmless = harmless && f.known && !mask.SecretName(f.s)
	}
	if harmless {
		a.note(Low, Read, c.span, "prints settings or variables")
		return
	}
	a.base(c)
}
