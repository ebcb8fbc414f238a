package shell

import (
	"syscall"
	"time"

	"sublet/lease/shell/procs"
)

// The steps of a cancel, from its beginning. A borrowed command has ended, or its shell was replaced, within 5 s.
const (
	pressEvery  = 20 * time.Millisecond
	againAfter  = 500 * time.Millisecond // SIGINT to the shell itself: sooner, it could hit the prompt hook
	beginWithin = time.Second            // a SIGINT before the command begins would tear the line that the shell reads
	termAfter   = 2 * time.Second
	killAfter   = 4 * time.Second
	endAfter    = 4500 * time.Millisecond
)

// canceller ends the command that runs. Each new foreground process group gets the signal that is due, for the shell may go
// on with a list; the shell itself gets SIGINT, so that it drops the rest of the line.
type canceller struct {
	s     *Shell
	r     *run
	since time.Time
	sent  map[int]syscall.Signal // last signal by process group
	shell time.Time              // when the shell got SIGINT last
	timer *time.Ticker
}

func newCanceller(s *Shell, r *run) *canceller {
	c := &canceller{s: s, r: r, since: time.Now(), sent: make(map[int]syscall.Signal), timer: time.NewTicker(pressEvery)}
	c.press()
	return c
}

func (c *canceller) tick() <-chan time.Time {
	if c == nil {
		return nil
	}
	return c.timer.C
}

func (c *canceller) stop() {
	if c != nil {
		c.timer.Stop()
	}
}

// press sends what is due to the foreground process group.
func (c *canceller) press() {
	c.s.mu.Lock()
	p, began, over := c.s.proc, c.r.began, c.r.ended || c.r.restarted != ""
	c.s.mu.Unlock()
	age, wait := time.Since(c.since), time.Duration(0)
	switch {
	case !began:
		wait = beginWithin
	case c.r.c.Job != "": // its start takes milliseconds; a SIGINT into that would leave a job whose process nobody knows
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
	if time.Since(c.shell) >= againAfter {
		c.shell = time.Now()
		_ = syscall.Kill(p.pid, syscall.SIGINT)
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
		procs.SignalGroup(fg, syscall.SIGCONT) // a stopped program does not hear
	}
}
