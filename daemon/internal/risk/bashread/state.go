package bashread

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Flow is where data came from that reaches a command: by a pipe, a substitution, a variable or a file.
type Flow uint8

const (
	Net     Flow = 1 << iota // from the network
	Secret                   // holds a secret
	Printed                  // output of a program that was not computed here
	Self                     // names the shell's own process, or its parent: $$, $PPID
	Decoded                  // of base64, rev and the like, which hide a command from a reader
)

// Output is what a command prints or reads, or what a text put into a file.
type Output struct {
	Flow Flow
	Text *string // all of it, where that is known; parts of it may be UnknownPart or TamePart
	List string  // a pattern of the paths that its lines are, where that is known
	Any  bool    // something is connected
}

// Plain returns the text of an output, nil unless all of it is known.
func (o Output) Plain() *string {
	if o.Text == nil || strings.ContainsAny(*o.Text, "\x00\x01") {
		return nil
	}
	return o.Text
}

// Value is what is known of a variable.
type Value struct {
	Words  []string // one, or the elements of an array; none of a variable that is unset
	Flow   Flow
	Array  bool
	Glob   bool // the words are patterns and stand for what they match
	Handed bool // exported: on to programs
}

func (v *Value) size() (n int) {
	for _, w := range v.Words {
		n += len(w)
	}
	return n
}

// Function is a function of the text or of the live shell.
type Function struct {
	body *syntax.Stmt
	src  source
}

// id distinguishes a function from others of the same name.
func (f Function) id() string { return fmt.Sprintf("%p", f.body) }

// State is what one command leaves to the next. It is for one goroutine.
type State struct {
	Cwd     string   // "" where it is not known
	Alts    []string // where else it may be, because an earlier cd may have failed; "" is anywhere
	Args    []Field  // $1 …
	ArgsOK  bool     // Args are known
	Errexit bool     // set -e
	Remote  bool     // runs on another machine: paths are not ours
	Stdin   Output
	Changed []string // variables set in this text that change what later commands do

	reader *Reader
	vars   map[string]Value
	funcs  map[string]Function
}

// Start returns the state in which a text begins.
func (r *Reader) Start(cwd string) *State {
	return &State{reader: r, Cwd: cwd, vars: map[string]Value{}, funcs: map[string]Function{}}
}

// Clone returns a copy for what runs in a child of the shell, or perhaps not at all.
func (s *State) Clone() *State {
	s.reader.Spend(1 + (len(s.vars)+len(s.funcs))/EntriesMoved)
	c := *s
	c.vars, c.funcs = maps.Clone(s.vars), maps.Clone(s.funcs)
	c.Alts, c.Changed = slices.Clip(s.Alts), slices.Clip(s.Changed)
	return &c
}

// Fresh returns a state for a new shell, which gets only the exported variables: those of env were exported before the text.
func (s *State) Fresh(env map[string]string) *State {
	c := s.Clone()
	clear(c.funcs)
	for name, v := range c.vars {
		if _, before := env[name]; !before && !v.Handed {
			// It is unset there, or has the value that a start-up file gives it.
			c.vars[name] = Value{Words: []string{string(UnknownPart)}, Flow: v.Flow}
		}
	}
	return c
}

// Set sets a variable. One that is exported stays so.
func (s *State) Set(name string, v Value) {
	v.Handed = v.Handed || s.vars[name].Handed
	s.vars[name] = v
}

// Var returns what is known of a variable that the text set.
func (s *State) Var(name string) (Value, bool) {
	v, ok := s.vars[name]
	return v, ok
}

// Hide hides the functions of the text.
func (s *State) Hide() { s.funcs = map[string]Function{} }

// maxAlts bounds the folders a command may run in; beyond it the folder is not known.
const maxAlts = 4

// MayBe adds a folder in which the following commands may run instead of Cwd.
func (s *State) MayBe(dir string) {
	if dir == s.Cwd || slices.Contains(s.Alts, dir) {
		return
	}
	if len(s.Alts) >= maxAlts {
		if dir = ""; slices.Contains(s.Alts, "") {
			return
		}
	}
	s.Alts = append(slices.Clip(s.Alts), dir)
}

// join merges into s the state o of another way through the text (nil: nothing follows on it). What differs is then unknown; s
// keeps its Cwd. A function of o replaces that of s, which is harmless: funcDecl has walked the bodies of both. It reports whether a
// variable became unknown that was not so in o.
func (s *State) join(o *State) (more bool) {
	if o == nil {
		return false
	}
	s.reader.Spend(1 + (len(s.vars)+len(o.vars)+len(o.funcs)+len(s.Changed)*len(o.Changed))/EntriesMoved)
	if s.Cwd != o.Cwd {
		s.MayBe(o.Cwd)
	}
	for _, d := range o.Alts {
		s.MayBe(d)
	}
	for _, c := range o.Changed {
		if !slices.Contains(s.Changed, c) {
			s.Changed = append(slices.Clip(s.Changed), c)
		}
	}
	both := maps.Clone(o.vars)
	maps.Copy(both, s.vars)
	for n := range both {
		v, known := o.vars[n]
		w, ok := s.vars[n]
		if !ok || !known || !slices.Equal(v.Words, w.Words) || v.Flow != w.Flow {
			more = more || !slices.Equal(v.Words, []string{string(UnknownPart)})
			s.vars[n] = Value{Words: []string{string(UnknownPart)}, Flow: v.Flow | w.Flow, Handed: v.Handed || w.Handed}
		}
	}
	maps.Copy(s.funcs, o.funcs)
	s.Errexit = s.Errexit && o.Errexit
	s.ArgsOK = s.ArgsOK && o.ArgsOK
	return more
}

// Spend counts steps of the budget that the state belongs to.
func (s *State) Spend(n int) { s.reader.Spend(n) }
