//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package procs

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// exitPoll is how often AwaitExit checks whether a process, which is not a child of this one, still exists.
const exitPoll = 100 * time.Millisecond

// AwaitExit returns nil once a process has ended and was reaped, or there is none; else ctx's cause.
func AwaitExit(ctx context.Context, pid int) error {
	tick := time.NewTicker(exitPoll)
	defer tick.Stop()
	for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
