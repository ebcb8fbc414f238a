package risk

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// alias expands an alias of the live shell or of this text, which bash does before it parses (T3k).
func (a *analysis) alias(name string, c *syntax.CallExpr, st *state) (done, ends bool) {
	value, ofText := st.aliases[name]
	if !ofText {
		var ok bool
		if value, ok = a.c.Aliases[name]; !ok {
			return false, false
		}
	}
	if slices.Contains(a.active, "alias "+name) || len(a.active) > maxDepth {
		return false, false
	}
	rest := a.source(c.Args[0].End().Offset(), c.End().Offset())
	again := false
	if strings.HasSuffix(value, " ") || strings.HasSuffix(value, "\t") {
		// The next word is looked up too: alias sudo='sudo '.
		if len(c.Args) > 1 {
			next := c.Args[1].Lit()
			if v, ok := a.c.Aliases[next]; ok && next != "" {
				again = true
				rest = v + a.source(c.Args[1].End().Offset(), c.End().Offset())
			}
		}
	}
	sp := a.span(c)
	words := simpleAlias(value) && !again && !a.isAlias(value, st)
	var args []field
	if words {
		args = a.words(c.Args[1:], st)
	} else if ofText {
		args = a.words(c.Args[1:], st.clone())
	}
	a.active = append(a.active, "alias "+name)
	defer func() { a.active = a.active[:len(a.active)-1] }()
	if ofText { // whether it is in force yet depends on lines: the command is judged both ways
		a.exec(append([]field{{s: name, known: true, span: a.span(c.Args[0])}}, args...), st.clone(), sp, nil)
	}
	if !words {
		return true, a.inline(value+" "+rest, sp, st)
	}
	var fs []field
	for w := range strings.FieldsSeq(value) {
		fs = append(fs, field{s: w, known: true, span: sp})
	}
	return true, a.exec(append(fs, args...), st, sp, nil)
}

// isAlias tells that the first word of an alias is itself one that will be expanded.
func (a *analysis) isAlias(value string, st *state) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(value), " ")
	_, live := a.c.Aliases[first]
	_, here := st.aliases[first]
	return (live || here) && !slices.Contains(a.active, "alias "+first)
}

// source is a part of the text that is being walked.
func (a *analysis) source(from, to uint) string {
	t := a.src.text
	f, e := min(int(from), len(t)), min(int(to), len(t))
	if f >= e {
		return ""
	}
	return t[f:e]
}

// simpleAlias tells that an alias is plain words.
func simpleAlias(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isNameByte(c) && strings.IndexByte(" -=./,:+%@", c) < 0 {
			return false
		}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return first != "" && strings.IndexByte(first, '=') < 0 && !reservedWord(first)
}

func reservedWord(s string) bool {
	switch s {
	case "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function", "time", "coproc", "in", "export", "declare", "local", "readonly", "typeset", "let":
		return true
	}
	return false
}

// resolve finds what the name of a command means: function, builtin, program, file (T3h).
func (a *analysis) resolve(c *cmdCall) (ends bool) {
	f := &c.fields[0]
	name := f.s
	if f.opaque() || f.many || f.glob && name != "[" && strings.ContainsAny(name, "*?[") || name == "" && !f.known {
		a.runs()
		a.opaque()
		if f.flow&flowNet != 0 {
			a.note(Critical, RunCode, f.span, "runs what comes from the network").cannotUndo()
			return false
		}
		a.note(High, Unknown, f.span, "what it runs is not known here")
		if len(c.fields) > 1 && f.many {
			// `$X rm -rf /` with an empty X runs the rest.
			a.exec(c.fields[1:], c.st.clone(), c.span, c.prefix)
		}
		a.secrets(c)
		return false
	}
	if strings.IndexByte(name, tamePart) >= 0 {
		a.opaque()
	}
	if strings.IndexByte(name, '/') >= 0 {
		return a.byPath(c)
	}
	if fn, ok := c.st.funcs[name]; ok {
		return a.function(c, fn)
	}
	if body, ok := a.c.Functions[name]; ok {
		switch {
		case a.c.Dialect != "fish":
			return a.liveFunction(c, body)
		case lookup(name) == nil && !isBuiltin(name): // fish wraps everyday programs in functions of the same name
			return a.liveFunction(c, "")
		}
	}
	c.name = name
	return a.byName(c)
}

