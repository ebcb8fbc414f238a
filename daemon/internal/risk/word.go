package risk

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Parts of a word that are not known stand in its text as one of these bytes, which no shell word can hold (a text with
// either does not pass the gate unnoticed).
const (
	unknownPart = '\x00' // anything
	tamePart    = '\x01' // something short without slash and blank: a number, a name of the system
)

// field is one word as a program gets it, as far as that can be told.
type field struct {
	s       string
	known   bool // s is exactly what the program gets
	glob    bool // has an unquoted pattern
	quoted  bool // some of it was quoted
	many    bool // may be any number of words
	guarded bool // the unknown part is not empty: ${x:?}
	flow    flow
	span    Span
}

func (f *field) opaque() bool { return strings.IndexByte(f.s, unknownPart) >= 0 }

// words expands words to fields, as bash would: braces, tilde, parameters, substitutions, splitting; patterns stay.
func (a *analysis) words(ws []*syntax.Word, st *state) []field {
	a.spend(len(ws))
	out := make([]field, 0, len(ws)+2)
	for _, w := range ws {
		if l, ok := oneLit(w); ok && tameLiteral(l) {
			out = append(out, field{s: l, known: true, span: a.span(w)})
			continue
		}
		out = a.expand(w, st, out)
	}
	return out
}

func oneLit(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	l, ok := w.Parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	return l.Value, true
}

// tameLiteral tells that the shell leaves a literal as it is.
func tameLiteral(s string) bool {
	return !strings.ContainsAny(s, "\\*?[{~\x00\x01")
}

// word walks a word for what its substitutions do, and returns it unsplit.
func (a *analysis) word(w *syntax.Word, st *state) field {
	b := wordBuilder{a: a, st: st, nosplit: true}
	b.parts(w.Parts, false, true)
	b.cur.span = a.span(w)
	return b.take()
}

// quotedWord is word for the body of a here-document, the right side of an assignment and the like: no patterns.
func (a *analysis) quotedWord(w *syntax.Word, st *state) field {
	f := a.word(w, st)
	f.glob = false
	return f
}

func (a *analysis) expand(w *syntax.Word, st *state, out []field) []field {
	sp := a.span(w)
	braces, braced := 0, false
	for _, p := range w.Parts {
		if p, ok := p.(*syntax.Lit); ok {
			braces += strings.Count(p.Value, "{")
		}
	}
	if braces > 0 {
		a.spend(braces * braces / bytesCopied) // SplitBraces copies what follows each that is not closed
		// On a copy: the tree may be walked again, and the parser's own Walk panics at what SplitBraces makes.
		split := &syntax.Word{Parts: slices.Clone(w.Parts)}
		if braced = syntax.SplitBraces(split); braced {
			w = split
		}
	}
	if !braced {
		return a.expandPlain(w, st, sp, out)
	}
	list, ok := expandBraces(w)
	if !ok {
		for _, p := range w.Parts { // what is in it runs all the same
			b := wordBuilder{a: a, st: st}
			b.part(p, false, false)
		}
		return append(out, field{s: string(unknownPart), many: true, span: sp})
	}
	// The words share their parts: what stands in them is walked once.
	outer := a.printed
	a.printed = map[syntax.Node]printed{}
	for _, x := range list {
		out = a.expandPlain(x, st, sp, out)
	}
	a.printed = outer
	return out
}

func (a *analysis) expandPlain(w *syntax.Word, st *state, sp Span, out []field) []field {
	b := wordBuilder{a: a, st: st, out: out}
	b.parts(w.Parts, false, true)
	if b.has {
		b.flush()
	}
	for i := len(out); i < len(b.out); i++ {
		b.out[i].span = sp
	}
	return b.out
}

type wordBuilder struct {
	a       *analysis
	st      *state
	out     []field
	buf     []byte
	cur     field // without s
	bad     bool  // cur is not known
	has     bool  // cur exists
	nosplit bool
}

func (b *wordBuilder) take() field {
	f := b.cur
	f.s, f.known = string(b.buf), !b.bad
	b.buf, b.cur, b.bad, b.has = b.buf[:0], field{}, false, false
	return f
}

func (b *wordBuilder) flush() {
	b.a.spend(1)
	b.out = append(b.out, b.take())
}

func (b *wordBuilder) add(s string) {
	b.a.spend(len(s) / bytesCopied)
	b.buf = append(b.buf, s...)
	b.has = true
}

func (b *wordBuilder) addUnknown(c byte, fl flow, quoted bool) {
	b.buf = append(b.buf, c)
	b.bad, b.has = true, true
	b.cur.flow |= fl
	if !quoted && c == unknownPart {
		b.cur.many = true
	}
}

// addSplit adds the value of an unquoted expansion, which the shell splits at blanks.
func (b *wordBuilder) addSplit(s string, glob bool) {
	if b.nosplit {
		b.add(s)
		return
	}
	ifs := " \t\n"
	if v, ok := b.st.vars["IFS"]; ok && len(v.words) == 1 && strings.IndexByte(v.words[0], unknownPart) < 0 {
		ifs = v.words[0]
	}
	for i := 0; i < len(s); {
		if strings.IndexByte(ifs, s[i]) >= 0 {
			if b.has {
				b.flush()
			}
			i++
			continue
		}
		j := i
		for j < len(s) && strings.IndexByte(ifs, s[j]) < 0 {
			if s[j] == '*' || s[j] == '?' || s[j] == '[' {
				b.cur.glob = true
			}
			j++
		}
		b.add(s[i:j])
		i = j
	}
	b.cur.glob = b.cur.glob || glob
}

func (b *wordBuilder) parts(parts []syntax.WordPart, quoted, first bool) {
	for i, p := range parts {
		b.part(p, quoted, first && i == 0)
	}
}

func (b *wordBuilder) part(p syntax.WordPart, quoted, first bool) {
	b.a.spend(1)
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			b.add(unescapeDouble(p.Value))
			return
		}
		b.literal(p.Value, first)
	case *syntax.SglQuoted:
		b.cur.quoted = true
		if p.Dollar {
			b.add(ansiC(p.Value))
		} else {
			b.add(p.Value)
		}
	case *syntax.DblQuoted:
		b.cur.quoted = true
		b.has = true
		b.parts(p.Parts, true, false)
	case *syntax.ParamExp:
		b.param(p, quoted)
	case *syntax.CmdSubst:
		b.subst(p, quoted)
	case *syntax.ProcSubst:
		out := b.a.once(p, func() printed { return printed{flow: b.a.walkApart(p.Stmts, b.st.clone()) | flowOutput} })
		if p.Op == syntax.CmdOut {
			out.flow = 0
		}
		b.add("/dev/fd/")
		b.addUnknown(tamePart, out.flow, true)
	case *syntax.ArithmExp:
		b.a.arithm(p.X, b.st)
		b.addUnknown(tamePart, 0, quoted)
	case *syntax.ExtGlob:
		b.cur.glob = true
		b.a.evalText(p.Pattern.Value, b.st, b.a.span(p))
		b.add(p.Op.String() + p.Pattern.Value + ")")
	case *syntax.BraceExp:
		for _, e := range p.Elems {
			for _, q := range e.Parts {
				b.part(q, quoted, false)
			}
		}
		b.bad = true
	default:
		b.a.unreadable(b.a.span(p), "a part of a word that is not known here")
		b.addUnknown(unknownPart, 0, quoted)
	}
}

