package judge

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk"
	"sublet/wire/visible"
)

const (
	maxRefusedParts = 5   // named in one refusal
	maxRefusedText  = 200 // bytes of one
	maxStatements   = 20  // of a command that are judged by themselves
)

// Refusal describes a refused command for the model: the parts that the refusal is about, from the verdict's reasons, and the
// statements that would run without a question, for which free is true. It is "" if neither is known. Each statement is judged
// again when it is tried.
func Refusal(text string, reasons []risk.Reason, free func(statement string) bool) string {
	all := statements(text)
	if len(all) > maxStatements {
		all = nil
	}
	list := slices.DeleteFunc(slices.Clone(all), func(s *syntax.Stmt) bool { return !free(statement(text, s)) })
	if len(list) == len(all) { // each would run alone: what they do together is refused
		list = nil
	}
	var about, rest []string
	for _, s := range list {
		rest = append(rest, quoted(statement(text, s)))
	}
	for _, r := range reasons {
		s := r.Span
		spanned := s != nil && 0 <= s.Start && s.Start < s.End && s.End <= len(text)
		if r.Level == risk.Low || spanned && slices.ContainsFunc(list, func(f *syntax.Stmt) bool {
			return int(f.Pos().Offset()) <= s.Start && s.End <= int(f.End().Offset())
		}) {
			continue
		}
		part := r.Text
		if spanned && s.End-s.Start < len(text) {
			part = quoted(text[s.Start:s.End]) + " (" + r.Text + ")"
		}
		about = append(about, part)
	}
	var b strings.Builder
	if len(about) > 0 {
		fmt.Fprintf(&b, "\nThe refusal is about this: %s.", few(about))
	}
	if len(rest) > 0 {
		fmt.Fprintf(&b, "\nThe rest may be run without it: %s.", few(rest))
	}
	return b.String()
}

// statements are the commands of a text that can be run by themselves, in their order; none where it cannot be read as bash.
func statements(text string) (list []*syntax.Stmt) {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	var add func(s *syntax.Stmt)
	add = func(s *syntax.Stmt) {
		if c, ok := s.Cmd.(*syntax.BinaryCmd); ok && (c.Op == syntax.AndStmt || c.Op == syntax.OrStmt) {
			add(c.X)
			add(c.Y)
			return
		}
		list = append(list, s)
	}
	for _, s := range file.Stmts {
		add(s)
	}
	return list
}

// statement is the text of one of them.
func statement(text string, s *syntax.Stmt) string {
	return strings.TrimRight(text[s.Pos().Offset():s.End().Offset()], "; \n")
}

func quoted(s string) string { return "`" + visible.Clip(s, maxRefusedText) + "`" }

// few joins at most maxRefusedParts of the list, and the number of the others.
func few(list []string) string {
	if more := len(list) - maxRefusedParts; more > 0 {
		list = append(list[:maxRefusedParts:maxRefusedParts], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}
