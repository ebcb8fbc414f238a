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

// place is the daemon's runtime folder with its socket and lock, by which clients find it. The zero value is one that was not taken.
type place struct {
	paths    socket.Paths
	theirs   bool     // the socket belongs to a service manager
	lock     *os.File // with the listener that the environment names (SUBLET_LOCK_FD, SUBLET_LISTEN_FD)
	listener net.Listener
	socket   fs.FileInfo // as it was when the daemon began to listen, to recognise it
}

// take inherits the listener and the lock, or locks and listens itself. The caller calls leave, or close after an error.
func (p *place) take(paths socket.Paths) (err error) {
	p.paths = paths
	if p.listener == nil {
		err = p.inherit()
	}
	if err == nil {
		err = paths.Prepare()
	}
	if err == nil {
		err = p.acquire()
	}
	if err != nil {
		return err
	}
	if p.socket, err = os.Lstat(paths.Socket); err != nil {
		return fmt.Errorf("look at the socket: %w", err)
	}
	return nil
}

// close closes what was taken.
func (p *place) close() error {
	if p.listener != nil {
		p.listener.Close() // an error means that it was closed after serving
	}
	if p.lock != nil {
		return p.lock.Close()
	}
	return nil
}

// lost returns why clients do not find the daemon any more, "" if they do: a cleaner of /tmp, a logout or a person may have removed
// its files. It must end then, since clients that start another one would be refused while it has the store.
func (p *place) lost() string {
	switch {
	case !p.ours():
		return "its socket was removed: " + p.paths.Socket
	case !socket.Same(p.lock, p.paths.Lock):
		return "its lock was removed: " + p.paths.Lock
	}
	return ""
}

// identify writes the daemon's process id and socket to the lock file, where the user can find those of a daemon that does not answer.
func (p *place) identify(log *slog.Logger) {
	if err := socket.Sign(p.lock, p.paths.Socket); err != nil {
		log.Warn("the lock cannot be written", "err", err) // the lock is held nevertheless
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
	return errors.Join(err, p.close())
}
