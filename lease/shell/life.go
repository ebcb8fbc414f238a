package shell

import (
	"time"
)

// life is what became of a Shell and of its processes, one after another. Shell.mu guards all but exited.
type life struct {
	exited  chan struct{} // closed with gone
	closed  bool          // Close was called
	gone    bool          // the user's own exit ended it, or no further process could be started
	status  int           // exit status, once gone
	spawned time.Time     // when the current process was started
	deaths  int           // processes in a row that ended within 2 s
}

func (l *life) over() bool { return l.closed || l.gone }

// lastOutput is how long the terminal of an ended shell is still read: a child may keep it open, so that no EOF comes.
const lastOutput = 50 * time.Millisecond

// ended handles the end of the shell's process p. If the user left the shell, or three processes in a row ended within 2 s, the
// Shell is over. After a crash, or an exit during a borrowed command, a new process is started in the same folder with the same
// state, without its unexported variables.
func (s *Shell) ended(p *process) {
	p.term.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changeLocked()
	if s.life.closed {
		return
	}
	s.life.deaths++
	if time.Since(s.life.spawned) > 2*time.Second {
		s.life.deaths = 0
	}
	own := s.run == nil && p.state != nil && p.state.Exited()
	if own || s.life.deaths >= 3 {
		s.leaveLocked(p.state.ExitCode())
		return
	}
	why := "the shell ended (" + p.state.String() + ") and was started again where it was; its unexported variables are gone, and what still " +
		"runs is not a job of the new one"
	was := s.state
	was.Local = nil
	restore, _ := s.d.Restore(was, State{}, State{}) // after and now are empty: all of it is put back
	if err := s.spawnLocked(restore); err != nil {
		s.log.Error("restart the shell", "err", err)
		s.leaveLocked(1)
		return
	}
	if s.run != nil {
		s.run.restarted = why
	}
	s.event(Restarted{Why: why})
}

// leaveLocked ends the Shell for good.
func (s *Shell) leaveLocked(status int) {
	s.life.gone, s.life.status = true, status
	close(s.life.exited)
}
