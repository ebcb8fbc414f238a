package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"

	"sublet/wire/socket"
)

// place is the daemon's runtime folder with its socket and lock, by which clients find it. If somebody removes them while the
// daemon runs (a cleaner of /tmp, a logout, a person), clients would find no daemon and could not start one, or would start a
// second one. mend restores them. It is not safe for concurrent use.
type place struct {
	paths  socket.Paths
	theirs bool // the socket belongs to a service manager
	log    *slog.Logger

	lock    *os.File
	socket  fs.FileInfo    // as it was when the daemon began to listen, to recognise it
	listens []net.Listener // the last one has the path that clients use
}

func newPlace(o Options) (*place, error) {
	p := &place{paths: o.Paths, theirs: o.activation, lock: o.LockFile, listens: []net.Listener{o.Listener}}
	var err error
	if p.socket, err = os.Lstat(o.Paths.Socket); err != nil {
		return nil, fmt.Errorf("look at the socket: %w", err)
	}
	return p, nil
}

// mend restores what was removed. It returns a new listener that the caller must serve, or nil if the socket was not removed.
// An error means that the daemon cannot be reached any more.
func (p *place) mend() (ln net.Listener, err error) {
	for range mendTries { // a program that removes the folder recursively may also remove what was restored
		if ln, err = p.putBack(); !errors.Is(err, fs.ErrNotExist) {
			return ln, err
		}
		if ln != nil {
			ln.Close()
		}
	}
	return nil, err
}

// mendTries bounds how often mend restores the files if they are removed again at once.
const mendTries = 100

// putBack is one attempt of mend. The error is fs.ErrNotExist if something was removed meanwhile.
func (p *place) putBack() (net.Listener, error) {
	// Create the folder itself only: if its parent was removed too, clients no longer look here.
	if err := os.Mkdir(p.paths.Runtime, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, errors.New("its runtime folder was removed: " + p.paths.Runtime)
	}
	if err := p.paths.Prepare(); err != nil {
		if _, gone := os.Lstat(p.paths.Runtime); gone != nil {
			return nil, gone
		}
		return nil, err
	}
	if !socket.Same(p.lock, p.paths.Lock) {
		lock, err := socket.TryLock(p.paths.Lock)
		if errors.Is(err, socket.ErrLocked) {
			return nil, errors.New("its lock was removed, and another daemon has taken its place")
		}
		if err != nil {
			return nil, err
		}
		p.log.Warn("the lock was removed, and is held again", "lock", p.paths.Lock)
		p.lock.Close()
		p.lock = lock
		p.sign()
	}
	if p.ours() {
		return nil, nil
	}
	if p.theirs {
		return nil, errors.New("the service manager's socket was removed: " + p.paths.Socket)
	}
	ln, err := socket.Listen(p.paths.Socket)
	if err != nil {
		return nil, err
	}
	p.log.Warn("the socket was removed, and is there again", "socket", p.paths.Socket)
	p.listens = append(p.listens, ln)
	p.socket, err = os.Lstat(p.paths.Socket)
	return ln, err
}

// sign writes the daemon's process id and socket to the lock file, for people who find a daemon that does not answer.
func (p *place) sign() {
	if err := socket.Sign(p.lock, p.paths.Socket); err != nil {
		p.log.Warn("the lock cannot be written", "err", err) // the lock is held nevertheless
	}
}

// ours reports whether the socket at the path is the one that the daemon listens on.
func (p *place) ours() bool {
	now, err := os.Lstat(p.paths.Socket)
	return err == nil && os.SameFile(p.socket, now)
}

// leave removes the socket and then releases the lock, in this order so that the next holder of the lock finds no stale socket.
func (p *place) leave() error {
	var err error
	if !p.theirs && p.ours() {
		err = os.Remove(p.paths.Socket)
	}
	for _, ln := range p.listens {
		ln.Close() // an error means that it was closed after serving
	}
	return errors.Join(err, p.lock.Close())
}
