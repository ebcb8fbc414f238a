package hub

import (
	"slices"

	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/lend"
	"sublet/wire"
	"sublet/wire/visible"
)

// tighten is what the projects' files ask for: of the folder that a call works in, of the shell and of the session. An
// agent that leaves a project does not leave its rules.
func (c *Client) tighten(s *session, dirs ...string) judge.Tightening {
	env, cwd := c.environ()
	return c.hub.projects.Tighten(lend.Home(env), append(dirs, string(cwd), string(s.snapshot().Cwd))...)
}

// reportFaults sends the attached clients a notice for each fault of a project's file or rule that is not known yet.
func (s *session) reportFaults(faults []judge.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events.Subscribers()) == 0 {
		return // reported when a client attaches
	}
	for _, f := range faults {
		if !slices.Contains(s.broken, f) {
			s.hub.log.Warn("policy is not as it was meant", "session", s.id, "what", f.Text)
			s.events.Send(&wire.Notice{Level: "warning", Text: visible.Exact(f.Text), Hint: f.Hint})
		}
	}
	s.broken = faults
}
