package procs

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// WaitsForKeys reports whether a program in the foreground group waits for the terminal: blocked in a read of it, on any of
// its threads, or in select, poll or epoll where it took the line discipline's place (raw), or asks and has the terminal
// among what it watches. Where the system shows nothing of that, which is so of another user's program (sudo), asks decides.
func WaitsForKeys(shell, pgid int, own bool, tty string, raw bool, asks func() bool) bool {
	waits := func(pid, tid int) bool {
		c, ok := syscallOf(pid, tid)
		switch {
		case !ok:
			return false
		case c.nr == sysRead:
			return isTerminal(pid, c.args[0], tty)
		case waitCalls[c.nr] == nil:
			return false
		}
		return raw || asks() && waitCalls[c.nr](pid, c, func(fd uint64) bool { return isTerminal(pid, fd, tty) })
	}
	if own {
		return waits(shell, shell) // in select: the builtin read -t, and -e
	}
	for _, pid := range Group(pgid) {
		if !showsCalls(pid) {
			if asks() {
				return true
			}
			continue
		}
		if slices.ContainsFunc(threads(pid), func(tid int) bool { return waits(pid, tid) }) {
			return true
		}
	}
	return false
}

// threadsMost bounds how many threads of a program are looked at.
const threadsMost = 64

func threads(pid int) (tids []int) {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(threadsMost)
	for _, n := range names {
		if tid, err := strconv.Atoi(n); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}

// blocked is the system call a process is blocked in.
type blocked struct {
	nr   int
	args [3]uint64
}

// syscallOf reads what a thread is blocked in (proc(5), /proc/PID/syscall).
func syscallOf(pid, tid int) (c blocked, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/syscall")
	if err != nil {
		return c, false
	}
	f := strings.Fields(string(b))
	if len(f) < 4 {
		return c, false // "running"
	}
	if c.nr, err = strconv.Atoi(f[0]); err != nil {
		return c, false
	}
	for i := range c.args {
		if c.args[i], err = strconv.ParseUint(strings.TrimPrefix(f[i+1], "0x"), 16, 64); err != nil {
			return c, false
		}
	}
	return c, true
}

func isTerminal(pid int, fd uint64, tty string) bool {
	to, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.FormatUint(fd, 10))
	return err == nil && (to == tty || to == "/dev/tty")
}

// showsCalls reports whether the system shows what a process is blocked in.
func showsCalls(pid int) bool {
	_, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/syscall")
	return err == nil
}
