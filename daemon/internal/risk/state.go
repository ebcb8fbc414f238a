package risk

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// flow says where data came from that reaches a command: by a pipe, a substitution, a variable or a file.
type flow uint8

const (
	flowNet    flow = 1 << iota // from the network
	flowSecret                  // holds a secret
	flowSelf                    // names the shell's own process, or its parent: $$, $PPID
	flowOutput                  // output of a program that was not computed here
)

// value is what is known of a variable.
type value struct {
	words   []string // one, or the elements of an array; \x00 and \x01 as in field
	array   bool
	glob    bool // the words are patterns, standing for what they match
	flow    flow
	unset   bool
	guarded bool // ${x:?}: never empty
}

// size is the length of all words, in bytes.
func (v *value) size() (n int) {
	for _, w := range v.words {
		n += len(w)
	}
	return n
}

// state is what one command leaves to the next. clone before a part that runs elsewhere or perhaps not.
type state struct {
	*budget
	cwd     string   // "" when not known
	alts    []string // where else it may be, because an earlier cd may have failed; "" is anywhere
	vars    map[string]value
	funcs   map[string]function
	aliases map[string]string // defined in this text
	ints    map[string]bool   // variables whose every value is evaluated: declare -i; never changed in place
	args    []field           // $1 …
	argsOK  bool              // args are known
	errexit bool
	shared  bool // maps belong to another state too
	remote  bool // runs on another machine: paths are not ours
	stdin   stdin
	changed []string // poisonous variables set in this text
}

// stdin is what a command reads from a pipe, here-document or file.
type stdin struct {
	flow flow
	text *string // when it is known
	any  bool    // something is connected
	list string  // a pattern of paths that its lines are; "" when that is not known
}

type function struct {
	body *syntax.Stmt
	src  source
}

func (s *state) clone() *state {
	s.spend(1)
	s.shared = true
	c := *s
	c.alts = slices.Clip(s.alts)
	c.changed = slices.Clip(s.changed)
	return &c
}

// own makes the maps this state's alone.
func (s *state) own() {
	if !s.shared && s.vars != nil {
		return
	}
	s.spend(1 + (len(s.vars)+len(s.funcs)+len(s.aliases))/entriesMoved)
	if s.vars == nil {
		s.vars = map[string]value{}
	} else {
		s.vars = maps.Clone(s.vars)
	}
	s.funcs = maps.Clone(s.funcs)
	s.aliases = maps.Clone(s.aliases)
	s.shared = false
}

func (s *state) set(name string, v value) {
	s.own()
	s.vars[name] = v
}

// integer notes that bash evaluates whatever is assigned to a variable.
func (s *state) integer(name string) {
	s.spend(1 + len(s.ints)/entriesMoved)
	ints := make(map[string]bool, len(s.ints)+1)
	maps.Copy(ints, s.ints)
	ints[name] = true
	s.ints = ints
}

func (s *state) unknown(names []string) {
	if len(names) == 0 {
		return
	}
	s.own()
	for _, n := range names {
		s.vars[n] = value{words: []string{"\x00"}, flow: s.vars[n].flow}
	}
}

// maxAlts bounds the folders a command may run in; beyond it the folder is not known.
const maxAlts = 4

// mayBe adds a folder in which the following commands may run instead.
func (s *state) mayBe(dir string) {
	if dir == s.cwd || slices.Contains(s.alts, dir) {
		return
	}
	if len(s.alts) >= maxAlts {
		dir = ""
		if slices.Contains(s.alts, "") {
			return
		}
	}
	s.alts = append(slices.Clip(s.alts), dir)
}

// join makes s a state after which either s or o holds. s stays the likelier one.
func (s *state) join(o *state) {
	s.spend(1 + (len(s.vars)+len(o.vars)+len(o.funcs)+len(o.aliases)+len(s.changed)*len(o.changed))/entriesMoved)
	if s.cwd != o.cwd {
		s.mayBe(o.cwd)
	}
	for _, d := range o.alts {
		s.mayBe(d)
	}
	for _, c := range o.changed {
		if !slices.Contains(s.changed, c) {
			s.changed = append(slices.Clip(s.changed), c)
		}
	}
	var differ []string
	for n, v := range o.vars {
		if w, ok := s.vars[n]; !ok || !slices.Equal(v.words, w.words) || v.flow != w.flow || v.unset != w.unset {
			differ = append(differ, n)
		}
	}
	for n := range s.vars {
		if _, ok := o.vars[n]; !ok {
			differ = append(differ, n)
		}
	}
	if len(differ) > 0 {
		s.own()
		for _, n := range differ {
			// Set in one of both only: the value that is known stays a possible one, but is not certain.
			v, w := s.vars[n], o.vars[n]
			s.vars[n] = value{words: []string{"\x00"}, flow: v.flow | w.flow}
		}
	}
	if len(o.funcs) > 0 {
		s.own()
		if s.funcs == nil {
			s.funcs = map[string]function{}
		}
		for n, f := range o.funcs {
			s.funcs[n] = f
		}
	}
	if len(o.aliases) > 0 {
		s.own()
		if s.aliases == nil {
			s.aliases = map[string]string{}
		}
		for n, f := range o.aliases {
			s.aliases[n] = f
		}
	}
	for n := range o.ints {
		if !s.ints[n] {
			s.integer(n)
		}
	}
	s.errexit = s.errexit && o.errexit
	if !s.argsOK || !o.argsOK {
		s.argsOK = false
	}
}

// mutation is what a loop may change when it runs zero, one or many times.
type mutation struct {
	names []string // of variables
	moves bool     // the folder
}

// mutations collects what a loop may change. The result is kept, so that nested loops are gone through once.
func (a *analysis) mutations(loop syntax.Node) mutation {
	if m, ok := a.mutated[loop]; ok {
		return m
	}
	var m mutation
	count := 0
	target := func(n syntax.Node) {
		if w, ok := n.(*syntax.Word); ok && w.Lit() != "" {
			m.names = append(m.names, w.Lit())
		}
	}
	syntax.Walk(loop, func(n syntax.Node) bool {
		count++
		switch n := n.(type) {
		case *syntax.Subshell, *syntax.ProcSubst:
			return false
		case *syntax.CmdSubst:
			return inShell(n)
		case *syntax.WhileClause, *syntax.ForClause:
			if n != loop {
				inner := a.mutations(n)
				m.names, m.moves = append(m.names, inner.names...), m.moves || inner.moves
				return false
			}
		case *syntax.Assign:
			if n.Name != nil {
				m.names = append(m.names, n.Name.Value)
			}
		case *syntax.WordIter:
			m.names = append(m.names, n.Name.Value)
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				return true
			}
			switch n.Args[0].Lit() {
			case "cd", "pushd", "popd", "eval", "source", ".", "":
				m.moves = true
			case "read", "mapfile", "readarray", "printf", "getopts", "unset", "let", "wait":
				for _, w := range n.Args[1:] {
					target(w)
				}
			default:
				// A function may do either; those of this text are rare enough.
			}
		case *syntax.BinaryArithm:
			target(n.X)
		case *syntax.UnaryArithm:
			target(n.X)
		}
		return true
	})
	a.spend((count + len(m.names)) / entriesMoved)
	slices.Sort(m.names)
	m.names = slices.Compact(m.names)
	if a.mutated == nil {
		a.mutated = map[syntax.Node]mutation{}
	}
	a.mutated[loop] = m
	return m
}