// builtin tells that the shell runs a name itself.
func (a *analysis) builtin(name string) bool {
	return isBuiltin(name) && !slices.Contains(a.c.Disabled, name)
}

// byName judges a command by what its name says, and by what hash and enable made of that in the live shell (T3h). It is
// both, because what other programs start (env, xargs) does not ask the shell.
func (a *analysis) byName(c *cmdCall) (ends bool) {
	name := c.name
	file, hashed := a.c.Hashed[name]
	if hashed && !a.builtin(name) && !c.st.remote {
		a.hashed(c, file)
	}
	if !isBuiltin(name) || a.builtin(name) {
		return a.known(c)
	}
	a.note(Medium, RunCode, c.span, "the builtin "+show(name)+" is switched off in your shell, so that a program of that name runs")
	before := c.st.cwd
	a.known(c)
	c.st.mayBe(before) // a program cannot leave the folder, nor end the list
	return false
}

// hashed judges the file that the hash table names.
func (a *analysis) hashed(c *cmdCall, file string) {
	dir, base := file[:strings.LastIndexByte(file, '/')+1], file[strings.LastIndexByte(file, '/')+1:]
	if base == c.name && systemBin(strings.TrimSuffix(dir, "/")) && strings.HasPrefix(dir, "/") {
		return // the same program
	}
	a.note(Medium, RunCode, c.span, "your shell runs "+show(file)+" by the name "+show(c.name))
	if dir == "" {
		file = "./" + file
	}
	fs := slices.Clone(c.fields)
	fs[0] = field{s: file, known: true, span: fs[0].span}
	a.byPath(&cmdCall{fields: fs, st: c.st.clone(), span: c.span, prefix: c.prefix})
}

// unknownProgram judges what is not in the table: nobody here knows what it does.
func (a *analysis) unknownProgram(c *cmdCall) {
	a.secrets(c)
	c.verb = 1
	if n := len(c.fields); n == 2 && c.fields[1].known {
		switch c.fields[1].s {
		case "--help", "--version", "-h", "-V", "help", "version":
			a.note(Medium, Unknown, c.span, show(c.name)+" is not known here; it is asked for help or version")
			return
		}
	}
	a.note(High, Unknown, c.span, show(c.name)+" is not known here, so what it does cannot be told")
	for i := range c.fields[1:] {
		f := &c.fields[i+1]
		if f.known && strings.HasPrefix(f.s, "/") || strings.HasPrefix(f.s, "~") {
			if p := a.pathOf(f, c.st); p != "" {
				if z := a.zoneOf(p); z == zoneCredential {
					a.touch(Read, f, c.st, touchOptions{})
				}
			}
		}
	}
	if f := c.st.stdin.flow; f&flowNet != 0 {
		a.note(High, RunCode, c.span, "gives data from the network to a program that is not known here")
	}
}

// shadowed judges a program that PATH finds in a folder where agents write (T3h): what it does may be what its name says,
// and is not known.
func (a *analysis) shadowed(c *cmdCall) {
	if a.builtin(c.name) || c.st.remote || strings.Contains(c.fields[0].s, "/") {
		return
	}
	file, seen := a.shadows[c.name]
	switch {
	case seen:
	case len(a.shadows) >= MaxTracked:
		a.note(Medium, RunCode, c.span, "too many programs to look up in your PATH, which leads through the project")
		return
	default:
		file = a.c.Shadow(c.name)
		if a.shadows == nil {
			a.shadows = map[string]string{}
		}
		a.shadows[c.name] = file
	}
	switch {
	case file == "":
	case strings.Contains(file, "/node_modules/.bin/") || strings.Contains(file, "/venv/bin/") || strings.Contains(file, "/.venv/bin/"):
		a.note(Medium, RunCode, c.span, "your PATH finds "+show(c.name)+" among the project's packages")
	case a.isTracked(file):
		a.note(Medium, RunCode, c.span, "your PATH finds "+show(c.name)+" in the project, where it is in version control")
	default:
		a.runs()
		a.note(High, RunCode, c.span, "your PATH finds "+show(c.name)+" at "+show(file)+", whose text is not known here")
	}
}

