package shell

import (
	"syscall"

	"sublet/lease/procstat"
)

// pressForeign has the terminal signal its foreground group, in which another user's program is (sudo): it may what we may
// not, but SIGINT, SIGQUIT and SIGTSTP are all it knows. One that is deaf to the first two is stopped, which gives the shell
// back, unless bash would go on with the rest of a list then; it is among what is left.
func (c *canceller) pressForeign(due syscall.Signal) {
	sig := due
	switch due {
	case syscall.SIGTERM:
		sig = syscall.SIGQUIT
	case syscall.SIGKILL:
		if !c.r.plan.stops {
			return
		}
		sig = syscall.SIGTSTP
	}
	c.s.shake() // it may be the shell that has the terminal by now
	if err := c.p.signalForeground(sig); err != nil {
		c.s.log.Warn("signal by the terminal", "signal", sig, "error", err)
	}
}

// pressStop stops such a group, once, in a moment that seems right: one that is struck in the middle of a vfork does not stop,
// but its child does and holds it up, and nobody can have that go on, for SIGCONT, too, is for those of its own session or
// user only (kill(2)). At killAfter it is struck in any moment.
func (c *canceller) pressStop(pgid int) {
	switch blocked, running := statesIn(pgid); {
	case c.struck:
	case blocked || running && c.age < steadyWithin:
		c.lookSoon()
	default:
		c.struck = true
		c.pressForeign(syscall.SIGKILL)
	}
}

// statesIn tells whether processes of a group are blocked in the kernel, as one is whose vfork has not become a program yet,
// and whether such run as may be about to begin one. Where that is not to be had, neither.
func statesIn(pgid int) (blocked, running bool) {
	members := groupMembers(pgid)
	busy, parents := map[int]bool{}, map[int]bool{}
	for _, pid := range members {
		st, err := procstat.Read(pid)
		if err != nil {
			continue
		}
		blocked = blocked || st.State == 'D'
		busy[pid], parents[st.Parent] = st.State == 'R', true
	}
	for pid, runs := range busy {
		running = running || runs && (parents[pid] || len(members) == 1)
	}
	return blocked, running
}

// lookSoon has the next look come in a few milliseconds.
func (c *canceller) lookSoon() {
	c.next = 0
	c.timer.Reset(forksEvery)
}
