package remote

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"sublet/wire"
)

// link is one connection, from Ready to its end.
type link struct {
	wc      *wire.Conn
	stopped bool // the daemon sent a farewell; used by the reader only

	mu sync.Mutex
	// guarded by mu
	streams map[wire.RequestID]*stream // of the requests that are followed; nil once the link has ended
	watch   watch
	silence *time.Timer // calls silent; stopped while nothing is expected
	why     error       // why this side ended the link; nil = it did not
}

// watch is what a link expects of the daemon. While a turn or a lease runs, the daemon sends a heartbeat every 15 s. So once it
// has been silent for longer, it is asked for an answer: if it gives one, nothing runs, and nothing is expected until the next
// message either way.
type watch int

const (
	resting   watch = iota // nothing: a Unix socket reports a dead peer by itself
	listening              // any message, within probeAfter
	probing                // the answer to a heartbeat, within the rest of wire.DeadAfter
)

const probeAfter = wire.DeadAfter - wire.HeartbeatEvery

func newLink(wc *wire.Conn) *link {
	l := &link{wc: wc, streams: map[wire.RequestID]*stream{}}
	l.silence = time.AfterFunc(probeAfter, l.silent)
	l.silence.Stop()
	return l
}

// heard records that a message came.
func (l *link) heard(m wire.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch beat, _ := m.(*wire.Heartbeat); {
	case beat == nil || !beat.Reply:
		l.listenLocked()
	case l.watch == probing:
		l.watch = resting
		l.silence.Stop()
	}
}

func (l *link) listenLocked() {
	l.watch = listening
	l.silence.Reset(probeAfter)
}

// silent sends a heartbeat to a daemon that has been silent for probeAfter, and ends the link if that was not answered either.
func (l *link) silent() {
	l.mu.Lock()
	dead := l.watch == probing
	switch l.watch {
	case listening:
		l.watch = probing
		_ = l.wc.Send(&wire.Heartbeat{AtMS: time.Now().UnixMilli()}) // the reader notices a lost link
		l.silence.Reset(wire.DeadAfter - probeAfter)
	case probing:
		l.why = fmt.Errorf("the daemon was silent for %v", wire.DeadAfter)
	}
	l.mu.Unlock()
	if dead {
		l.wc.Close() // unblocks the reader, which ends the link
	}
}

// end fails every request that waits, and closes the wire.Conn if that is still open.
func (l *link) end() {
	l.wc.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = resting
	l.silence.Stop()
	for _, s := range l.streams {
		s.close()
	}
	l.streams = nil
}

func (l *link) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// send queues a message for the daemon.
func (l *link) send(m wire.Message) error {
	err := l.wc.Send(m)
	switch {
	case err == nil:
	case errors.Is(err, wire.ErrClosed) || l.wc.Err() != nil: // the link broke, and its reader has not noticed yet
		return fmt.Errorf("send %s: %w: %w", wire.KindOf(m), ErrDisconnected, err)
	default:
		return fmt.Errorf("send %s: %w", wire.KindOf(m), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch == resting && l.streams != nil {
		l.listenLocked()
	}
	return nil
}

// follow sends a request and returns the stream of what follows it, until forget.
func (l *link) follow(r wire.OfRequest) (*stream, error) {
	id, s := mint(r), newStream()
	l.mu.Lock()
	over := l.streams == nil
	if !over {
		l.streams[id] = s // before sending: the answer may arrive before send returns
	}
	l.mu.Unlock()
	if over {
		return nil, ErrDisconnected
	}
	if err := l.send(r); err != nil {
		l.forget(r)
		return nil, err
	}
	return s, nil
}

// forget ends the stream of a request.
func (l *link) forget(r wire.OfRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, *r.RequestRef())
}

// feed delivers m to the stream of its request and reports whether there is one.
func (l *link) feed(id wire.RequestID, m wire.Message) bool {
	l.mu.Lock()
	s := l.streams[id]
	l.mu.Unlock()
	if s != nil {
		s.push(m)
	}
	return s != nil
}
