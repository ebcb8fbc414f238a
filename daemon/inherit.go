package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"sublet/wire/socket"
)

// Environment variables in which the parent process passes descriptors to the daemon.
const (
	listenFD = "SUBLET_LISTEN_FD"
	lockFD   = "SUBLET_LOCK_FD"
)

// inherit takes over the listener and lock that the environment names. It keeps descriptors and variables from child
// processes: a shell with a copy of the lock would prevent the next daemon from starting.
func (p *place) inherit() error {
	listen, lock := os.Getenv(listenFD), os.Getenv(lockFD)
	if listen == "" && lock == "" {
		return p.activated()
	}
	os.Unsetenv(listenFD)
	os.Unsetenv(lockFD)
	files := make([]*os.File, 2)
	for i, text := range []string{listen, lock} {
		fd, err := strconv.Atoi(text)
		if err != nil || fd < 3 {
			return fmt.Errorf("daemon: %s=%q and %s=%q must both name an open descriptor", listenFD, listen, lockFD, lock)
		}
		syscall.CloseOnExec(fd)
		files[i] = os.NewFile(uintptr(fd), "inherited")
	}
	defer files[0].Close() // FileListener duplicates the descriptor
	ln, err := net.FileListener(files[0])
	if err != nil {
		files[1].Close()
		return fmt.Errorf("daemon: the inherited listener: %w", err)
	}
	if unix, ok := ln.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // Run removes the socket itself before it releases the lock
	}
	p.listener, p.lock = ln, files[1]
	return nil
}

// activated takes over the listener that a service manager passes as descriptor 3: sd_listen_fds(3). The socket belongs to
// the manager and stays when the daemon ends; the daemon takes the lock itself.
func (p *place) activated() error {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	if pid != strconv.Itoa(os.Getpid()) { // unset, or meant for another process
		return nil
	}
	if count != "1" {
		return fmt.Errorf("daemon: the service manager passes %s sockets, want 1: %s", count, p.paths.Socket)
	}
	const first = 3
	syscall.CloseOnExec(first)
	file := os.NewFile(first, "activated")
	defer file.Close() // FileListener duplicates the descriptor
	ln, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("daemon: the service manager's socket: %w", err)
	}
	unix, ok := ln.(*net.UnixListener)
	if at := ln.Addr().String(); !ok || at != p.paths.Socket {
		ln.Close()
		return &ActivationError{Listens: at, Want: p.paths.Socket}
	}
	unix.SetUnlinkOnClose(false)
	p.listener, p.theirs = ln, true
	return nil
}

// An ActivationError reports that the service manager listens on another path than clients use.
type ActivationError struct{ Listens, Want string }

func (e *ActivationError) Error() string {
	return fmt.Sprintf("the service manager listens on %s, clients look for %s", e.Listens, e.Want)
}

// Hint returns how to correct that.
func (e *ActivationError) Hint() string {
	return "set ListenStream in sublet.socket to " + e.Want + ", or SUBLET_RUNTIME_DIR in sublet.service"
}

// acquire locks and listens, unless that was inherited.
func (p *place) acquire() (err error) {
	if p.lock == nil {
		if p.lock, err = socket.TryLock(p.paths.Lock); errors.Is(err, socket.ErrLocked) {
			return &RunningError{p.paths.Socket}
		}
	}
	if err == nil && p.listener == nil {
		if p.listener, err = socket.Listen(p.paths.Socket); errors.Is(err, socket.ErrInUse) {
			return &RunningError{p.paths.Socket}
		}
	}
	return err
}
