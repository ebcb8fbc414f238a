package bashread

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/programs"
)

// Placeholders of values that are not known.
const (
	nowhereHome = "/home/\x01"
	OldPath     = "\x01PATH" // of PATH
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
	case name == "HOME" && r.Home == "":
		return one(nowhereHome)
	case name == "HOME":
		return one(r.Home)
	case name == "PWD":
		return Value{Words: []string{st.Cwd}}, st.Cwd != ""
	case name == "@" || name == "*":
		v.Array = true
		for i := range st.Args {
			v.Words = append(v.Words, st.Args[i].S)
			v.Flow |= st.Args[i].Flow
			v.Glob = v.Glob || st.Args[i].Glob
		}
		return v, st.ArgsOK
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
		if i := int(name[0] - '1'); i < len(st.Args) {
			f := &st.Args[i]
			return Value{Words: []string{f.S}, Flow: f.Flow, Glob: f.Glob}, true
		}
		return Value{Unset: true}, true
	case r.Secret != nil && r.Secret(name):
		return Value{Words: []string{string(UnknownPart)}, Flow: Secret}, true
	}
	return Value{Words: []string{env}}, inEnv
}

// param expands ${…}.
func (b *builder) param(p *syntax.ParamExp, quoted bool) {
	r, st := b.r, b.st
	if p.NestedParam != nil {
		b.part(p.NestedParam, quoted, false)
		b.bad = true
		return
	}
	all, index := false, "0"
	switch w, ok := p.Index.(*syntax.Word); {
	case p.Index == nil:
	case !ok:
		r.arithm(p.Index, st)
		index = string(UnknownPart)
	case w.Lit() == "@" || w.Lit() == "*":
		all = true
	default:
		index = r.quotedWord(w, st).S
		r.evalNumber(index, st, r.span(w))
	}
	if p.Slice != nil {
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if x != nil {
				r.arithm(x, st)
			}
		}
	}
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	v, ok := r.lookup(name, st)
	r.Spend(len(v.Words) + v.size()/BytesCopied)
	if p.Excl {
		if !ok || len(v.Words) != 1 || p.Names != 0 || all {
			b.unknown(UnknownPart, 0, quoted)
			return
		}
		if target := v.Words[0]; true { // ${!x}: the variable that x names
			if strings.Contains(target, "[") {
				r.EvalText(target, st, r.span(p))
			}
			v, ok = r.lookup(target, st)
		}
	}
	if p.Length || p.Width || p.IsSet {
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

// insert adds the value of a variable.
func (b *builder) insert(v Value, all, quoted bool) {
	b.cur.Guarded = b.cur.Guarded || v.Guarded
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
		if len(v.Words) == 0 && len(b.buf) == 0 {
			b.has = false
		}
	case quoted || b.nosplit:
		b.bad = b.bad || v.Glob // a pattern that stands for what it matched
		b.value(s)
		b.cur.Glob = b.cur.Glob || v.Glob
	default:
		b.bad = b.bad || v.Glob
		b.cur.Many = b.cur.Many || strings.IndexByte(s, UnknownPart) >= 0
		b.split(s, v.Glob)
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
		return Value{Unset: true}
	}
	return Value{Words: []string{v.Words[i]}, Flow: v.Flow, Glob: v.Glob}
}

// operate applies what stands behind the name: defaults and replacements. The result of cutting is not known.
func (b *builder) operate(p *syntax.ParamExp, v Value, ok bool) (Value, bool) {
	r, st := b.r, b.st
	text := strings.Join(v.Words, " ")
	known := ok && !strings.ContainsAny(text, "\x00\x01")
	unknown := Value{Words: []string{string(UnknownPart)}, Flow: v.Flow}
	switch {
	case p.Slice != nil:
		return unknown, true
	case p.Repl != nil:
		orig, with := Field{}, Field{Known: true}
		if p.Repl.Orig != nil {
			orig = r.word(p.Repl.Orig, st)
		}
		if p.Repl.With != nil {
			with = r.word(p.Repl.With, st)
		}
		if !known || !orig.Known || orig.Glob || !with.Known || orig.S == "" || strings.ContainsAny(orig.S[:1], "#%/") {
			return unknown, true
		}
		n := 1
		if p.Repl.All {
			n = strings.Count(text, orig.S)
		}
		r.Spend((len(text) + n*len(with.S)) / BytesCopied)
		return Value{Words: []string{strings.Replace(text, orig.S, with.S, n)}, Flow: v.Flow, Glob: v.Glob}, true
	case p.Exp == nil:
		return v, ok
	}
	w := Field{Known: true}
	if p.Exp.Word != nil {
		w = r.word(p.Exp.Word, st)
	}
	empty := ok && (v.Unset || text == "")
	other := Value{Words: []string{w.S}, Flow: w.Flow | v.Flow}
	switch op := p.Exp.Op; op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if ok && !empty {
			return v, true
		}
		if (op == syntax.AssignUnset || op == syntax.AssignUnsetOrNull) && p.Param != nil {
			r.Judge.Assign(p.Param.Value, &w, st, Plain, r.span(p))
			st.Set(p.Param.Value, other)
		}
		b.bad = b.bad || !empty // the default is one of the values it may have
		return other, true
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if empty {
			return Value{Unset: true}, true
		}
		b.bad = b.bad || !ok
		return Value{Words: []string{w.S}, Flow: w.Flow}, true
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if !ok {
			v = unknown
		}
		v.Guarded = true
		return v, true
	case syntax.UpperAll, syntax.LowerAll:
		if known {
			change := strings.ToUpper
			if op == syntax.LowerAll {
				change = strings.ToLower
			}
			return Value{Words: []string{change(text)}, Flow: v.Flow}, true
		}
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		if known && w.Known && !w.Glob && !v.Glob && len(v.Words) == 1 {
			if op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix {
				return Value{Words: []string{strings.TrimPrefix(text, w.S)}, Flow: v.Flow}, true
			}
			return Value{Words: []string{strings.TrimSuffix(text, w.S)}, Flow: v.Flow}, true
		}
	case syntax.OtherParamOps:
		if w.S == "P" { // expands the value like a prompt: command substitutions in it run
			if !known {
				r.Judge.Note(programs.High, programs.RunCode, r.span(p), "expands a variable as a prompt, which runs the commands in it")
			} else {
				r.EvalText(text, st, r.span(p))
			}
		}
	}
	return unknown, true
}
