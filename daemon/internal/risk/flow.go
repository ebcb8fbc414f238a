package risk

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// knownPath returns the one absolute path that a redirection was found to name, "" when that cannot be told.
func (a *analysis) knownPath(r *syntax.Redirect, st *state) string {
	fs := a.kept[r]
	if len(fs) != 1 || !fs[0].known || fs[0].glob {
		return ""
	}
	return a.fileKey(&fs[0], st)
}

// literalOutput returns what a statement that was just walked prints, where that is certain: echo, printf, cat of a
// here-document, and pipes of such commands.
func (a *analysis) literalOutput(s *syntax.Stmt, st *state) *string {
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe && len(a.kept[b]) == 1 {
		return &a.kept[b][0].s
	}
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 || s.Background {
		return nil
	}
	switch name := c.Args[0].Lit(); name {
	case "base64", "base32", "xxd", "rev", "tr":
		cat := &syntax.Stmt{Cmd: &syntax.CallExpr{Args: []*syntax.Word{{Parts: []syntax.WordPart{&syntax.Lit{Value: "cat"}}}}}, Redirs: s.Redirs}
		plain := &syntax.Stmt{Cmd: c}
		return a.literalFilter(plain, stdin{text: a.literalOutput(cat, st)})
	case "cat":
		if len(c.Args) > 1 && !(len(c.Args) == 2 && c.Args[1].Lit() == "-") {
			return nil
		}
		for _, r := range s.Redirs {
			if text := a.kept[r]; (r.Hdoc != nil || r.Op == syntax.WordHdoc) && len(text) == 1 && text[0].known {
				return &text[0].s
			}
		}
		return nil
	case "echo", "printf":
	default:
		return nil
	}
	plain := *s
	plain.Redirs = nil
	out, ok := a.outputOf(&plain, st)
	if !ok || strings.ContainsAny(out, "\x00\x01") {
		return nil
	}
	return &out
}

// literalFilter tells what a part of a pipe passes on where that is certain: cat and tee pass everything, and base64 and
// xxd can be undone.
func (a *analysis) literalFilter(s *syntax.Stmt, in stdin) *string {
	if in.text == nil {
		return nil
	}
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return nil
	}
	words := make([]string, 0, len(c.Args))
	for _, w := range c.Args {
		words = append(words, w.Lit())
	}
	switch words[0] {
	case "cat":
		if len(words) == 1 {
			return in.text
		}
	case "tee":
		return in.text
	case "base64", "base32", "xxd", "rev", "tr":
		a.spend(1 + len(*in.text)/bytesParsed)
		return decoded(words, *in.text)
	}
	return nil
}

// listing returns what the lines that a statement prints are paths below, once it was walked: find, git ls-files, grep -l and
// the like, also behind filters that only pick lines. The result may hold a pattern.
func (a *analysis) listing(s *syntax.Stmt, st *state) (string, bool) {
	if s == nil || s.Background {
		return "", false
	}
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe {
		if !picksLines(b.Y) {
			return "", false
		}
		return a.listing(b.X, st)
	}
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return "", false
	}
	name := c.Args[0].Lit()
	switch name {
	case "find", "fd", "fdfind", "git", "grep", "rg", "ls", "egrep", "ag":
	default:
		return "", false
	}
	fs := a.kept[c]
	if len(fs) == 0 {
		return "", false
	}
	var roots []string
	pick := ""
	for i := 1; i < len(fs); i++ {
		f := &fs[i]
		if !f.known && !f.glob {
			return "", false
		}
		switch {
		case name == "find" && (strings.HasPrefix(f.s, "-exec") || strings.HasPrefix(f.s, "-ok") || strings.Contains(f.s, "print") && f.s != "-print" && f.s != "-print0"):
			return "", false
		case name == "find" && (f.s == "-name" || f.s == "-iname") && i+1 < len(fs):
			pick = fs[i+1].s
		}
	}
	switch name {
	case "find":
		for _, f := range fs[1:] {
			if f.s != "" && (f.s[0] == '-' || f.s[0] == '(' || f.s[0] == '!') {
				break
			}
			roots = append(roots, f.s)
		}
	case "git":
		if len(fs) < 2 {
			return "", false
		}
		switch fs[1].s {
		case "ls-files":
			return a.orHere(st) + "/*", true
		case "diff", "show", "log", "diff-tree", "ls-tree":
			for _, f := range fs[2:] {
				if f.s == "--name-only" {
					return a.projectOr(st) + "/*", true
				}
			}
		}
		return "", false
	case "fd", "fdfind":
		if len(fs) > 2 {
			roots = append(roots, ".")
		}
	case "ls":
		for _, f := range fs[1:] {
			if strings.HasPrefix(f.s, "-") {
				if strings.ContainsAny(f.s, "lais") {
					return "", false
				}
				continue
			}
			roots = append(roots, f.s)
		}
	default: // grep -l
		lists, pattern := false, false
		for _, f := range fs[1:] {
			switch {
			case f.s == "--files-with-matches" || f.s == "--files" || f.s == "--files-without-match" || strings.HasPrefix(f.s, "-") && !strings.HasPrefix(f.s, "--") && strings.ContainsAny(f.s, "lL"):
				lists = true
				pattern = pattern || f.s == "--files"
			case strings.HasPrefix(f.s, "-"):
			case !pattern:
				pattern = true
			default:
				roots = append(roots, f.s)
			}
		}
		if !lists {
			return "", false
		}
	}
	switch {
	case len(roots) > 1:
		return "", false
	case len(roots) == 0:
		roots = []string{"."}
	}
	if pick == "" || strings.Contains(pick, "/") {
		pick = "*"
	}
	return strings.TrimRight(roots[0], "/") + "/" + pick, true
}

func (a *analysis) orHere(st *state) string {
	if st.cwd == "" {
		return "."
	}
	return st.cwd
}

func (a *analysis) projectOr(st *state) string {
	if a.c.ProjectRoot != "" && under(st.cwd, a.c.ProjectRoot) {
		return a.c.ProjectRoot
	}
	return a.orHere(st)
}

// picksLines tells that a part of a pipe passes whole lines on, some of them.
func picksLines(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return false
	}
	switch c.Args[0].Lit() {
	case "head", "tail", "sort", "uniq", "shuf", "grep", "egrep", "fgrep", "cat":
	default:
		return false
	}
	for _, w := range c.Args[1:] {
		if l := w.Lit(); strings.HasPrefix(l, "-") && !strings.HasPrefix(l, "--") && strings.ContainsAny(l, "onclHh") && c.Args[0].Lit() != "head" && c.Args[0].Lit() != "tail" && c.Args[0].Lit() != "sort" || strings.HasPrefix(l, "--o") {
			return false // prints parts of lines, or something before them
		}
	}
	return true
}
