package shell

import (
	"context"
	"os"
	"strings"
	"time"
)

// handBack brings what a subshell left behind into the shell itself.
func (s *Shell) handBack(r *run) {
	path := s.folder + "/k/s"
	sn, err := s.readState(path)
	if err != nil || sn.State.Dir == "" {
		s.note(r, "ran in a subshell because of `"+r.plan.subshell+"`; what it changed in the shell was not kept")
		return
	}
	if err := os.Truncate(path, 0); err != nil {
		s.log.Warn("hand-back", "error", err)
	}
	ctx, stop := Patiently(context.Background(), 5*time.Second)
	defer stop()
	if err := s.awaitIdle(ctx); err != nil {
		return
	}
	s.mu.Lock()
	base := s.snap
	s.mu.Unlock()
	var began snapshot // the variables as the subshell found them: a prompt hook may have changed some since
	if text, err := s.noted(); err == nil {
		began.readVars(text)
	}
	own := changedNames(began.vars, sn.vars)
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.snap.State.own = own
	}()
	script := sn.script(&base, own)
	if script != "" {
		lost, _, err := s.askShell(ctx, topLine, script+"\\builtin :")
		if err != nil {
			s.note(r, "what the subshell changed could not be handed back: "+err.Error())
			return
		}
		if len(lost) > 0 {
			s.note(r, "the shell does not take these functions of the subshell: "+strings.TrimSpace(string(lost)))
		}
		if err := s.awaitIdle(ctx); err != nil {
			return
		}
	}
	s.note(r, "ran in a subshell because of `"+r.plan.subshell+"`; directory, variables, functions and aliases were handed back, background jobs, open descriptors and limits were not")
}
