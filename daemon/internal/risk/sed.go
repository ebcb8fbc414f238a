package risk

import "strings"

// doSed judges sed: scripts can run commands (e, s///e) and write files (w, s///w); -i writes its files.
func (a *analysis) doSed(c *cmdCall) {
	a.note(Low, Read, c.span, "works through text")
	a.anySecret(c)
	ops := c.operands
	scripts := 0
	inPlace := false
	for i := range c.opts {
		o := &c.opts[i]
		switch {
		case o.name == "-e" || o.name == "--expression":
			scripts++
			if o.val != nil {
				a.sedScript(c, o.val)
			}
		case o.name == "-f" || o.name == "--file":
			scripts++
			if o.val != nil {
				if w, ok := a.facts.files[a.fileKey(o.val, c.st)]; ok && w.text != nil {
					f := *o.val
					f.s = *w.text
					a.sedScript(c, &f)
				} else {
					a.touch(Read, o.val, c.st, touchOptions{})
					if p := a.pathOf(o.val, c.st); p != "" && under(p, a.c.ProjectRoot) && a.isTracked(p) {
						a.note(Medium, RunCode, o.span, "takes its script from a file")
					} else {
						a.note(High, RunCode, o.span, "takes its script, which can run commands, from a file")
					}
				}
			}
		case o.name == "-i" || strings.HasPrefix(o.name, "--in-pl"):
			inPlace = true
		}
	}
	if scripts == 0 {
		if len(ops) == 0 {
			return
		}
		a.sedScript(c, &ops[0])
		ops = ops[1:]
	}
	suffix := ""
	if inPlace {
		suffix = sedSuffix(c)
	}
	for i := range ops {
		if inPlace {
			a.touch(Write, &ops[i], c.st, touchOptions{verb: "edits"})
			a.sedBackup(&ops[i], suffix, c)
		} else {
			a.touch(Read, &ops[i], c.st, touchOptions{})
		}
	}
}

// sedSuffix is what -i is given: the ending of the copies that are kept, "" for none.
func sedSuffix(c *cmdCall) string {
	for i := range c.opts {
		if o := &c.opts[i]; strings.HasPrefix(o.name, "--in-pl") && o.val != nil {
			return o.val.s
		}
	}
	for _, f := range c.fields[1:] {
		if !strings.HasPrefix(f.s, "-") || strings.HasPrefix(f.s, "--") {
			continue
		}
		if i := strings.IndexByte(f.s, 'i'); i > 0 && strings.Trim(f.s[1:i], "nErsuz") == "" {
			return f.s[i+1:]
		}
	}
	return ""
}

// sedBackup judges the copy of a file that is edited in place: the file's name with a suffix, or a name in which * stands
// for it, which may lead elsewhere.
func (a *analysis) sedBackup(f *field, suffix string, c *cmdCall) {
	if suffix == "" {
		return
	}
	v := *f
	dir, base := f.s[:strings.LastIndexByte(f.s, '/')+1], f.s[strings.LastIndexByte(f.s, '/')+1:]
	switch name := a.replace(suffix, "*", base, -1); {
	case !strings.Contains(suffix, "*"):
		v.s = f.s + suffix
	case strings.Contains(name, "/"):
		v.s = name
	default:
		v.s = dir + name
	}
	a.touch(Write, &v, c.st, touchOptions{verb: "keeps a copy as"})
}

// sedScript goes through a script command by command. What it does not understand is High.
func (a *analysis) sedScript(c *cmdCall, f *field) {
	s := f.s
	a.spend(len(s) / bytesParsed)
	if f.opaque() {
		a.opaque()
		// A value put in the middle of s/…/…/ is everyday: it could only do harm with an e or w of its own.
		if !strings.HasPrefix(strings.TrimLeft(s, "0123456789,$ "), "s") {
			a.note(High, RunCode, f.span, "a sed script that is not known here")
			return
		}
		a.note(Medium, Unknown, f.span, "a sed script of which a part is not known here")
	}
	p := sedParser{s: s}
	for p.next() {
		switch p.cmd {
		case 'e':
			a.runs()
			a.note(High, RunCode, f.span, "a sed script that runs commands")
			v := *f
			v.s = p.arg
			if strings.TrimSpace(v.s) != "" {
				a.shellText(c, &v, c.st)
			}
		case 'w', 'W':
			v := field{s: strings.TrimSpace(p.arg), known: f.known, span: f.span}
			a.touch(Write, &v, c.st, touchOptions{})
		case 'r', 'R':
			v := field{s: strings.TrimSpace(p.arg), known: f.known, span: f.span}
			a.touch(Read, &v, c.st, touchOptions{})
		case 's':
			if p.runs {
				a.runs()
				a.note(High, RunCode, f.span, "a sed script that runs what it made as a command")
				a.raiseBy(p.repl, f.span, c.st)
			}
			if p.file != "" {
				v := field{s: p.file, known: f.known, span: f.span}
				a.touch(Write, &v, c.st, touchOptions{})
			}
		}
	}
	if p.bad {
		a.note(Medium, Unknown, f.span, "a sed script that was not understood")
		if strings.ContainsAny(s, "ewW") {
			a.note(High, RunCode, f.span, "a sed script that may run commands or write files")
		}
	}
}

