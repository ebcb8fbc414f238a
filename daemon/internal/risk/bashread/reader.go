// Package bashread reads the text of a command as bash would: it parses the text, expands words as far as that is possible
// without running anything, and hands each simple command, assignment and redirection to a Judge, in the order in which
// they run and with the state that the earlier ones leave. It decides nothing about what they mean.
package bashread

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/programs"
	"sublet/wire/visible"
)

// Span is a half-open range of bytes of the text.
type Span struct{ Start, End int }

// A Judge decides what the parts of a text mean.
type Judge interface {
	// Command judges one simple command.
	Command(words []Field, st *State, sp Span)
	// Assign judges the assignment of f to a variable, whose value may be expanded once more: see Reader.EvalText.
	Assign(name string, f *Field, st *State, kind Assignment, sp Span)
	// Exported judges a variable that is handed on to later commands with the value that it has.
	Exported(name string, st *State, sp Span)
	// Redirect judges a redirection to or from the file that f names.
	Redirect(f *Field, st *State, writes, appends bool)
	// Note records a finding about the text itself.
	Note(l programs.Level, e programs.Effect, sp Span, text string)
	// Unread records that a part of the text was not understood.
	Unread(sp Span, why string)
	// Maybe judges a text that may be a command.
	Maybe(text string, sp Span, st *State)
}

// Assignment is how a variable is set.
type Assignment int

const (
	Plain  Assignment = iota // x=1
	Export                   // export x=1
	Prefix                   // x=1 command
)

// Context is what a text meets in the shell.
type Context struct {
	Home      string
	Dialect   string              // the name of the shell; "" is bash
	Aliases   map[string][]string // the values that each may have: that of the live shell, and those of the text
	Functions map[string]string   // name to body
	Env       map[string]string
}

// Reader reads one text, with the texts inside it. It is not safe for concurrent use.
type Reader struct {
	Budget
	Context
	Judge Judge

	Depth   int               // of texts inside texts
	Active  []string          // functions (their id) and aliases that are being expanded
	Seen    Flow              // of all that was read since the pipe, substitution or redirection began that is being walked
	Out     Output            // what the last command printed
	Files   map[string]Output // what this text wrote
	NetFD   bool              // a descriptor is a network connection
	looping bool              // a loop is being walked
	inner   bool              // a substitution is being walked
	src     source
	syntax  *syntax.Parser // see parser
}

// MaxDepth bounds texts inside texts: sh -c, eval, functions, aliases.
const MaxDepth = 12

// Limits in front of the parser, which takes more than linear time and overflows its stack where a text is nested: 64 KiB
// of "(" took 4 s, 3 MB ended the process. Brackets are counted, not balanced, since quotes could hide a closing one.
const (
	MaxText    = 64 << 10
	MaxNesting = 2500
)

// source is the text whose nodes are walked.
type source struct {
	text  string
	outer *Span // where the text stands in the outermost one, if it is not that
}

// The work of one reading is counted in steps: a node that is walked, or a piece of text that is parsed, copied or
// searched. A step takes about a microsecond. The limit is linear in the length of the text.
const (
	FreeSteps    = 150_000 // of every text
	StepsPerByte = 2       // for each byte of the text
	BytesParsed  = 16      // bytes of shell text parsed in a step
	BytesCopied  = 64      // bytes of a word copied or compared in a step
	BytesMatched = 2       // bytes that a dozen regular expressions search in a step
	EntriesMoved = 16      // entries of a map copied or compared in a step
)

// Budget is what a reading may do and has done.
type Budget struct{ Steps, Limit int }

// Spend counts n steps. It panics when the budget is spent.
func (b *Budget) Spend(n int) {
	if b.Steps += n; b.Steps > b.Limit {
		panic("bashread: the budget is spent")
	}
}

