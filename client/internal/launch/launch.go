// Package launch finds the daemon or starts it, greets it, and settles which protocol is spoken. Its Open returns a
// connection on which Ready has been received; package remote takes over from there.
package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"sublet/wire"
	"sublet/wire/socket"
)

const (
	// answerBound is how long a daemon may take to answer the handshake: a start on a cold disk with a migration of a
	// large store included. Longer means wedged.
	answerBound = 15 * time.Second
	// lockBound is how long somebody else may hold the lock while nobody listens: at a start about 3 ms lie between the lock and
	// the listener; at a stop the socket is removed just before the lock is given up.
	lockBound = 10 * time.Second
	// leaveBound is how long a replaced daemon may take to go.
	leaveBound = 10 * time.Second
)

// ErrNoDaemon reports that nobody listens and none was to be started.
var ErrNoDaemon error = noDaemon{}

type noDaemon struct{}

func (noDaemon) Error() string { return "no daemon is running" }
func (noDaemon) Hint() string  { return "run `sublet daemon start`" }

// Options for New. Paths is required unless NoDaemon is set, Executable too unless NoStart.
type Options struct {
	Paths      socket.Paths
	Executable string
	Env        []string // of the daemon; nothing secret belongs in it
	NoStart    bool
	NoDaemon   error         // why there can be no daemon, the error of Open then; nil = there can
	Answer     time.Duration // how long a daemon may take to answer the handshake; 0 = 15 s
	Log        *slog.Logger  // nil = none

	lockBound time.Duration // 0 = lockBound; tests wait less
}

// Launcher finds or starts one daemon. Its methods are safe for concurrent use.
type Launcher struct {
	o Options

	mu sync.Mutex
	// guarded by mu
	child int // pid of a daemon that this process started and did not reap; 0 = none
}

// New makes a Launcher; it does nothing yet.
func New(o Options) *Launcher {
	o.Answer = cmp.Or(o.Answer, answerBound)
	o.lockBound = cmp.Or(o.lockBound, lockBound)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Launcher{o: o}
}

// Older reports whether the program of the daemon that greeted with ready is older than the one that would be started.
func (l *Launcher) Older(ready *wire.Ready) bool {
	return ready.Daemon.BuiltAtMS < socket.BuiltAt(l.o.Executable)
}

// Open connects, starting a daemon where none listens, and shakes hands with snapshot. An older daemon that is idle is
// replaced by a new one, once; a busy one, and one that a service manager keeps, is left alone. The end of one that is shutting
// down is waited for, up to 10 s.
//
// Errors: ErrNoDaemon, *StartError, *WedgedError, those of socket.Paths.Prepare, any *wire.Error with which
// the daemon refused, and ctx's cause.
func (l *Launcher) Open(ctx context.Context, snapshot *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
	if l.o.NoDaemon != nil {
		return nil, nil, l.o.NoDaemon
	}
	asked := false                       // an older daemon was asked to stop
	leaves := time.Now().Add(leaveBound) // until when one that shuts down is waited for
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		nc, started, err := l.connect(ctx)
		if err != nil {
			return nil, nil, err
		}
		wc, ready, err := l.greet(ctx, nc, snapshot)
		failed := errors.Is(err, errCut) || failedStart(err) != nil
		switch {
		case err == nil && (asked || !l.replaces(ready)):
			return wc, ready, nil
		case err == nil:
			asked, leaves = true, time.Now().Add(leaveBound)
			if err := l.retire(ctx, wc); err != nil {
				l.o.Log.Info("an older daemon is left alone", "err", err)
			}
		case (failed && !started || errors.Is(err, wire.ErrShuttingDown)) && time.Now().Before(leaves):
			// It is ending, and refuses whoever comes before that. The next connection leads to another one, or starts it.
		case failed:
			return nil, nil, &StartError{Err: err, LogPath: l.o.Paths.Log()}
		default:
			return nil, nil, err
		}
		if err := pause(ctx, wait); err != nil {
			return nil, nil, err
		}
	}
}

