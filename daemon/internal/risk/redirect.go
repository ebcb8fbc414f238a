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
			st.stdin.text = &f.s
		}
		a.keep(r, []field{f})
		return
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return
	case syntax.WordHdoc:
		f := a.quotedWord(r.Word, st)
		st.stdin = stdin{flow: f.flow, any: true}
		f.s += "\n"
		if f.known {
			st.stdin.text = &f.s
		}
		a.keep(r, []field{f})
		return
	}
	fs := a.words([]*syntax.Word{r.Word}, st)
	a.keep(r, fs)
	for i := range fs {
		f := &fs[i]
		f.span = a.span(r)
		switch r.Op {
		case syntax.RdrIn:
			a.touch(Read, f, st, touchOptions{})
			st.stdin = stdin{flow: f.flow | a.fileFlow(f, st), any: true}
			if a.toNet(f) {
				st.stdin.flow |= flowNet
			}
			if len(r.Word.Parts) == 1 {
				if ps, ok := r.Word.Parts[0].(*syntax.ProcSubst); ok && len(ps.Stmts) == 1 {
					st.stdin.list, _ = a.listing(ps.Stmts[0], st)
				}
			}
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut, syntax.RdrAllClob, syntax.AppAllClob, syntax.AppClob:
			a.toNet(f)
			a.touch(Write, f, st, touchOptions{appends: r.Op == syntax.AppOut || r.Op == syntax.AppAll || r.Op == syntax.AppClob || r.Op == syntax.AppAllClob})
		case syntax.DplOut, syntax.DplIn:
			if f.s == "-" || isDigits(strings.TrimSuffix(f.s, "-")) {
				// 0>&1 and <&5 where a descriptor is a connection: which one it is, is not followed.
				if in := r.N == nil && r.Op == syntax.DplIn || r.N != nil && r.N.Value == "0"; in && a.facts.netfd {
					st.stdin = stdin{flow: flowNet, any: true}
				}
				continue
			}
			if r.Op == syntax.DplOut {
				a.toNet(f)
				a.touch(Write, f, st, touchOptions{})
			} else if !f.known {
				a.note(Medium, Unknown, f.span, "reads from a descriptor that is not known")
			}
		default:
			a.touch(Write, f, st, touchOptions{})
		}
	}
}

// toNet tells that a redirection opens a connection, and remembers it.
func (a *analysis) toNet(f *field) bool {
	net := strings.HasPrefix(f.s, "/dev/tcp/") || strings.HasPrefix(f.s, "/dev/udp/")
	a.facts.netfd = a.facts.netfd || net
	return net
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
