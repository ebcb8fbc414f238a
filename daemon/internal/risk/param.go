package risk

import (
	"strconv"
	"strings"

	"sublet/daemon/internal/mask"

	"mvdan.cc/sh/v3/syntax"
)

func itoa(n int) string { return strconv.Itoa(n) }

func smallInt(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n > -1e6 && n < 1e6
}

// lookupVar tells what is known of a variable. ok is false when nothing is: it may be unset or hold anything.
func (a *analysis) lookupVar(name string, st *state) (v value, ok bool) {
	if v, ok := st.vars[name]; ok {
		return v, true
	}
	switch name {
	case "HOME":
		if a.c.Home != "" {
			return value{words: []string{a.c.Home}}, true
		}
		return value{words: []string{nowhereHome}}, true
	case "PWD":
		if st.cwd != "" {
			return value{words: []string{st.cwd}}, true
		}
		return value{}, false
	case "@", "*":
		if st.argsOK {
			v := value{array: true}
			for i := range st.args {
				v.words = append(v.words, st.args[i].s)
				v.flow |= st.args[i].flow
				v.glob = v.glob || st.args[i].glob
			}
			return v, true
		}
		return value{}, false
	case "$", "PPID", "BASHPID", "fish_pid":
		return value{words: []string{string(tamePart)}, flow: flowSelf}, true
	case "?", "!", "#", "-", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "SHLVL", "EPOCHSECONDS", "EPOCHREALTIME",
		"COLUMNS", "LINES", "USER", "LOGNAME", "HOSTNAME", "HOSTTYPE", "OSTYPE", "MACHTYPE", "BASH_VERSION", "OPTIND", "FUNCNAME", "TERM", "SRANDOM":
		return value{words: []string{string(tamePart)}}, true
	case "SHELL", "BASH":
		return value{words: []string{"/bin/bash"}}, true
	case "IFS":
		return value{words: []string{" \t\n"}}, true
	case "PATH":
		if _, ok := a.c.Env[name]; !ok {
			return value{words: []string{oldPath}}, true
		}
	}
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' && st.argsOK {
		if i := int(name[0] - '1'); i < len(st.args) {
			f := &st.args[i]
			return value{words: []string{f.s}, flow: f.flow, glob: f.glob}, true
		}
		return value{unset: true}, true
	}
	if s, ok := a.c.Env[name]; ok {
		v := value{words: []string{s}}
		if mask.SecretName(name) {
			v = value{words: []string{string(unknownPart)}, flow: flowSecret}
		}
		return v, true
	}
	if mask.SecretName(name) {
		return value{words: []string{string(unknownPart)}, flow: flowSecret}, true
	}
	return value{}, false
}

// param expands ${…}.
func (b *wordBuilder) param(p *syntax.ParamExp, quoted bool) {
	a, st := b.a, b.st
	if p.NestedParam != nil {
		b.part(p.NestedParam, quoted, false)
		b.bad = true
		return
	}
	all, index := false, field{s: string(unknownPart)}
	if p.Index == nil {
		index.s = "0"
	} else {
		switch w, ok := p.Index.(*syntax.Word); {
		case !ok:
			a.arithm(p.Index, st)
		case w.Lit() == "@" || w.Lit() == "*":
			all = true
		default:
			index = a.quotedWord(w, st)
			a.evalNumber(index.s, st, a.span(w))
		}
	}
	if p.Slice != nil {
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if x != nil {
				a.arithm(x, st)
			}
		}
	}
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	v, ok := a.lookupVar(name, st)
	a.spend(len(v.words) + v.size()/bytesCopied)
	if p.Excl && ok && len(v.words) == 1 && p.Names == 0 && !all {
		// ${!x}: the variable that x names.
		target := v.words[0]
		if strings.ContainsAny(target, "[") {
			a.evalText(target, st, a.span(p))
		}
		v, ok = a.lookupVar(target, st)
	} else if p.Excl {
		b.addUnknown(unknownPart, 0, quoted)
		return
	}
	if p.Length || p.Width || p.IsSet {
		b.addUnknown(tamePart, 0, quoted)
		return
	}
	if ok && v.array && !all && name != "@" && name != "*" {
		v = element(index.s, v)
	}
	v, ok = b.operate(p, v, ok)
	b.cur.guarded = b.cur.guarded || v.guarded
	switch {
	case !ok:
		fl := flow(0)
		b.addUnknown(unknownPart, fl|v.flow, quoted)
	case v.array && quoted && !b.nosplit && (name == "@" || all):
		b.cur.flow |= v.flow
		for i, w := range v.words {
			if i > 0 {
				b.flush()
				b.cur.flow |= v.flow
			}
			b.value(w)
			b.cur.glob = b.cur.glob || v.glob
		}
		if len(v.words) == 0 && len(b.buf) == 0 {
			b.has = false
		}
	default:
		s := strings.Join(v.words, " ")
		b.cur.flow |= v.flow
		b.bad = b.bad || v.glob // a pattern that stands for what it matched
		if quoted || b.nosplit {
			b.value(s)
			b.cur.glob = b.cur.glob || v.glob
			return
		}
		if strings.IndexByte(s, unknownPart) >= 0 {
			b.cur.many = true
		}
		mark := len(b.out)
		b.addSplit(s, v.glob)
		if strings.ContainsAny(s, "\x00\x01") {
			b.bad = true
			for i := mark; i < len(b.out); i++ {
				b.out[i].known = b.out[i].known && !strings.ContainsAny(b.out[i].s, "\x00\x01")
			}
		}
	}
}

