package bashread

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Parts of a word that are not known stand in its text as one of these bytes, which no shell word can hold.
const (
	UnknownPart = '\x00' // anything
	TamePart    = '\x01' // something short without slash and blank: a number, a name of the system
)

// Field is one word as a program gets it, as far as that is known.
type Field struct {
	S       string
	Known   bool // S is exactly what the program gets
	Glob    bool // has an unquoted pattern
	Many    bool // may be any number of words
	Guarded bool // the unknown part is not empty: ${x:?}
	Flow    Flow
	Span    Span
}

// Opaque reports whether some part of a word can be anything.
func (f *Field) Opaque() bool { return strings.IndexByte(f.S, UnknownPart) >= 0 }

// Base returns the word behind its last slash.
func (f *Field) Base() string { return f.S[strings.LastIndexByte(f.S, '/')+1:] }

// With returns the field with another text.
func (f *Field) With(s string) *Field {
	g := *f
	g.S = s
	return &g
}

// Join returns words as one, with blanks between them.
func Join(fs []Field, sp Span) Field {
	f := Field{Known: true, Span: sp}
	parts := make([]string, len(fs))
	for i := range fs {
		parts[i] = fs[i].S
		f.Known = f.Known && fs[i].Known
		f.Flow |= fs[i].Flow
	}
	f.S = strings.Join(parts, " ")
	return f
}

// Absolute returns p as seen from cwd; "" where cwd is not known and p is relative.
func Absolute(cwd, p string) string {
	switch {
	case path.IsAbs(p):
		return path.Clean(p)
	case cwd == "":
		return ""
	}
	return path.Join(cwd, p)
}

// Path returns the absolute path that a known word names, else "".
func Path(f *Field, st *State) string {
	if st.Spend((len(st.Cwd) + len(f.S)) / BytesCopied); !f.Known {
		return ""
	}
	return Absolute(st.Cwd, f.S)
}

// Key names a file for Reader.Files: its path, or what is known of it where the folder is not.
func Key(f *Field, st *State) string {
	if p := Path(f, st); p != "" || !f.Known || f.S == "" {
		return p
	}
	return "?/" + path.Clean(f.S)
}

// FileFlow returns where the data came from that this text put into a file.
func (r *Reader) FileFlow(f *Field, st *State) Flow { return r.Files[Key(f, st)].Flow }

// words expands words to fields: braces, tilde, parameters, substitutions, splitting. Patterns stay.
func (r *Reader) words(ws []*syntax.Word, st *State) []Field {
	r.Spend(len(ws))
	out := make([]Field, 0, len(ws)+2)
	for _, w := range ws {
		out = r.expand(w, st, out)
	}
	return out
}

// word walks a word, with the substitutions in it, and returns it unsplit.
func (r *Reader) word(w *syntax.Word, st *State) Field {
	b := builder{r: r, st: st, nosplit: true}
	b.parts(w.Parts, false, true)
	b.cur.Span = r.span(w)
	return b.take()
}

func (r *Reader) expand(w *syntax.Word, st *State, out []Field) []Field {
	sp := r.span(w)
	list := []*syntax.Word{w}
	braces := 0
	for _, p := range w.Parts {
		if p, ok := p.(*syntax.Lit); ok {
			braces += strings.Count(p.Value, "{")
		}
	}
	if braces > 0 {
		r.Spend(braces * braces / BytesCopied) // SplitBraces copies the rest of the word at each unclosed one
		// On a copy: the tree may be walked again, and the parser's own Walk panics at what SplitBraces makes.
		if split := (&syntax.Word{Parts: slices.Clone(w.Parts)}); syntax.SplitBraces(split) {
			var ok bool
			if list, ok = expandBraces(split); !ok || runs(w) {
				b := builder{r: r, st: st}
				for _, p := range split.Parts { // what is in it runs all the same
					b.part(p, false, false)
				}
				return append(out, Field{S: string(UnknownPart), Many: true, Span: sp})
			}
		}
	}
	first := len(out)
	for _, w := range list {
		b := builder{r: r, st: st, out: out}
		b.parts(w.Parts, false, true)
		if b.has {
			b.flush()
		}
		out = b.out
	}
	for i := first; i < len(out); i++ {
		out[i].Span = sp
	}
	return out
}

// builder makes fields of the parts of a word.
type builder struct {
	r       *Reader
	st      *State
	out     []Field
	buf     []byte
	cur     Field // without S
	bad     bool  // cur has parts that are not known
	has     bool  // a field has begun, even if it is empty
	nosplit bool
	quoted  *strings.Replacer // undoes the backslashes of quoted text; nil: doubleQuoted
}

func (b *builder) take() Field {
	f := b.cur
	f.S, f.Known = string(b.buf), !b.bad
	b.buf, b.cur, b.bad, b.has = b.buf[:0], Field{}, false, false
	return f
}

func (b *builder) flush() {
	b.r.Spend(1)
	b.out = append(b.out, b.take())
}

func (b *builder) add(s string) {
	b.r.Spend(len(s) / BytesCopied)
	b.buf, b.has = append(b.buf, s...), true
}

func (b *builder) unknown(c byte, fl Flow, quoted bool) {
	b.buf = append(b.buf, c)
	b.bad, b.has = true, true
	b.cur.Flow |= fl
	b.cur.Many = b.cur.Many || !quoted && c == UnknownPart
}

// value adds text that may hold unknown parts, unsplit.
func (b *builder) value(s string) {
	b.add(s)
	b.bad = b.bad || strings.ContainsAny(s, "\x00\x01")
}

