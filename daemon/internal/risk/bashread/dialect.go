package bashread

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/programs"
)

// The reader knows bash. A text for zsh or fish is judged as if it were for bash, and is trusted only as far as that shell
// gives it the same meaning: of zsh, what its parser reads, without the nodes and characters below that mean something else
// there; of fish, simple commands and lists of them, in plain words. Anything else counts as not read, and so is never low.

// parsers are of the dialect that a text is for; fish text is read by the parser of bash.
var parsers = map[bool]*sync.Pool{
	false: {New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }},
	true:  {New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangZsh)) }},
}

// parse returns the statements of a text, or those before the first error.
func (r *Reader) parse(text string) (list []*syntax.Stmt, err error) {
	r.Spend(1 + len(text)/BytesParsed)
	pool := parsers[r.Dialect == "zsh"]
	p := pool.Get().(*syntax.Parser)
	for s, e := range p.StmtsSeq(strings.NewReader(text)) {
		// Never left early: the parser goes on yielding after an error, and that panics (sh 3.14.1, "<<E; \n").
		if e != nil && err == nil {
			err = e
		}
		if s != nil && err == nil {
			list = append(list, s)
		}
	}
	pool.Put(p) // not after a panic
	r.foreign(list)
	return list, err
}

// sameIn has, for each shell, the function that reports whether the shell takes a node as bash does. In a shell that has none,
// no node is the same.
var sameIn = map[string]func(n syntax.Node, aliases map[string]string) bool{"zsh": sameInZsh, "fish": sameInFish}

// foreign notes the first thing in a text that its shell may take in another way than bash.
func (r *Reader) foreign(list []*syntax.Stmt) {
	if r.Dialect == "" || r.Dialect == "bash" {
		return
	}
	same, found := sameIn[r.Dialect], false
	var visit func(n syntax.Node) bool
	visit = func(n syntax.Node) bool {
		if n == nil || found {
			return false
		}
		if found = same == nil || !same(n, r.Aliases); found {
			r.Judge.Unread(r.span(n), "what "+r.Dialect+" makes of it is not known here")
			return false
		}
		q, quoted := n.(*syntax.DblQuoted)
		if quoted { // its literals are text
			for _, p := range q.Parts {
				if _, lit := p.(*syntax.Lit); !lit {
					syntax.Walk(p, visit)
				}
			}
		}
		return !quoted
	}
	for _, s := range list {
		syntax.Walk(s, visit)
	}
}

// sharedBuiltins mean the same in all three shells; moreInZsh are those that do in bash and zsh. wordsOfZsh stand before a
// command, which the parser does not know.
var (
	sharedBuiltins = programs.Words(`cd echo exit false pwd printf test true wait`)
	moreInZsh      = programs.Words(`. : [ break command continue eval export jobs kill read return shift source trap type umask unset`)
	wordsOfZsh     = programs.Words(`- coproc foreach nocorrect noglob repeat`)
)

// sameCall reports whether a call's name means the same in zsh, or in fish.
func sameCall(c *syntax.CallExpr, fish bool) bool {
	if len(c.Args) == 0 {
		return true
	}
	name := c.Args[0].Lit()
	switch {
	case name == "":
		return !fish // it is judged as not known
	case name == "cd" && len(c.Args) > 2: // zsh replaces one part of the folder's name
		return false
	case sharedBuiltins[name] || !fish && moreInZsh[name]:
		return true
	case name == "alias" && !fish: // with an option it may be one that stands anywhere, or for a file's suffix
		return !slices.ContainsFunc(c.Args[1:], func(w *syntax.Word) bool {
			if len(w.Parts) == 0 {
				return true
			}
			lit, ok := w.Parts[0].(*syntax.Lit)
			return !ok || strings.HasPrefix(lit.Value, "-") || strings.HasPrefix(lit.Value, "+")
		})
	}
	return !programs.Builtin(name) && (fish || !wordsOfZsh[name])
}

func sameRedirect(rd *syntax.Redirect) bool {
	return (rd.N == nil || strings.Trim(rd.N.Value, "0123456789") == "") && rd.Op != syntax.AppClob && rd.Op != syntax.RdrAllClob && rd.Op != syntax.AppAllClob
}

