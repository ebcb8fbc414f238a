package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Errors that callers test.
var (
	// ErrNoDaemon reports that nobody listens: the socket does not exist or is stale.
	ErrNoDaemon = errors.New("no daemon is running")
	// ErrInUse reports that a daemon answers on the socket at which to listen.
	ErrInUse = errors.New("another program listens on the socket")
	// ErrLocked reports that another process holds the lock.
	ErrLocked = errors.New("another daemon holds the lock")
)

// A PeerError reports a connection from or to another user's process.
type PeerError struct{ UID int }

func (e *PeerError) Error() string {
	return fmt.Sprintf("the other end of the socket belongs to user %d, not to you", e.UID)
}

// Listen creates the socket at path, mode 0600, and listens on it. The caller must hold the lock (TryLock), so an existing socket
// is stale; Listen dials it nevertheless before it removes it, and returns ErrInUse if somebody answers. Closing the listener does
// not remove the socket, since a launcher closes its copy of a daemon's listener; the daemon removes the socket itself before it
// releases the lock.
func Listen(path string) (net.Listener, error) {
	if err := checkLength(path); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// Nobody else can enter the folder, so the moment before chmod is safe; setting the umask would affect the whole process.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	l.SetUnlinkOnClose(false)
	return l, nil
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("listen: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return &PathError{path, "exists but is not a socket", "remove it"}
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return fmt.Errorf("%w %s", ErrInUse, path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of a daemon that is gone: %w", err)
	}
	return nil
}

// Dial connects to the daemon at path until ctx ends. It checks that the socket (no symbolic link) and then the process at the
// other end belong to this user. Errors: ErrNoDaemon (wrapped), *PeerError, *PathError, and those of net.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	if err := checkLength(path); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s does not exist", ErrNoDaemon, path)
	}
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return nil, &PathError{path, "is not a socket", "remove it"}
	}
	if owner, known := ownerOf(info); known && owner != os.Geteuid() {
		return nil, &PeerError{owner}
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: nobody listens on %s", ErrNoDaemon, path)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("dial %s: %w", path, err)
	}
	if err := CheckPeer(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// maxConns bounds the connections of one listener, so that one client's mistake does not take all of the user's descriptors.
const maxConns = 1024

// Serve calls serve in a goroutine of its own for each connection to ln, and then closes the connection. Those of other users' processes
// are refused, where ln is a unix socket. It ends with ctx, or with an error of ln, closes ln, ends the context of serve, and returns
// after the last serve has returned.
func Serve(ctx context.Context, ln net.Listener, log *slog.Logger, serve func(context.Context, net.Conn)) error {
	var conns sync.WaitGroup
	defer conns.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()                                // runs before Wait: connections end with ctx
	context.AfterFunc(ctx, func() { ln.Close() }) // unblocks Accept
	places := make(chan struct{}, maxConns)
	for {
		nc, err := accept(ln, log)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				nc.Close()
			}
			return nil // asked to stop: not a failure
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		if _, local := nc.(*net.UnixConn); local {
			err = CheckPeer(nc)
		}
		if err != nil {
			log.Warn("connection refused", "err", err)
			nc.Close()
			continue
		}
		select {
		case places <- struct{}{}:
			conns.Go(func() {
				defer func() { <-places }()
				defer nc.Close()
				serve(ctx, nc)
			})
		default:
			log.Warn("connection refused: too many", "limit", maxConns)
			nc.Close()
		}
	}
}

// acceptPause is how long accept waits for a free file descriptor before it tries again.
const acceptPause = 100 * time.Millisecond

// accept accepts a connection on ln. While the process or the system has no free file descriptor it logs that, once, and waits.
func accept(ln net.Listener, log *slog.Logger) (net.Conn, error) {
	for logged := false; ; logged = true {
		c, err := ln.Accept()
		if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
			return c, err
		}
		if !logged {
			log.Warn("new connections must wait", "err", err)
		}
		time.Sleep(acceptPause)
	}
}

// BuiltAt returns the modification time of a program's file in milliseconds since 1970; 0 if there is none. A client compares its
// own with the daemon's.
func BuiltAt(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixMilli()
}

// CheckPeer returns *PeerError unless the process at the other end of the unix socket c runs as the same user as this one. The
// daemon calls it after accepting, the client after dialing.
func CheckPeer(c net.Conn) error {
	uid, _, err := peer(c)
	if err != nil {
		return err
	}
	if uid != os.Geteuid() {
		return &PeerError{uid}
	}
	return nil
}

// HungUp reports whether the peer of the unix socket c has closed it, even if data it sent before is still unread. It is false if
// that is not known.
func HungUp(c syscall.Conn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	hungUp := false
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}} // POLLHUP is always reported: poll(2)
		n, err := unix.Poll(fds, 0)
		hungUp = err == nil && n == 1 && fds[0].Revents&unix.POLLHUP != 0
	})
	return err == nil && hungUp
}

// PeerPID returns the process at the other end of the unix socket c, as of connect or listen. If a launcher made the daemon's
// listener, that is the launcher, so a daemon's pid must be taken from Ready.
func PeerPID(c net.Conn) (int, error) {
	_, pid, err := peer(c)
	return pid, err
}

func peer(c net.Conn) (uid, pid int, err error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, 0, fmt.Errorf("a %T has no peer credentials", c)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, 0, fmt.Errorf("read the peer's credentials: %w", err)
	}
	if cerr := raw.Control(func(fd uintptr) { uid, pid, err = credentials(int(fd)) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the peer's credentials: %w", err)
	}
	return uid, pid, nil
}
