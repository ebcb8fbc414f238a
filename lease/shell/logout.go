package shell

import (
	"context"
	"errors"
	"strconv"
	"time"
)

const (
	logoutParts = 10               // how often within TMOUT a shell in use is asked something
	keepBound   = 10 * time.Second // for the answer: a prompt hook may take its time
)

// InUse tells that somebody is at work beside the shell, which is typed nothing: under the user's TMOUT bash ends itself
// (auto-logout) when it read nothing for that many seconds, and that time begins anew. It never waits.
func (s *Shell) InUse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	statement, ok := s.snap.vars["TMOUT"]
	if !ok || s.closing || s.closed || s.gone || s.run != nil {
		return
	}
	seconds, err := strconv.Atoi(valueOf(statement))
	if err != nil || seconds <= 0 || time.Since(s.kept) < time.Duration(seconds)*time.Second/logoutParts {
		return
	}
	s.kept = time.Now()
	s.workers.Go(s.keep)
}

// keep asks the shell something, so that it reads a line. A command that runs does as well.
func (s *Shell) keep() {
	ctx, cancel := context.WithTimeout(context.Background(), keepBound)
	defer cancel()
	err := s.lockTurn(ctx, false)
	if err == nil {
		defer func() { <-s.turn }()
		_, _, err = s.askShell(ctx, inHook, "\\builtin :")
	}
	if err != nil && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrClosed) {
		s.log.Debug("shell not kept from TMOUT", "error", err)
	}
}
