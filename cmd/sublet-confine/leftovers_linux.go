package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"sublet/lease/procstat"
)

const (
	// leftoverGrace is how long processes that the command left running may take to end by themselves, as a process
	// substitution does.
	leftoverGrace = 200 * time.Millisecond
	// reapTimeout is how long they may take to end once they were killed.
	reapTimeout = 5 * time.Second
	// maxNamed and maxNameLen bound the list of them: processes, and bytes of each one's command line.
	maxNamed, maxNameLen = 5, 80
)

// leftovers returns, for people, the processes that the command left running and that did not end within leftoverGrace; ""
// if there are none. They are children of this process, which is their subreaper.
func leftovers() string {
	if reapAll(leftoverGrace, func() {}) {
		return ""
	}
	var names []string
	for _, pid := range children() {
		if text := name(pid); text != "" && len(names) < maxNamed {
			names = append(names, text)
		}
	}
	return strings.Join(names, "; ")
}

// endAll kills every other process in this thread's Landlock domain; kill(-1) does that atomically, so that no fork escapes.
// On another thread than the first, which keeper puts into a domain, it would kill all processes of the user.
func endAll() {
	reapAll(reapTimeout, func() {
		_ = syscall.Kill(-1, unix.SIGKILL) // cannot fail for processes of the domain, whose orphans become children of this process
	})
}

// endLeftovers kills the children of this process until there are none. As their subreaper it gets their orphans, so each
// round finds the children of the processes killed in the round before.
func endLeftovers() {
	reapAll(reapTimeout, func() {
		for _, pid := range children() {
			_ = syscall.Kill(pid, unix.SIGKILL) // it may be gone
		}
	})
}

// reapAll reaps children for at most a time, and calls kill before each attempt. It reports whether no child is left.
func reapAll(within time.Duration, kill func()) bool {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(time.Millisecond) {
		kill()
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				return true
			}
			if pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
	}
	return false
}

// children returns this process's children.
func children() []int {
	pids, _ := procstat.Children(os.Getpid()) // as far as the kernel lists them
	return pids
}

// name returns a process's command line without control characters, cut to maxNameLen bytes; "" of one that has ended.
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
	if len(text) > maxNameLen {
		text = strings.ToValidUTF8(text[:maxNameLen], "") + "…"
	}
	return strings.TrimSpace(text)
}
