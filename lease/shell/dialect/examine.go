package dialect

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// The parser takes more than linear time, and deep nesting overflows its stack: a text beyond these limits is not parsed.
const (
	parseMost = 8 << 10 // bytes
	nestMost  = 100     // brackets and quotes
)

// Examine examines a text that the parser reads as lang. A text that it cannot read may change everything. known reports whether
// a name is an alias or a function; nil means that none is. For fish, no part of a text counts as run in a subshell, and set is not that of
// sh. If the result's Ends is set, its Text is a subshell; fish has none, so its dialect refuses such a text.
func Examine(lang syntax.LangVariant, fish bool, text string, known func(name string) bool) Examination {
	e := Examination{Changes: true, Text: text}
	if strings.ContainsRune(text, 0) {
		e.Refused = "the command holds a NUL byte"
		return e
	}
	// fish takes \' inside of '…' for a quote character, the parser for the end of the quotes.
	if file := parse(lang, text); file == nil || fish && strings.Contains(text, `\'`) {
		e.Ends = endingWords(fish).MatchString(text)
		if m := lastingWords().FindStringSubmatch(text); m != nil {
			e.Lasts = m[1]
		}
	} else {
		x := examiner{known: known, fish: fish}
		syntax.Walk(file, x.visit)
		e.Changes, e.Ends, e.Lasts = x.changes, x.ends, x.lasts
		switch {
		case x.changes:
		case len(file.Stmts) == 1 && isPipeline(file.Stmts[0]):
			e.Job = text
		case !fish && !x.jobs:
			e.Job = inSubshell(text)
		}
	}
	if e.Ends {
		e.Changes = false
		e.Text = inSubshell(text)
		e.Job = e.Text
	}
	return e
}

func inSubshell(text string) string { return "(\n" + text + "\n)" }

// isPipeline reports whether a statement is a simple command or a pipeline of them.
func isPipeline(s *syntax.Stmt) bool {
	if s.Background || s.Disown || s.Negated {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return true
	case *syntax.BinaryCmd:
		return (c.Op == syntax.Pipe || c.Op == syntax.PipeAll) && isPipeline(c.X) && isPipeline(c.Y)
	}
	return false
}

func parse(lang syntax.LangVariant, text string) *syntax.File {
	if len(text) > parseMost || !utf8.ValidString(text) || strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "`") > nestMost {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(text+"\n"), "")
	if err != nil {
		return nil
	}
	return file
}

// endingWords finds what may end the shell in a text that cannot be parsed. In fish, set -e erases a variable.
func endingWords(fish bool) *regexp.Regexp {
	if fish {
		return endingFish()
	}
	return endingOthers()
}

var (
	endingFish   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(exit|logout|exec)\b`) })
	endingOthers = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(exit|logout|exec|errexit)\b|\bset\s+[-+]\w*e`) })
)

// prefixes are words that stand before a command; the last four are fish's, -p and -- are options of command and builtin.
var prefixes = map[string]bool{
	"command": true, "builtin": true, "noglob": true, "nocorrect": true, "-p": true, "--": true, "and": true, "begin": true, "not": true, "or": true,
}

// changing are builtins that may change the shell's state.
var changing = map[string]bool{
	".": true, "source": true, "alias": true, "unalias": true, "autoload": true, "bg": true, "bind": true, "bindkey": true, "builtin": true,
	"cd": true, "chdir": true, "command": true, "compdef": true, "complete": true, "compopt": true, "declare": true, "dirs": true, "disable": true,
	"disown": true, "emulate": true, "enable": true, "eval": true, "exec": true, "exit": true, "export": true, "fc": true, "fg": true, "float": true,
	"functions": true, "getopts": true, "hash": true, "history": true, "integer": true, "let": true, "local": true, "logout": true, "mapfile": true,
	"noglob": true, "popd": true, "print": true, "printf": true, "pushd": true, "read": true, "readarray": true, "readonly": true, "rehash": true,
	"return": true, "sched": true, "set": true, "setopt": true, "shift": true, "shopt": true, "suspend": true, "trap": true, "typeset": true,
	"ulimit": true, "umask": true, "unfunction": true, "unhash": true, "unset": true, "unsetopt": true, "vared": true, "zle": true, "zmodload": true,
	"zstyle": true,
}

