package policy

import (
	"fmt"
	"path"
	"strings"

	"sublet/daemon/internal/risk"
	"sublet/wire"
)

// Bounds of a rule's examples.
const (
	MaxExamples    = 32   // of one rule
	maxExampleText = 4096 // bytes of one
)

// CheckExamples reports whether a rule does what its examples say: that it is about each of Match, and about none of
// NoMatch. For bash and effect an example is a command, for write and read a path, for fetch a host, for tool a name.
// Commands are judged in a project of their own, or in the folder that the rule names. A rule that allows is about what
// it lets through as a whole; one that denies or asks, about whatever has a command that it forbids. Rules are checked
// when they are made and when they are loaded, since what is known of programs changes.
func CheckExamples(r wire.Rule) error {
	pr, err := parseRule(r.Pattern)
	if err != nil {
		return err
	}
	if n := len(r.Match) + len(r.NoMatch); n > MaxExamples {
		return fmt.Errorf("rule %q: %d examples are more than the limit of %d", r.Pattern, n, MaxExamples)
	}
	r.Scope, r.ExpiresAtMS = ScopeAlways, nil
	pr.rule = &r
	for _, list := range []struct {
		examples []string
		want     bool
	}{{r.Match, true}, {r.NoMatch, false}} {
		for _, text := range list.examples {
			if len(text) > maxExampleText {
				return fmt.Errorf("rule %q: an example is longer than %d bytes", r.Pattern, maxExampleText)
			}
			got, why := pr.about(r, text)
			switch {
			case got == list.want:
			case list.want:
				return fmt.Errorf("rule %q is not about %q, which is its example: %s", r.Pattern, text, why)
			default:
				return fmt.Errorf("rule %q is about %q, and is not meant to be", r.Pattern, text)
			}
		}
	}
	return nil
}

// exampleRoot is where examples run.
const exampleRoot = "/home/user/project"

// about reports whether the rule decides an example, or why not.
func (r *parsedRule) about(rule wire.Rule, text string) (bool, string) {
	c := risk.Context{Cwd: exampleRoot, Home: "/home/user", ProjectRoot: exampleRoot}
	if r.dir != "" {
		c.Cwd, c.ProjectRoot = r.dir, r.dir
	}
	a := Action{Cwd: c.Cwd, Project: c.ProjectRoot, Home: c.Home}
	var v risk.Verdict
	switch r.kind {
	case "write", "read":
		p := text
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			p = path.Join(c.Home, rest)
		} else if !path.IsAbs(p) {
			p = path.Join(c.Cwd, p)
		}
		if p = path.Clean(p); r.kind == "write" {
			a.Tool, a.Writes = "write", []string{p}
		} else {
			a.Tool, a.Reads = "read", []string{p}
		}
		v = risk.AnalyzeFile(risk.FileAction{Reads: a.Reads, Writes: a.Writes}, c)
	case "fetch":
		a.Tool, a.Network = "fetch", text
		v = risk.AnalyzeFile(risk.FileAction{Network: text}, c)
	case "tool":
		a.Tool = text
		v = risk.AnalyzeFile(risk.FileAction{}, c)
	default:
		a.Tool, a.Command = "bash", text
		v = risk.Analyze(text, c)
	}
	if rule.Decision != Allow {
		return r.touches(v, a) == matchYes, "it has no command that the rule names"
	}
	if a.Command == "" {
		return r.coversFiles(v, a), fmt.Sprintf("it is %s", v.Level)
	}
	if v.Level >= risk.Critical || v.Unread {
		return false, "no rule allows what is critical or could not be examined"
	}
	named := false
	for i := range v.Commands {
		named = named || r.coversCommand(&v.Commands[i])
	}
	if !named {
		return false, fmt.Sprintf("none of its commands is one that the rule allows, at %s", v.Level)
	}
	return v.Level <= risk.Low || covered([]*parsedRule{r}, v, a, risk.Low) != nil, "something else in it is not allowed by the rule"
}
