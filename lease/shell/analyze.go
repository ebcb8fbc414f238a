package shell

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

const (
	typedMax = 1 << 10 // bytes of a line that is still typed
	parseMax = 8 << 10 // the parser's cost grows faster than the text, and deep nesting ends the process (pitfall 8)
	nestMax  = 100
	evalMost = 10 // evals of a text that are looked into
)

// A plan says how a text goes in and what must be looked at afterwards.
type plan struct {
	typed     bool   // as a person would type it
	bang      bool   // history expansion may refuse it
	subshell  string // why it runs in a subshell; "" = in the shell itself
	functions bool   // it may have changed functions, or what only what may do that changes: traps, open files
	// assigns are the variables it may assign or unset itself; nil: any.
	assigns map[string]bool
	state   bool   // it may have changed anything of the shell at all
	disowns bool   // it names disown
	opens   bool   // it names what opens and closes files of the shell
	held    string // what it asks for that holds until its end only; "" = nothing
	errexit bool   // the user's shell has set -e: not for a borrower's command
	traced  bool   // the user's shell has set -x: what sources the text is traced, too
	// bare are the libraries of a shell that has loaded no builtin: behind the text they tell whether it has (opening.look). nil: all
	// builtins are listed there.
	bare  []string
	stops bool // its end is sure when a program of it is stopped: nothing comes behind
}

// flags are what the prompt hook shall do at the end.
func (p plan) flags() string {
	switch {
	case p.disowns:
		return p.list() + "j"
	case p.functions:
		return p.list()
	case p.state && p.assigns != nil:
		return "db"
	case p.state:
		return "d"
	}
	return ""
}

func (p plan) list() string {
	if p.bare != nil {
		return "df"
	}
	return "def"
}

// analyze decides. known tells whether a name is an alias or a function of the shell.
func analyze(text string, user bool, known func(name string) bool) plan {
	file, unfinished := parse(text)
	p := plan{state: true, functions: true}
	if file != nil {
		a := analysis{known: known, assigns: map[string]bool{}}
		a.file(file)
		p.state, p.functions = a.state, a.functions || strings.Contains(text, "BASH_ALIASES")
		if !p.functions && !a.assignsAny {
			p.assigns = a.assigns
		}
		p.disowns, p.opens = a.disowns, a.opens
		p.subshell, p.stops = a.subshell, len(file.Stmts) == 1 && a.stops(file.Stmts[0])
		if p.subshell == "" {
			p.held = a.held
		}
	} else if why := wild(text); why != "" {
		p.subshell = why
	} else if unfinished {
		// Where an assigned $( ) ends with the sourced text, bash 5.2.15 damages its memory and dies of it, then or later.
		p.subshell = "unfinished syntax"
	}
	if user {
		p.subshell, p.held, p.assigns = "", "", nil
		p.typed = file != nil && typable(text)
		p.bang = strings.Contains(text, "!") || strings.HasPrefix(text, "^")
		if p.bang { // what runs is not known here
			p.state, p.functions = true, true
		}
	}
	return p
}

// parse returns nil for what is too long, too deep or not understood. That never means harmless (pitfall 8). unfinished
// tells that the text ends in the middle of something.
func parse(text string) (file *syntax.File, unfinished bool) {
	if len(text) > parseMax || nesting(text) > nestMax {
		return nil, false
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, syntax.IsIncomplete(err)
	}
	return f, false
}

