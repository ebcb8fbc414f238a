package shell

import (
	"time"
)

// life is what became of a Shell and of its processes, one after another. Shell.mu guards all but exited.
type life struct {
	exited     chan struct{} // closed when left is set
	closed     bool          // Close was called
	left       bool          // the user's own exit ended it, or no further process could be started
	status     int           // exit status, once left
	spawned    time.Time     // when the current process was started
	shortLived int           // processes in a row that ended within 2 s
}

func (l *life) over() bool { return l.closed || l.left }

// lastOutput is how long the terminal of an ended shell is still read: a child may keep it open, so that no EOF comes.
const lastOutput = 50 * time.Millisecond

// restart replaces the process p, which has ended, by a new one in the same folder with the same state, except for unexported variables.
// If the user's own exit ended p, or p is the third in a row that ended within 2 s, the Shell is over instead.
func (s *Shell) restart(p *process) {
	p.term.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changeLocked()
	if s.life.closed {
		return
	}
	s.life.shortLived++
	if time.Since(s.life.spawned) > 2*time.Second {
		s.life.shortLived = 0
	}
	byUser := s.run == nil && p.state != nil && p.state.Exited()
	if byUser || s.life.shortLived >= 3 {
		s.exitLocked(p.state.ExitCode())
		return
	}
	why := "the shell ended (" + p.state.String() + ") and was started again where it was; its unexported variables are gone, and what still " +
		"runs is not a job of the new one"
	was := s.state
	was.Local = nil
	restore, _ := s.d.Restore(was, State{}, State{}) // after and now are empty: all of it is put back
	if err := s.spawnLocked(restore); err != nil {
		s.log.Error("restart the shell", "err", err)
		s.exitLocked(1)
		return
	}
	if s.run != nil {
		s.run.restarted = why
	}
	s.event(Restarted{Why: why})
}

// exitLocked ends the Shell for good.
func (s *Shell) exitLocked(status int) {
	s.life.left, s.life.status = true, status
	close(s.life.exited)
}
