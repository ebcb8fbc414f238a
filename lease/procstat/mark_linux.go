package procstat

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Mark marks process pid and everything that it starts from now on. The mark is a lowered hard resource limit without any
// other effect: it is inherited across fork, exec and setsid, survives the parents, and only a process with CAP_SYS_RESOURCE
// can remove it. Mark is idempotent. It returns an error if pid belongs to another user.
func Mark(pid int) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &old); err != nil {
		return fmt.Errorf("mark process %d: %w", pid, err)
	}
	if old.Max <= mark {
		return nil
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: mark, Max: mark}, nil); err != nil {
		return fmt.Errorf("mark process %d: %w", pid, err)
	}
	return nil
}
