package risk

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect judges one redirection (T3f) and remembers what a command will read.
func (a *analysis) redirect(r *syntax.Redirect, st *state) {
	if r.Hdoc != nil {
		f := a.quotedWord(r.Hdoc, st)
		st.stdin = stdin{flow: f.flow, any: true}
		if f.known {
			text := f.s
			st.stdin.text = &text
		}
		return
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return
	case syntax.WordHdoc:
		f := a.quotedWord(r.Word, st)
		st.stdin = stdin{flow: f.flow, any: true}
		if f.known {
			text := f.s + "\n"
			st.stdin.text = &text
		}
		return
	}
	fs := a.words([]*syntax.Word{r.Word}, st)
	for i := range fs {
		f := &fs[i]
		f.span = a.span(r)
		switch r.Op {
		case syntax.RdrIn:
			a.touch(Read, f, st, touchOptions{})
			st.stdin = stdin{flow: f.flow | a.fileFlow(f, st), any: true}
			if len(r.Word.Parts) == 1 {
				if ps, ok := r.Word.Parts[0].(*syntax.ProcSubst); ok && len(ps.Stmts) == 1 {
					st.stdin.list, _ = a.listing(ps.Stmts[0], st)
				}
			}
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut, syntax.RdrAllClob, syntax.AppAllClob, syntax.AppClob:
			a.touch(Write, f, st, touchOptions{appends: r.Op == syntax.AppOut || r.Op == syntax.AppAll || r.Op == syntax.AppClob || r.Op == syntax.AppAllClob})
		case syntax.DplOut, syntax.DplIn:
			if f.s == "-" || isDigits(strings.TrimSuffix(f.s, "-")) {
				continue
			}
			if r.Op == syntax.DplOut {
				a.touch(Write, f, st, touchOptions{})
			} else if !f.known {
				a.note(Medium, Unknown, f.span, "reads from a descriptor that is not known")
			}
		default:
			a.touch(Write, f, st, touchOptions{})
		}
	}
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
