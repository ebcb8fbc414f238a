package judge

import (
	"cmp"
	"fmt"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/reach"
	"sublet/wire"
	"sublet/wire/visible"
)

// Rules returns the rules of the settings, then the others. Each is checked against its examples again, because a newer daemon
// may know more about programs.
func Rules(p config.Policy, others ...wire.Rule) []wire.Rule {
	list := []wire.Rule{}
	for _, from := range []struct {
		decision string
		patterns []string
	}{{policy.Deny, p.Deny}, {policy.Allow, p.Allow}} {
		for i, pattern := range from.patterns {
			list = append(list, wire.Rule{
				ID: wire.RuleID(fmt.Sprintf("config-%s-%d", from.decision, i+1)), Decision: from.decision, Pattern: pattern,
				Scope: policy.ScopeAlways, Source: "config",
			})
		}
	}
	for i, r := range p.Rules {
		list = append(list, wire.Rule{
			ID: wire.RuleID(fmt.Sprintf("config-%d", i+1)), Decision: r.Decision, Pattern: r.Pattern, Scope: policy.ScopeAlways,
			Source: "config", Match: r.Match, NoMatch: r.NoMatch,
		})
	}
	list = append(list, others...)
	for i := range list {
		r := &list[i]
		if r.Match == nil {
			r.Match = []string{}
		}
		if r.NoMatch == nil {
			r.NoMatch = []string{}
		}
		if err := policy.CheckExamples(*r); err != nil {
			r.Fault = err.Error()
		}
	}
	return list
}

// InForce returns the rules of a list that are in force, and a Fault for each rule that does not do what its examples say. A
// faulty rule that allows is not in force; one that asks or denies is.
func InForce(list []wire.Rule) (rules []wire.Rule, faults []Fault) {
	for _, r := range list {
		if r.Fault != "" {
			faults = append(faults, ruleFault(r))
			if r.Decision == policy.Allow {
				continue
			}
		}
		rules = append(rules, r)
	}
	return rules, faults
}

func ruleFault(r wire.Rule) Fault {
	f := Fault{"a rule of your settings does not do what it says: " + r.Fault, "it still holds; `sublet policy ls` lists all"}
	switch r.Source {
	case "user":
		f.Text = "a rule that you made does not do what it says: " + r.Fault
	case policy.SourceProject:
		f.Text = "a rule of the project's file does not do what it says: " + r.Fault
	}
	if r.Decision == policy.Allow {
		f.Hint = "until it is repaired it allows nothing; `sublet policy ls` lists all"
	}
	return f
}

// NewRule checks and completes a rule that the user made in a session and project, by writing it or by an answer. project is a path
// without symbolic links. The error begins with the name of the faulty field.
func NewRule(rule wire.Rule, session wire.SessionID, project string) (wire.Rule, error) {
	if err := policy.ParseRule(rule.Pattern); err != nil {
		return rule, fmt.Errorf("rule.pattern: %w", err)
	}
	switch rule.Decision {
	case policy.Allow, policy.Ask, policy.Deny:
	default:
		return rule, fmt.Errorf("rule.decision: %q is none of allow, ask, deny", visible.Exact(visible.Cut(rule.Decision, 64)))
	}
	rule.ID, rule.Source, rule.CreatedAtMS, rule.Fault = wire.RuleID(wire.NewID()), "user", time.Now().UnixMilli(), ""
	if err := policy.CheckExamples(rule); err != nil {
		return rule, err
	}
	switch rule.Scope {
	case policy.ScopeSession:
		rule.Subject = wire.OSString(session)
	case policy.ScopeProject:
		rule.Subject = wire.OSString(cmp.Or(reach.Real(string(rule.Subject)), project))
	case policy.ScopeAlways, "":
		rule.Scope, rule.Subject = policy.ScopeAlways, ""
	default:
		return rule, fmt.Errorf("rule.scope: %q is none of session, project, always", visible.Exact(visible.Cut(rule.Scope, 64)))
	}
	return rule, nil
}
