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

// Names of the variables under which whoever starts the daemon passes its descriptors.
const (
	listenFD = "SUBLET_LISTEN_FD"
	lockFD   = "SUBLET_LOCK_FD"
)

// inherit takes listener and lock that the environment names. Neither descriptor nor variable goes on to children: a
// shell that kept the lock would keep the next daemon from starting.
func (o *Options) inherit() error {
	if o.Listener != nil || o.LockFile != nil {
		if o.Listener == nil || o.LockFile == nil {
			o.abandon()
			return errors.New("daemon: a listener and its lock come together")
		}
		return nil
	}
	listen, lock := os.Getenv(listenFD), os.Getenv(lockFD)
	if listen == "" && lock == "" {
		return nil
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
	defer files[0].Close() // FileListener works on a copy
	ln, err := net.FileListener(files[0])
	if err != nil {
		files[1].Close()
		return fmt.Errorf("daemon: the inherited listener: %w", err)
	}
	if unix, ok := ln.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // Run removes the socket itself, before it lets go of the lock
	}
	o.Listener, o.LockFile = ln, files[1]
	return nil
}

// acquire takes the lock and listens, where they were not inherited (T5a).
func (o *Options) acquire() error {
	if o.Listener != nil {
		return nil
	}
	lock, err := socket.TryLock(o.Paths.Lock)
	if errors.Is(err, socket.ErrLocked) {
		return &RunningError{o.Paths.Socket}
	}
	if err != nil {
		return err
	}
	ln, err := socket.Listen(o.Paths.Socket)
	if err != nil {
		lock.Close()
		if errors.Is(err, socket.ErrInUse) {
			return &RunningError{o.Paths.Socket}
		}
		return err
	}
	o.Listener, o.LockFile = ln, lock
	return nil
}

// abandon lets go of what was inherited.
func (o *Options) abandon() {
	if o.Listener != nil {
		o.Listener.Close()
	}
	if o.LockFile != nil {
		o.LockFile.Close()
	}
}