// Bounded runs walk until it returns, the budget is spent or it panics, and reports whether it returned. The parser is not ours, and
// the texts are hostile.
func (b *Budget) Bounded(walk func()) (done bool) {
	defer func() {
		if recover() != nil {
			b.Limit = math.MaxInt // the caller's report of it may call Spend
		}
	}()
	walk()
	return true
}

// Read reads the whole text, from the state st.
func (r *Reader) Read(text string, st *State) {
	r.enter(text, nil, func() { r.program(st) })
}

// Text returns the text that is being read.
func (r *Reader) Text() string { return r.src.text }

// Outermost reports whether what is being read stands in the text itself, in no text or substitution inside it.
func (r *Reader) Outermost() bool { return r.Depth == 1 && !r.inner }

// Inline reads the text of a command that runs in place of sp: sh -c, eval, trap and the like.
func (r *Reader) Inline(text string, sp Span, st *State) {
	r.inside(text, sp, func() { r.program(st) })
}

// inside walks another text in place of a span of this one.
func (r *Reader) inside(text string, sp Span, walk func()) {
	r.enter(strings.NewReplacer("\x00", "$_unknown", "\x01", "0").Replace(text), &sp, walk)
}

// enter judges a text as bytes and has it walked, unless the parser must not see it. outer is where it stands in the outermost text; nil:
// it is that.
func (r *Reader) enter(text string, outer *Span, walk func()) {
	sp := Span{0, len(text)}
	if outer != nil {
		sp = *outer
	}
	r.Spend(1 + len(text)/BytesCopied)
	if len(text) > MaxText || Brackets(text) > MaxNesting || r.Depth > MaxDepth {
		r.Judge.Unread(sp, "it is longer than 64 KiB, or code inside code too deep to be examined")
		return
	}
	if visible.Exact(text) != text {
		r.Judge.Note(programs.High, programs.Unknown, sp, "holds characters that cannot be seen, or that change what is shown")
	}
	if strings.HasSuffix(text, "\\") {
		r.Judge.Note(programs.High, programs.Unknown, sp, "ends in a backslash, which shells read differently")
	}
	text = strings.ToValidUTF8(text, "_") // bash runs bytes that are not UTF-8 and the parser refuses them
	keep := r.src
	r.src = source{text: text, outer: outer}
	r.Depth++
	walk()
	r.Depth--
	r.src = keep
}

// program walks the text that was entered. Commands before a syntax error are judged too, since the shell runs a file line by line.
func (r *Reader) program(st *State) {
	text := r.src.text
	list, err := r.parse(text)
	before := st.Clone()
	r.stmts(list, st)
	at, why := joinedComment().FindStringIndex(text), "a comment that ends in a backslash: parser and shell read on differently"
	switch pe, ok := errors.AsType[syntax.ParseError](err); {
	case err != nil:
		at, why = []int{0, len(text)}, "its syntax could not be read, so what runs is not known"
		if ok {
			at[0] = int(pe.Pos.Offset())
		}
	case at == nil:
		return
	}
	r.Judge.Unread(r.at(at[0], at[1]), why)
	for _, piece := range pieces(text) {
		if piece != text {
			r.Judge.Maybe(piece, r.at(0, len(text)), before)
		}
	}
}

// pieces returns the parts of a text that the parser cannot read which a shell may run as a command all the same. First is the text without
// joinedComment and with each $(( read as a subshell in a command substitution; then its lines; then the lines cut at parentheses, < and
// backquotes; then those cut at double quotes and $ as well.
func pieces(text string) []string {
	all := []string{strings.ReplaceAll(joinedComment().ReplaceAllString(text, "$1"), "$((", "$( (")}
	for _, ends := range []string{"\n", "\n()<`", "\n()<`$\""} {
		all = append(all, strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(ends, c) })...)
	}
	return all
}

// joinedComment matches a comment after whose last backslash the parser (mvdan.cc/sh 3.14.1) goes on with the next line, where
// bash begins a new command.
var joinedComment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?m)(^|[\\s;&|()<>`])#.*\\\\\r*$") })
