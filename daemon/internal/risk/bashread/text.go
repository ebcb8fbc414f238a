package bashread

import (
	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/programs"
)

var nestingWords = programs.Words("if elif else then while until do for case select time coproc function")

// Brackets counts what may make the parser recurse: brackets, the ? of $((a ? b : c)), and nestingWords, of eight letters at most.
func Brackets(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '(' || c == '{' || c == '[' || c == '`' || c == '?':
			n++
		case (c == ' ' || c == '\n' || c == '\t' || c == ';') && i > 0 && s[i-1] >= 'a' && s[i-1] <= 'z':
			start := i
			for start > 0 && i-start <= 8 && s[start-1] >= 'a' && s[start-1] <= 'z' {
				start--
			}
			if nestingWords[s[start:i]] {
				n++
			}
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