// lasting are the builtins that people use for what remains in the shell after the text has run.
var lasting = []string{
	"abbr", "cd", "chdir", "pushd", "popd", "export", "alias", "unalias", "unset", "source", ".", "set", "shopt", "setopt", "unsetopt", "umask", "ulimit", "trap", "hash", "enable", "bind", "bindkey",
}

// lastingWords finds a lasting builtin in a text that cannot be parsed, and fish's function, which defines one.
var lastingWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[;&|(\n]|\b(?:and|or|not|if|begin|else)\s)\s*(cd|pushd|popd|export|set|alias|abbr|source|umask|function|bind)\b`)
})

// examiner collects what Examination reports.
type examiner struct {
	known         func(name string) bool
	fish          bool
	changes, ends bool
	jobs          bool // it starts or names jobs of the shell
	lasts         string
}

// visit examines what runs in the shell itself. Subshells change nothing in it; false leaves them out of the walk.
func (x *examiner) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Subshell, *syntax.ProcSubst:
		return x.fish
	case *syntax.CmdSubst:
		return x.fish || n.TempFile || n.ReplyVar // ${ cmd; } and ${| cmd; } run in the shell itself
	case *syntax.Redirect:
		x.changes = x.changes || n.N != nil && strings.HasPrefix(n.N.Value, "{") // {name}>file stays open
	case *syntax.Stmt:
		background := n.Background || n.Disown // zsh: &!
		x.jobs = x.jobs || background
		return !background || x.fish
	case *syntax.CallExpr:
		x.call(n)
	case *syntax.ParamExp: // ${x:=y}; arithmetic may assign: ${x[i=1]}, ${x:i=1}
		x.changes = x.changes || n.Exp != nil || n.Excl || n.Slice != nil || n.Index != nil
	case *syntax.DeclClause:
		x.changes = true
		if x.lasts == "" && n.Variant.Value == "export" {
			x.lasts = "export"
		}
	case *syntax.FuncDecl, *syntax.ForClause, *syntax.LetClause, *syntax.ArithmCmd, *syntax.ArithmExp,
		*syntax.CoprocClause, *syntax.TestClause:
		x.changes = true
	}
	return true
}

// call examines a simple command by the first word that is none of prefixes. After a prefix every command counts as a change.
func (x *examiner) call(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		x.changes = true
		return
	}
	var words []string
	for _, w := range c.Args {
		words = append(words, literal(w))
	}
	for len(words) > 1 && prefixes[words[0]] {
		words = words[1:]
		x.changes = true
	}
	name := words[0]
	if x.lasts == "" && slices.Contains(lasting, name) {
		x.lasts = name
	}
	switch {
	case name == "" || name != "[" && strings.ContainsAny(name, "{*?[=~"): // the shell expands it, zsh also =name
		x.changes = true
	case x.known != nil && x.known(name), changing[name]:
		x.changes = true
	case name == ":" && len(c.Assigns) > 0, name == "test" || name == "[": // x=1 : lasts under POSIX; test -v 'a[$(…)]' runs code
		x.changes = true
	}
	x.jobs = x.jobs || slices.Contains([]string{"jobs", "kill", "wait"}, name)
	x.ends = x.ends || x.mayEndShell(name, words[1:])
}

// mayEndShell reports whether a command may end or replace the shell, or have a later failure end it. Expanded args are "".
func (x *examiner) mayEndShell(name string, args []string) bool {
	switch name {
	case "exit", "logout":
		return true
	case "exec":
		return len(args) > 0
	case "set", "setopt": // zsh ignores case and underscores of an option; set -e of fish erases a variable
		return !x.fish && slices.ContainsFunc(args, func(w string) bool {
			return strings.EqualFold(strings.ReplaceAll(w, "_", ""), "errexit") || strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "e")
		})
	case "eval": // its text may be cut by expansions, so it is searched and not parsed
		return endingWords(x.fish).MatchString(strings.Join(args, " "))
	}
	return false
}

// literal returns the text of a word that has no expansion, without its quotes; "" otherwise. It is for names: that it drops an
// escaped backslash, and keeps those in "…", matters to none of them.
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
