// Package procs asks the operating system about a shell's processes: which exist and what they wait for. It also signals and
// kills them. What they mean to a shell is left to the caller.
package procs

import (
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one that a command left running.
type Process struct {
	PID     int
	Command string
}

// String describes the process for people.
func (p Process) String() string { return strconv.Itoa(p.PID) + " " + p.Command }

// A Moment is when Now was called.
type Moment struct {
	// ticks is a time in hundredths of a second by a clock that continues while the machine sleeps, as the ages of processes do. The unit of
	// times in /proc, USER_HZ, is the same on every Linux that Go runs on.
	ticks  int64
	newest int // the process or thread that was created last; 0 = not known
}

// BegunSince lists the processes in the shell's session that began at from or later. It leaves out the shell, members of the process
// groups in except, and what the shell runs at the moment: the programs of its hooks, which are in the foreground group and have their
// parent in the session, and its substitutions, which are its children in its own group. forks reports whether the list has a child of
// the shell that has not called execve yet: until the shell shows its prompt, that may be a substitution or become a program of a hook.
func BegunSince(shell int, foreground func() int, from Moment, except ...int) (list []Process, forks bool) {
	begun := begunSince(shell, from)
	if len(begun) == 0 {
		return nil, false
	}
	fork, name := CommandLine(shell), Name(shell) // a fork without a program of its own has one of these as its command
	inForeground, inShells, inSession := inGroup(foreground()), inGroup(shell), inSession(shell)
	for _, st := range begun {
		hook := inForeground(st.PID) && inSession(st.Parent)
		substitution := inShells(st.PID) && st.Parent == shell
		if inGroups(st.PID, except) || !inSession(st.PID) || hook || substitution {
			continue
		}
		p := Process{PID: st.PID, Command: commandLine(st)}
		list, forks = append(list, p), forks || p.Command == fork || p.Command == name
	}
	return list, forks
}

// Group returns the members of a process group.
func Group(pgid int) (pids []int) {
	eachProcess(inGroup(pgid), func(st stat) { pids = append(pids, st.PID) })
	return pids
}

// KillSession kills the processes of a session, except its leader and the members of the process groups in except.
func KillSession(leader int, except ...int) {
	eachProcess(inSession(leader), func(st stat) {
		if st.PID != leader && !inGroups(st.PID, except) {
			_ = syscall.Kill(st.PID, syscall.SIGKILL) // it may have ended
		}
	})
}

// SignalGroup signals a process group; it reports whether there was one that could be signalled.
func SignalGroup(pgid int, sig syscall.Signal) bool {
	return pgid > 1 && syscall.Kill(-pgid, sig) == nil
}

// How long EndGroup waits after each signal, and how often it looks meanwhile.
const (
	endWithin = 2 * time.Second
	endPoll   = 10 * time.Millisecond
)

// EndGroup ends a process group, also a stopped one: SIGTERM, SIGKILL after 2 s. It returns true once no process of it runs, and false
// after 4 s.
func EndGroup(pgid int) bool {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		SignalGroup(pgid, sig)
		SignalGroup(pgid, syscall.SIGCONT) // a stopped process does not handle SIGTERM
		for end := time.Now().Add(endWithin); time.Now().Before(end); time.Sleep(endPoll) {
			if len(Group(pgid)) == 0 {
				return true
			}
		}
	}
	return false
}

// inSession and inGroup select processes by a system call, which takes a fiftieth of the time of reading about the process.
func inSession(session int) func(pid int) bool {
	return func(pid int) bool {
		sid, err := unix.Getsid(pid)
		return err == nil && sid == session
	}
}

func inGroups(pid int, groups []int) bool {
	group, err := unix.Getpgid(pid)
	return err == nil && slices.Contains(groups, group)
}

func inGroup(pgid int) func(pid int) bool {
	return func(pid int) bool {
		group, err := unix.Getpgid(pid)
		return err == nil && group == pgid
	}
}