// literal adds unquoted text: backslashes, patterns, a leading tilde.
func (b *wordBuilder) literal(s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		name, rest := s[1:], ""
		if i := strings.IndexByte(name, '/'); i >= 0 {
			name, rest = name[:i], name[i:]
		}
		switch {
		case name == "":
			b.home()
			s = rest
		case name == "+":
			if v, ok := b.a.lookupVar("PWD", b.st); ok && len(v.words) == 1 { // the variable, whatever it was made
				b.value(v.words[0])
			} else {
				b.addUnknown(unknownPart, 0, true)
			}
			s = rest
		case name == "-" || isDigits(strings.TrimLeft(name, "+-")):
			b.addUnknown(unknownPart, 0, true)
			s = rest
		case name == "root":
			b.add("/root")
			s = rest
		case nameLike(name):
			b.add("/home/" + name)
			s = rest
		}
	}
	if strings.IndexByte(s, '\\') < 0 {
		if strings.ContainsAny(s, "*?[") {
			b.cur.glob = true
		}
		b.add(s)
		return
	}
	b.has = true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			b.cur.quoted = true
			if i++; i < len(s) && s[i] != '\n' {
				b.buf = append(b.buf, s[i])
			}
		case '*', '?', '[':
			b.cur.glob = true
			b.buf = append(b.buf, c)
		default:
			b.buf = append(b.buf, c)
		}
	}
}

func (b *wordBuilder) home() {
	v, ok := b.st.vars["HOME"]
	switch {
	case ok && len(v.words) == 1:
		b.value(v.words[0])
	case b.a.c.Home != "":
		b.add(b.a.c.Home)
	default:
		b.add(nowhereHome)
		b.bad = true
	}
}

// nowhereHome stands for a home folder whose name is not known.
const nowhereHome = "/home/\x01"

// value adds text that may hold unknown parts, unsplit.
func (b *wordBuilder) value(s string) {
	b.add(s)
	if strings.IndexByte(s, unknownPart) >= 0 || strings.IndexByte(s, tamePart) >= 0 {
		b.bad = true
	}
}

func nameLike(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isNameByte(c) && c != '-' && c != '.' {
			return false
		}
	}
	return s != ""
}

// isNameByte reports whether a name of a variable may hold c.
func isNameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
