package procs

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// AwaitExit returns nil once a process has ended, be it reaped or not, or there is none. It returns ctx's cause if ctx ends first,
// or what pidfd_open(2) fails with.
func AwaitExit(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK) // os.NewFile waits for a non-blocking descriptor only
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "process") // readable once the process has ended: pidfd_open(2)
	stop := context.AfterFunc(ctx, func() { f.Close() })
	defer func() {
		if stop() {
			f.Close()
		}
	}()
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	err = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
