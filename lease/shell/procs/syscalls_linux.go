package procs

import "golang.org/x/sys/unix"

const sysRead = unix.SYS_READ

// waitCalls are the calls a program with a loop of its own waits in; each reports whether the terminal is among the descriptors
// it waits to read.
var waitCalls = map[int]func(pid int, c blocked, isTerminal func(fd uint64) bool) bool{
	unix.SYS_PSELECT6: selected, unix.SYS_PPOLL: polled, unix.SYS_EPOLL_PWAIT: epolled, unix.SYS_EPOLL_PWAIT2: epolled,
}