// replaces reports whether the daemon that greeted with ready is older than this program, and to be replaced: not one that a service
// manager keeps, nor by a launcher that starts none.
func (l *Launcher) replaces(ready *wire.Ready) bool {
	return l.Older(ready) && !l.o.NoStart && !ready.Daemon.Kept
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connect dials; else, under the lock, it dials again, listens (which removes a stale socket), and spawns the daemon with both
// descriptors. Connecting then succeeds at once: the kernel queues what is sent until the daemon accepts. started reports
// whether this call started the daemon.
func (l *Launcher) connect(ctx context.Context) (nc net.Conn, started bool, err error) {
	l.reap()
	p := l.o.Paths
	if nc, err = socket.Dial(ctx, p.Socket); err == nil {
		return nc, false, nil
	}
	if !errors.Is(err, socket.ErrNoDaemon) {
		return nil, false, fmt.Errorf("connect to the daemon: %w", err)
	}
	if l.o.NoStart {
		return nil, false, ErrNoDaemon
	}
	if err := p.Prepare(); err != nil {
		return nil, false, err
	}
	deadline := time.Now().Add(l.o.lockBound)
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		lock, err := socket.TryLock(p.Lock)
		if err == nil {
			nc, started, err := l.start(ctx, lock)
			lock.Close() // the daemon's copy keeps it locked
			return nc, started, err
		}
		if !errors.Is(err, socket.ErrLocked) {
			return nil, false, err
		}
		// Another client is between its lock and its listener (about 1 ms), or a daemon is between its last connection
		// and its end. Neither can be waited for, so try again after a pause.
		nc, derr := socket.Dial(ctx, p.Socket)
		if derr == nil {
			return nc, false, nil
		}
		if time.Now().After(deadline) {
			return nil, false, &WedgedError{Paths: p, Err: fmt.Errorf("somebody holds %s and nobody listens: %w", p.Lock, derr)}
		}
		if err := pause(ctx, wait); err != nil {
			return nil, false, err
		}
	}
}

// start starts the daemon and connects to it, or to one that somebody else has started meanwhile; then started is false. The
// caller holds lock, a copy of which the daemon gets.
func (l *Launcher) start(ctx context.Context, lock *os.File) (nc net.Conn, started bool, err error) {
	p := l.o.Paths
	if nc, err := socket.Dial(ctx, p.Socket); err == nil {
		return nc, false, nil
	}
	ln, err := socket.Listen(p.Socket)
	if err != nil {
		return nil, false, err
	}
	defer ln.Close() // the socket stays: it is the daemon's from now on
	if err := l.spawn(ln, lock); err != nil {
		os.Remove(p.Socket) // nobody will ever accept there; left behind it would only be stale
		return nil, false, err
	}
	if nc, err = socket.Dial(ctx, p.Socket); err != nil {
		return nil, true, &StartError{Err: err, LogPath: p.Log()}
	}
	return nc, true, nil
}

// spawn starts the daemon detached: a session of its own, in /, nothing of the terminal's. The listener is its
// descriptor 3, the lock 4.
func (l *Launcher) spawn(ln net.Listener, lock *os.File) error {
	lf, err := ln.(*net.UnixListener).File()
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	defer lf.Close()
	out, err := os.OpenFile(l.o.Paths.Log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	defer out.Close()
	p := l.o.Paths
	cmd := exec.Command(l.o.Executable, "daemon", "run")
	cmd.Dir = "/"
	cmd.Stdin = nil // /dev/null
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{lf, lock}
	cmd.Env = append(append([]string{}, l.o.Env...),
		"SUBLET_LISTEN_FD=3", "SUBLET_LOCK_FD=4",
		// The paths as this client found them: the daemon must not find others.
		"SUBLET_RUNTIME_DIR="+p.Runtime, "SUBLET_STATE_DIR="+p.State, "SUBLET_CONFIG="+p.Config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	l.mu.Lock()
	l.child = cmd.Process.Pid
	l.mu.Unlock()
	l.o.Log.Info("daemon started", "pid", cmd.Process.Pid)
	_ = cmd.Process.Release() // it outlives us; reap collects one that does not
	return nil
}

// reap collects the daemon that this process started, if it has ended, before another may be started. It never waits.
func (l *Launcher) reap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.child == 0 {
		return
	}
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(l.child, &status, syscall.WNOHANG, nil)
	if pid == l.child || errors.Is(err, syscall.ECHILD) {
		l.child = 0
	}
}
