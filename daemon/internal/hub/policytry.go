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
	"sublet/lease/shell"
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
		cwd = ln.Where(ctx).Cwd
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

// trusting are the shells whose suspects a client is shown: its own or the one last typed in, and the session's private one.
func (c *Client) trusting(s *session) (list []lend.Trusting) {
	ln := c.lender
	if ln == nil {
		ln = c.hub.shells.Find(0)
	}
	if ln != nil {
		list = append(list, ln)
	}
	if p := s.ownShell(); p != nil {
		list = append(list, p)
	}
	return list
}

// accept takes what agents' commands changed in the client's shells for the user's own: what has one of the names and still is what the
// client was shown, or everything where there are no names.
func (c *Client) accept(ctx context.Context, s *session, names []string) {
	for _, sh := range c.trusting(s) {
		if shown, ok := c.shown[sh]; ok || len(names) == 0 {
			sh.Accept(ctx, names, shown)
		}
	}
	c.hub.log.Info("changes of the shell accepted", "names", names, "by", c.who())
}

// suspects are what accept would take, from now on as they are now.
func (c *Client) suspects(ctx context.Context, s *session) []string {
	names := []string{}
	c.shown = map[lend.Trusting]shell.State{}
	for _, sh := range c.trusting(s) {
		list, in := sh.Suspects(ctx)
		names, c.shown[sh] = append(names, list...), in
	}
	slices.Sort(names)
	return slices.Compact(names)
}
