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

// place is what makes the daemon the one that clients find: its folder, its socket, its lock. Somebody may remove them
// under a daemon that runs (a cleaner of /tmp, a logout, a person): then clients would find nobody, and be kept from
// starting another by the lock, or would start a second one beside it. It is for one goroutine.
type place struct {
	paths  socket.Paths
	theirs bool // the socket is a service manager's
	log    *slog.Logger

	lock    *os.File
	socket  fs.FileInfo    // as it was when we listened on it
	listens []net.Listener // the last one is the one that clients find
}

func newPlace(o Options) (*place, error) {
	p := &place{paths: o.Paths, theirs: o.activation, lock: o.LockFile, listens: []net.Listener{o.Listener}}
	var err error
	if p.socket, err = os.Lstat(o.Paths.Socket); err != nil {
		return nil, fmt.Errorf("look at the socket: %w", err)
	}
	return p, nil
}

// mend puts back what was removed. It returns a new listener, to be served like the first; nil where the socket is still
// ours. An error means that the place is lost, and says to whom or why.
func (p *place) mend() (ln net.Listener, err error) {
	for range mendTries { // who removes a folder may be still at it, and takes away what was just put back
		if ln, err = p.putBack(); !errors.Is(err, fs.ErrNotExist) {
			return ln, err
		}
		if ln != nil {
			ln.Close()
		}
	}
	return nil, err
}

// mendTries bounds how often the place is put back when it is removed again at once.
const mendTries = 100

// putBack is one try of mend. The error is an fs.ErrNotExist where something was removed meanwhile.
func (p *place) putBack() (net.Listener, error) {
	// Only the folder itself: where the one above it is gone too, nobody expects us there any more.
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

// sign says in the lock whose it is, for whoever finds a daemon that does not answer.
func (p *place) sign() {
	if err := socket.Sign(p.lock, p.paths.Socket); err != nil {
		p.log.Warn("the lock cannot be written", "err", err) // it holds all the same
	}
}

// ours reports whether the socket that clients find is the one we listen on.
func (p *place) ours() bool {
	now, err := os.Lstat(p.paths.Socket)
	return err == nil && os.SameFile(p.socket, now)
}

// leave gives the place up: the socket first, the lock last, so that who gets it finds no socket, or its own.
func (p *place) leave() error {
	var err error
	if !p.theirs && p.ours() {
		err = os.Remove(p.paths.Socket)
	}
	for _, ln := range p.listens {
		ln.Close() // closed already where it was served
	}
	return errors.Join(err, p.lock.Close())
}