// poisoned raises a command that a changed variable, alias or function concerns (T3g).
func (a *analysis) poisoned(c *cmdCall) {
	if a.loose && !a.builtin(c.name) && !strings.Contains(c.fields[0].s, "/") {
		a.note(Medium, RunCode, c.span, "your PATH holds the present folder, so that "+show(c.name)+" may be a file in it")
	}
	if a.builtin(c.name) && c.name != "cd" && c.name != "history" && c.name != "fc" && c.name != "read" {
		return
	}
	a.spend(len(c.st.changed) / 2)
	for _, n := range a.c.Poisoned {
		if poisonHits(n, c.name) {
			a.note(High, RunCode, c.span, show(n)+" was changed by an agent and may decide what "+show(c.name)+" does")
			return
		}
	}
	for _, n := range c.st.changed {
		if poisonHits(n, c.name) {
			a.note(High, RunCode, c.span, show(n)+" was changed before and may decide what "+show(c.name)+" does")
			return
		}
	}
}

// function judges a call of a function that this text defines.
func (a *analysis) function(c *cmdCall, fn function) (ends bool) {
	c.name = c.fields[0].s
	a.runs()
	if slices.Contains(a.active, c.name) {
		return false // recursion: its body is being judged
	}
	if len(a.active) > maxDepth {
		a.unreadable(c.span, "functions that call functions, too deep to be examined")
		return false
	}
	a.note(Low, Read, c.span, "calls the function "+show(c.name))
	a.active = append(a.active, c.name)
	keepArgs, keepOK, keepSrc := c.st.args, c.st.argsOK, a.src
	c.st.args, c.st.argsOK = c.fields[1:], true
	for i := range c.fields[1:] {
		if c.fields[i+1].many {
			c.st.argsOK = false
		}
	}
	outer := a.cmd
	a.src = fn.src
	if fn.src.text != keepSrc.text || keepSrc.outer != nil {
		sp := c.span
		a.src.outer = &sp
	}
	a.stmt(fn.body, c.st)
	a.src = keepSrc
	a.cmd = outer
	c.st.args, c.st.argsOK = keepArgs, keepOK
	a.active = a.active[:len(a.active)-1]
	return false
}

// liveFunction judges a call of a function of the live shell.
func (a *analysis) liveFunction(c *cmdCall, body string) (ends bool) {
	c.name = c.fields[0].s
	a.runs()
	if slices.Contains(a.active, c.name) {
		return false
	}
	if len(a.c.Poisoned) > 0 {
		a.poisoned(c)
	}
	if strings.TrimSpace(body) == "" || len(a.active) > maxDepth {
		a.note(High, RunCode, c.span, "calls the function "+show(c.name)+" of your shell, whose code is not known here")
		return false
	}
	if fn, parsed := a.live[c.name]; parsed {
		return a.function(c, fn)
	}
	a.inside(body, c.span, func() {
		list, err := a.parse(a.src.text)
		if err != nil || len(list) == 0 {
			a.unreadable(c.span, "calls the function "+show(c.name)+" of your shell, whose code could not be read")
			return
		}
		fn := function{src: a.src}
		decl, ok := list[0].Cmd.(*syntax.FuncDecl)
		switch {
		case ok && len(list) == 1:
			fn.body = decl.Body
		case len(list) == 1:
			fn.body = list[0]
		default:
			fn.body = &syntax.Stmt{Cmd: &syntax.Block{Stmts: list}}
		}
		if a.live == nil {
			a.live = map[string]function{}
		}
		a.live[c.name] = fn
		ends = a.function(c, fn)
	})
	return ends
}
