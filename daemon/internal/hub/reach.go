package hub

import (
	"fmt"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
	"sublet/wire"
)

// confiner returns what holds commands here; the zero value where nothing does.
func (h *Hub) confiner() reach.Confiner {
	if h.opts.Confine == nil {
		return reach.Confiner{}
	}
	return h.opts.Confine()
}

// reach returns the reach that a call would run with, by what it needs and what the agent asked for; "" where nothing can hold it to one,
// so that it is judged by the command's words alone.
func (t *turn) reach(q agent.Question, v risk.Verdict) risk.Reach {
	if !t.hub.confiner().Holds() {
		return ""
	}
	if q.Action.Command != "" && !q.Action.Private {
		ln, err := t.Lent()
		if err != nil || ln != nil && !ln.Can(wire.CapConfine) {
			return ""
		}
	}
	asked, known := risk.ParseReach(q.Action.Reach)
	if !known {
		asked = risk.ReachFree
	}
	if v.Reach == risk.ReachShell && asked.Confines() {
		return v.Reach // it changes the shell harmlessly, and in a child would do nothing
	}
	to := risk.Wider(v.Reach, asked)
	_, cwd := t.origin.environ()
	if q.Action.Cwd != "" {
		cwd = wire.OSString(q.Action.Cwd)
	}
	if to == risk.ReachProject && !reach.IsProject(rootOf(q, string(cwd)), reach.Home()) {
		return risk.ReachFree
	}
	return to
}

// modeUnavailable returns why a mode cannot be used on this machine, nil where it can: what auto runs without a question must be held by
// the kernel.
func (h *Hub) modeUnavailable(m policy.Mode) error {
	if m != policy.ModeAuto || h.opts.Confine == nil || h.confiner().Holds() {
		return nil
	}
	return fmt.Errorf("auto is offered only where the kernel holds what runs, and here it does not: %s", h.confiner().Missing)
}

// confinement describes what a command in cwd is held to.
func (h *Hub) confinement(to, cwd string) confine.Spec {
	return reach.Confinement(h.opts.Config().Policy, h.opts.Proxy, to, cwd)
}

// setCheckers sets what runs checkers and language servers, held to reading, unless the kernel cannot hold them.
func (t *turn) setCheckers(to *tool.Env) {
	h := t.hub
	if !h.confiner().Holds() {
		return
	}
	env, _ := t.origin.environ()
	c := reach.Checker{
		Confiner: h.confiner(), Spec: func(dir string) confine.Spec { return h.confinement(confine.Read, dir) },
		Env: lend.PrivateEnv(env, nil), Home: lend.Home(env), Runtime: h.opts.Runtime, Log: h.log,
	}
	to.Held, to.Languages, to.Opened = c.Run, c.Languages(&t.s.servers), c.Opener(&t.s.servers)
}
