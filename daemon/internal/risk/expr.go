package risk

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arithm walks an arithmetic expression. An index in it, and the value of every variable, is evaluated in its turn, so
// that `a[$(rm x)]` in any of them runs rm (T3c).
func (a *analysis) arithm(x syntax.ArithmExpr, st *state) {
	a.spend(1)
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		// a+b+c is ((a+b)+c): go down the left side without recursion.
		for {
			a.arithm(x.Y, st)
			if assigns(x.Op) {
				if w, ok := x.X.(*syntax.Word); ok && w.Lit() != "" {
					a.poison(w.Lit(), &field{s: string(tamePart)}, st, assignPlain, a.span(w))
					st.set(w.Lit(), value{words: []string{string(tamePart)}})
				}
			}
			left, ok := x.X.(*syntax.BinaryArithm)
			if !ok {
				a.arithm(x.X, st)
				return
			}
			x = left
		}
	case *syntax.UnaryArithm:
		a.arithm(x.X, st)
	case *syntax.ParenArithm:
		a.arithm(x.X, st)
	case *syntax.FlagsArithm:
		if x.X != nil {
			a.arithm(x.X, st)
		}
	case *syntax.Word:
		a.evalNumber(a.quotedWord(x, st).s, st, a.span(x))
	case nil:
	default:
		a.unreadable(a.span(x), "an arithmetic expression that is not known here")
	}
}

func assigns(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn,
		syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn, syntax.AndBoolAssgn, syntax.OrBoolAssgn, syntax.XorBoolAssgn, syntax.PowAssgn:
		return true
	}
	return false
}

// evalNumber walks text that bash evaluates as a number: the values of the variables that it names are evaluated in their
// turn, each once, so that x=y, y='a[$(rm z)]' and $((x)) run rm.
func (a *analysis) evalNumber(s string, st *state, sp Span) {
	var named map[string]bool
	for texts := []string{s}; len(texts) > 0; texts = texts[1:] {
		s := texts[0]
		a.spend(1 + len(s)/bytesParsed)
		a.evalText(s, st, sp)
		if len(st.vars) == 0 || len(s) > 1024 {
			continue
		}
		for i := 0; i < len(s); {
			end := i
			for end < len(s) && isNameByte(s[end]) {
				end++
			}
			name := s[i:end]
			if v, ok := st.vars[name]; ok && !named[name] && (s[i] < '0' || s[i] > '9') {
				if named == nil {
					named = map[string]bool{}
				}
				named[name] = true
				texts = append(texts, v.words...)
			}
			i = max(end, i+1)
		}
	}
}

// evalText walks text that bash expands once more: what stands in it as $(…) or `…` runs.
func (a *analysis) evalText(s string, st *state, sp Span) {
	if !strings.Contains(s, "$(") && strings.IndexByte(s, '`') < 0 && !strings.Contains(s, "${") {
		return
	}
	a.inside(s, sp, func() {
		a.spend(1 + len(s)/bytesParsed)
		pool := parsers[a.c.Dialect == "zsh"]
		p := pool.Get().(*syntax.Parser)
		w, err := p.Document(strings.NewReader(s))
		pool.Put(p)
		if err != nil || w == nil {
			a.unreadable(sp, "code inside an expression that could not be read")
			return
		}
		a.word(w, st.clone())
	})
}

// inside walks another text in place of a span of this one, after the same guards.
func (a *analysis) inside(text string, sp Span, walk func()) {
	a.spend(1 + len(text)/bytesCopied)
	if len(text) > MaxText || brackets(text) > MaxNesting || a.depth >= maxDepth {
		a.unreadable(sp, "code inside code, too deep or too long to be examined")
		return
	}
	if strings.ContainsAny(text, "\x00\x01") {
		text = strings.NewReplacer("\x00", "$_unknown", "\x01", "0").Replace(text)
	}
	if !plain(text) {
		text = maskInvalid(text)
		if strings.IndexByte(text, '\r') >= 0 {
			a.note(High, Unknown, sp, "holds a carriage return, which can hide text on screen and which shells read differently")
		}
	}
	keep := a.src
	a.src = source{text: text, outer: &sp}
	a.depth++
	walk()
	a.depth--
	a.src = keep
}

