package shell

import (
	"cmp"
	"slices"
	"syscall"
	"time"
)

const stopLook = 100 * time.Microsecond

// A subshell is a fork of the shell: ( ), $( ), <( ), the parts of a pipeline. It has no job control, and so SIGINT counts for
// it only where its program dies of that: behind one that takes it for an ordinary end it goes on. So a cancel stops such
// forks before SIGINT is sent, and the shell, too, which would take a stopped job for done. Where the program is gone and did
// not die of SIGINT they get SIGTERM, which an EXIT trap outlives, before they go on; behind the last of them the shell does.

// freeze stops the subshells of the command that wait for a program in these process groups, and the shell where there are any.
func (c *canceller) freeze(pgids ...int) {
	c.groups = pgids
	for {
		found := slices.DeleteFunc(waitingForks(c.p.pid, c.groups, c.r.typed), func(pid int) bool { return slices.Contains(c.frozen, pid) })
		if len(found) == 0 {
			return
		}
		if !c.r.frozen {
			c.r.frozen = true
			var err error
			if c.keeper, err = startKeeper(); err != nil {
				c.s.log.Warn("a kill of this process would leave subshells stopped", "error", err)
			}
			c.keeper.keep(c.p.pid)
			stopAndWait(c.p.pid)
		}
		c.keeper.keep(found...)
		stopAndWait(found...)
		c.frozen = append(c.frozen, found...)
	}
}

// strike sends a group a signal. Frozen subshells get no SIGINT: bash would cut their EXIT traps short.
func (c *canceller) strike(pgid int, sig syscall.Signal) (err error) {
	if sig != syscall.SIGINT || !c.r.frozen {
		return syscall.Kill(-pgid, sig)
	}
	for _, pid := range groupMembers(pgid) {
		if !slices.Contains(c.frozen, pid) {
			err = cmp.Or(err, syscall.Kill(pid, sig))
		}
	}
	return err
}

// stopAndWait stops processes. Until they are seen to have stopped they may still take in the end of a child.
func stopAndWait(pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	from := time.Now()
	for _, pid := range pids {
		for !stopped(pid) && time.Since(from) < waitWithin {
			time.Sleep(stopLook)
		}
	}
}

// thaw lets subshells go on whose programs are gone, and the shell behind the last of them.
func (c *canceller) thaw() {
	if !c.r.frozen {
		return
	}
	waiting := waitingForks(c.p.pid, c.groups, c.r.typed)
	c.frozen = slices.DeleteFunc(c.frozen, func(pid int) bool {
		if slices.Contains(waiting, pid) {
			return false
		}
		sig := syscall.SIGTERM
		if lastDiedOf(pid, syscall.SIGINT) {
			sig = syscall.SIGINT
		}
		_ = syscall.Kill(pid, sig)
		_ = syscall.Kill(pid, syscall.SIGCONT)
		c.thawed = append(c.thawed, pid)
		return true
	})
	if len(c.frozen) == 0 && !slices.ContainsFunc(c.thawed, isFork) {
		c.release()
	}
}

// release lets the shell go on. Subshells that are still stopped are hung up: the command is over, or its shell was killed.
func (c *canceller) release() {
	if !c.r.frozen {
		return
	}
	c.r.frozen = false
	for _, pid := range c.frozen {
		if stopped(pid) {
			_ = syscall.Kill(pid, syscall.SIGHUP)
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	_ = syscall.Kill(c.p.pid, syscall.SIGCONT)
	c.keeper.dismiss()
}
