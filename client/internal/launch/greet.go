package launch

import (
	"context"
	"errors"
	"fmt"
	"net"

	"sublet/wire"
)

// errSilent is the cause of a handshake that was given up.
var errSilent = errors.New("no answer to the handshake")

// errCut reports that the daemon was gone before it answered.
var errCut = errors.New("the daemon closed the connection before it answered")

// greet shakes hands. On an error the connection is closed.
func (l *Launcher) greet(ctx context.Context, nc net.Conn, snapshot *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
	wc := wire.NewConn(nc)
	ready, err := l.exchange(ctx, wc, snapshot)
	if err != nil {
		wc.Close()
		return nil, nil, err
	}
	return wc, ready, nil
}

// exchange sends the snapshot and returns the daemon's Ready. The error is a *WedgedError after Options.Answer without one, errCut (wrapped) if
// the daemon was gone, or the *wire.Error with which it refuses.
func (l *Launcher) exchange(ctx context.Context, wc *wire.Conn, snapshot *wire.EnvSnapshot) (*wire.Ready, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.o.Answer, errSilent)
	defer cancel()
	if err := wc.Send(snapshot); err != nil {
		return nil, fmt.Errorf("handshake: %w: %w", errCut, err)
	}
	m, err := receive(ctx, wc)
	switch {
	case errors.Is(err, errSilent):
		return nil, &WedgedError{Paths: l.o.Paths, Err: fmt.Errorf("no answer to the handshake within %v", l.o.Answer)}
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w (%w)", errCut, err)
	}
	switch m := m.(type) {
	case *wire.Ready:
		return m, nil
	case *wire.Error:
		return nil, m
	}
	return nil, fmt.Errorf("handshake: answered with %s", wire.KindOf(m))
}

// receive waits for one message or for ctx; then it closes the connection, which is the only way to end the wait, and
// returns ctx's cause.
func receive(ctx context.Context, wc *wire.Conn) (wire.Message, error) {
	stop := context.AfterFunc(ctx, func() { wc.Close() })
	m, err := wc.Receive()
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return m, err
}

// retire asks the daemon at the other end of wc to stop if nothing runs in it, and waits until the daemon closes the connection.
// It always closes wc. The next call of connect waits until the daemon has released its lock. Errors are the *wire.Error with which
// the daemon refuses, ctx's cause, and context.DeadlineExceeded after leaveBound.
func (l *Launcher) retire(ctx context.Context, wc *wire.Conn) error {
	defer wc.Close()
	ctx, cancel := context.WithTimeout(ctx, leaveBound)
	defer cancel()
	const id = "replace"
	if err := wc.Send(&wire.ShutdownRequest{RequestID: id, IfIdle: true}); err != nil {
		return err
	}
	for {
		m, err := receive(ctx, wc)
		switch {
		case err != nil && ctx.Err() != nil: // it still runs
			return err
		case err != nil:
			l.o.Log.Info("older daemon replaced")
			return nil
		}
		// An Error without the id is the farewell of a daemon that does stop.
		if refusal, ok := m.(*wire.Error); ok && refusal.RequestID == id {
			return refusal
		}
	}
}