// inline judges shell text that a command would run: sh -c, eval, trap and the like.
func (a *analysis) inline(text string, sp Span, st *state) (ends bool) {
	a.inside(text, sp, func() {
		t := a.src.text
		if strings.IndexByte(t, '#') >= 0 && strings.Contains(t, "\\\n") {
			t = a.endComments(t)
			a.src.text = t
		}
		ends = a.program(t, st)
	})
	return ends
}

// test walks the expression of [[ ]].
func (a *analysis) test(x syntax.TestExpr, st *state) {
	a.spend(1)
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if w, ok := side.(*syntax.Word); ok {
					a.arithm(w, st)
				} else {
					a.test(side, st)
				}
			}
		default:
			for {
				a.test(x.Y, st)
				left, ok := x.X.(*syntax.BinaryTest)
				if !ok {
					a.test(x.X, st)
					return
				}
				if left.Op != syntax.AndTest && left.Op != syntax.OrTest {
					a.test(left, st)
					return
				}
				x = left
			}
		}
	case *syntax.UnaryTest:
		if w, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) {
			f := a.quotedWord(w, st)
			a.evalText(f.s, st, a.span(w))
			return
		}
		a.test(x.X, st)
	case *syntax.ParenTest:
		a.test(x.X, st)
	case *syntax.Word:
		a.word(x, st)
	case nil:
	default:
		a.unreadable(a.span(x), "a test that is not known here")
	}
}

// declare walks declare, export, local, readonly, typeset and nameref.
func (a *analysis) declare(c *syntax.DeclClause, st *state) {
	kind := assignPlain
	word := c.Variant.Value
	if word == "export" {
		kind = assignExport
	}
	integer, ref, functions := false, word == "nameref", false
	words, given := 0, false
	for _, as := range c.Args {
		if as.Naked && as.Value != nil {
			fs := a.words([]*syntax.Word{as.Value}, st)
			for i := range fs {
				f := &fs[i]
				switch {
				case f.known && len(f.s) > 1 && (f.s[0] == '-' || f.s[0] == '+'):
					if f.s[0] == '-' {
						integer = integer || strings.ContainsRune(f.s, 'i')
						ref = ref || strings.ContainsRune(f.s, 'n') && word != "export"
						functions = functions || strings.ContainsAny(f.s, "fF")
						if strings.ContainsRune(f.s, 'x') {
							kind = assignExport
						}
						if word == "export" && strings.ContainsRune(f.s, 'n') {
							kind = assignPlain
						}
					}
				case f.known:
					given = true
					a.assignText(f, st, kind)
					if integer || ref {
						a.evalText(f.s, st, f.span)
					}
				default:
					given = true
					if name, _, ok := strings.Cut(f.s, "="); ok && name != "" && !strings.ContainsAny(name, "\x00\x01") {
						a.assignText(f, st, kind)
						break
					}
					a.note(High, ShellState, f.span, "sets variables whose names are not known here").cannotUndo()
					st.changed = append(st.changed, "PATH")
				}
			}
			continue
		}
		words++
		if as.Naked && as.Name != nil {
			if kind == assignExport && !functions {
				a.exported(as.Name.Value, st, a.span(as))
			}
			if as.Index != nil {
				a.arithm(as.Index, st)
			}
			if v, ok := st.vars[as.Name.Value]; ok && (integer || ref) {
				for _, s := range v.words {
					a.evalNumber(s, st, a.span(as))
				}
			}
			if integer {
				st.integer(as.Name.Value)
			}
			continue
		}
		f := a.assign(as, st, kind)
		if integer || ref { // a reference may be to an element, whose index is evaluated
			a.evalNumber(f.s, st, a.span(as))
		}
		if integer && as.Name != nil {
			st.integer(as.Name.Value)
		}
		if ref && as.Name != nil && poisonOf(f.s).level > 0 {
			a.note(High, ShellState, a.span(as), show(as.Name.Value)+" becomes another name for "+show(f.s))
		}
	}
	if words == 0 && !given && !functions { // alone, or with options only, they print all variables
		a.seen |= flowSecret
		a.facts.secret = true
		a.note(Medium, Secret, a.span(c), "prints all variables, with the secrets among them")
	}
	if functions && kind == assignExport {
		a.note(High, ShellState, a.span(c), "exports a function, which every bash started later takes over")
	} else if kind == assignExport && words > 0 {
		a.note(Medium, ShellState, a.span(c), "exports variables to every command run later in this shell").canUndo("unset the variables")
	}
}

