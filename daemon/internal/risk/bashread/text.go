package bashread

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/programs"
)

var nestingWords = programs.Words("if elif else then while until do for case select time coproc function")

// Brackets counts what may make the parser recurse: brackets, the ? of $((a ? b : c)), and nestingWords.
func Brackets(s string) int {
	n := 0
	for _, bracket := range "({[`?" {
		n += strings.Count(s, string(bracket))
	}
	for word := range strings.FieldsFuncSeq(s, func(c rune) bool { return c < 'a' || c > 'z' }) {
		if nestingWords[word] {
			n++
		}
	}
	return n
}

// span is where a node stands in the outermost text.
func (r *Reader) span(n syntax.Node) Span { return r.at(int(n.Pos().Offset()), int(n.End().Offset())) }

func (r *Reader) at(start, end int) Span {
	if r.src.outer != nil {
		return *r.src.outer
	}
	start, end = min(start, len(r.src.text)), min(end, len(r.src.text))
	return Span{start, max(start, end)}
}
