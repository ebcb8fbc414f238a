package risk

import "strings"

// byPath judges a command that names a file: ./x, bin/x, /usr/bin/x.
func (a *analysis) byPath(c *cmdCall) (ends bool) {
	f := &c.fields[0]
	dir, base := f.s[:strings.LastIndexByte(f.s, '/')], f.s[strings.LastIndexByte(f.s, '/')+1:]
	c.name = base
	if systemBin(dir) && strings.HasPrefix(f.s, "/") && f.known {
		if w, ok := a.facts.files[cleanPath(f.s)]; ok && w.flow&flowNet != 0 {
			a.note(Critical, RunCode, f.span, "runs what was just fetched from the network").cannotUndo()
		}
		return a.known(c)
	}
	a.runs()
	c.verb = 1
	a.secrets(c)
	a.runFile(c, f)
	if s := lookup(base); s != nil && s.args == roleRun {
		// A wrapper of that name may well do what wrappers do.
		c.spec = s
		a.options(c)
		if c.tail > 0 {
			a.runTail(c, c.st)
		}
	}
	return false
}

// projectScripts are files of a project that everybody runs: wrappers of build tools.
var projectScripts = wordSet("gradlew mvnw configure manage.py bootstrap.sh autogen.sh waf sbt")

// runFile judges a file that is run as code.
func (a *analysis) runFile(c *cmdCall, f *field) {
	a.runs()
	if f.flow&flowNet != 0 {
		a.note(Critical, RunCode, f.span, "runs what was just fetched from the network").cannotUndo()
		return
	}
	if f.opaque() {
		a.opaque()
		if f.flow&flowOutput != 0 {
			a.note(High, RunCode, f.span, "runs what another program prints")
			return
		}
		a.note(High, RunCode, f.span, "runs a file whose name is not known here")
		return
	}
	if strings.HasPrefix(f.s, "/dev/") {
		if f.s == "/dev/stdin" {
			a.fromStdin(c, show(c.name))
			return
		}
		a.note(High, RunCode, f.span, "runs what another program prints")
		return
	}
	p := a.pathOf(f, c.st)
	if p != "" {
		p = a.followLinks(p)
	}
	key := a.fileKey(f, c.st)
	if p != "" {
		key = p
	}
	if a.facts.fileFlow(key)&flowNet != 0 {
		a.note(Critical, RunCode, f.span, "runs what was just fetched from the network").cannotUndo()
		return
	}
	if w, ok := a.facts.files[key]; ok {
		switch {
		case w.text != nil && shellFile(f.s, *w.text):
			a.note(Medium, RunCode, f.span, "runs "+show(f.s)+", which this text wrote")
			a.inline(*w.text, f.span, c.st.clone())
			return
		}
	}
	base := f.s[strings.LastIndexByte(f.s, '/')+1:]
	switch {
	case p == "":
		a.note(High, RunCode, f.span, "runs "+show(f.s)+" in a folder that is not known here")
	case a.c.ProjectRoot != "" && under(p, a.c.ProjectRoot):
		switch {
		case projectScripts[base]:
			a.note(Medium, RunCode, f.span, "runs the project's "+show(base))
			a.dropsData(c)
		case strings.Contains(p, "/node_modules/.bin/") || strings.Contains(p, "/venv/bin/") || strings.Contains(p, "/.venv/bin/"):
			if s := lookup(base); s != nil && s.level <= Medium && s.handler == "" && s.args != roleRun {
				a.note(Medium, RunCode, f.span, "runs "+show(base)+" of the project's packages")
			} else {
				a.note(High, RunCode, f.span, "runs "+show(base)+" of the project's packages")
			}
		case a.isTracked(p):
			a.note(Medium, RunCode, f.span, "runs "+show(f.s)+", a file of the project in version control")
		default:
			a.note(High, RunCode, f.span, "runs "+show(f.s)+", whose text is not known here")
		}
	default:
		a.note(High, RunCode, f.span, "runs "+show(f.s)+", whose text is not known here")
	}
}

func shellFile(name, text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	if strings.HasPrefix(line, "#!") {
		return strings.Contains(line, "sh")
	}
	return !strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ".") || strings.HasSuffix(name, "sh")
}

// doShell judges sh, bash and the like: -c text, a file, or what they read.
func (a *analysis) doShell(c *cmdCall) {
	a.runs()
	a.note(Low, RunCode, c.span, "starts another shell")
	st := c.st.clone()
	st.funcs, st.aliases, st.shared = nil, nil, true
	for i := range c.opts {
		o := &c.opts[i]
		switch o.name {
		case "--rcfile", "--init-file":
			if o.val != nil {
				a.runFile(c, o.val)
			}
		case "-e":
			st.errexit = true
		}
	}
	if c.has("-c") {
		if len(c.operands) == 0 {
			return
		}
		st.args, st.argsOK = nil, true
		if len(c.operands) > 1 {
			st.set("0", value{words: []string{c.operands[1].s}, flow: c.operands[1].flow})
			st.args = c.operands[2:]
		}
		a.shellText(c, &c.operands[0], st)
		return
	}
	if len(c.operands) > 0 && !c.has("-s") {
		f := &c.operands[0]
		if f.s == "-" {
			f.s = "/dev/stdin"
		}
		if c.has("-n") && c.name != "fish" {
			a.touch(Read, f, c.st, touchOptions{})
			return
		}
		a.runFile(c, f)
		return
	}
	if t := c.st.stdin.text; t != nil {
		f := field{s: *t, known: true, span: c.span, flow: c.st.stdin.flow}
		st.stdin = stdin{}
		a.shellText(c, &f, st)
		return
	}
	if !c.st.stdin.any && len(c.operands) == 0 {
		a.note(High, RunCode, c.span, "opens another shell, in which anything may be typed")
		return
	}
	a.fromStdin(c, show(c.name))
}
