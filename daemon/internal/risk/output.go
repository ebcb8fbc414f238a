package risk

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// printed is what a substitution gives.
type printed struct {
	text string
	ok   bool // text is what a command prints
	list bool // text is a pattern of the paths that a command prints
	flow flow
}

// subst adds what a command substitution prints.
func (b *wordBuilder) subst(c *syntax.CmdSubst, quoted bool) {
	var p printed
	if inShell(c) {
		p = b.a.substitution(c, b.st, b.st)
	} else {
		p = b.a.once(c, func() printed { return b.a.substitution(c, b.st, b.st.clone()) })
	}
	switch {
	case p.ok:
		b.cur.flow |= p.flow
		if strings.ContainsAny(p.text, "\x00\x01") {
			b.bad = true
		}
		if quoted {
			b.value(p.text)
		} else {
			b.addSplit(p.text, false)
		}
	case p.list:
		b.add(p.text)
		b.bad, b.cur.glob = true, true
		b.cur.many = b.cur.many || !quoted
		b.cur.flow |= flowOutput
	default:
		b.addUnknown(unknownPart, p.flow|flowOutput, quoted)
	}
}

// substitution walks a command substitution, which runs in the state inner, and finds its output where that is plain.
func (a *analysis) substitution(c *syntax.CmdSubst, st, inner *state) (p printed) {
	p.flow = a.walkApart(c.Stmts, inner)
	if len(c.Stmts) != 1 || c.ReplyVar {
		return p
	}
	if p.text, p.ok = a.outputOf(c.Stmts[0], st); !p.ok {
		if t := a.literalOutput(c.Stmts[0], st); t != nil {
			p.text, p.ok = *t, true
		}
	}
	if p.ok {
		p.text = strings.TrimRight(p.text, "\n")
	} else if p.flow&(flowNet|flowSecret) == 0 {
		p.text, p.list = a.listing(c.Stmts[0], st)
	}
	return p
}

// walkApart walks the statements of a substitution and returns what they let in.
func (a *analysis) walkApart(list []*syntax.Stmt, st *state) flow {
	seen, printed := a.seen, a.printed
	a.seen, a.printed = 0, nil
	a.stmts(list, st)
	fl := a.seen
	a.seen, a.printed = seen|fl, printed
	return fl
}

// once returns what walk finds of a substitution. Where the word that holds it is expanded several times, the result is
// kept, unless the walk added to the facts: then another may find more.
func (a *analysis) once(n syntax.Node, walk func() printed) printed {
	if a.printed == nil {
		return walk()
	}
	if p, ok := a.printed[n]; ok {
		return p
	}
	facts := a.facts.size()
	p := walk()
	if a.facts.size() == facts {
		a.printed[n] = p
	}
	return p
}

// inShell tells whether a substitution is one that bash from 5.3 on runs in the shell itself: ${ cmd; } and ${| cmd; }.
func inShell(c *syntax.CmdSubst) bool { return c.TempFile || c.ReplyVar }

// outputOf returns what a simple command that was just walked prints, where that needs no running: the usual parts of
// commands that models write.
func (a *analysis) outputOf(s *syntax.Stmt, st *state) (out string, known bool) {
	defer func() { a.spend(len(out) / bytesCopied) }()
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 || s.Background {
		return "", false
	}
	name := c.Args[0].Lit()
	switch name {
	case "echo", "printf", "pwd", "mktemp", "date", "whoami", "nproc", "uname", "hostname", "id", "basename", "dirname", "git", "tty", "arch", "command", "which", "wc", "realpath", "readlink":
	default:
		return "", false
	}
	for _, r := range s.Redirs {
		if r.N == nil || r.N.Value != "2" {
			return "", false
		}
	}
	fs := a.kept[c]
	if len(fs) == 0 {
		return "", false
	}
	args := fs[1:]
	for i := range args {
		if args[i].opaque() || args[i].glob {
			switch name {
			case "date", "wc", "mktemp", "id", "uname", "nproc":
			default:
				return "", false
			}
		}
	}
	tame := string(tamePart)
	switch name {
	case "echo":
		for len(args) > 0 && (args[0].s == "-n" || args[0].s == "-e" || args[0].s == "-ne" || args[0].s == "-en") {
			if strings.Contains(args[0].s, "e") && strings.Contains(joinFields(args), "\\") {
				return ansiC(joinFields(args[1:])), true
			}
			args = args[1:]
		}
		return joinFields(args), true
	case "printf":
		return printfText(args)
	case "pwd":
		if st.cwd != "" && len(st.alts) == 0 {
			return st.cwd, true
		}
	case "mktemp":
		for i := range args {
			if s := args[i].s; s == "-p" || strings.HasPrefix(s, "--tmpdir=") || s != "" && s[0] != '-' && !strings.HasPrefix(s, "/tmp/") {
				return "", false
			}
		}
		return "/tmp/tmp." + tame, true
	case "date", "whoami", "nproc", "uname", "hostname", "arch":
		return tame, true
	case "id":
		if len(args) > 0 {
			return tame, true
		}
	case "wc":
		return tame, true
	case "basename":
		if len(args) == 1 && args[0].s != "" {
			s := strings.TrimRight(args[0].s, "/")
			return s[strings.LastIndexByte(s, '/')+1:], true
		}
	case "dirname":
		if len(args) == 1 {
			if i := strings.LastIndexByte(args[0].s, '/'); i > 0 {
				return args[0].s[:i], true
			} else if i == 0 {
				return "/", true
			}
			return ".", true
		}
	case "realpath", "readlink":
		if n := len(args); n > 0 && args[n-1].known && (n == 1 && name == "realpath" || n == 2 && (args[0].s == "-f" || args[0].s == "-m")) {
			if p := joinPath(st.cwd, args[n-1].s); p != "" {
				return p, true
			}
		}
	case "git":
		if joinFields(args) == "rev-parse --show-toplevel" && a.c.ProjectRoot != "" && st.cwd != "" && under(st.cwd, a.c.ProjectRoot) {
			return a.c.ProjectRoot, true
		}
	case "command", "which":
		if n := len(args); n > 0 && args[n-1].known && (name == "which" || args[0].s == "-v") && lookup(args[n-1].s) != nil {
			return args[n-1].s, true
		}
	}
	return "", false
}

func joinFields(fs []field) string {
	if len(fs) == 1 {
		return fs[0].s
	}
	parts := make([]string, len(fs))
	for i := range fs {
		parts[i] = fs[i].s
	}
	return strings.Join(parts, " ")
}

// printfText formats where only %s, %d and %% and escapes are used.
func printfText(args []field) (string, bool) {
	if len(args) > 0 && args[0].s == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0].s == "-v" {
		return "", false
	}
	format, rest := ansiC(args[0].s), args[1:]
	var b strings.Builder
	for round := 0; round == 0 || len(rest) > 0 && round < 64; round++ {
		used := false
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				b.WriteByte(format[i])
				continue
			}
			i++
			switch format[i] {
			case '%':
				b.WriteByte('%')
			case 's', 'd', 'b', 'i':
				used = true
				if len(rest) > 0 {
					s := rest[0].s
					if format[i] == 'b' {
						s = ansiC(s)
					}
					b.WriteString(s)
					rest = rest[1:]
				}
			default:
				return "", false
			}
		}
		if !used {
			break
		}
	}
	return b.String(), true
}
