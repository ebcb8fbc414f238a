// Package judge collects what is known of the shell, folder and project in which an agent's call would run, and has package
// risk judge it. Package policy decides what follows; who is asked, and how, is left to the hub.
package judge

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"sublet/daemon/config"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/tool"
	"sublet/daemon/internal/worktree"
	"sublet/wire"
	"sublet/wire/visible"
)

// Place is where a call would run.
type Place struct {
	Settings config.Policy
	Env      map[string]string
	Cwd      string // where the call names no folder
	Home     string
	Own      []int                                    // processes that no agent is to end
	Written  func(path string) (text string, ok bool) // what the session's tools wrote to a file
	Made     func(path string) bool                   // reports whether they made it
	Jobs     []string                                 // the projects that running background jobs are confined to

	ServerWrite []string // folders of the settings in which an MCP server may write
}

// Judge returns the verdict on a call.
func (p Place) Judge(ctx context.Context, act tool.Action) risk.Verdict {
	c := risk.Context{
		Cwd: cmp.Or(act.Cwd, p.Cwd), Home: p.Home, Secrets: reach.Secrets(p.Settings), Writable: reach.Writable(p.Settings.Project.Write),
		Hosts: p.Settings.Project.Hosts, Env: p.Env, Own: p.Own,
	}
	if act.Command == "" {
		// A file tool's paths have their links resolved: so must the places they are compared with.
		c.Cwd, c.Home = reach.Real(c.Cwd), reach.Real(c.Home)
	}
	c.ProjectRoot = project.Root(c.Cwd)
	if project.IsRepository(c.ProjectRoot) {
		c.Tracked = func(path string) bool { return worktree.Tracked(ctx, c.ProjectRoot, path) }
	}
	if act.Command == "" {
		return risk.AnalyzeFile(risk.FileAction{Reads: act.Reads, Writes: act.Writes, Network: act.Network, Server: act.Server}, c)
	}
	known := act.Facts == nil || act.Facts(ctx, &c)
	c.Written = func(path string) (string, bool) { return p.Written(reach.Real(path)) }
	c.Made = func(path string) bool { return p.Made(reach.Real(path)) }
	var venvs []risk.Script
	c.Venv = func(file string) bool {
		state := venvState(file) // before it is judged: what changes meanwhile is noticed
		ok := standardVenv(file, c.ProjectRoot, c.Env["PATH"])
		if ok {
			venvs = append(venvs, risk.Script{Path: file, Text: state, Venv: true})
		}
		return ok
	}
	c.Shadow = shadow(c.Env["PATH"], c.ProjectRoot, c.Home, c.Env["TMPDIR"])
	v := risk.Analyze(act.Command, c)
	v.Scripts = append(v.Scripts, venvs...)
	v = throughLinks(v, c.ProjectRoot)
	if !act.AgentShell { // where nobody has a prompt
		c.Writable = append(c.Writable, reach.Writable(p.ServerWrite)...)
		v = Entering(v, c, p.Jobs)
	}
	if act.Background {
		v.Reasons = append(v.Reasons, risk.Reason{Text: "goes on in the background, until it ends by itself or is ended", Effect: risk.RunCode, Level: risk.Low})
	}
	if !known && v.Level < risk.Medium {
		v.Level, v.Rest = risk.Medium, max(v.Rest, risk.Medium)
		v.Reasons = append(v.Reasons, risk.Reason{
			Text: "the shell's aliases and functions are not known yet", Effect: risk.Unknown, Level: risk.Medium,
		})
	}
	return v
}

// throughLinks returns v, which no rule allows if it writes through a link of the project or of /tmp, or may read through one where nothing
// holds it: its text does not show what.
func throughLinks(v risk.Verdict, root string) risk.Verdict {
	tops, unheld := []string{root, "/tmp"}, !v.Reach.Confines()
	for _, t := range v.Targets {
		i := slices.IndexFunc(tops, func(top string) bool { return within(top, t.Path) })
		if i < 0 || t.Effect != risk.Write && !(t.Effect == risk.Read && unheld) {
			continue
		}
		to, err := tool.Resolve("/", t.Path)
		if err != nil || to != filepath.Join(reach.Real(tops[i]), strings.TrimPrefix(t.Path, tops[i])) {
			v.Rest = max(v.Rest, risk.High)
			v.Reasons = append(v.Reasons, risk.Reason{Text: t.Path + " leads to " + to + " by a link", Effect: t.Effect, Level: risk.Low})
		} else if unheld && strings.ContainsAny(t.Path, "*?[") {
			v.Rest = max(v.Rest, risk.High)
		}
	}
	return v
}

// Unchanged reports whether the files that a verdict relied on still are what they were. written is that of Place.
func Unchanged(scripts []risk.Script, written func(path string) (text string, ok bool)) bool {
	return !slices.ContainsFunc(scripts, func(s risk.Script) bool {
		if s.Venv {
			return venvState(s.Path) != s.Text
		}
		text, ok := written(reach.Real(s.Path))
		return !ok || text != s.Text
	})
}

// Opaque reports whether a text runs what cannot be seen in it, such as `. ./x.sh`: who allowed it did not see what it would
// change in the shell.
func Opaque(v risk.Verdict) bool {
	return v.Unread || slices.ContainsFunc(v.Commands, func(c risk.Command) bool { return c.Opaque }) ||
		slices.ContainsFunc(v.Reasons, func(r risk.Reason) bool {
			return r.Level > risk.Low && (r.Effect == risk.RunCode || r.Effect == risk.Unknown)
		})
}

// Asked returns a verdict as a question about d shows it: without the harmless parts of the command, where only another part can be
// the cause of the question. A part that is low is a cause if a rule names it, or if it needs ReachFree (`docker ps`).
func Asked(v risk.Verdict, d policy.Decision) risk.Verdict {
	if v.Level > risk.Low && v.Reach != risk.ReachFree && d.Rule == nil {
		v.Reasons = slices.DeleteFunc(slices.Clone(v.Reasons), func(r risk.Reason) bool { return r.Level == risk.Low && r.Span != nil })
	}
	return v
}

// Verdict converts a verdict to one of the wire. Whatever could hide in its texts is made visible.
func Verdict(v risk.Verdict) wire.Verdict {
	w := wire.Verdict{Level: v.Level.String(), Reasons: []wire.Reason{}, Reversible: v.Reversible, UndoHint: v.UndoHint, Reach: string(v.Reach)}
	for _, r := range v.Reasons {
		reason := wire.Reason{Text: visible.Exact(r.Text), Effect: string(r.Effect)}
		if r.Span != nil {
			reason.Span = &wire.Span{Start: r.Span.Start, End: r.Span.End}
		}
		w.Reasons = append(w.Reasons, reason)
	}
	return w
}

// Outcomes returns what each mode would decide. Auto is left out unless held: it is offered only where the kernel confines
// commands.
func Outcomes(held bool, decide func(policy.Mode) policy.Decision) (outcomes []wire.PolicyOutcome) {
	for _, mode := range []policy.Mode{policy.ModePlan, policy.ModeAsk, policy.ModeAuto, policy.ModeFull} {
		if mode == policy.ModeAuto && !held {
			continue
		}
		d := decide(mode)
		o := wire.PolicyOutcome{Mode: string(mode), Decision: d.Outcome, Why: visible.Exact(d.Why)}
		if d.Rule != nil {
			o.RuleID, o.Rule = d.Rule.ID, d.Rule.Pattern
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}
