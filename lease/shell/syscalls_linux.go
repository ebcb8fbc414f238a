package shell

import "golang.org/x/sys/unix"

const sysRead = unix.SYS_READ

// waitCalls are the calls a program with a loop of its own waits in.
var waitCalls = map[int]bool{unix.SYS_PSELECT6: true, unix.SYS_PPOLL: true, unix.SYS_EPOLL_PWAIT: true}
