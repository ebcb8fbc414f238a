package shell

import (
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killSession kills what is left of a session whose leader is gone.
func killSession(session int) {
	eachProcess(inSession(session), func(st procStat) { _ = syscall.Kill(st.PID, syscall.SIGKILL) })
}

// hangUpSession tells what is left of a session that its terminal is gone.
func hangUpSession(session int) {
	eachProcess(inSession(session), func(st procStat) {
		_ = syscall.Kill(st.PID, syscall.SIGHUP)
		_ = syscall.Kill(st.PID, syscall.SIGCONT)
	})
}

// inSession and inGroup select processes by a system call, a fiftieth of what it costs to read about each.
func inSession(session int) func(pid int) bool {
	return func(pid int) bool {
		sid, err := unix.Getsid(pid)
		return err == nil && sid == session
	}
}

// moment is a time by a clock that goes on while the machine sleeps, as the ages of processes do, in hundredths of a second.
type moment int64

// ticks is how many make a second: USER_HZ, the unit of times in /proc, is 100 on every Linux that Go runs on.
const ticks = 100

func inGroup(pgid int) func(pid int) bool {
	return func(pid int) bool {
		group, err := unix.Getpgid(pid)
		return err == nil && group == pgid
	}
}

// foreign tells that a process is another user's, which signals of ours do not reach.
func foreign(pid int) bool { return syscall.Kill(pid, 0) == syscall.EPERM }

// leftovers lists what a command that was typed at from has running in the shell's session.
func leftovers(shell int, from moment) (list []Process) {
	for _, st := range begunSince(shell, from) {
		list = append(list, leftover(st.PID, commandLine(st)))
	}
	return list
}

// leftover describes a process that a command left.
func leftover(pid int, command string) Process {
	p := Process{PID: pid, Command: command}
	if foreign(pid) {
		p.User = ownerOf(pid)
	}
	return p
}

func groupMembers(pgid int) (pids []int) {
	eachProcess(inGroup(pgid), func(st procStat) { pids = append(pids, st.PID) })
	return pids
}

// forked tells by its command line that a process is the shell's fork: of a lent shell, that is.
func forked(command string) bool { return strings.Contains(command, "--noediting --rcfile") }

// awaitPrograms waits a moment for the shell's forks to become their programs: one that is hung up before has SIGHUP taken by
// the shell's own handler, and stays. A subshell stays a fork, so it is a moment only.
func awaitPrograms(shell int) {
	for range 25 {
		forks := false
		eachProcess(inSession(shell), func(st procStat) { forks = forks || st.PID != shell && isFork(st.PID) })
		if !forks {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}