type assignKind int

const (
	assignPlain  assignKind = iota // x=1
	assignExport                   // export x=1
	assignPrefix                   // x=1 command
)

// assign evaluates one assignment and judges what it means for later commands.
func (a *analysis) assign(as *syntax.Assign, st *state, kind assignKind) field {
	f := field{known: true}
	v := value{}
	if as.Index != nil {
		a.arithm(as.Index, st)
	}
	switch {
	case as.Array != nil:
		v.array = true
		for _, e := range as.Array.Elems {
			if e.Index != nil {
				a.arithm(e.Index, st)
			}
			if e.Value == nil {
				continue
			}
			for _, x := range a.words([]*syntax.Word{e.Value}, st) {
				v.words = append(v.words, x.s)
				v.flow |= x.flow
				v.glob = v.glob || x.glob
				f.known = f.known && x.known
				f.s = x.s
			}
		}
	case as.Value != nil:
		f = a.quotedWord(as.Value, st)
		v.words, v.flow = []string{f.s}, f.flow
	default:
		v.words = []string{""}
	}
	if as.Name == nil {
		return f
	}
	f.span = a.span(as)
	name := as.Name.Value
	a.poison(name, &f, st, kind, f.span)
	if st.ints[name] {
		for _, s := range v.words {
			a.evalNumber(s, st, f.span)
		}
	}
	old, had := st.vars[name]
	switch {
	case as.Append && v.array:
		if !had {
			old = value{words: []string{string(unknownPart)}}
		}
		v.words = append(append([]string(nil), old.words...), v.words...)
	case as.Append:
		if !had {
			if env, ok := a.lookupVar(name, st); ok {
				old = env
			} else {
				old = value{words: []string{string(unknownPart)}}
			}
		}
		v.words = []string{strings.Join(old.words, " ") + f.s}
		v.flow |= old.flow
	case as.Index != nil:
		v = value{words: []string{string(unknownPart)}, array: true, flow: v.flow | old.flow}
	}
	if len(v.words) > 256 || v.size() > 16<<10 {
		v.words = []string{string(unknownPart)}
	}
	if kind != assignPrefix {
		st.set(name, v)
	}
	return f
}

// assignText is an assignment that came about by expansion: export "$x" with x='PATH=/tmp'.
func (a *analysis) assignText(f *field, st *state, kind assignKind) {
	name, val, ok := strings.Cut(f.s, "=")
	plus := strings.HasSuffix(name, "+")
	name = strings.TrimSuffix(name, "+")
	a.evalText(name, st, f.span)
	if !ok {
		if kind == assignExport {
			a.exported(name, st, f.span)
		}
		return
	}
	v := *f
	v.s = val
	a.poison(name, &v, st, kind, f.span)
	if plus {
		val = string(unknownPart)
	}
	st.set(name, value{words: []string{val}, flow: f.flow})
	if kind == assignExport {
		a.note(Medium, ShellState, f.span, "exports variables to every command run later in this shell")
	}
}
