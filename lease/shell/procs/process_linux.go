package procs

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/procstat"
)

type stat = procstat.Stat

// ticks is how many make a second.
const ticks = 100

// Now returns the present by the clock that the starts of processes are measured with (proc_pid_stat(5)).
func Now() Moment {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // fails for an unknown clock only
	return Moment(t.Nano() / (int64(time.Second) / ticks))
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
	eachProcess(inSession(shell), func(st stat) {
		if st.PID != shell && Moment(st.Start) >= from {
			list = append(list, st)
		}
	})
	return list
}

func commandLine(st stat) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(st.PID) + "/cmdline")
	if err != nil || len(b) == 0 {
		return st.Name
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
