// Package policy decides whether an action runs, is asked about or is denied. It applies a mode and the user's rules to
// the verdict of package risk and to the reach that holds the action. Asking somebody is left to the agent.
package policy

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"time"

	"sublet/daemon/internal/risk"
	"sublet/wire"
	"sublet/wire/visible"
)

// Mode is what runs without a question. An action with a reach is decided by it (see Decide), one without by its level.
type Mode string

const (
	ModePlan Mode = "plan" // what only reads or is held to that; without a reach, low; the rest is refused
	ModeAsk  Mode = "ask"  // the same; the rest is asked; the default
	ModeAuto Mode = "auto" // also what is held to the project and loses nothing for good; without a reach, medium
	ModeFull Mode = "full" // up to high, held by nothing but its bound; critical is asked in every mode but plan
)

// ParseMode reads a mode's name; "" is ModeAsk.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case ModePlan, ModeAsk, ModeAuto, ModeFull:
		return m, nil
	case "":
		return ModeAsk, nil
	}
	return "", fmt.Errorf("mode %q is none of plan, ask, auto, full", s)
}

// runs is the highest level that runs unasked. A mode that is not known is ModePlan's.
func (m Mode) runs() risk.Level {
	switch m {
	case ModeAuto:
		return risk.Medium
	case ModeFull:
		return risk.High
	}
	return risk.Low
}

// What a policy decides, and what a rule does: see wire.Rule.Decision.
const (
	Allow = "allow"
	Ask   = "ask"
	Deny  = "deny"
)

// Scopes of a rule and of a grant.
const (
	ScopeSession = "session" // Subject is the session's id
	ScopeProject = "project" // Subject is the project's root
	ScopeAlways  = "always"
)

// SourceProject is the Source of rules that a project's own file brings along. They can only tighten: one that allows
// is without effect.
const SourceProject = "project file"

// Policy is a mode and rules, in any order: deny wins over ask, ask over allow.
type Policy struct {
	Mode  Mode
	Rules []wire.Rule // the Scope "" is always; see ParseRule for the syntax of a pattern
}

// Action is what is to be decided. Command and Cwd are set for bash, Reads, Writes and Network for file tools, Server for
// those of MCP servers.
type Action struct {
	Tool     string // bash, write, edit, read, fetch, …
	Command  string
	Cwd      string
	Reads    []string
	Writes   []string
	Network  string     // a host
	Server   string     // an MCP server whose tool is called
	Reach    risk.Reach // with which it would run; "" = nothing confines it here, and the words decide alone
	Bound    risk.Reach // the most that it may have, whatever rules and mode say; "" = no bound
	Passing  bool       // what Tool names is gone with the session: no permission holds longer
	Session  string     // for rules of that scope
	Project  string     // root folder; "" when there is none
	Real     string     // Project with its links resolved; "" = the same
	Editable bool       // edits and builds may be allowed in the whole of Project
	Home     string     // for rules that begin with ~/
	Now      time.Time
}

// Decision is the policy's answer.
type Decision struct {
	Outcome string
	Rule    *wire.Rule   // that decided; nil: the mode did
	Grants  []wire.Grant // with Ask: what "always" may mean; empty: only this once
	Why     string       // one line for the user and the audit log
	Project string       // with Ask: the subject of grants of that scope
	Reach   risk.Reach   // with which it runs, once it may; "" = unconfined
}

// Decide judges an action whose verdict is v. Rules are matched on each simple command, after its classification: a deny rule
// that matches one command denies the whole text; a text is allowed if every command above the mode's level is covered by a rule. A
// critical action is asked about in every mode, whatever rules allow, except ModePlan, which refuses it.
//
// An action with a reach is confined by the kernel. One that only reads, or changes the shell in a harmless way, runs without a
// question, whatever program it is. Where edits and builds are allowed, so does one that is confined to the project; one that is
// not known to only read is confined to the project there. In ModeFull only an action with a Bound is confined.
func (p Policy) Decide(v risk.Verdict, a Action) Decision {
	switch {
	case a.Bound != "" && a.exceeds():
		return Decision{Outcome: Deny, Reach: a.Reach, Why: fmt.Sprintf("a private shell of this role is held to %s, and this needs %s: only the user's own shell may run it", a.Bound, a.Reach)}
	case p.Mode == ModeFull && a.Reach != "" && a.Bound == "":
		a.Reach = risk.ReachFree
	}
	if a.Reach == risk.ReachRead && v.Level > risk.Low && a.Editable && a.Bound != risk.ReachRead {
		wider := a
		wider.Reach = risk.ReachProject
		if d := p.decide(v, wider); d.Outcome == Allow {
			d.Reach = wider.Reach
			return d
		}
	}
	d := p.decide(v, a)
	d.Reach = a.Reach
	return d
}

