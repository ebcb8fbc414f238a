package risk

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

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

// needs returns the least reach in which the text can do what it is for. A text that is not known to need more gets ReachRead: the
// kernel holds it, and the user is asked once it was denied something. A text that does nothing but change the shell in harmless,
// literal ways gets ReachShell.
func (a *analysis) needs(text string) Reach {
	need := needsEffects(a.v, a.c)
	s := &a.shell
	alone := s.changes && !s.more
	if a.v.Unread { // else a list of what the shell has
		alone = alone && slices.ContainsFunc(a.v.Reasons, func(r Reason) bool { return r.Effect == ShellState })
	}
	inShell := (s.changes || s.quick) && !s.runs && !a.v.Unread && need != ReachFree && literal().MatchString(text) && !a.redefined(text) && (a.v.Level == Low || a.v.Level == Medium && !s.lists)
	switch {
	case a.v.Level >= Critical:
		return ReachFree
	case inShell && s.affectsNext:
		if len(s.decides) > 0 {
			text := show(strings.Join(s.decides, ", ")) + " may decide what your next commands run, load or connect to"
			a.v.Reasons = append(a.v.Reasons, Reason{Text: text, Effect: ShellState, Level: Low})
		}
		return ReachFree
	case inShell:
		return ReachShell
	case need == ReachProject && a.c.ProjectRoot == "", alone && (a.v.Unread || need == ReachRead && a.v.Level > Low):
		return ReachFree // in a child, what is meant for the shell would change nothing that lasts
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
		interprets := programs.In("interpreters", strings.TrimRight(cmd.Name, "0123456789."))
		switch {
		case programs.In("beyond", cmd.Name) && !asksVersion(cmd.Argv), fetches(cmd.Argv, c.Hosts):
			need, cmd.Beyond = ReachFree, true // "beyond" lists harmless programs that need a network or another process
		case fetches(cmd.Argv, nil), cmd.Level == Medium && slices.Contains(cmd.Effects, RunCode) && !interprets:
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
	return ReachFree // no read has another level today
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

// shellText is what a text does in the shell itself, without what is inside its substitutions.
type shellText struct {
	changes     bool     // it changes the shell, or lists what the shell has
	quick       bool     // it has true or pwd, which run faster in the shell than in a child
	lists       bool     // it has builtins that list, or set, what the shell has
	runs        bool     // one of its builtins runs something else than the activate script of a virtual environment of the project
	affectsNext bool     // it may change what the user's next commands run or do
	decides     []string // the variables by which it may, of which nothing more is known
	more        bool     // it has other commands
}

// affects notes that the text may change what the user's next commands do, by these names.
func (s *shellText) affects(names ...string) {
	s.affectsNext = true
	s.decides = append(s.decides, names...)
}

// redefined reports whether the user has an alias or a function for a builtin that stands in a text.
func (a *analysis) redefined(text string) bool {
	return a.c.Dialect != "fish" && slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;&|", r) }), func(word string) bool {
		_, alias := a.c.Aliases[word]
		_, function := a.c.Functions[word]
		return programs.Builtin(word) && (alias || function)
	})
}

// inShell notes what a command of the text itself does in the shell, by the lists of builtins in reach.txt of package programs.
func (a *analysis) inShell(c *call, cmd *Command) {
	s := &a.shell
	if programs.In("neutral", c.name) {
		s.quick = s.quick || c.name != "echo"
		return
	}
	s.changes = true
	s.lists = s.lists || programs.In("lookers", c.name)
	s.more = s.more || !programs.In("lookers", c.name) && !programs.In("changers", c.name) && !slices.Contains(cmd.Effects, ShellState)
	s.runs = s.runs || cmd.Runs && !a.startsVenv(c)
	for _, f := range c.fields[1:] {
		name, text, defines := strings.Cut(f.S, "=")
		if c.name == "unalias" || c.name == "alias" && defines && a.aliasDecides(text) { // unalias rm, which was rm -i, perhaps
			s.affects(name)
		}
	}
}

// aliasDecides reports whether an alias of this text, perhaps with a word that the user adds (behind source, a file that is run), may do
// more than read, or may read in another folder, whose repository git would obey.
func (a *analysis) aliasDecides(text string) bool {
	c := a.c
	c.Tracked, c.Made, c.Written, c.Venv = nil, nil, nil, nil
	v := Analyze(text+" ./x", c)
	return v.Level > Low || slices.ContainsFunc(v.Commands, func(cmd Command) bool {
		return cmd.Name == "cd" || cmd.Name == "pushd" || cmd.Name == "git" && slices.ContainsFunc(cmd.Argv, func(arg string) bool {
			return arg == "-C" || strings.HasPrefix(arg, "--git-dir") || strings.HasPrefix(arg, "--work-tree")
		})
	})
}

// startsVenv reports whether a command activates a virtual environment of the project. Neither its word nor that of a cd before it has
// .. in it: behind a link that is another folder than by the words of the path.
func (a *analysis) startsVenv(c *call) bool {
	if a.c.Venv == nil || c.name != "." && c.name != "source" || len(c.fields) != 2 || c.fields[1].Glob || strings.Contains(c.fields[1].S, "..") {
		return false
	}
	up := slices.ContainsFunc(a.v.Commands, func(cmd Command) bool {
		return (cmd.Name == "cd" || cmd.Name == "pushd") && slices.ContainsFunc(cmd.Argv, func(w string) bool { return strings.Contains(w, "..") })
	})
	file := bashread.Path(&c.fields[1], c.st)
	return file != "" && !up && len(c.st.Alts) == 0 && a.c.Venv(file)
}

// literal matches lists of assignments and of builtins whose words are texts and variables. A text with [ is not literal: bash evaluates
// an index in it, and runs a $(…) there, even if it is quoted (unset 'a[$(x)]'). $1, $* and $_ may hold the name of any file.
var literal = sync.OnceValue(func() *regexp.Regexp {
	name := `(?:[A-Za-z]\w*|_\w+)`
	value := `\$(?:` + name + `|\{` + name + `\})`
	blank := `(?:[ \t\n]|#[^\n]*\n)*` // with lines that are comments
	word := `(?:[^\s"'$\x60\\;&|<>()#[]|\\[^\n[]|'[^'[]*'|` + value + `|"(?:[^"$\x60\\[]|\\[^[]|` + value + `)*")`
	rest := `(?:` + word + `|#)*`
	assign := name + `\+?=` + rest
	names := strings.Join(slices.Concat(programs.Places("changers"), programs.Places("lookers"), programs.Places("neutral")), "|")
	item := `(?:` + assign + `(?:[ \t]+` + assign + `)*|(?:export|declare|local|typeset)(?:[ \t]+(?:` + assign + `|` + name + `))*|(?:` + strings.ReplaceAll(names, ".", `\.`) + `)(?:[ \t]+` + word + rest + `)*)`
	next := `(?:[ \t]*(?:&&|\|\||;)|(?:[ \t]+#[^\n]*)?[ \t]*\n)` + blank
	return regexp.MustCompile(`^` + blank + item + `(?:` + next + item + `)*[\s;]*(?:[ \t\n]+#[^\n]*)*\s*$`)
})
