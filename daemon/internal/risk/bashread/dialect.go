package bashread

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/programs"
)

// The reader knows bash. A text for zsh or fish is judged as if it were for bash, and is trusted only as far as that shell
// gives it the same meaning: of zsh, what its parser reads, without the nodes and characters below that mean something else
// there; of fish, simple commands and lists of them, in plain words. Anything else counts as not read, and so is never low.

// parser returns the reader's parser, for the dialect that the text is for; fish text is read as bash.
func (r *Reader) parser() *syntax.Parser {
	if r.syntax == nil {
		r.syntax = syntax.NewParser()
	}
	variant := syntax.LangBash
	if r.Dialect == "zsh" {
		variant = syntax.LangZsh
	}
	syntax.Variant(variant)(r.syntax)
	return r.syntax
}

// parse returns the statements of a text, or those before the first error.
func (r *Reader) parse(text string) (list []*syntax.Stmt, err error) {
	r.Spend(1 + len(text)/BytesParsed)
	for s, e := range r.parser().StmtsSeq(strings.NewReader(text)) {
		// Never left early: the parser goes on yielding after an error, and that panics (sh 3.14.1, "<<E; \n").
		if e != nil && err == nil {
			err = e
		}
		if s != nil && err == nil {
			list = append(list, s)
		}
	}
	r.foreign(text, list)
	return list, err
}

// foreign notes the first thing in a text that its shell may take in another way than bash.
func (r *Reader) foreign(text string, list []*syntax.Stmt) {
	same, found := r.sameInZsh, false
	switch r.Dialect {
	case "", "bash":
		return
	case "zsh":
	default:
		if r.Dialect != "fish" || !fishText().MatchString(text) || strings.Contains(text, "**") {
			r.Judge.Unread(r.at(0, len(text)), "what "+r.Dialect+" makes of it is not known here")
			return
		}
		same = r.sameInFish
	}
	for _, s := range list {
		syntax.Walk(s, func(n syntax.Node) bool {
			if n != nil && !found && !same(n) {
				r.Judge.Unread(r.span(n), "what "+r.Dialect+" makes of it is not known here")
				found = true
			}
			return !found
		})
	}
}

var (
	// zshWord matches words that zsh expands in another way: =NAME is a program's path, ^ at the beginning excludes, ~NAME may
	// be any folder, and $NAME:h is a part of the value.
	zshWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[=^]|^~[^/]|\$(\w+|[@*#?$!-]):`) })
	// fishText matches texts of plain words, quotes, lists and redirections, which fish takes as bash does.
	fishText = sync.OnceValue(func() *regexp.Regexp {
		word := `(?:[-\w./:,+=@*]|'[^'\\]*'|"[^"\\$\x60]*")`
		return regexp.MustCompile(`^(?:\s|\\\n|(?:^|\s)(?:~/|(?m:#[^\n]*$))|` + word + `|&&|[;|]|(?:\d*>>?|<)\s*(?:~/|` + word + `)|\d*>&[\d-])*$`)
	})
)

// sameInFish reports whether fish takes a node of a text that fishText matches as bash does.
func (r *Reader) sameInFish(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		return n.Cmd != nil
	case *syntax.CallExpr:
		return r.sameCall(n, false)
	case syntax.Command:
		_, list := n.(*syntax.BinaryCmd)
		return list
	}
	return true
}

// sameInZsh reports whether zsh takes a node as bash does.
func (r *Reader) sameInZsh(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		return !n.Disown && !n.Coprocess && (n.Cmd != nil || len(n.Redirs) == 0) // without a command zsh runs cat
	case *syntax.CallExpr:
		return r.sameCall(n, true)
	case *syntax.Redirect:
		op := n.Op.String()
		return (n.N == nil || Digits(n.N.Value)) && (op == ">|" || !strings.HasSuffix(op, "|"))
	case *syntax.Word:
		return !zshWord().MatchString(r.text(n.Pos(), n.End())) && !slices.ContainsFunc(n.Parts, zshPattern)
	case *syntax.DblQuoted:
		return !n.Dollar
	case *syntax.Assign:
		return n.Array == nil && n.Index == nil
	case *syntax.DeclClause:
		return n.Variant.Value == "export"
	case *syntax.FuncDecl:
		return n.Name != nil
	case *syntax.ForClause:
		_, words := n.Loop.(*syntax.WordIter)
		return words && !n.Select
	case *syntax.ParamExp: // $NAME or ${NAME}, with a default or with something cut off
		bare := syntax.ParamExp{Dollar: n.Dollar, Rbrace: n.Rbrace, Short: n.Short, Length: n.Length, Param: n.Param, Repl: n.Repl, Exp: n.Exp}
		return n.Param != nil && reflect.DeepEqual(*n, bare)
	case *syntax.ProcSubst:
		return n.Op == syntax.CmdIn || n.Op == syntax.CmdOut
	case *syntax.CmdSubst:
		return !inShell(n)
	case *syntax.Comment, *syntax.Lit, *syntax.SglQuoted, *syntax.BinaryCmd, *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.CaseClause, *syntax.CaseItem,
		*syntax.TestClause, *syntax.BinaryTest, *syntax.UnaryTest, *syntax.ParenTest, *syntax.TimeClause, *syntax.WordIter,
		*syntax.ArithmExp, *syntax.ArithmCmd, *syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm:
		return true
	}
	return false
}

// zshPattern reports whether a part of a word is unquoted text that is a pattern in zsh alone.
func zshPattern(p syntax.WordPart) bool {
	lit, ok := p.(*syntax.Lit)
	return ok && (strings.ContainsAny(lit.Value, "()<>") || strings.Contains(lit.Value, "/^"))
}

// sharedBuiltins mean the same in all three shells; moreInZsh are those that do in bash and zsh. wordsOfZsh stand before a
// command, which the parser does not know.
var (
	sharedBuiltins = programs.Words(`cd echo exit false pwd printf test true wait`)
	moreInZsh      = programs.Words(`. : [ break command continue eval export jobs kill read return shift source trap type umask unset`)
	wordsOfZsh     = programs.Words(`- coproc foreach nocorrect noglob repeat`)
)

// sameCall reports whether zsh, or else fish, takes a call as bash does. In zsh an alias may be global and stand anywhere.
func (r *Reader) sameCall(c *syntax.CallExpr, zsh bool) bool {
	if len(c.Args) == 0 || len(c.Assigns) > 0 && !zsh {
		return zsh
	}
	name := c.Args[0].Lit()
	switch {
	case zsh && slices.ContainsFunc(c.Args[1:], func(w *syntax.Word) bool { _, alias := r.Aliases[w.Lit()]; return alias }):
		return false
	case name == "":
		return zsh // it is judged as not known
	case name == "cd" && len(c.Args) > 2: // zsh replaces one part of the folder's name
		return false
	case zsh && name == "alias": // with an option it may be one that stands anywhere, or for a file's suffix
		return !slices.ContainsFunc(c.Args[1:], func(w *syntax.Word) bool { return strings.ContainsAny(r.text(w.Pos(), w.End())[:1], "-+\"'$`\\{*?[") })
	case sharedBuiltins[name] || zsh && moreInZsh[name]:
		return true
	}
	return !programs.Builtin(name) && !(zsh && wordsOfZsh[name])
}