// sedParser reads one command of a script after the other.
type sedParser struct {
	s    string
	i    int
	cmd  byte
	arg  string
	repl string
	file string
	runs bool
	bad  bool
}

func (p *sedParser) next() bool {
	p.cmd, p.arg, p.repl, p.file, p.runs = 0, "", "", "", false
	for p.i < len(p.s) && strings.IndexByte(" \t\n;}", p.s[p.i]) >= 0 {
		p.i++
	}
	if p.i >= len(p.s) || p.bad {
		return false
	}
	p.address()
	if p.i >= len(p.s) {
		return false
	}
	p.cmd = p.s[p.i]
	p.i++
	switch p.cmd {
	case '#':
		p.line()
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
	case 'q', 'Q', 'l', 'L':
		for p.i < len(p.s) && (p.s[p.i] >= '0' && p.s[p.i] <= '9' || p.s[p.i] == ' ') {
			p.i++
		}
	case 'a', 'i', 'c':
		p.text()
	case 'b', 't', 'T', ':':
		for p.i < len(p.s) && p.s[p.i] != '\n' && p.s[p.i] != ';' && p.s[p.i] != '}' {
			p.i++
		}
	case 'e', 'r', 'R', 'w', 'W', 'v':
		p.arg = p.line()
	case 's':
		if !p.part() {
			p.bad = true
			return false
		}
		p.repl = p.arg
		p.flags()
	case 'y':
		if !p.part() {
			p.bad = true
			return false
		}
	default:
		p.bad = true
		return false
	}
	return true
}

// address skips 1,/x/! and the like.
func (p *sedParser) address() {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c >= '0' && c <= '9' || strings.IndexByte("$,~+! \t", c) >= 0:
			p.i++
		case c == '/' || c == '\\' && p.i+1 < len(p.s):
			if c == '\\' {
				p.i++
			}
			end := p.delimited(p.i+1, p.s[p.i])
			if end < 0 {
				p.bad = true
				p.i = len(p.s)
				return
			}
			p.i = end + 1
			for p.i < len(p.s) && (p.s[p.i] == 'I' || p.s[p.i] == 'M') {
				p.i++
			}
		default:
			return
		}
	}
}

// delimited finds the end of a part that began at i.
func (p *sedParser) delimited(i int, delim byte) int {
	for ; i < len(p.s); i++ {
		switch p.s[i] {
		case '\\':
			i++
		case delim:
			return i
		}
	}
	return -1
}

// part reads /a/b/; arg is b.
func (p *sedParser) part() bool {
	if p.i >= len(p.s) {
		return false
	}
	d := p.s[p.i]
	mid := p.delimited(p.i+1, d)
	if mid < 0 {
		return false
	}
	end := p.delimited(mid+1, d)
	if end < 0 {
		return false
	}
	p.arg = p.s[mid+1 : end]
	p.i = end + 1
	return true
}

func (p *sedParser) flags() {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == 'e':
			p.runs = true
			p.i++
		case c == 'w':
			p.i++
			p.file = strings.TrimSpace(p.line())
			return
		case c >= '0' && c <= '9' || strings.IndexByte("gpiImM", c) >= 0:
			p.i++
		case strings.IndexByte(" \t\n;}", c) >= 0:
			return
		default:
			p.bad = true
			return
		}
	}
}

func (p *sedParser) line() string {
	end := strings.IndexByte(p.s[p.i:], '\n')
	if end < 0 {
		end = len(p.s) - p.i
	}
	l := p.s[p.i : p.i+end]
	p.i += end
	return l
}

// text skips the text of a, i and c: to the end of the line, further while lines end in a backslash.
func (p *sedParser) text() {
	for p.i < len(p.s) {
		l := p.line()
		if p.i < len(p.s) {
			p.i++
		}
		if !strings.HasSuffix(l, "\\") {
			return
		}
	}
}