// sameInZsh reports whether zsh takes a node as bash does. aliases may be global ones, which stand anywhere.
func sameInZsh(n syntax.Node, aliases map[string]string) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		return !n.Disown && !n.Coprocess && (n.Cmd != nil || len(n.Redirs) == 0) // without a command zsh runs cat
	case *syntax.CallExpr:
		return sameCall(n, false) && !slices.ContainsFunc(n.Args[min(1, len(n.Args)):], func(w *syntax.Word) bool {
			_, alias := aliases[w.Lit()]
			return alias
		})
	case *syntax.Redirect:
		return sameRedirect(n)
	case *syntax.Assign:
		return n.Array == nil && n.Index == nil
	case *syntax.DeclClause:
		return n.Variant.Value == "export"
	case *syntax.FuncDecl:
		return n.Name != nil
	case *syntax.ForClause:
		_, words := n.Loop.(*syntax.WordIter)
		return words && !n.Select
	}
	return samePart(n)
}

// samePart reports whether zsh takes a node below a command as bash does.
func samePart(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Word:
		return sameWord(n.Parts)
	case *syntax.DblQuoted:
		return !n.Dollar && sameParts(n.Parts)
	case *syntax.Lit:
		return !strings.ContainsAny(n.Value, "()<>") && !strings.Contains(n.Value, "/^")
	case *syntax.ParamExp:
		return plainParam(n)
	case *syntax.ProcSubst:
		return n.Op == syntax.CmdIn || n.Op == syntax.CmdOut
	case *syntax.CmdSubst:
		return !n.TempFile && !n.ReplyVar
	case *syntax.BinaryCmd, *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.CaseClause, *syntax.CaseItem,
		*syntax.TestClause, *syntax.BinaryTest, *syntax.UnaryTest, *syntax.ParenTest, *syntax.TimeClause, *syntax.WordIter,
		*syntax.ArithmExp, *syntax.ArithmCmd, *syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm, *syntax.SglQuoted, *syntax.Comment:
		return true
	}
	return false
}

// plainParam reports whether an expansion is $NAME or ${NAME}, with a default or with something cut off.
func plainParam(n *syntax.ParamExp) bool {
	bare := syntax.ParamExp{Dollar: n.Dollar, Rbrace: n.Rbrace, Short: n.Short, Length: n.Length, Param: n.Param, Repl: n.Repl, Exp: n.Exp}
	return n.Param != nil && reflect.DeepEqual(*n, bare)
}

// sameWord reports whether zsh expands a word as bash does: =NAME is a program's path there, ~NAME may be any folder, and ^
// at the beginning excludes.
func sameWord(parts []syntax.WordPart) bool {
	if len(parts) == 0 {
		return true
	}
	if lit, ok := parts[0].(*syntax.Lit); ok {
		v := lit.Value
		if strings.HasPrefix(v, "=") || strings.HasPrefix(v, "^") || strings.HasPrefix(v, "~") && v != "~" && v[1] != '/' {
			return false
		}
	}
	return sameParts(parts)
}

// sameParts reports whether no variable is followed by what zsh takes for a modifier of it: $file:h.
func sameParts(parts []syntax.WordPart) bool {
	for i := range parts {
		if p, ok := parts[i].(*syntax.ParamExp); ok && p.Short && i+1 < len(parts) {
			if lit, ok := parts[i+1].(*syntax.Lit); ok && strings.HasPrefix(lit.Value, ":") {
				return false
			}
		}
	}
	return true
}

// fishPlain are characters that fish takes as bash does.
const fishPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+=@*"

// sameInFish reports whether fish takes a node as bash does.
func sameInFish(n syntax.Node, _ map[string]string) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		_, call := n.Cmd.(*syntax.CallExpr)
		_, list := n.Cmd.(*syntax.BinaryCmd)
		return (call || list) && !n.Negated && !n.Coprocess && !n.Background
	case *syntax.BinaryCmd:
		return slices.Contains([]syntax.BinCmdOperator{syntax.AndStmt, syntax.OrStmt, syntax.Pipe}, n.Op)
	case *syntax.CallExpr:
		return len(n.Assigns) == 0 && sameCall(n, true)
	case *syntax.Redirect:
		return n.Hdoc == nil && sameRedirect(n) && slices.Contains([]syntax.RedirOperator{syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.DplOut}, n.Op)
	case *syntax.Word:
		return true
	case *syntax.Lit:
		return !strings.Contains(n.Value, "**") && strings.Trim(strings.TrimPrefix(n.Value, "~/"), fishPlain) == ""
	case *syntax.SglQuoted:
		return !n.Dollar && !strings.Contains(n.Value, `\`)
	case *syntax.DblQuoted:
		for _, p := range n.Parts {
			if lit, ok := p.(*syntax.Lit); !ok || strings.ContainsAny(lit.Value, `\$`) {
				return false
			}
		}
		return !n.Dollar
	case *syntax.Comment:
		return true
	}
	return false
}
