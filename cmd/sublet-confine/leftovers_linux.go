package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

const (
	// leaveBound is how long what the command left running may take to end by itself, as a process substitution does.
	leaveBound = 200 * time.Millisecond
	// reapBound is how long it may take to end once it was killed.
	reapBound = 5 * time.Second
	// namedMost and nameMost bound what is printed about it: processes, and bytes of each one's command line.
	namedMost, nameMost = 5, 80
)

// lingering returns what the command left running that does not end by itself, for people; "" if there is nothing. This
// process is the one that orphans below it are given to.
func lingering() string {
	for end := time.Now().Add(leaveBound); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if reap() {
			return ""
		}
	}
	var names []string
	for _, pid := range children() {
		if text := name(pid); text != "" && len(names) < namedMost {
			names = append(names, text)
		}
	}
	return strings.Join(names, "; ")
}

// endAll kills every process of this one's domain, those that are just being started included: the kernel does it in one
// step, while nothing forks. Without the domain, which prepare made and keeper checks, it would kill whatever the user runs.
func endAll() {
	for end := time.Now().Add(reapBound); time.Now().Before(end); time.Sleep(time.Millisecond) {
		_ = syscall.Kill(-1, unix.SIGKILL) // not refused by those of the domain
		if reap() {                        // orphans of the domain are this process's children
			return
		}
	}
}

// endLeftovers kills the children that this process has. It is the one that orphans below it are given to, so that each
// round finds the children of those killed in the last one.
func endLeftovers() {
	for end := time.Now().Add(reapBound); !reap() && time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, pid := range children() {
			_ = syscall.Kill(pid, unix.SIGKILL) // it may be gone
		}
	}
}

// reap waits for the children that have ended, and reports whether no child is left.
func reap() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.ECHILD) {
			return true
		}
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return false
		}
	}
}

// children returns this process's children.
func children() (pids []int) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is well-formed
	for _, task := range tasks {
		list, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended
		}
		for _, field := range bytes.Fields(list) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// name returns a process's command line without control characters, cut to nameMost bytes; "" of one that has ended.
func name(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(string(line), "?"))
	if len(text) > nameMost {
		text = strings.ToValidUTF8(text[:nameMost], "") + "…"
	}
	return strings.TrimSpace(text)
}
