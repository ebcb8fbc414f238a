package policy

import (
	"path"
	"slices"
	"strings"

	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/risk/secret"

	"github.com/bmatcuk/doublestar/v4"
)

// match is how sure it is that a rule is about an action.
type match int

const (
	matchNo match = iota
	matchMaybe
	matchYes
)

// touches reports whether a rule that denies or asks is about this action. A word whose value is not known may match.
func (r *parsedRule) touches(v risk.Verdict, a Action) match {
	if r.free && a.Reach.Confines() {
		return matchNo
	}
	hit := false
	switch r.kind {
	case "bash":
		best := matchNo
		for i := range v.Commands {
			best = max(best, r.touchesCommand(&v.Commands[i]))
		}
		if a.Command != "" && len(v.Commands) == 0 && v.Level >= risk.High {
			best = matchMaybe // it could not be read
		}
		return best
	case "effect":
		hit = r.touchesEffect(v)
	case "tool":
		hit, _ = doublestar.Match(r.globs[0], a.Tool)
	case "reach":
		hit = a.Reach == risk.ReachProject
	case "write", "read":
		return r.touchesPath(v, a)
	case "fetch":
		hit = a.Network != "" && matchHost(r.globs[0], a.Network) ||
			slices.ContainsFunc(v.Targets, func(t risk.Target) bool { return t.Host != "" && matchHost(r.globs[0], t.Host) })
	}
	if hit {
		return matchYes
	}
	return matchNo
}

func (r *parsedRule) touchesEffect(v risk.Verdict) bool {
	named := func(e risk.Effect) bool { return slices.Contains(r.effects, e) }
	return v.Level >= r.level && (slices.ContainsFunc(v.Reasons, func(reason risk.Reason) bool { return reason.Level >= r.level && named(reason.Effect) }) ||
		slices.ContainsFunc(v.Commands, func(c risk.Command) bool { return c.Level >= r.level && slices.ContainsFunc(c.Effects, named) }))
}

func (r *parsedRule) touchesPath(v risk.Verdict, a Action) match {
	if v.Level < r.level {
		return matchNo
	}
	paths, best := a.Writes, matchNo
	if r.kind == "read" {
		paths = a.Reads
	}
	if slices.ContainsFunc(paths, func(p string) bool { return r.matchPath(p, a) }) {
		return matchYes
	}
	for _, t := range v.Targets {
		switch {
		case t.Host != "" || (t.Effect == risk.Read || t.Effect == risk.Secret) != (r.kind == "read"):
		case t.Path == "":
			best = matchMaybe
		case r.matchPath(t.Path, a) || t.Tree && r.matchTree(t.Path, a):
			return matchYes
		}
	}
	return best
}

// matchTree reports whether what is done to tree, whose segments may be patterns, and to all below it may reach a path of the rule:
// rm -r src with a rule on src/a.go.
func (r *parsedRule) matchTree(tree string, a Action) bool {
	glob := r.absolute(a)
	if glob == "" {
		return true
	}
	base, rest := doublestar.SplitPattern(glob)
	if !strings.ContainsAny(rest, `*?[{\`) {
		base = path.Join(base, rest) // the rule names one path
	}
	segments := strings.Split(base, "/")
	above := strings.Join(segments[:min(len(segments), 1+strings.Count(tree, "/"))], "/") // base, or what is above it as deep as tree
	return secret.Under(base, tree) || secret.Match(tree, []string{above})
}

// touchesCommand matches the words of a command as they are written and also without the options before its sub-command
// (Plain; nil: there are none). One with an unknown word may run what the rule names, but not if it only reads (Low).
func (r *parsedRule) touchesCommand(c *risk.Command) match {
	if c.Level < r.level || r.dir != "" && c.Cwd != "" && c.Cwd != r.dir {
		return matchNo
	}
	best := matchNo
	for _, words := range r.alts {
		for _, argv := range [][]string{c.Argv, c.Plain} {
			switch {
			case len(argv) > 0:
				best = max(best, looseMatch(words, argv, c.Name, c.Opaque))
			case c.Opaque && c.Plain == nil && c.Level > risk.Low:
				best = max(best, matchMaybe)
			}
		}
	}
	return best
}

// looseMatch is how rules that forbid match: the program by its base name, operands in order, options anywhere. An
// unknown word ("" while opaque) may be anything.
func looseMatch(words []pattern, argv []string, name string, opaque bool) match {
	first := match(matchNo)
	switch {
	case words[0].match(argv[0]) || name != "" && words[0].match(name):
		first = matchYes
	case opaque && argv[0] == "":
		first = matchMaybe
	}
	if first == matchNo {
		return matchNo
	}
	if matchWords(words[1:], argv[1:]) {
		return first
	}
	var wantOps []pattern
	var wantOpts []string
	for _, p := range words[1:] {
		if p.wild == nil && len(p.literal) > 1 && p.literal[0] == '-' {
			wantOpts = append(wantOpts, p.literal)
		} else {
			wantOps = append(wantOps, p)
		}
	}
	ops, opts, unknown := operands(argv[1:], opaque)
	missing := slices.ContainsFunc(wantOpts, func(o string) bool { return !hasOption(opts, o) })
	switch {
	case !missing && matchWords(wantOps, ops):
		return first
	case unknown:
		return matchMaybe
	}
	return matchNo
}

// operands splits words into operands and options; unknown reports a word whose value is not known ("" while opaque).
func operands(words []string, opaque bool) (ops, opts []string, unknown bool) {
	for i, s := range words {
		switch {
		case s == "" && opaque:
			unknown = true
		case s == "--":
			rest := words[i+1:]
			return append(ops, rest...), opts, unknown || opaque && slices.Contains(rest, "")
		case len(s) > 1 && s[0] == '-':
			opts = append(opts, s)
		default:
			ops = append(ops, s)
		}
	}
	return ops, opts, unknown
}

// hasOption finds an option however it is spelled: in a cluster, with =value, shortened.
func hasOption(have []string, want string) bool {
	long := strings.HasPrefix(want, "--")
	letters := want[1:] // of a cluster, those that were not given yet
	for _, h := range have {
		switch {
		case h == want:
			return true
		case long:
			h, _, _ = strings.Cut(h, "=")
			if h == want || len(h) > 3 && strings.HasPrefix(h, "--") && strings.HasPrefix(want, h) {
				return true
			}
		case !strings.HasPrefix(h, "--"):
			letters = strings.Map(func(c rune) rune {
				if strings.ContainsRune(h[1:], c) {
					return -1
				}
				return c
			}, letters)
			if letters == "" {
				return true
			}
		}
	}
	return false
}