// expansion adds the value of an expansion, which the shell splits at blanks if it is not quoted.
func (b *builder) expansion(s string, quoted, glob bool) {
	b.cur.Glob = b.cur.Glob || glob
	if quoted || b.nosplit {
		b.value(s)
		return
	}
	ifs := " \t\n"
	if v, ok := b.st.vars["IFS"]; ok && len(v.Words) == 1 && strings.IndexByte(v.Words[0], UnknownPart) < 0 {
		ifs = v.Words[0]
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
			b.cur.Glob = b.cur.Glob || s[j] == '*' || s[j] == '?' || s[j] == '['
			j++
		}
		b.value(s[i:j])
		i = j
	}
	b.cur.Glob = b.cur.Glob || glob
}

func (b *builder) parts(parts []syntax.WordPart, quoted, first bool) {
	for i, p := range parts {
		b.part(p, quoted, first && i == 0)
	}
}

func (b *builder) part(p syntax.WordPart, quoted, first bool) {
	b.r.Spend(1)
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			b.add(cmp.Or(b.quoted, doubleQuoted).Replace(p.Value))
		} else {
			b.literal(p.Value, first)
		}
	case *syntax.SglQuoted:
		if p.Dollar {
			b.add(AnsiC(p.Value))
		} else {
			b.add(p.Value)
		}
	case *syntax.DblQuoted:
		b.has = true
		b.parts(p.Parts, true, false)
	case *syntax.ParamExp:
		b.param(p, quoted)
	case *syntax.CmdSubst:
		b.subst(p, quoted)
	case *syntax.ProcSubst:
		out := b.r.output(p.Stmts, b.st.Clone())
		if b.r.Out = (Output{List: out.List}); p.Op == syntax.CmdOut { // List: for redirect, of < <(…)
			out.Flow = 0 // >(…) is written to: what its command prints does not come from the file
		}
		b.add("/dev/fd/")
		b.unknown(TamePart, out.Flow|Printed, true)
	case *syntax.ArithmExp:
		b.r.arithm(p.X, b.st)
		b.unknown(TamePart, 0, quoted)
	case *syntax.ExtGlob:
		b.cur.Glob = true
		b.r.EvalText(p.Pattern.Value, b.st, b.r.span(p))
		b.add(p.Op.String() + p.Pattern.Value + ")")
	case *syntax.BraceExp:
		for _, e := range p.Elems {
			b.parts(e.Parts, quoted, false)
		}
		b.bad = true
	default:
		b.r.Judge.Unread(b.r.span(p), "a part of a word that is not known here")
		b.unknown(UnknownPart, 0, quoted)
	}
}

// inShell reports whether a substitution runs in the shell itself: ${ cmd; } and ${| cmd; } of bash 5.3.
func inShell(c *syntax.CmdSubst) bool { return c.TempFile || c.ReplyVar }

// runs reports whether a word holds a command or process substitution.
func runs(w *syntax.Word) (found bool) {
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}

// output walks a substitution and returns what it prints.
func (r *Reader) output(list []*syntax.Stmt, st *State) Output {
	seen, inner := r.Seen, r.inner
	r.Seen, r.Out, r.inner = 0, Output{}, true
	r.stmts(list, st)
	r.inner = inner
	out := r.Out
	out.Flow |= r.Seen
	r.Seen |= seen
	r.Out = Output{}
	return out
}

// subst adds what a command substitution prints.
func (b *builder) subst(c *syntax.CmdSubst, quoted bool) {
	st := b.st
	if !inShell(c) {
		st = st.Clone()
	}
	out := b.r.output(c.Stmts, st)
	switch {
	case out.Text != nil && strings.IndexByte(*out.Text, UnknownPart) < 0 && !c.ReplyVar: // which stands for $REPLY, not for the output
		b.cur.Flow |= out.Flow
		b.expansion(strings.TrimRight(*out.Text, "\n"), quoted, false)
	case out.List != "" && out.Flow&(Net|Secret) == 0:
		b.add(out.List)
		b.bad, b.cur.Glob = true, true
		b.cur.Many = b.cur.Many || !quoted
		b.cur.Flow |= Printed
	default:
		b.unknown(UnknownPart, out.Flow|Printed, quoted)
	}
}

// literal adds unquoted text: backslashes, patterns, a leading tilde.
func (b *builder) literal(s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		s = b.tilde(s)
	}
	for text, more := s, true; more; {
		text, s, more = strings.Cut(s, `\`)
		b.cur.Glob = b.cur.Glob || strings.ContainsAny(text, "*?[")
		if b.add(text); s != "" { // the byte behind a backslash counts as it is; a line feed there is no text
			b.add(strings.TrimPrefix(s[:1], "\n"))
			s = s[1:]
		}
	}
}

// tilde adds the folder that a leading ~ or ~name means and returns what follows it; all of s if it is no such prefix.
func (b *builder) tilde(s string) (rest string) {
	name := s[1:]
	if i := strings.IndexByte(name, '/'); i >= 0 {
		name, rest = name[:i], name[i:]
	}
	switch {
	case name == "":
		v, _ := b.r.lookup("HOME", b.st)
		b.value(strings.Join(v.Words, " "))
	case name == "+":
		if v, ok := b.r.lookup("PWD", b.st); ok && len(v.Words) == 1 { // the text may have assigned PWD
			b.value(v.Words[0])
		} else {
			b.unknown(UnknownPart, 0, true)
		}
	case name == "-" || Digits(strings.TrimLeft(name, "+-")): // $OLDPWD, or an entry of the directory stack
		b.unknown(UnknownPart, 0, true)
	case name == "root":
		b.add("/root")
	case NameLike(name): // a user's home, in its usual place
		b.add("/home/" + name)
	default:
		return s
	}
	return rest
}

// NameLike reports whether a text may be the name of a user, a variable or the like.
func NameLike(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == ""
}

// Digits reports whether a text is a number.
func Digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
