package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Errors that callers test.
var (
	// ErrNoDaemon means that nobody listens: the socket is missing or was left behind.
	ErrNoDaemon = errors.New("no daemon is running")
	// ErrInUse means that a daemon answers on the socket that was to be listened on.
	ErrInUse = errors.New("another daemon answers on this socket")
	// ErrLocked means that another process holds the lock.
	ErrLocked = errors.New("another daemon holds the lock")
)

// A PeerError reports a connection from or to another user's process.
type PeerError struct{ UID int }

func (e *PeerError) Error() string {
	return fmt.Sprintf("the other end of the socket belongs to user %d, not to you", e.UID)
}

// Listen makes the socket at path, mode 0600, and listens on it. The caller holds the lock (TryLock), which is what
// makes a socket that is already there stale; it is dialed all the same before it is removed, and ErrInUse returned if
// somebody answers. Closing the listener leaves the socket in place, since a launcher closes its copy of a
// listener that a daemon goes on using: the daemon removes the socket itself before it lets go of the lock.
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
	l.SetUnlinkOnClose(false)
	// The folder lets nobody else in, so the moment before this changes nothing; a umask would be the whole process's.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		os.Remove(path)
		return nil, fmt.Errorf("listen: %w", err)
	}
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
		return &PathError{path, "is there and is not a socket", "remove it"}
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return ErrInUse
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of a daemon that is gone: %w", err)
	}
	return nil
}

// Dial connects to the daemon at path until ctx ends, and checks that it is the user's own: the socket (no symbolic
// link, same owner) before, the process after. Errors: ErrNoDaemon (wrapped), *PeerError, *PathError, and those of net.
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

// BuiltAt returns when the program in the file at path was made, in milliseconds, by the file's modification time; 0 where
// there is no such file. A client compares its program with the daemon's by it.
func BuiltAt(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixMilli()
}

// CheckPeer returns *PeerError unless the process at the other end of the unix socket c runs as the same user as this
// one. Both ends call it: the daemon on what it accepted, the client on what it dialed.
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

// HungUp reports whether the other end of the unix socket c was closed, also where what it sent before that has not been read
// yet. It is false where that cannot be known.
func HungUp(c syscall.Conn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	hungUp := false
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}} // POLLHUP needs not be asked for: poll(2)
		n, err := unix.Poll(fds, 0)
		hungUp = err == nil && n == 1 && fds[0].Revents&unix.POLLHUP != 0
	})
	return err == nil && hungUp
}

// PeerPID returns the process at the other end of the unix socket c, as it was when it connected or began to listen:
// for a daemon whose launcher made the listener that is the launcher, so a daemon's pid is taken from Ready instead.
func PeerPID(c net.Conn) (int, error) {
	_, pid, err := peer(c)
	return pid, err
}

func peer(c net.Conn) (uid, pid int, err error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, 0, fmt.Errorf("a %T has no peer to look at", c)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, 0, fmt.Errorf("look at the peer: %w", err)
	}
	if cerr := raw.Control(func(fd uintptr) { uid, pid, err = credentials(int(fd)) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return 0, 0, fmt.Errorf("look at the peer: %w", err)
	}
	return uid, pid, nil
}
