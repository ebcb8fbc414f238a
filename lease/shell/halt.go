package shell

import (
	"slices"
	"syscall"
	"time"

	"sublet/lease/procstat"
	"sublet/lease/shell/procs"
)

const (
	haltAfter     = 200 * time.Millisecond // how long a command runs before it is stopped: zsh waits for what its child reports before exec
	haltWithin    = 500 * time.Millisecond // how long a stopped program may take to become a job
	programWithin = 2 * time.Second        // how long the program of a command may take to begin
	programPoll   = 10 * time.Millisecond  // how often halt looks for it meanwhile
)

// halt stops the borrowed command r, so that its line ends in the shell and the command is a job of the shell. It is used by one
// goroutine (follow).
type halt struct {
	s        *Shell
	r        *run
	next     <-chan time.Time // when to call step again; nil = never
	timedOut bool             // the command's time has passed
}

// timeOver handles the end of the command's time. It reports whether the command must be cancelled.
func (h *halt) timeOver() bool {
	c := &h.r.command
	if c.Overdue != nil && c.Overdue() {
		return false
	}
	h.timedOut = true
	return c.Continue == nil || h.request()
}

// request is try, unless the command is being stopped already.
func (h *halt) request() bool { return h.next == nil && h.try() }

// try has the command stop. It reports whether the command must be cancelled, because its time has passed and it cannot be a job.
func (h *halt) try() bool {
	switch why := h.step(); {
	case why == "":
		return false
	case h.timedOut:
		h.r.stays = why
		return true
	default:
		h.r.command.Stays(why)
		return false
	}
}

// step stops the program once it has begun, and continues one that has not become a job in time. It returns why the command stays in
// the foreground, "" if it is being stopped.
func (h *halt) step() (why string) {
	h.next = nil
	h.s.mu.Lock()
	p, began, job, since := h.s.proc, h.r.began(), h.r.job, time.Since(h.r.started)
	h.s.mu.Unlock()
	fg := p.term.Foreground()
	own := fg <= 1 || fg == p.pid // the shell's
	switch {
	case h.r.halted != 0 && fg != h.r.halted: // it has stopped or ended, and the shell is ending its line
		return ""
	case h.r.halted != 0:
		procs.SignalGroup(fg, syscall.SIGCONT)
		h.r.halted = 0
		return "it does not stop"
	case !began, job && (since < haltAfter || own && since < programWithin):
		h.next = time.After(programPoll)
		return ""
	case !job || own:
		return "the shell runs it itself"
	case !procs.SignalGroup(fg, syscall.SIGSTOP):
		return "it is another user's program"
	}
	h.r.halted, h.next = fg, time.After(haltWithin)
	return ""
}

// isStopped reports whether a process of the group is stopped. Without /proc, every process counts as stopped.
func isStopped(pgid int) bool {
	return slices.ContainsFunc(procs.Group(pgid), func(pid int) bool {
		st, err := procstat.Read(pid)
		return err != nil || st.State == 'T'
	})
}

// withoutStopped leaves out what the shell prints about a stopped job, which runs again.
func (s *Shell) withoutStopped(output []byte) []byte {
	if s.d.Stopped == nil {
		return output
	}
	if all := s.d.Stopped().FindAllIndex(output, -1); len(all) > 0 {
		output = output[:all[len(all)-1][0]]
	}
	return output
}

// resume continues the command that halt has stopped, as a job of the shell, which has ended its line. If the command is cancelled,
// resume ends it. It reports whether the command goes on.
func (s *Shell) resume(r *run, cancelled bool) bool {
	if r.halted == 0 || !isStopped(r.halted) {
		return false
	}
	if cancelled {
		procs.EndGroup(r.halted) // what it cannot end is among the leftovers
		return false
	}
	procs.SignalGroup(r.halted, syscall.SIGCONT)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = append(s.jobs, r.halted)
	return true
}
