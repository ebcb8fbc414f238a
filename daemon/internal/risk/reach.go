package risk

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
)

// Reach is what a command can do, as the kernel enforces it where it runs. The words of a command decide only which reach
// it is tried with: what it does beyond that is denied.
type Reach string

const (
	ReachRead    Reach = "read"    // reads what is not secret, and writes only into a temporary folder of its own
	ReachProject Reach = "project" // read, and writes in the project and in the caches of build tools
	ReachShell   Reach = "shell"   // changes the live shell itself: a directory, a literal variable, an alias
	ReachFree    Reach = "free"    // whatever the user can do
)

// ParseReach reads the name of a reach that an agent may ask for; "" is none.
func ParseReach(s string) (Reach, bool) {
	switch r := Reach(s); r {
	case "", ReachRead, ReachProject, ReachFree:
		return r, true
	}
	return "", false
}

// Confines reports whether a command with this reach runs in a confined child of the shell.
func (r Reach) Confines() bool { return r == ReachRead || r == ReachProject }

// Wider returns the reach that allows more. The shell's is between project and free: a text that needs it and more than
// reading can be confined only by giving up what it changes in the shell.
func Wider(a, b Reach) Reach {
	order := []Reach{"", ReachRead, ReachProject, ReachShell, ReachFree}
	if slices.Index(order, a) >= slices.Index(order, b) {
		return a
	}
	return b
}

// needs returns the least reach in which a text with verdict v can do what it is for. A text that is not known to need more gets
// ReachRead: the kernel holds it, and the user is asked once it was denied something. A text that does nothing but change the
// shell in harmless, literal ways gets ReachShell.
func needs(text string, v Verdict, c Context) Reach {
	if v.Level >= Critical {
		return ReachFree
	}
	need := needsEffects(v, c)
	shell := &shellText{}
	if !v.Unread { // else no parser may be given it
		shell = c.inShell(text, v.Level)
	}
	changes := shell.only && shell.changes
	switch {
	case changes && shell.literal && need != ReachFree && v.Level <= Medium:
		return ReachShell
	case need == ReachProject && c.ProjectRoot == "", v.Unread && onlyChangesShell(v):
		return ReachFree // in a child, what is meant for the shell would change nothing that lasts
	case need == ReachRead && changes && v.Level > Low:
		return ReachFree
	}
	return need
}

// needsEffects returns the least reach for what a verdict found: its reasons, the files that are changed, and the programs.
func needsEffects(v Verdict, c Context) Reach {
	need := ReachRead
	// A command with ReachProject can connect to c.Hosts: enough if each command with a network effect only fetches from these.
	hostsSuffice := len(c.Hosts) > 0 && !slices.ContainsFunc(v.Commands, func(cmd Command) bool {
		return slices.Contains(cmd.Effects, Network) && (!fetches(cmd.Argv, nil) || fetches(cmd.Argv, c.Hosts))
	})
	for _, r := range v.Reasons {
		if hostsSuffice && r.Effect == Network && r.Level <= Medium {
			need = Wider(need, ReachProject)
			continue
		}
		need = Wider(need, needsReason(r, v, c))
	}
	if slices.ContainsFunc(v.Targets, c.outside) {
		need = ReachFree
	}
	for i := range v.Commands {
		cmd := &v.Commands[i]
		switch {
		case programs.In("beyond", cmd.Name) && !asksVersion(cmd.Argv), fetches(cmd.Argv, c.Hosts):
			need = ReachFree // "beyond" lists harmless programs that need a network or another process's socket
		case fetches(cmd.Argv, nil), cmd.Level == Medium && slices.Contains(cmd.Effects, RunCode) && !interprets(cmd.Name):
			need = Wider(need, ReachProject) // builds, tests and the project's own tools write
		}
	}
	return need
}

// outside reports whether t is a file that is changed where a command with ReachProject cannot write.
func (c Context) outside(t Target) bool {
	return (t.Effect == Write || t.Effect == Delete) && t.Path != "" && !under(t.Path, c.ProjectRoot) && !c.inTemporary(t.Path) &&
		!slices.ContainsFunc(c.Writable, func(dir string) bool { return under(t.Path, dir) })
}

// needsReason returns the least reach in which a command may do what one reason is about.
func needsReason(r Reason, v Verdict, c Context) Reach {
	switch r.Effect {
	case Read, Unknown, RunCode:
	case ShellState:
		if r.Level >= High {
			return ReachFree
		}
	case Write, Delete, History:
		switch {
		case r.Level <= Low:
		case r.Level >= High && (c.ProjectRoot == "" || r.Effect == History): // the kernel would not hold it: project may write .git
			return ReachFree
		case !c.onlyTemporary(v):
			return ReachProject
		}
	default:
		if r.Level > Low {
			return ReachFree
		}
	}
	return ReachRead
}

// needsFiles returns the least reach for an action of a file tool with verdict v. The kernel does not confine file tools: they
// themselves resolve links and keep to the paths that were judged.
func needsFiles(v Verdict, f FileAction) Reach {
	switch {
	case f.Network != "" || f.Server != "" || v.Level >= High:
		return ReachFree
	case len(f.Writes) > 0:
		return ReachProject
	case v.Level == Low:
		return ReachRead
	}
	return ReachFree
}

