package risk

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// subst walks a command substitution and tells its output where that is plain.
func (b *wordBuilder) subst(c *syntax.CmdSubst, quoted bool) {
	a := b.a
	before := a.seen
	a.seen = 0
	st := b.st.clone()
	if inShell(c) {
		st = b.st
	}
	a.stmts(c.Stmts, st)
	fl := a.seen
	a.seen |= before
	if len(c.Stmts) == 1 && !c.ReplyVar {
		s, ok := a.outputOf(c.Stmts[0], b.st)
		if !ok {
			if t := a.pipeText(c.Stmts[0], b.st); t != nil {
				s, ok = *t, true
			}
		}
		if ok {
			s = strings.TrimRight(s, "\n")
			b.cur.flow |= fl
			if strings.ContainsAny(s, "\x00\x01") {
				b.bad = true
			}
			if quoted {
				b.value(s)
			} else {
				b.addSplit(s, false)
			}
			return
		}
	}
	if len(c.Stmts) == 1 && !c.ReplyVar && fl&(flowNet|flowSecret) == 0 {
		if s, ok := a.listing(c.Stmts[0], b.st); ok {
			b.add(s)
			b.bad, b.cur.glob = true, true
			b.cur.many = b.cur.many || !quoted
			b.cur.flow |= flowOutput
			return
		}
	}
	b.addUnknown(unknownPart, fl|flowOutput, quoted)
}

// inShell tells whether a substitution is one that bash from 5.3 on runs in the shell itself: ${ cmd; } and ${| cmd; }.
func inShell(c *syntax.CmdSubst) bool { return c.TempFile || c.ReplyVar }

// outputOf tells what a simple command prints, where that needs no running: the usual parts of commands that models
// write. It judges nothing.
func (a *analysis) outputOf(s *syntax.Stmt, st *state) (string, bool) {
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
	quiet := &analysis{c: a.c, cmd: -1, src: a.src, steps: maxSteps} // expands words without judging them twice
	quiet.unread = true
	fs := quiet.words(c.Args, st.clone())
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
