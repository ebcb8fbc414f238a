//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package shell

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type procStat struct {
	pid, pgrp, session int
	age                time.Duration
	name               string
}

// eachProcess asks ps: there is no /proc. It is used after a cancel and at the end of a private shell only.
func eachProcess(f func(procStat)) {
	out, err := exec.Command("ps", "-axo", "pid=,pgid=,sess=,stat=,etime=,command=").Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		w := strings.Fields(line)
		if len(w) < 6 || strings.HasPrefix(w[3], "Z") {
			continue
		}
		st := procStat{name: strings.Join(w[5:], " "), age: elapsed(w[4])}
		st.pid, _ = strconv.Atoi(w[0])
		st.pgrp, _ = strconv.Atoi(w[1])
		if sid, err := getsid(st.pid); err == nil {
			st.session = sid
		}
		f(st)
	}
}

func getsid(pid int) (int, error) {
	sid, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(sid), nil
}

// elapsed reads [[days-]hours:]minutes:seconds.
func elapsed(s string) (d time.Duration) {
	days, rest, ok := strings.Cut(s, "-")
	if !ok {
		days, rest = "0", s
	}
	n, _ := strconv.Atoi(days)
	d = time.Duration(n) * 24 * time.Hour
	unit := time.Second
	parts := strings.Split(rest, ":")
	for i := len(parts) - 1; i >= 0; i-- {
		n, _ := strconv.Atoi(parts[i])
		d += time.Duration(n) * unit
		unit *= 60
	}
	return d
}

func groupMembers(pgid int) (pids []int) {
	eachProcess(func(st procStat) {
		if st.pgrp == pgid {
			pids = append(pids, st.pid)
		}
	})
	return pids
}

// leftovers lists what runs in the shell's session and began after from.
func leftovers(shell int, from time.Time) (list []Process) {
	limit := time.Since(from) + time.Second
	eachProcess(func(st procStat) {
		if st.session == shell && st.pid != shell && st.age <= limit {
			list = append(list, Process{PID: st.pid, Command: st.name})
		}
	})
	return list
}

// diesOf cannot be told here: SIGTERM follows.
func diesOf(pid int, sig syscall.Signal) bool { return false }
