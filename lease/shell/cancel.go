package shell

import (
	"syscall"
	"time"

	"sublet/lease/shell/procs"
)

// The steps of a cancel, from its beginning. A borrowed command has ended, or its shell was replaced, within 5 s.
const (
	signalEvery = 20 * time.Millisecond
	againAfter  = 500 * time.Millisecond // between two SIGINT to the shell itself: a sooner one could hit the prompt hook
	beginWithin = time.Second            // how long nothing is sent before the command begins: SIGINT would tear its line
	termAfter   = 2 * time.Second
	killAfter   = 4 * time.Second
	endAfter    = 4500 * time.Millisecond
)

// canceller ends the borrowed command r. Each new foreground process group gets the signal that is due, because the shell may
// go on with the next command of a list; the shell itself gets SIGINT, so that it drops the rest of the line. It is used by one
// goroutine (follow), which calls signalDue at once and then every signalEvery.
type canceller struct {
	s           *Shell
	r           *run
	since       time.Time
	sent        map[int]syscall.Signal // last signal by process group
	interrupted time.Time              // when the shell itself got SIGINT last
}

// signalDue sends the signal that is due by now to the foreground process group.
func (c *canceller) signalDue() {
	c.s.mu.Lock()
	p, began, over := c.s.proc, c.r.began(), c.r.ended || c.r.restarted != ""
	c.s.mu.Unlock()
	age, wait := time.Since(c.since), time.Duration(0)
	switch {
	case !began:
		wait = beginWithin
	case c.r.command.Job != "": // the start of a job takes milliseconds; SIGINT then would leave a job that nobody knows
		wait = killAfter
	}
	if over || age < wait {
		return
	}
	due := syscall.SIGINT
	switch {
	case age >= endAfter:
		c.s.log.Warn("the shell does not end the command and is replaced", "pid", p.pid)
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		return
	case age >= killAfter:
		due = syscall.SIGKILL
	case age >= termAfter:
		due = syscall.SIGTERM
	}
	fg := p.term.Foreground()
	if time.Since(c.interrupted) >= againAfter {
		c.interrupted = time.Now()
		pid := p.pid
		if fg == pid { // as under set +m, where the programs that it runs are in its own group
			pid = -pid
		}
		_ = syscall.Kill(pid, syscall.SIGINT)
	}
	if fg <= 1 || fg == p.pid || c.sent[fg] == due {
		return
	}
	c.sent[fg] = due
	if !procs.SignalGroup(fg, due) { // another user's program: the terminal may signal it
		switch due {
		case syscall.SIGINT:
			_ = p.term.Signal(syscall.SIGINT)
		case syscall.SIGTERM:
			_ = p.term.Signal(syscall.SIGQUIT)
		default:
			_ = p.term.Signal(syscall.SIGTSTP) // it becomes a stopped job
		}
		return
	}
	if due != syscall.SIGINT {
		procs.SignalGroup(fg, syscall.SIGCONT) // a stopped program would not handle the signal
	}
}