// nesting is an upper bound of how deep the parser would go.
func nesting(text string) int {
	n := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[', '`', '<':
			n++
		}
	}
	return n + strings.Count(text, "if") + strings.Count(text, "do") + strings.Count(text, "case")
}

// typable tells whether bash reads the line as it stands: one complete line of printable text, up to 1 KiB. What may
// take the prompt hook away goes in by file, for then the line's tail tells the end.
func typable(text string) bool {
	if len(text) > typedMax || !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if r != ' ' && !unicode.IsPrint(r) {
			return false
		}
	}
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] == '#' || strings.HasSuffix(trimmed, `\`) || strings.Contains(text, "<<") {
		return false
	}
	first, _, _ := strings.Cut(trimmed, " ")
	return first != "." && first != "source" && !strings.Contains(text, "PROMPT_COMMAND") && !strings.Contains(text, "__sublet_") &&
		(!tracing.MatchString(text) || strings.Contains(text, "exec"))
}

// tracing finds what may have bash print what it runs or reads: the line's tail hides what is ours of that. The hook that
// hides it cannot put back a standard error that an exec took away in the same line.
var tracing = regexp.MustCompile(`\bset\s[^;&|]*(-\w*[xv]|xtrace|verbose)`)

// fit makes a plan do for a shell with these options and variables.
func (p *plan) fit(snap snapshot, user bool) {
	options, vars := snap.State.Options, snap.vars
	for name := range p.assigns {
		// An integer's value is arithmetic, and a reference is another variable.
		if strings.ContainsAny(attributes(vars[name]), "inaA") {
			p.assigns = nil
			break
		}
	}
	p.traced = slices.Contains(options, "xtrace")
	p.errexit = !user && slices.Contains(options, "errexit")
	// The short way behind a text that changes nothing is neither silent nor safe then.
	p.state = p.state || p.traced || p.errexit || slices.Contains(options, "verbose")
	if snap.trapped && !user { // a cancel has to go round it: guard in rc/borrow.bash
		p.state, p.functions = true, true
	}
}

var wildWords = regexp.MustCompile(`\b(exit|logout|exec|errexit)\b|\bset\s+[-+]\w*e|\btrap\b.*\b(EXIT|0)\b|\bulimit\s+(-\w+\s+)*\w`)

// wild looks for the words that need a subshell in a text that cannot be parsed.
func wild(text string) string {
	if m := wildWords.FindString(text); m != "" {
		return strings.Fields(m)[0]
	}
	return ""
}

type analysis struct {
	known            func(string) bool
	state, functions bool
	disowns, opens   bool
	assigns          map[string]bool // names
	assignsAny       bool            // others, too
	subshell, held   string
	evals            int
}

func (a *analysis) file(f *syntax.File) {
	for _, s := range f.Stmts {
		a.walk(s)
	}
}

// walk visits what runs in the shell itself; subshells change nothing of it.
func (a *analysis) walk(root syntax.Node) {
	syntax.Walk(root, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.Comment:
			return false
		case *syntax.Subshell, *syntax.ProcSubst:
			return false // a process of its own
		case *syntax.CmdSubst:
			if n.TempFile || n.ReplyVar { // ${ cmd; } and ${| cmd; }: bash from 5.3 on runs them in the shell itself
				a.state, a.functions = true, true
				return true
			}
			return false
		case *syntax.Redirect:
			if n.N != nil && strings.HasPrefix(n.N.Value, "{") { // {name}>file, which stays open
				a.state, a.functions, a.opens, a.assignsAny = true, true, true, true
			}
		case *syntax.Stmt:
			if n.Background || n.Coprocess || n.Disown {
				a.state = a.state || n.Coprocess
				return n.Coprocess
			}
		case *syntax.CallExpr:
			a.call(n)
		case *syntax.FuncDecl:
			a.state, a.functions = true, true
		case *syntax.ParamExp:
			// ${x:=y}, ${x:?y}; and arithmetic, which may assign: ${x[i=1]}, ${x:i=1}, ${!x} where x is such a text.
			if n.Exp != nil || n.Excl || n.Slice != nil || n.Index != nil && !constant(n.Index) {
				a.state, a.assignsAny = true, true
			}
		case *syntax.WordIter:
			a.assigns[n.Name.Value] = true
		case *syntax.WhileClause:
			a.state = true
		case *syntax.ForClause:
			a.state = true
			_, words := n.Loop.(*syntax.WordIter)
			a.assignsAny = a.assignsAny || !words || n.Select
		case *syntax.DeclClause:
			a.declare(n)
		case *syntax.LetClause, *syntax.ArithmCmd, *syntax.ArithmExp, *syntax.CoprocClause, *syntax.TestClause:
			a.state, a.assignsAny = true, true
		}
		return true
	})
}

// constant tells whether an array's index is one, or all of it.
func constant(index syntax.ArithmExpr) bool {
	w, ok := index.(*syntax.Word)
	return ok && strings.Trim(w.Lit(), "0123456789@*") == "" && w.Lit() != ""
}

// stops tells whether bash runs nothing more of a statement once a program of it was stopped, as it would of `a; b`.
func (a *analysis) stops(s *syntax.Stmt) bool {
	if s.Background || s.Coprocess || s.Disown || s.Negated {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return false
		}
		name := literal(c.Args[0])
		return name != "" && (a.known == nil || !a.known(name)) && !definers[name]
	case *syntax.BinaryCmd:
		return c.Op != syntax.OrStmt && a.stops(c.X) && a.stops(c.Y)
	}
	return false
}

// quiet are builtins that leave nothing behind, as long as their name is still theirs.
var quiet = map[string]bool{
	"echo": true, "true": true, "false": true, ":": true, "pwd": true, "test": true, "[": true, "type": true,
	"kill": true, "times": true,
}

// loud are builtins that may change the shell.
var loud = map[string]bool{
	".": true, "source": true, "alias": true, "unalias": true, "bg": true, "bind": true, "break": true, "builtin": true,
	"caller": true, "cd": true, "command": true, "compgen": true, "complete": true, "compopt": true, "continue": true,
	"declare": true, "dirs": true, "disown": true, "enable": true, "eval": true, "exec": true, "exit": true,
	"export": true, "fc": true, "fg": true, "getopts": true, "hash": true, "help": true, "history": true, "jobs": true,
	"let": true, "local": true, "logout": true, "mapfile": true, "popd": true, "printf": true, "pushd": true,
	"read": true, "readarray": true, "readonly": true, "return": true, "set": true, "shift": true, "shopt": true,
	"suspend": true, "trap": true, "typeset": true, "ulimit": true, "umask": true, "unset": true, "wait": true,
}

// definers may bring or take functions, or bend traps, for what they run is in no tree: an alias is another text on the next line,
// and mapfile, compgen, fc and jobs run one, too. What changes the rest that is asked for with functions (more) is here, too.
var definers = map[string]bool{
	".": true, "source": true, "eval": true, "unset": true, "builtin": true, "command": true, "enable": true,
	"declare": true, "typeset": true, "trap": true, "exec": true, "shift": true,
	"complete": true, "compopt": true, "pushd": true, "popd": true, "dirs": true, "history": true, "disown": true,
	"alias": true, "mapfile": true, "readarray": true, "compgen": true, "fc": true, "jobs": true,
}

// assignsNone are loud builtins that assign no variable but what the shell keeps by itself (PWD); printf where no -v is.
var assignsNone = map[string]bool{
	"bg": true, "break": true, "cd": true, "continue": true, "dirs": true, "disown": true, "fg": true, "hash": true, "popd": true, "printf": true, "pushd": true, "umask": true, "unalias": true,
}

var variableName = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// declare takes in what declares variables. One whose name is not plain may be an alias (BASH_ALIASES), and so may one that
// another is made to stand for.
func (a *analysis) declare(d *syntax.DeclClause) {
	a.state = true
	if v := d.Variant.Value; v == "export" || v == "readonly" {
		a.assign(d.Args)
	} else {
		a.assignsAny = true
	}
	for _, as := range d.Args {
		// Bash assigns _ behind each command: where that fails it says so each time, or comes to no prompt (-i).
		if as.Name != nil && as.Name.Value == "_" && a.subshell == "" {
			a.subshell = d.Variant.Value + " _"
		}
		if as.Name == nil {
			option := literal(as.Value)
			a.functions = a.functions || option == "" || !strings.ContainsAny(option[:1], "-+") || strings.ContainsAny(option, "nf")
		}
	}
}

// assign takes in plain assignments.
func (a *analysis) assign(list []*syntax.Assign) {
	for _, as := range list {
		if as.Name == nil || as.Index != nil || as.Array != nil {
			a.assignsAny = true
		} else {
			a.assigns[as.Name.Value] = true
		}
	}
}

func (a *analysis) call(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		a.state = true
		a.assign(c.Assigns)
		return
	}
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		words[i] = literal(w)
	}
	for len(words) > 1 && (words[0] == "command" || words[0] == "builtin") && !strings.HasPrefix(words[1], "-") {
		words = words[1:]
		a.state = true
	}
	name := words[0]
	switch {
	case name == "", name != "[" && strings.ContainsAny(name, "{*?["), a.known != nil && a.known(name): // {cd,/} is cd /
		a.state, a.functions = true, true
	case quiet[name]:
		switch name {
		case ":", "times":
			if len(c.Assigns) > 0 { // which stays in posix mode
				a.state, a.assignsAny = true, true
			}
		case "test", "[":
			if slices.Contains(words, "-v") || slices.Contains(words, "") { // the index of a name is arithmetic
				a.state, a.assignsAny = true, true
			}
		}
	case loud[name]:
		a.state = true
		a.functions = a.functions || definers[name]
		a.disowns, a.opens = a.disowns || name == "disown", a.opens || name == "exec"
		assigns := !assignsNone[name] || len(c.Assigns) > 0 // those stay before some, in posix mode
		switch name {
		case "printf":
			if len(words) > 1 && (words[1] == "" || words[1][0] == '-') {
				assigns = true
				a.functions = a.functions || len(words) < 3 || !variableName.MatchString(words[2])
			}
		case "eval":
			a.eval(words[1:])
		case "set":
			if arguments(words) {
				a.functions, a.held = true, "set --"
			}
		case "read":
			a.functions = a.functions || slices.ContainsFunc(words[1:], func(w string) bool { return w == "" || strings.Contains(w, "[") })
		}
		a.assignsAny = a.assignsAny || assigns
	}
	if why := needsSubshell(words); why != "" && a.subshell == "" {
		a.subshell = why
	}
	if name == "exec" && len(words) == 1 || name == "trap" && len(words) > 2 {
		a.held = name
	}
}

// eval takes in what an eval runs, where that stands in the text.
func (a *analysis) eval(words []string) {
	if slices.Contains(words, "") {
		return // it is expanded, or empty
	}
	text := strings.Join(words, " ")
	a.evals++
	if inner, _ := parse(text); inner != nil && a.evals <= evalMost {
		a.file(inner)
	} else if why := wild(text); why != "" && a.subshell == "" {
		a.subshell = why
	}
}

// arguments tells whether a set may change the positional parameters.
func arguments(words []string) bool {
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case w == "" || w[0] != '-' && w[0] != '+' || w == "-" || w == "--":
			return true
		case strings.HasSuffix(w, "o"):
			i++
		}
	}
	return false
}

// needsSubshell names what would end or bend the shell itself.
func needsSubshell(words []string) string {
	switch words[0] {
	case "exit", "logout":
		return words[0]
	case "exec":
		if len(words) > 1 {
			return "exec"
		}
	case "set":
		for i, w := range words[1:] {
			if w == "--" {
				break
			}
			if strings.HasPrefix(w, "-") && strings.Contains(w, "e") && !strings.HasPrefix(w, "--") {
				return "set -e"
			}
			if w == "errexit" && i > 0 {
				return "set -o errexit"
			}
		}
	case "shopt":
		for _, w := range words[1:] {
			if w == "errexit" {
				return "shopt -o errexit"
			}
		}
	case "ulimit": // what was lowered cannot be raised again
		for _, w := range words[1:] {
			if !strings.HasPrefix(w, "-") {
				return "ulimit"
			}
		}
	case "trap":
		for _, w := range words[1:] {
			if w == "EXIT" || w == "0" || strings.EqualFold(w, "exit") {
				return "trap EXIT"
			}
		}
	}
	return ""
}

// literal is the text of a word that has no expansion, without its quotes; "" otherwise.
func literal(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			if p.Dollar {
				return ""
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				l, ok := q.(*syntax.Lit)
				if !ok {
					return ""
				}
				b.WriteString(l.Value)
			}
		default:
			return ""
		}
	}
	return b.String()
}
