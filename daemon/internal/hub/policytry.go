package hub

import (
	"context"
	"path/filepath"
	"slices"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// try judges a command as an agent's would be in this session, in every mode.
func (c *Client) try(ctx context.Context, s *session, r *wire.PolicyRequest, reply *wire.PolicyReply) error {
	origin, cwd := c, string(r.Cwd)
	if r.Live {
		ln := c.hub.shells.Find(0)
		if ln == nil {
			return &lend.NoShellError{}
		}
		if origin = windowOf(ln); origin == nil {
			return &lend.NoShellError{}
		}
		s = origin.attached()
	}
	if ln := origin.lender; ln != nil && cwd == "" {
		cwd, _ = ln.Where(ctx)
	}
	if cwd == "" {
		_, at := origin.environ()
		cwd = string(at)
	}
	if !filepath.IsAbs(cwd) {
		return invalid("cwd: %q is not absolute", visible.Exact(visible.Cut(cwd, 64)))
	}
	a := &approver{t: &turn{hub: c.hub, s: s, origin: origin}}
	q := agent.Question{Tool: "bash", Action: tool.Action{Command: string(r.Command), Cwd: cwd}}
	v := a.judge(ctx, q)
	verdict := judge.Verdict(v)
	reply.Verdict = &verdict
	reach := a.reach(q, v)
	reply.Outcomes = judge.Outcomes(reach != "", func(mode policy.Mode) policy.Decision {
		return a.policyIn(ctx, q, mode).Decide(v, a.action(q, reach))
	})
	return nil
}

// shellOf is the shell that a client speaks of: its own, else the one last typed in; nil where none is lent.
func (c *Client) shellOf() *lend.Lender {
	if c.lender != nil {
		return c.lender
	}
	return c.hub.shells.Find(0)
}

// accept takes what agents' commands changed, in the shell and in the session's private one, for the user's own: these names, or
// all where there are none.
func (c *Client) accept(ctx context.Context, s *session, names []string) {
	if ln := c.shellOf(); ln != nil {
		c.hub.log.Info("changes of the shell accepted", "names", ln.Accept(names), "by", c.who())
	}
	if p := s.ownShell(); p != nil {
		p.Accept(ctx, names)
	}
}

// suspects are what accept would take.
func (c *Client) suspects(ctx context.Context, s *session) []string {
	names := []string{}
	if ln := c.shellOf(); ln != nil {
		names = append(names, ln.Suspects()...)
	}
	if p := s.ownShell(); p != nil {
		names = append(names, p.Suspects(ctx)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
