package shell

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/lease/procstat"
)

// waitsForKeys tells whether a program in the foreground group waits for the terminal: blocked in a read of it, on any of
// its threads, or in select, poll or epoll where it took the line discipline's place (raw), or asks and has the terminal
// among what it watches. Where the system shows nothing of that, which is so of another user's program (sudo), that it
// asks must do.
func waitsForKeys(shell, pgid int, own bool, tty string, raw bool, asks func() bool) bool {
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
	for _, pid := range groupMembers(pgid) {
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

// lineBuffer is the address bash reads command lines to, where the shell is blocked in that read now; 0 otherwise. It is
// a static buffer of its input code, and no other code of bash reads into it: the read builtin has its own.
func lineBuffer(shell int) uint64 {
	c, ok := syscallOf(shell, shell)
	if !ok || c.nr != sysRead || c.args[0] != 0 {
		return 0
	}
	return c.args[1]
}

// readsLines tells whether the shell is blocked in the read of command lines, by how much that asks for: the read builtin asks
// for one byte or 4096.
func readsLines(shell int) bool {
	c, ok := syscallOf(shell, shell)
	return ok && c.nr == sysRead && c.args[0] == 0 && c.args[2] == 1024
}

// waitsForChild tells whether the shell waits for one of its children. seen is false where the system does not show it.
func waitsForChild(shell int) (waits, seen bool) {
	c, ok := syscallOf(shell, shell)
	return ok && c.nr == unix.SYS_WAIT4, ok || showsCalls(shell)
}

// busy tells whether the shell is seen to do something, not to wait for a child, for what it reads, for whoever reads what it
// writes, or for the other end of a FIFO.
func busy(shell int) bool {
	c, ok := syscallOf(shell, shell)
	if !ok {
		return showsCalls(shell)
	}
	switch c.nr {
	case unix.SYS_WAIT4, unix.SYS_OPENAT, unix.SYS_WRITE, sysRead:
		return false
	}
	return waitCalls[c.nr] == nil
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

// stopped tells whether a process is stopped by a signal.
func stopped(pid int) bool {
	st, err := procstat.Read(pid)
	return err == nil && st.State == 'T'
}

// showsCalls tells whether the system lets us see what a process is blocked in.
func showsCalls(pid int) bool {
	_, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/syscall")
	return err == nil
}
