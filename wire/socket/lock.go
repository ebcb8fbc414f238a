package socket

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// TryLock takes the lock at path, or returns ErrLocked at once. The lock is held until the last descriptor of the file is
// closed: a process that starts the daemon locks first and passes the descriptor on. sublet never removes the file. Only the
// holder may remove a stale socket.
func TryLock(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if errors.Is(err, syscall.ELOOP) {
			return nil, &PathError{path, "is a symbolic link", "remove it"}
		}
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, ErrLocked
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if Same(f, path) {
			return f, nil
		}
		f.Close() // somebody removed the file in between, as a cleaner of /tmp may; another process would lock the new one
	}
}

// Sign writes this process's id, and the path of the socket it listens on, into a lock that it holds, for Holder and people.
func Sign(lock *os.File, path string) error {
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt(fmt.Appendf(nil, "%d %s\n", os.Getpid(), path), 0)
	return err
}

// Holder returns the process that signed the lock at path, if the lock is held.
func Holder(path string) (pid int, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	if _, err := fmt.Sscan(string(text), &pid); err != nil || pid <= 0 {
		return 0, false
	}
	lock, err := TryLock(path)
	if err == nil { // the lock is free
		lock.Close()
		return 0, false
	}
	return pid, errors.Is(err, ErrLocked)
}

// Same reports whether f is the file that is now at path, rather than one that was removed or replaced.
func Same(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(path)
	return err == nil && os.SameFile(a, b)
}
