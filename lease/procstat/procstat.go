// Package procstat reads the state, parent, session and start of a process from /proc/PID/stat, and from /proc/PID/limits
// whether it was marked. Without /proc every function returns an error, and what that means is left to the caller. Signals,
// command lines and the listing of processes are not part of it.
package procstat

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
)

// A Stat describes a process at the time of Read.
type Stat struct {
	PID    int
	Name   string // at most 15 bytes of its program's name, or of the name it set with prctl: any bytes but NUL
	State  byte   // R, S, D, T, Z …: proc_pid_stat(5)
	Parent int    // 0 for the first process, and where the parent is of another namespace
	// Session is the id of its session: the pid of the process that began the session, which may have ended.
	Session int
	Start   int64 // clock ticks from boot to its start: it distinguishes the process from a later one with the same pid
}

// Read describes process pid. The error wraps fs.ErrNotExist if there is no such process, or no /proc.
func Read(pid int) (Stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	st, err := parse(b)
	if err != nil {
		return Stat{}, fmt.Errorf("process %d: %w", pid, err)
	}
	st.PID = pid
	return st, nil
}

// Indexes of the fields after the name: fields 3, 4, 6 and 22 of proc_pid_stat(5), which counts from 1.
const (
	state   = 0
	parent  = 1
	session = 3
	start   = 19
)

// parse reads "pid (name) state ppid …". The name may contain any bytes, also blanks and brackets; the fields after it do not.
func parse(b []byte) (Stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return Stat{}, fmt.Errorf("no name in %q", b)
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) <= start {
		return Stat{}, fmt.Errorf("%d fields after the name, want %d: %q", len(fields), start+1, b)
	}
	st := Stat{Name: string(b[open+1 : end]), State: fields[state][0]}
	var err error
	if st.Parent, err = strconv.Atoi(string(fields[parent])); err != nil {
		return Stat{}, fmt.Errorf("parent: %w", err)
	}
	if st.Session, err = strconv.Atoi(string(fields[session])); err != nil {
		return Stat{}, fmt.Errorf("session: %w", err)
	}
	if st.Start, err = strconv.ParseInt(string(fields[start]), 10, 64); err != nil {
		return Stat{}, fmt.Errorf("start: %w", err)
	}
	return st, nil
}

// Ancestors returns pid and its ancestors, the nearest first. If one of them cannot be read (it has ended, or there is no
// /proc), the list ends with that process and the error is returned too.
func Ancestors(pid int) (list []int, err error) {
	for pid > 0 && len(list) < 256 { // a depth no process tree has
		list = append(list, pid)
		st, err := Read(pid)
		if err != nil {
			return list, err
		}
		pid = st.Parent
	}
	return list, nil
}

// Children returns the children of process pid, in no order. It returns an error if the kernel does not list them.
func Children(pid int) ([]int, error) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return nil, err
	}
	var children []int
	for _, t := range threads {
		b, err := os.ReadFile(tasks + t.Name() + "/children")
		if errors.Is(err, fs.ErrNotExist) && len(threads) > 1 {
			continue // the thread has ended
		}
		if err != nil {
			return nil, err
		}
		for _, field := range bytes.Fields(b) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				children = append(children, child)
			}
		}
	}
	return children, nil
}

// mark is the hard limit of file locks (RLIMIT_LOCKS) by which a process is marked. Linux has not enforced that limit since
// 2.4.25 (getrlimit(2)), and by default there is none.
const mark = 1 << 40

// Marked reports whether process pid, or an ancestor before it started pid, was marked by Mark. It is false for every process
// if this one's own limit is lower than the mark, since then an administrator has set the limit for all.
func Marked(pid int) (bool, error) {
	own, err := locksLimit(os.Getpid())
	if err != nil || own < mark {
		return false, err
	}
	limit, err := locksLimit(pid)
	return limit <= mark, err
}

// locksLimit returns the hard limit of file locks of a process. It does not use prlimit(2), which is refused for a process of another
// group, as newgrp(1) starts one.
func locksLimit(pid int) (uint64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(line, []byte("Max file locks "))
		fields := bytes.Fields(rest) // soft limit, hard limit, unit
		switch {
		case !ok:
		case len(fields) < 2:
			return 0, fmt.Errorf("process %d: limits: %q", pid, line)
		case string(fields[1]) == "unlimited":
			return math.MaxUint64, nil
		default:
			return strconv.ParseUint(string(fields[1]), 10, 64)
		}
	}
	return 0, fmt.Errorf("process %d: no limit of file locks", pid)
}
