//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package procs

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

type stat struct {
	PID    int
	Parent int
	age    time.Duration
	Name   string
}

// ticks is the number of a Moment's ticks in a second.
const ticks = 100

// Now returns the current Moment, by the wall clock, because ps reports ages only.
func Now() Moment { return Moment{ticks: time.Now().UnixMilli() * ticks / 1000} }

// eachProcess asks ps, as there is no /proc: a call costs some milliseconds.
func eachProcess(of func(pid int) bool, f func(stat)) {
	out, err := exec.Command("ps", "-axo", "pid=,ppid=,stat=,etime=,command=").Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		w := strings.Fields(line)
		if len(w) < 5 || strings.HasPrefix(w[2], "Z") {
			continue
		}
		st := stat{Name: strings.Join(w[4:], " "), age: elapsedTime(w[3])}
		st.PID, _ = strconv.Atoi(w[0])
		st.Parent, _ = strconv.Atoi(w[1])
		if of(st.PID) {
			f(st)
		}
	}
}

// elapsedTime reads [[days-]hours:]minutes:seconds.
func elapsedTime(s string) (d time.Duration) {
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

func begunSince(shell int, from Moment) (list []stat) {
	limit := time.Duration(Now().ticks-from.ticks)*time.Second/ticks + time.Second // ps prints ages in whole seconds
	eachProcess(inSession(shell), func(st stat) {
		if st.PID != shell && st.age <= limit {
			list = append(list, st)
		}
	})
	return list
}

func commandLine(st stat) string { return st.Name }

// CommandLine returns the program that a process runs with its arguments; "" where that cannot be known.
func CommandLine(pid int) string { return ask(pid, "command=") }

// Name returns the name of the program that a process runs.
func Name(pid int) string { return ask(pid, "ucomm=") }

// ask returns one column of ps for a process.
func ask(pid int, column string) string {
	out, err := exec.Command("ps", "-o", column, "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(out))
}
