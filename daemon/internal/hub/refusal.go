package hub

import (
	"context"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/risk"
)

const (
	maxRefusedParts = 5   // named in one refusal
	maxRefusedText  = 200 // bytes of one
	maxStatements   = 20  // of a command that are judged by themselves
)

// refusal says for the model what of a refused call the refusal is about, and which statements of it would run without a
// question; "" where neither is known. Each of these is judged again when it is tried.
func (a *approver) refusal(ctx context.Context, q agent.Question) string {
	text := q.Action.Command
	var about, rest []string
	for _, r := range a.judge(ctx, q).Reasons {
		if r.Level == risk.Low {
			continue
		}
		part := r.Text
		if s := r.Span; s != nil && 0 <= s.Start && s.Start < s.End && s.End <= len(text) && s.End-s.Start < len(text) {
			part = quoted(text[s.Start:s.End]) + " (" + r.Text + ")"
		}
		about = append(about, part)
	}
	rules := a.policy(ctx, q)
	free := func(statement string) bool {
		q := q
		q.Action.Command = statement
		v := a.judge(ctx, q)
		d := rules.Decide(v, a.action(q, a.reach(q, v)))
		return d.Outcome == policy.Allow && (!q.ReadOnly || v.Level == risk.Low || d.Reach == risk.ReachRead) && (d.Rule != nil || !a.wanted(q))
	}
	if list := statements(text); len(list) > 1 && len(list) <= maxStatements {
		for _, s := range list {
			if free(s) {
				rest = append(rest, quoted(s))
			}
		}
		if len(rest) == len(list) { // it is what they do together
			rest = nil
		}
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
func statements(text string) (list []string) {
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
		list = append(list, strings.TrimRight(text[s.Pos().Offset():s.End().Offset()], "; \n"))
	}
	for _, s := range file.Stmts {
		add(s)
	}
	return list
}

func quoted(s string) string {
	if short := cut(s, maxRefusedText); short != s {
		return "`" + short + "…`"
	}
	return "`" + s + "`"
}

func few(list []string) string {
	if more := len(list) - maxRefusedParts; more > 0 {
		list = append(list[:maxRefusedParts:maxRefusedParts], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}
