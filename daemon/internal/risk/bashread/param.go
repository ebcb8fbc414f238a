package bashread

import (
	"cmp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/programs"
	"sublet/wire/secretname"
)

// Placeholders of values that are not known.
const (
	nowhereHome = "/home/\x01"
	OldPath     = "\x01PATH" // of the PATH that the text began with
)

var tameVars = programs.Words(`? ! # - RANDOM SECONDS LINENO UID EUID SHLVL EPOCHSECONDS EPOCHREALTIME COLUMNS LINES USER LOGNAME
	HOSTNAME HOSTTYPE OSTYPE MACHTYPE BASH_VERSION OPTIND FUNCNAME TERM SRANDOM`)

func one(s string) (Value, bool) { return Value{Words: []string{s}}, true }

// lookup returns what is known of a variable; ok is false where it may be unset or hold anything.
func (r *Reader) lookup(name string, st *State) (v Value, ok bool) {
	if v, ok := st.vars[name]; ok {
		return v, true
	}
	env, inEnv := r.Env[name]
	switch {
	case name == "HOME":
		return one(cmp.Or(r.Home, nowhereHome))
	case name == "PWD":
		return Value{Words: []string{st.Cwd}}, st.Cwd != ""
	case name == "@" || name == "*":
		return arguments(st.Args), st.ArgsOK
	case name == "$" || name == "PPID" || name == "BASHPID" || name == "fish_pid":
		return Value{Words: []string{string(TamePart)}, Flow: Self}, true
	case tameVars[name]:
		return one(string(TamePart))
	case name == "SHELL" || name == "BASH":
		return one("/bin/bash")
	case name == "IFS":
		return one(" \t\n")
	case name == "PATH" && !inEnv:
		return one(OldPath)
	case len(name) == 1 && name[0] >= '1' && name[0] <= '9' && st.ArgsOK:
		return element(string(name[0]-1), arguments(st.Args)), true
	case secretname.IsSecret(name):
		return Value{Words: []string{string(UnknownPart)}, Flow: Secret}, true
	}
	return Value{Words: []string{env}}, inEnv
}

// arguments returns $@ of these fields. Unknown parts stay in the words as placeholders.
func arguments(fs []Field) Value {
	v := Value{Array: true}
	for i := range fs {
		v.Words = append(v.Words, fs[i].S)
		v.Flow |= fs[i].Flow
		v.Glob = v.Glob || fs[i].Glob
	}
	return v
}

// param expands ${…}.
func (b *builder) param(p *syntax.ParamExp, quoted bool) {
	r, st := b.r, b.st
	all, index := b.index(p)
	if p.Slice != nil {
		r.arithm(p.Slice.Offset, st)
		r.arithm(p.Slice.Length, st)
	}
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	v, ok := r.lookup(name, st)
	r.Spend(len(v.Words) + v.size()/BytesCopied)
	if p.Excl { // ${!x}: the variable that x names
		b.unknown(UnknownPart, 0, quoted)
		return
	}
	if p.Length || p.Width || p.IsSet { // a number
		b.unknown(TamePart, 0, quoted)
		return
	}
	if all = all || name == "@" || name == "*"; ok && v.Array && !all {
		v = element(index, v)
	}
	if v, ok = b.operate(p, v, ok); !ok {
		b.unknown(UnknownPart, v.Flow, quoted)
		return
	}
	b.insert(v, all, quoted)
}

// index walks the index of an element; all is [@] or [*].
func (b *builder) index(p *syntax.ParamExp) (all bool, index string) {
	switch w, ok := p.Index.(*syntax.Word); {
	case p.Index == nil:
		return false, "0"
	case !ok:
		b.r.arithm(p.Index, b.st)
		return false, string(UnknownPart)
	case w.Lit() == "@" || w.Lit() == "*":
		return true, ""
	default:
		index = b.r.word(w, b.st).S
		b.r.EvalText(index, b.st, b.r.span(w))
		return false, index
	}
}