// element picks ${a[i]}.
func element(index string, v value) value {
	i, ok := smallInt(index)
	if !ok {
		return value{words: []string{string(unknownPart)}, flow: v.flow}
	}
	if i < 0 {
		i += len(v.words)
	}
	if i < 0 || i >= len(v.words) {
		return value{unset: true}
	}
	return value{words: []string{v.words[i]}, flow: v.flow, glob: v.glob}
}

// operate applies what stands after the name: defaults, cutting, replacing.
func (b *wordBuilder) operate(p *syntax.ParamExp, v value, ok bool) (value, bool) {
	a, st := b.a, b.st
	known := ok && !strings.ContainsAny(strings.Join(v.words, ""), "\x00\x01")
	empty := ok && (v.unset || len(v.words) == 0 || len(v.words) == 1 && v.words[0] == "")
	unknown := value{words: []string{string(unknownPart)}, flow: v.flow}
	switch {
	case p.Slice != nil:
		return unknown, true
	case p.Repl != nil:
		orig, with := field{}, field{known: true}
		if p.Repl.Orig != nil {
			orig = a.word(p.Repl.Orig, st)
		}
		if p.Repl.With != nil {
			with = a.word(p.Repl.With, st)
		}
		if !known || !orig.known || orig.glob || !with.known || orig.s == "" || strings.ContainsAny(orig.s[:1], "#%/") {
			return unknown, true
		}
		n := 1
		if p.Repl.All {
			n = -1
		}
		return mapWords(v, func(s string) string { return a.replace(s, orig.s, with.s, n) }), true
	case p.Exp == nil:
		return v, ok
	}
	w := field{known: true}
	if p.Exp.Word != nil {
		w = a.word(p.Exp.Word, st)
	}
	other := value{words: []string{w.s}, flow: w.flow | v.flow}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		switch {
		case empty:
			if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
				if p.Param != nil {
					a.poison(p.Param.Value, &w, st, assignPlain, a.span(p))
					st.set(p.Param.Value, other)
				}
			}
			return other, true
		case ok:
			return v, true
		}
		if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
			if p.Param != nil {
				a.poison(p.Param.Value, &w, st, assignPlain, a.span(p))
			}
		}
		// The default is one of the values it may have, and the one a fresh shell sees.
		b.bad = true
		return other, true
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if empty {
			return value{unset: true}, true
		}
		if !ok {
			b.bad = true
		}
		other.flow = w.flow
		return other, true
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if !ok {
			return value{words: []string{string(unknownPart)}, guarded: true}, true
		}
		v.guarded = true
		return v, ok
	case syntax.UpperAll:
		if known {
			return mapWords(v, strings.ToUpper), true
		}
	case syntax.LowerAll:
		if known {
			return mapWords(v, strings.ToLower), true
		}
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		if known && w.known && !v.glob {
			return mapWords(v, func(s string) string { return a.cut(s, w.s, p.Exp.Op) }), true
		}
	case syntax.OtherParamOps:
		if w.s == "P" { // expands the value like a prompt: command substitutions in it run
			if !known {
				a.note(High, RunCode, a.span(p), "expands a variable as a prompt, which runs the commands in it")
				return unknown, true
			}
			a.evalText(strings.Join(v.words, " "), st, a.span(p))
		}
	}
	return unknown, true
}

func mapWords(v value, f func(string) string) value {
	out := v
	out.words = make([]string, len(v.words))
	for i, w := range v.words {
		out.words[i] = f(w)
	}
	return out
}

// cut removes a prefix or suffix that matches a pattern of *, ? and literals.
func (a *analysis) cut(s, pattern string, op syntax.ParExpOperator) string {
	if len(s) > 512 {
		return string(unknownPart)
	}
	a.spend(1 + len(s)*len(s)*min(len(s), len(pattern))/1024 + len(pattern)/bytesCopied)
	prefix := op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix
	large := op == syntax.RemLargePrefix || op == syntax.RemLargeSuffix
	for k := 0; k <= len(s); k++ {
		n := k
		if large {
			n = len(s) - k
		}
		if prefix && globMatch(pattern, s[:n]) {
			return s[n:]
		}
		if !prefix && globMatch(pattern, s[len(s)-n:]) {
			return s[:len(s)-n]
		}
	}
	return s
}

// globMatch matches *, ? and literals; a [ matches any one character. Its time is bounded by the product of the lengths.
func globMatch(pattern, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && pattern[p] == '[':
			end := strings.IndexByte(pattern[p:], ']')
			if end < 0 {
				end = 0
			}
			p += end + 1
			i++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