// fetches reports whether argv runs a package manager that needs more than these hosts: another one, or leave to send or install.
func fetches(argv, hosts []string) bool {
	if i := slices.Index(argv, "pip"); i > 0 && (argv[i-1] == "-m" || argv[i-1] == "uv") {
		argv = argv[i:]
	}
	if len(argv) == 0 || asksVersion(argv) || slices.ContainsFunc(argv, func(w string) bool { return w == "--offline" || w == "--no-index" || w == "--help" || w == "-h" }) {
		return false
	}
	name, verb := strings.TrimRight(path.Base(argv[0]), "0123456789."), ""
	if i := slices.IndexFunc(argv[1:], func(w string) bool { return !strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "+") }); i >= 0 {
		verb = argv[1+i]
	}
	if !programs.In("fetch "+name, verb) && (name != "yarn" || verb != "") {
		return false
	}
	needed := programs.Places("registry " + name)
	return needed == nil || programs.In("yours", name+" "+verb) || slices.ContainsFunc(argv, func(w string) bool { return programs.In("yours", w) }) ||
		slices.ContainsFunc(needed, func(host string) bool { return !slices.Contains(hosts, host) })
}

// asksVersion reports whether a program is only asked which version it is.
func asksVersion(argv []string) bool {
	return len(argv) == 2 && slices.Contains([]string{"--version", "-V", "version", "--help"}, argv[1])
}

// interprets reports whether a program runs code that stands in its arguments.
func interprets(name string) bool {
	return programs.In("interpreters", strings.TrimRight(name, "0123456789."))
}

// onlyChangesShell reports whether a text changes the shell and each of its commands does. A declaration such as export X=1 is no
// command of a verdict.
func onlyChangesShell(v Verdict) bool {
	return slices.ContainsFunc(v.Reasons, func(r Reason) bool { return r.Effect == ShellState }) &&
		!slices.ContainsFunc(v.Commands, func(c Command) bool { return !slices.Contains(c.Effects, ShellState) })
}

// onlyTemporary reports whether a text is known to write in temporary folders alone, which a confined command has for itself. It is
// false where one of them holds the project or the home that is written in.
func (c Context) onlyTemporary(v Verdict) bool {
	known := false
	for _, t := range v.Targets {
		if t.Effect == Write || t.Effect == Delete {
			if known = true; t.Path == "" || !c.inTemporary(t.Path) {
				return false
			}
		}
	}
	return known
}

func (c Context) inTemporary(p string) bool {
	return (under(p, "/tmp") || under(p, "/dev")) && !under(p, c.ProjectRoot) && !(under(c.Home, "/tmp") && under(p, c.Home))
}

// shellText is what a text does in the shell itself.
type shellText struct {
	Context
	level   Level
	only    bool // it is a list of assignments and of builtins that change or list the shell, without redirections and jobs
	changes bool // it changes the shell, or lists what the shell has
	literal bool // its words are texts and variables, and it reads no file
}

// inShell returns what a text does in the shell itself; level is that of its verdict. All is false if it cannot be parsed.
func (c Context) inShell(text string, level Level) *shellText {
	// A text with [ is not literal: bash evaluates an index in it, and runs a $(…) there, even if it is quoted (unset 'a[$(x)]').
	s := &shellText{Context: c, level: level, only: true, literal: !strings.Contains(text, "[")}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return &shellText{}
	}
	syntax.Walk(file, s.visit)
	return s
}

func (s *shellText) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		s.only = s.only && len(n.Redirs) == 0 && !n.Background && !n.Coprocess
	case *syntax.BinaryCmd:
		s.only = s.only && (n.Op == syntax.AndStmt || n.Op == syntax.OrStmt)
	case *syntax.DeclClause:
		s.changes = true
	case *syntax.Assign:
		s.literal = s.literal && n.Array == nil && n.Index == nil && n.Name != nil && !(n.Naked && n.Value != nil)
	case *syntax.CallExpr:
		s.call(n)
	case syntax.Command:
		s.only = false
	case syntax.WordPart:
		s.literal = s.literal && plainPart(n)
		return false
	}
	return s.only
}

// call adds what a simple command does, by the lists of builtins in reach.txt of package programs.
func (s *shellText) call(n *syntax.CallExpr) {
	if len(n.Args) == 0 { // X=1
		s.changes = true
		return
	}
	switch name := n.Args[0].Lit(); {
	case len(n.Assigns) > 0: // X=1 cmd: the variable may change what cmd does
		s.only = false
	case programs.In("neutral", name): // true, pwd and echo may stand among the others; the first two run faster here than in a child
		s.changes = s.changes || name != "echo" && s.Aliases[name] == "" && s.Functions[name] == ""
	case programs.In("sourcers", name): // they change it by what they read
		s.changes, s.literal = true, s.literal && len(n.Args) == 2 && name != "eval" && s.standardVenv(n.Args[1].Lit())
	case programs.In("lookers", name): // they list what the shell has, or set it
		s.changes, s.literal = true, s.literal && s.level == Low && (name != "jobs" || !slices.ContainsFunc(n.Args, func(w *syntax.Word) bool {
			return w.Lit() == "" || strings.Contains(w.Lit(), "x") // jobs -x runs a program
		}))
	default: // "changers" do nothing but change it: cd, alias
		s.changes, s.only = true, s.only && programs.In("changers", name)
	}
}

// standardVenv reports whether a word names the activate script of a virtual environment of the project.
func (c Context) standardVenv(word string) bool {
	if word == "" || c.Venv == nil || strings.ContainsAny(word, "~*?[{") {
		return false
	}
	return c.Venv(bashread.Absolute(c.Cwd, word))
}

// plainPart reports whether a part of a word is a text, $NAME or ${NAME}. $1, $* and $_ may hold the name of any file.
func plainPart(p syntax.WordPart) bool {
	switch p := p.(type) {
	case *syntax.Lit:
		return true
	case *syntax.SglQuoted:
		return !p.Dollar
	case *syntax.DblQuoted:
		return !slices.ContainsFunc(p.Parts, func(p syntax.WordPart) bool { return !plainPart(p) })
	case *syntax.ParamExp:
		return syntax.ValidName(p.Param.Value) && p.Param.Value != "_" && !(p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Names != 0)
	}
	return false
}
