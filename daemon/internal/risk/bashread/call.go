package bashread

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/programs"
)

// call walks a simple command as it stands in the text. Its words do not see the assignments before it, which are in inner alone;
// an eval, function or child that it runs does.
func (r *Reader) call(c *syntax.CallExpr, st *State) {
	if len(c.Args) == 0 {
		for _, as := range c.Assigns {
			r.assign(as, st, Plain)
		}
		return
	}
	inner := st
	if len(c.Assigns) > 0 {
		inner = st.Clone()
	}
	for _, as := range c.Assigns {
		r.assign(as, inner, Prefix)
	}
	if name := c.Args[0].Lit(); name != "" && r.alias(name, c, st) {
		return
	}
	fs := r.words(c.Args, st)
	if inner != st {
		r.Judge.Command(slices.Clone(fs), inner, r.span(c))
	}
	r.Judge.Command(fs, st, r.span(c))
}

// alias expands an alias, as bash does before it parses, by each value that the name may have there, and walks each result. It reports
// whether it did: not if the name is no alias, or is being expanded already.
func (r *Reader) alias(name string, c *syntax.CallExpr, st *State) bool {
	values := r.Aliases[name]
	if len(values) == 0 || slices.Contains(r.Active, "alias "+name) {
		return false
	}
	r.Active = append(r.Active, "alias "+name)
	before := st.Clone()
	for i, value := range values {
		one := st
		if i > 0 {
			one = before.Clone()
		}
		r.Inline(value+" "+r.text(c.Args[0].End(), c.End()), r.span(c), one)
		if i > 0 {
			st.join(one)
		}
	}
	r.Active = r.Active[:len(r.Active)-1]
	return true
}

// text returns a part of the text that is being walked.
func (r *Reader) text(from, to syntax.Pos) string {
	end := min(int(to.Offset()), len(r.src.text))
	return r.src.text[min(int(from.Offset()), end):end]
}

// Function walks the body of the function that a command calls, if it calls one. known is false if that body is not known.
func (r *Reader) Function(fs []Field, st *State, sp Span) (called, known bool) {
	name := fs[0].S
	fn, ok := st.funcs[name]
	if !ok {
		body, live := r.Functions[name]
		switch {
		case !live, r.Dialect == "fish" && programs.Known(name): // fish wraps everyday programs in functions of their names
			return false, true
		case strings.TrimSpace(body) == "" || r.Dialect == "fish":
			return true, false
		}
		if fn, ok = r.liveFunction(body, sp); !ok {
			return true, false
		}
		st.funcs[name] = fn // it is parsed once
	}
	id := fn.id()
	if slices.Contains(r.Active, id) {
		return true, true // recursion: its body is being judged
	}
	r.Active = append(r.Active, id)
	args, argsOK, src := st.Args, st.ArgsOK, r.src
	st.Args, st.ArgsOK = fs[1:], !slices.ContainsFunc(fs[1:], func(f Field) bool { return f.Many })
	if r.src = fn.src; fn.src.text != src.text || src.outer != nil { // not in the outermost text: what is found in it stands at the call
		r.src.outer = &sp
	}
	r.stmt(fn.body, st)
	r.src = src
	st.Args, st.ArgsOK = args, argsOK
	r.Active = r.Active[:len(r.Active)-1]
	return true, true
}

// liveFunction parses the body of a function of the live shell.
func (r *Reader) liveFunction(body string, sp Span) (fn Function, ok bool) {
	r.inside(body, sp, func() {
		list, err := r.parse(r.src.text)
		if err != nil || len(list) == 0 {
			return
		}
		fn, ok = Function{src: r.src, body: &syntax.Stmt{Cmd: &syntax.Block{Stmts: list}}}, true
		if decl, is := list[0].Cmd.(*syntax.FuncDecl); is && len(list) == 1 {
			fn.body = decl.Body
		}
	})
	return fn, ok
}
