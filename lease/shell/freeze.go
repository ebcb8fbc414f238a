package shell

import (
	"cmp"
	"slices"
	"syscall"
	"time"
)

const stopLook = 100 * time.Microsecond

// A subshell is a fork of the shell: ( ), $( ), <( ), the parts of a pipeline. It has no job control, and so SIGINT counts for
// it only where its program dies of that: behind one that takes it for an ordinary end it goes on. So a cancel holds such
// forks before SIGINT is sent. Where the program is gone and did not die of SIGINT they get SIGTERM, which an EXIT trap
// outlives, before they go on.
//
// They are not stopped with SIGSTOP: the shell would take a stopped job for done, and stopped itself it would be hung up on.
// For a subshell that ends by bash's own hand joins the shell's process group first, and the kernel hangs up a group with
// stopped members when it loses the last that has a parent outside (setpgid(2), kill_orphaned_pgrp in the kernel's exit.c).
// The shell is stopped only where all of them are in its own group, those of substitutions: it may not wait for them.

// freeze holds the subshells of the command that wait for a program in these process groups, and the shell where it must.
func (c *canceller) freeze(pgids ...int) {
	c.groups = pgids
	for {
		found := slices.DeleteFunc(waitingForks(c.p.pid, c.groups, c.r.typed), func(pid int) bool {
			return slices.Contains(c.frozen, pid) || slices.Contains(c.unheld, pid)
		})
		if len(found) == 0 {
			break
		}
		if c.holder == nil {
			c.holder = newHolder()
		}
		held := c.holder.hold(found...)
		if len(held) == 0 {
			c.s.log.Warn("subshells cannot be held (ptrace): a list in them may go on behind a cancel")
		}
		c.r.frozen = c.r.frozen || len(held) > 0
		c.frozen = append(c.frozen, held...)
		c.unheld = append(c.unheld, found...)
	}
	inside := inGroup(c.p.pid)
	if len(c.frozen) == 0 || c.halted || slices.ContainsFunc(c.frozen, func(pid int) bool { return !inside(pid) }) {
		return
	}
	c.halted = true
	_ = syscall.Kill(c.p.pid, syscall.SIGSTOP)
	until(waitWithin, stopLook, func() bool { return stopped(c.p.pid) }) // before that it may take in a child's end
}

// members are those of a group; of the shell's own, in which what the user has running may be, too, the shell and what the
// command has begun there.
func (c *canceller) members(pgid int) []int {
	if pgid != c.p.pid {
		return groupMembers(pgid)
	}
	pids, inside := []int{c.p.pid}, inGroup(pgid)
	for _, st := range begunSince(c.p.pid, c.r.typed) {
		if inside(st.PID) {
			pids = append(pids, st.PID)
		}
	}
	return pids
}

// strike sends a group a signal. Frozen subshells get no SIGINT: bash would cut their EXIT traps short.
func (c *canceller) strike(pgid int, sig syscall.Signal) (err error) {
	if pgid != c.p.pid && (sig != syscall.SIGINT || !c.r.frozen) {
		return syscall.Kill(-pgid, sig)
	}
	for _, pid := range c.members(pgid) {
		if sig != syscall.SIGINT || !slices.Contains(c.frozen, pid) {
			err = cmp.Or(err, syscall.Kill(pid, sig))
		}
	}
	return err
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
		c.holder.letGo(pid, sig)
		c.thawed = append(c.thawed, pid)
		return true
	})
	if len(c.frozen) == 0 && !slices.ContainsFunc(c.thawed, isFork) {
		c.release()
	}
}

// release lets the shell go on. Subshells that are still held are hung up: the command is over, or its shell was killed.
func (c *canceller) release() {
	c.r.frozen = false
	if c.holder != nil {
		for _, pid := range c.frozen {
			c.holder.letGo(pid, syscall.SIGHUP)
		}
		c.holder.end()
		c.holder, c.frozen = nil, nil
	}
	if c.halted {
		c.halted = false
		_ = syscall.Kill(c.p.pid, syscall.SIGCONT)
	}
}