// insert adds the value of a variable.
func (b *builder) insert(v Value, all, quoted bool) {
	b.cur.Flow |= v.Flow
	s := strings.Join(v.Words, " ")
	switch {
	case v.Array && all && quoted && !b.nosplit:
		for i, w := range v.Words {
			if i > 0 {
				b.flush()
				b.cur.Flow |= v.Flow
			}
			b.value(w)
			b.cur.Glob = b.cur.Glob || v.Glob
		}
	default:
		b.bad = b.bad || v.Glob // a pattern that stands for what it matched
		b.cur.Many = b.cur.Many || !quoted && !b.nosplit && strings.IndexByte(s, UnknownPart) >= 0
		b.expansion(s, quoted, v.Glob)
	}
}

// element returns ${a[i]}.
func element(index string, v Value) Value {
	i, err := strconv.Atoi(index)
	if err != nil {
		return Value{Words: []string{string(UnknownPart)}, Flow: v.Flow}
	}
	if i < 0 {
		i += len(v.Words)
	}
	if i < 0 || i >= len(v.Words) {
		return Value{}
	}
	return Value{Words: []string{v.Words[i]}, Flow: v.Flow, Glob: v.Glob}
}

// operate applies what stands behind the name: defaults and replacements. The result of cutting is not known.
func (b *builder) operate(p *syntax.ParamExp, v Value, ok bool) (Value, bool) {
	text := strings.Join(v.Words, " ")
	known := ok && !strings.ContainsAny(text, "\x00\x01")
	unknown := Value{Words: []string{string(UnknownPart)}, Flow: v.Flow}
	word := func(w *syntax.Word) Field {
		if w == nil {
			return Field{Known: true}
		}
		return b.r.word(w, b.st)
	}
	switch {
	case p.Slice != nil:
		return unknown, true
	case p.Repl != nil:
		orig, with := word(p.Repl.Orig), word(p.Repl.With)
		if !known || !orig.Known || orig.Glob || !with.Known || orig.S == "" || strings.ContainsAny(orig.S[:1], "#%/") {
			return unknown, true
		}
		n := 1
		if p.Repl.All {
			n = strings.Count(text, orig.S)
		}
		b.r.Spend((len(text) + n*len(with.S)) / BytesCopied)
		return Value{Words: []string{strings.Replace(text, orig.S, with.S, n)}, Flow: v.Flow, Glob: v.Glob}, true
	case p.Exp == nil:
		return v, ok
	}
	w := word(p.Exp.Word)
	if p.Exp.Op == syntax.OtherParamOps && w.S == "P" && !known { // expands the value like a prompt: command substitutions in it run
		b.r.Judge.Note(programs.High, programs.RunCode, b.r.span(p), "expands a variable as a prompt, which runs the commands in it")
	}
	return b.orElse(p, v, ok, w)
}

// orElse applies ${x:-w}, ${x:=w}, ${x:+w} and ${x:?w}. What other operators make of a value is not known.
func (b *builder) orElse(p *syntax.ParamExp, v Value, ok bool, w Field) (Value, bool) {
	empty := ok && strings.Join(v.Words, "") == ""
	other := Value{Words: []string{w.S}, Flow: w.Flow | v.Flow}
	switch op := p.Exp.Op; op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if ok && !empty {
			return v, true
		}
		if (op == syntax.AssignUnset || op == syntax.AssignUnsetOrNull) && p.Param != nil {
			b.r.Judge.Assign(p.Param.Value, &w, b.st, Plain, b.r.span(p))
			b.st.Set(p.Param.Value, other)
		}
		b.bad = b.bad || !empty // the default is one of the values it may have
		return other, true
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if empty {
			return Value{}, true
		}
		b.bad = b.bad || !ok
		return Value{Words: []string{w.S}, Flow: w.Flow}, true
	}
	unknown := Value{Words: []string{string(UnknownPart)}, Flow: v.Flow}
	guarded := p.Exp.Op == syntax.ErrorUnset || p.Exp.Op == syntax.ErrorUnsetOrNull
	b.cur.Guarded = b.cur.Guarded || guarded
	if ok && guarded {
		return v, true
	}
	return unknown, true
}
