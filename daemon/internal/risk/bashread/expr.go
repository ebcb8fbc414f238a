package bashread

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/programs"
)

// arithm walks an expression of (( )), [[ ]] or an index. An index in it is evaluated in its turn, so that `a[$(rm x)]` runs rm. So is
// the value of every variable in it, which Judge.Assign has walked. x may be nil.
func (r *Reader) arithm(x syntax.Node, st *State) {
	if x == nil {
		return
	}
	assign := func(name syntax.ArithmExpr) {
		if w, ok := name.(*syntax.Word); ok && w.Lit() != "" {
			r.Judge.Assign(w.Lit(), &Field{S: string(TamePart)}, st, Plain, r.span(w))
			st.Set(w.Lit(), Value{Words: []string{string(TamePart)}})
		}
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		r.Spend(1)
		switch n := n.(type) {
		case *syntax.BinaryArithm:
			// Each operator that assigns ends in = and is not a comparison.
			if op := n.Op.String(); strings.HasSuffix(op, "=") && op != "==" && op != "!=" && op != "<=" && op != ">=" {
				assign(n.X)
			}
		case *syntax.UnaryArithm:
			if n.Op == syntax.Inc || n.Op == syntax.Dec {
				assign(n.X)
			}
		case *syntax.Word:
			r.EvalText(r.word(n, st).S, st, r.span(n))
			return false
		}
		return true
	})
}

// EvalText walks text that bash expands once more, as an index or a prompt, for the $(…) and `…` in it.
func (r *Reader) EvalText(s string, st *State, sp Span) {
	if !strings.Contains(s, "$(") && strings.IndexByte(s, '`') < 0 && !strings.Contains(s, "${") {
		return
	}
	r.inside(s, sp, func() {
		r.Spend(1 + len(s)/BytesParsed)
		w, err := r.parser().Document(strings.NewReader(r.src.text))
		if err != nil {
			r.Judge.Unread(sp, "code inside an expression that could not be read")
			return
		}
		r.word(w, st.Clone())
	})
}

// declaration is declare, export, local and the like, with the letters of its options.
type declaration struct {
	word, flags string
	given       bool // it names something
}

func (d *declaration) has(letters string) bool { return strings.ContainsAny(d.flags, letters) }

func (d *declaration) ref() bool { return d.has("n") && d.word != "export" || d.word == "nameref" }

func (d *declaration) kind() Assignment {
	if d.word == "export" && !d.has("n") || d.has("x") {
		return Export
	}
	return Plain
}

// PrintsVariables is what is noted of a command that prints all variables.
const PrintsVariables = "prints all variables, with the secrets among them"

// declare walks declare, export, local, readonly, typeset and nameref.
func (r *Reader) declare(c *syntax.DeclClause, st *State) {
	d := declaration{word: c.Variant.Value}
	for _, as := range c.Args {
		switch {
		case !as.Naked:
			d.given = true
			if f := r.assign(as, st, d.kind()); d.ref() {
				r.Judge.Exported(f.S, st, r.span(as)) // declare -n r=PATH: a later r=… assigns to PATH
			}
		case as.Value != nil:
			r.declareWords(r.words([]*syntax.Word{as.Value}, st), &d, st)
		default:
			r.arithm(as.Index, st)
			if d.given = true; !d.has("fF") {
				r.assignWord(&Field{S: as.Name.Value, Known: true, Span: r.span(as)}, st, d.kind())
			}
		}
	}
	sp := r.span(c)
	switch exports := d.kind() == Export; {
	case !d.given && !d.has("fF"): // without a name they print all variables
		r.Judge.Note(programs.Medium, programs.Secret, sp, PrintsVariables)
	case d.has("fF") && exports:
		r.Judge.Note(programs.High, programs.ShellState, sp, "exports a function, which every bash started later takes over")
	case exports && d.given:
		r.Judge.Note(programs.Medium, programs.ShellState, sp, "exports variables to every command run later in this shell")
	}
}

// declareWords walks the words of a declaration without an = that the parser sees: options, and assignments made by an expansion.
func (r *Reader) declareWords(fs []Field, d *declaration, st *State) {
	for i := range fs {
		switch f := &fs[i]; {
		case f.Known && len(f.S) > 1 && f.S[0] == '-':
			d.flags += f.S[1:]
		case f.Known && len(f.S) > 1 && f.S[0] == '+':
		default:
			d.given = true
			r.assignWord(f, st, d.kind())
			if _, val, _ := strings.Cut(f.S, "="); d.ref() {
				r.Judge.Exported(val, st, f.Span)
			}
			r.EvalText(f.S, st, f.Span)
		}
	}
}

// assignWord walks an assignment that an expansion made: export "$x" with x='PATH=/tmp'.
func (r *Reader) assignWord(f *Field, st *State, kind Assignment) {
	name, val, ok := strings.Cut(f.S, "=")
	if strings.ContainsAny(name, "\x00\x01+") || f.Opaque() && !ok {
		r.Judge.Note(programs.High, programs.ShellState, f.Span, "sets variables whose names are not known here")
		st.Changed = append(st.Changed, "PATH") // the worst that it may be: it concerns every command
		return
	}
	r.EvalText(name, st, f.Span)
	if !ok {
		if kind == Export {
			r.Judge.Exported(name, st, f.Span)
			if v, ok := st.vars[name]; ok {
				v.Handed = true
				st.vars[name] = v
			}
		}
		return
	}
	r.Judge.Assign(name, f.With(val), st, kind, f.Span)
	st.Set(name, Value{Words: []string{val}, Flow: f.Flow, Handed: kind == Export})
}

// assign walks one assignment, and returns what is assigned.
func (r *Reader) assign(as *syntax.Assign, st *State, kind Assignment) Field {
	f, v := Field{Known: true}, Value{Words: []string{""}}
	r.arithm(as.Index, st)
	switch {
	case as.Array != nil:
		var fs []Field
		for _, e := range as.Array.Elems {
			if r.arithm(e.Index, st); e.Value != nil {
				fs = append(fs, r.words([]*syntax.Word{e.Value}, st)...)
			}
		}
		v, f = arguments(fs), Join(fs, Span{})
	case as.Value != nil:
		f = r.word(as.Value, st)
		f.Glob = false // patterns do not count here
		v.Words, v.Flow = []string{f.S}, f.Flow
	}
	f.Span = r.span(as)
	name := as.Name.Value
	r.Judge.Assign(name, &f, st, kind, f.Span)
	old, known := r.lookup(name, st)
	if !known {
		old = Value{Words: []string{string(UnknownPart)}}
	}
	switch {
	case as.Append && !v.Array:
		v.Words = []string{strings.Join(old.Words, " ") + f.S}
	case as.Append, as.Index != nil:
		v = Value{Words: []string{string(UnknownPart)}, Array: true, Flow: v.Flow}
	}
	if as.Append || as.Index != nil {
		v.Flow |= old.Flow
	}
	v.Handed = kind != Plain
	st.Set(name, v)
	return f
}