// exceeds reports whether an action needs more than its bound. No bound is exceeded by a harmless change of the shell itself.
func (a Action) exceeds() bool {
	return a.Reach == risk.ReachFree || a.Reach == risk.ReachProject && a.Bound == risk.ReachRead
}

// matched are the rules in force that are about an action.
type matched struct {
	allow            []*parsedRule // those that allow something, whatever it is
	ask, maybe, deny *wire.Rule    // maybe denies, as far as that is known
}

// match stops at the first rule that denies the action for certain.
func (p Policy) match(v risk.Verdict, a Action) (m matched) {
	for i := range p.Rules {
		r := &p.Rules[i]
		if !inForce(r, a) {
			continue
		}
		pr, err := parseRule(r.Pattern)
		touches := matchNo
		switch {
		case err != nil && r.Decision != Allow:
			touches = matchMaybe // a rule that cannot be read may have been meant to forbid just this
		case err != nil:
			continue
		case r.Decision != Allow:
			touches = pr.touches(v, a)
		case r.Source != SourceProject && (!a.Passing || r.Scope == ScopeSession):
			pr.rule = r
			m.allow = append(m.allow, pr)
		}
		switch {
		case touches == matchNo:
		case r.Decision == Deny && touches == matchYes:
			m.deny = r
			return m
		case r.Decision == Deny && err == nil:
			m.maybe = r
		case m.ask == nil:
			m.ask = r
		}
	}
	return m
}

// decide judges an action with exactly the reach a.Reach, "" if nothing confines it.
func (p Policy) decide(v risk.Verdict, a Action) Decision {
	m := p.match(v, a)
	if m.deny != nil {
		return Decision{Outcome: Deny, Rule: m.deny, Why: fmt.Sprintf("denied by the rule %q", m.deny.Pattern)}
	}
	held := a.Reach == risk.ReachRead && v.Level < risk.Critical
	switch {
	case p.Mode != ModePlan || held:
	case v.Level > risk.Low:
		return Decision{Outcome: Deny, Why: fmt.Sprintf("plan mode runs nothing above low, and this is %s", v.Level)}
	case a.Reach == risk.ReachProject || a.Reach == risk.ReachFree:
		return Decision{Outcome: Deny, Why: fmt.Sprintf("plan mode only reads, and this has the reach %s", a.Reach)}
	}
	d := Decision{Outcome: Ask}
	switch {
	case v.Level >= risk.Critical:
		d.Why = "critical is asked in every mode"
		return d
	case !held && (v.Level < risk.Low || v.Unread):
		d.Why = "what could not be examined is asked, unless it is held to reading"
		return d
	case m.maybe != nil:
		d.Rule, d.Why = m.maybe, fmt.Sprintf("it is not known whether the rule %q denies it", m.maybe.Pattern)
		return d
	case m.ask != nil:
		d.Rule, d.Why = m.ask, fmt.Sprintf("asked for by the rule %q", m.ask.Pattern)
		return d
	case a.Reach != "":
		if why := p.unasked(v, a, m.allow); why != "" {
			return Decision{Outcome: Allow, Why: why}
		}
	case v.Level <= p.Mode.runs():
		return Decision{Outcome: Allow, Why: fmt.Sprintf("%s runs unasked in %s mode", v.Level, p.Mode)}
	}
	if r := covered(m.allow, v, a, p.free(a)); r != nil {
		return Decision{Outcome: Allow, Rule: r, Why: fmt.Sprintf("allowed by the rule %q", r.Pattern)}
	}
	return p.asked(v, a)
}

// asked returns the question about an action that nothing allows.
func (p Policy) asked(v risk.Verdict, a Action) Decision {
	d := Decision{Outcome: Ask, Grants: grants(v, a, p.free(a)), Project: a.real(), Why: fmt.Sprintf("%s is asked in %s mode", v.Level, p.Mode)}
	switch {
	case a.Reach == risk.ReachFree && v.Reach == risk.ReachProject && !a.Editable:
		d.Why = "it changes files, and this folder is not a project that it could be confined to"
	case a.Reach == risk.ReachFree:
		d.Why = "it needs more than a command confined to the project may do"
	case a.Reach == risk.ReachProject && loses(v):
		d.Why = "what it deletes or overwrites cannot be restored"
	case a.Reach == risk.ReachProject:
		d.Why = "edits and builds are not allowed yet in this project"
		if a.Editable {
			d.Grants = slices.Insert(d.Grants, 0, wire.Grant{Scope: ScopeProject, Rule: projectRule, Covers: "edits and builds in " + visible.Exact(a.real()) + ", and nothing beyond it"})
		}
	}
	return d
}

