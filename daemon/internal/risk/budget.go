package risk

import (
	"errors"
	"math"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The work of one analysis is counted in steps: a node of the syntax tree that is walked, or a piece of text that is
// parsed, copied or searched. A step takes about a microsecond. The limit grows linearly with the length of the text, so
// that the time of every analysis does.
const (
	freeSteps    = 150_000 // that every text has: some 4,000 simple commands, loops and functions counted each time
	stepsPerByte = 2       // that each byte of the text adds
	bytesParsed  = 16      // bytes of shell text parsed in a step
	bytesCopied  = 64      // bytes of a word or value copied or compared in a step
	bytesMatched = 2       // bytes of text that a dozen regular expressions go over in a step
	entriesMoved = 16      // entries of a map copied or compared in a step
)

// budget is what an analysis, with the analyses of its parts, may do and has done.
type budget struct{ steps, limit int }

// errSpent is what spend panics with. Only bounded recovers it.
var errSpent = errors.New("risk: the budget is spent")

// spend counts n steps. It does not return when the budget is spent: the analysis ends there, with what it has found.
func (b *budget) spend(n int) {
	if b.steps += n; b.steps > b.limit {
		panic(errSpent)
	}
}

// bounded runs walk until it returns or the budget is spent. A text that spends its budget is High and asked in every
// mode.
func (a *analysis) bounded(whole Span, walk func()) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case errSpent:
			a.limit = math.MaxInt // of what finish has to do
			a.cmd, a.unread = -1, true
			a.v.Rest = max(a.v.Rest, High)
			// First, so that it is among the reasons that are kept.
			why := finding{Reason: Reason{Text: "it is too complicated to judge", Span: &whole, Effect: Unknown, Level: High}}
			a.findings = slices.Insert(a.findings, 0, why)
		default:
			panic(p)
		}
	}()
	walk()
}

// replace is strings.Replace, with the length of the result counted before it is made.
func (a *analysis) replace(s, old, with string, n int) string {
	found := strings.Count(s, old)
	if n >= 0 {
		found = min(found, n)
	}
	a.spend((len(s) + found*len(with)) / bytesCopied)
	return strings.Replace(s, old, with, n)
}

// keep notes the words that a node was expanded to in the walk, for those who ask what it printed or which file it named:
// expanding it again for each of them would double the work at every level of nesting.
func (a *analysis) keep(n syntax.Node, fs []field) {
	if a.kept == nil {
		a.kept = map[syntax.Node][]field{}
	}
	a.kept[n] = fs
}
