package procs

import (
	"bytes"
	"cmp"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/procstat"
)

type stat = procstat.Stat

// ticks is the number of ticks in a second.
const ticks = 100

// Now returns the current Moment, by the clock that the starts of processes are measured with (proc_pid_stat(5)).
func Now() Moment {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // fails for an unknown clock only
	return Moment{t.Nano() / (int64(time.Second) / ticks), newest()}
}

// loadAverage is /proc/loadavg, kept open: that halves the time of a read.
var loadAverage = sync.OnceValue(func() int {
	fd, err := unix.Open("/proc/loadavg", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
})

// newest returns the number of the process or thread that was created last, 0 where that cannot be known: the last word of
// /proc/loadavg. The kernel numbers them in order and then starts again.
func newest() int {
	var buf [128]byte
	n, err := unix.Pread(loadAverage(), buf[:], 0)
	if err != nil {
		return 0
	}
	b := bytes.TrimSpace(buf[:n])
	last, _ := strconv.Atoi(string(b[bytes.LastIndexByte(b, ' ')+1:]))
	return last
}

// maxAsked bounds the pids that noneSince asks about one by one. Asking about so many takes as long as listing a few hundred processes.
const maxAsked = 1000

// noneSince reports whether certainly no process that of selects began at from or later. It returns false if it cannot be certain, such as
// more than a second after from, when the kernel may have used up all pids and started again.
func noneSince(from Moment, of func(pid int) bool) bool {
	now := Now()
	last := now.newest
	if from.newest == 0 || now.ticks > from.ticks+ticks || last < from.newest || last > from.newest+maxAsked {
		return false
	}
	for pid := from.newest + 1; pid <= last; pid++ {
		if of(pid) {
			return false
		}
	}
	return true
}

// eachProcess calls f for every process that of selects, zombies left out.
func eachProcess(of func(pid int) bool, f func(stat)) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil && of(pid) {
			if st, err := procstat.Read(pid); err == nil && st.State != 'Z' {
				f(st)
			}
		}
	}
}

func begunSince(shell int, from Moment) (list []stat) {
	ours := inSession(shell)
	thread := func(pid int) bool { return unix.Tgkill(shell, pid, 0) == nil } // of the shell: fish starts one for each line
	if noneSince(from, func(pid int) bool { return ours(pid) && !thread(pid) }) {
		return nil
	}
	eachProcess(ours, func(st stat) {
		if st.PID != shell && st.Start >= from.ticks {
			list = append(list, st)
		}
	})
	return list
}

func commandLine(st stat) string { return cmp.Or(CommandLine(st.PID), st.Name) }

// CommandLine returns the program that a process runs with its arguments; "" where that cannot be known.
func CommandLine(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
}

// Name returns the name of the program that a process runs; "" where that cannot be known.
func Name(pid int) string {
	st, err := procstat.Read(pid)
	if err != nil {
		return ""
	}
	return st.Name
}
