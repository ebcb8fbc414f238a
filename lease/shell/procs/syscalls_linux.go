package procs

import "golang.org/x/sys/unix"

const sysRead = unix.SYS_READ

// waitCalls are the calls a program with a loop of its own waits in; each tells whether a descriptor that is looked for is
// among those it waits to read.
var waitCalls = map[int]func(pid int, c blocked, is func(fd uint64) bool) bool{
	unix.SYS_PSELECT6: selected, unix.SYS_PPOLL: polled, unix.SYS_EPOLL_PWAIT: epolled,
}