// projectRule allows edits and builds in a project.
const projectRule = "reach: project"

// unasked returns why an action with a reach runs without a question, "" where it is asked.
func (p Policy) unasked(v risk.Verdict, a Action, allow []*parsedRule) string {
	granted := func(r *parsedRule) bool { // for always it would allow them in every project, also in one that was never seen
		return r.kind == "reach" && r.rule.Scope != ScopeAlways && r.rule.Scope != ""
	}
	switch a.Reach {
	case risk.ReachRead:
		if v.Level > risk.Low {
			return "it is held to reading"
		}
		return "it only reads, and is held to that"
	case risk.ReachShell:
		return "it changes the shell in a harmless way"
	case risk.ReachProject:
		switch {
		case p.Mode == ModeFull:
			return fmt.Sprintf("%s runs unasked in full mode", v.Level)
		case loses(v):
		case p.Mode == ModeAuto:
			return fmt.Sprintf("it is held to the project, which runs unasked in %s mode", p.Mode)
		case slices.ContainsFunc(allow, granted):
			return "edits and builds are allowed in this project, and it is held to that"
		}
	case risk.ReachFree:
		if p.Mode == ModeFull && v.Level <= risk.High {
			return fmt.Sprintf("%s runs unasked in full mode", v.Level)
		}
	}
	return ""
}

// loses reports whether an action is known to destroy something that cannot be restored. What writes to where nobody knows is
// not: it is held to the project.
func loses(v risk.Verdict) bool {
	return slices.ContainsFunc(v.Reasons, func(r risk.Reason) bool {
		return r.Level >= risk.High && (r.Effect == risk.Delete || r.Effect == risk.History || r.Effect == risk.Write && !v.Reversible)
	})
}

// real is the project that permissions are given for: a link may be led elsewhere later.
func (a Action) real() string { return cmp.Or(a.Real, a.Project) }

// inForce reports whether a rule has not expired and is about this session or project.
func inForce(r *wire.Rule, a Action) bool {
	if r.ExpiresAtMS != nil && a.Now.UnixMilli() >= *r.ExpiresAtMS {
		return false
	}
	switch r.Scope {
	case ScopeAlways, "":
		return true
	case ScopeSession:
		return r.Subject != "" && string(r.Subject) == a.Session
	case ScopeProject:
		at := func(project string) bool {
			return project != "" && path.Clean(string(r.Subject)) == path.Clean(project)
		}
		return r.Subject != "" && (at(a.real()) || r.Decision != Allow && at(a.Project))
	}
	// A scope that is not known binds where it forbids and is void where it allows.
	return r.Decision != Allow
}

// needsRule reports whether a command of an action runs only by a rule that allows it. free is the highest level that runs unasked.
func (a Action) needsRule(c *risk.Command, free risk.Level) bool {
	return c.Level > free || c.Beyond && a.Reach == risk.ReachFree
}

// free is the highest level that a part of an action may have without a rule: that of the mode, unless nothing would hold it.
func (p Policy) free(a Action) risk.Level {
	if a.Reach == risk.ReachFree {
		return risk.Low
	}
	return p.Mode.runs()
}

// covered returns the last rule that is needed to let the whole action through: each command for which needsRule is true needs one. It
// returns nil if a command has none, and if no rule is needed.
func covered(allow []*parsedRule, v risk.Verdict, a Action, free risk.Level) *wire.Rule {
	first := func(covers func(*parsedRule) bool) *wire.Rule {
		if i := slices.IndexFunc(allow, covers); i >= 0 {
			return allow[i].rule
		}
		return nil
	}
	if a.Command == "" {
		return first(func(pr *parsedRule) bool { return pr.coversFiles(v, a) })
	}
	if len(v.Commands) == 0 || v.Rest > free {
		return nil
	}
	var used *wire.Rule
	for i := range v.Commands {
		c := &v.Commands[i]
		if !a.needsRule(c, free) {
			continue
		}
		// For a command that runs unconfined only because the agent asked for that, the rule must have the word free.
		if used = first(func(pr *parsedRule) bool { return (pr.free || !a.widened(v)) && pr.coversCommand(c) }); used == nil {
			return nil
		}
	}
	return used
}

// Held returns what the kernel holds a command to by a decision, "" for nothing.
func (d Decision) Held() string {
	if d.Reach.Confines() {
		return string(d.Reach)
	}
	return ""
}

// By names who decided, for people and the audit log.
func (d Decision) By() string {
	switch {
	case d.Rule != nil && d.Rule.ID != "":
		return "rule " + string(d.Rule.ID)
	case d.Rule != nil:
		return "rule " + d.Rule.Pattern
	}
	return "policy"
}
