package policy

import (
	"path"
	"slices"
	"strings"

	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/risk/secret"
	"sublet/wire"
	"sublet/wire/visible"
)

// widened reports whether nothing is to hold a command that could be held by its text: the agent asked for that.
func (a Action) widened(v risk.Verdict) bool {
	return a.Reach == risk.ReachFree && (v.Reach == risk.ReachRead || v.Reach == risk.ReachProject && a.Editable)
}

// grants returns what "always" could mean for this action: rules that would have allowed it, and no more than their words.
// There is none for what is not wholly known and for what belongs to no command. Every offer holds for the level of now at
// most, and above medium only in the folder of now, since the same words mean more elsewhere.
func grants(v risk.Verdict, a Action, free risk.Level) []wire.Grant {
	if a.Server != "" {
		// What any call of a tool does is as little known as what this one does: the rule can only name the tool.
		return offer(v, a, free, []wire.Grant{{Rule: "tool: " + a.Tool, Covers: "every call of " + a.Tool + ", whatever its arguments"}}, true)
	}
	if a.Command == "" {
		return offer(v, a, free, fileRules(v, a), v.Level <= risk.Medium)
	}
	var w wording
	for i := range v.Commands {
		if c := &v.Commands[i]; a.needsRule(c, free) {
			w.add(c)
		}
	}
	if len(w.exact) == 0 || w.top > risk.Medium && w.dir == "" {
		return nil
	}
	narrow, where, unheld := w.top.String(), "", ""
	if a.widened(v) {
		unheld = ", free"
		where = ", held by nothing"
	}
	narrow += unheld
	if w.top > risk.Medium {
		narrow += ", in " + w.dir
		where = " run in " + w.dir + where
	}
	rules := []wire.Grant{{Rule: "bash[" + narrow + "]: " + strings.Join(w.exact, " ; "), Covers: "exactly " + orList(w.exact) + where}}
	if !w.narrow && len(w.prefix) > 0 {
		rules = append(rules, wire.Grant{
			Rule:   "bash[" + narrow + "]: " + strings.Join(w.prefix, " * ; ") + " *",
			Covers: "every command that begins with " + orList(w.prefix) + " and is no more than " + w.top.String() + where,
		})
	}
	return offer(v, a, free, rules, !w.runs && w.top <= risk.Medium)
}

// wording collects, from the commands of one text, the patterns of the rules that would allow them.
type wording struct {
	exact, prefix []string
	top           risk.Level
	dir           string
	narrow        bool // there is no wide rule
	runs          bool // one of them runs other code
}

// add adds a command: its exact words and, if a wide rule may be offered for it, those that begin it.
func (w *wording) add(c *risk.Command) {
	w.dir, w.top = c.Cwd, max(w.top, c.Level)
	if e := quoteWords(c.Argv); !slices.Contains(w.exact, e) {
		w.exact = append(w.exact, e)
	}
	w.runs = w.runs || c.Runs
	if c.Runs || c.Verb == 0 || c.Level > risk.Medium {
		w.narrow = true
	} else if begin := quoteWords(c.Argv[:c.Verb]); !slices.Contains(w.prefix, begin) {
		w.prefix = append(w.prefix, begin)
	}
}

// fileRules are grants, still without scope, for a file tool's action.
func fileRules(v risk.Verdict, a Action) []wire.Grant {
	level := v.Level.String()
	switch {
	case a.Network != "" && len(a.Reads)+len(a.Writes) == 0:
		return []wire.Grant{{Rule: "fetch[" + level + "]: " + QuoteGlob(a.Network), Covers: "reading from " + a.Network}}
	case a.Network == "" && len(a.Writes) == 1:
		gs := []wire.Grant{{Rule: "write[" + level + "]: " + QuoteGlob(a.Writes[0]), Covers: "writing " + a.Writes[0]}}
		if dir := path.Dir(a.Writes[0]); v.Level <= risk.Medium && a.Project != "" && secret.Under(dir, a.Project) {
			gs = append(gs, wire.Grant{Rule: "write[medium]: " + QuoteGlob(dir) + "/**", Covers: "writing files below " + dir + " that are no more than medium"})
		}
		return gs
	case a.Network == "" && len(a.Writes) == 0 && len(a.Reads) == 1:
		return []wire.Grant{{Rule: "read[" + level + "]: " + QuoteGlob(a.Reads[0]), Covers: "reading " + a.Reads[0]}}
	}
	return nil
}

// offer gives each rule its scopes: everywhere only where that is safe, so never for what runs other code or is high. A
// rule that would not let this very action through, or is too long to be read, is not offered.
func offer(v risk.Verdict, a Action, free risk.Level, rules []wire.Grant, safe bool) []wire.Grant {
	var gs []wire.Grant
	for _, g := range rules {
		pr, err := parseRule(g.Rule)
		if err != nil || len(g.Rule) > maxGrant {
			continue
		}
		pr.rule = &wire.Rule{Pattern: g.Rule}
		if covered([]*parsedRule{pr}, v, a, free) == nil {
			continue
		}
		add := func(scope, where string) {
			gs = append(gs, wire.Grant{Scope: scope, Rule: g.Rule, Covers: visible.Exact(g.Covers) + where})
		}
		add(ScopeSession, ", in this session")
		if a.Passing {
			continue
		}
		if a.Project != "" {
			add(ScopeProject, ", in the project "+visible.Exact(a.real()))
		}
		if safe {
			add(ScopeAlways, ", in every folder and session, until you revoke it")
		}
	}
	return gs
}

// maxGrant bounds an offered rule, in bytes, so that a person can read what they grant.
const maxGrant = 400

func orList(items []string) string {
	quoted := make([]string, len(items))
	for i, s := range items {
		quoted[i] = "`" + s + "`"
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}
