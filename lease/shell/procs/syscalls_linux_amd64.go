package procs

import "golang.org/x/sys/unix"

// Calls that only the older architectures have.
func init() {
	waitCalls[unix.SYS_SELECT], waitCalls[unix.SYS_POLL], waitCalls[unix.SYS_EPOLL_WAIT] = selected, polled, epolled
}
