package server

import (
	"net"
	"time"

	"sublet/wire"
	"sublet/wire/socket"
)

const (
	// firstBound is how long Refuse waits for the first connection: a client that starts a daemon connects right afterwards.
	firstBound = 200 * time.Millisecond
	// nextBound is how long it waits for each further connection, which is in the listener's backlog already. It is shorter than
	// the start of a process, so that a client started after the cause was removed finds no daemon and starts one.
	nextBound = 2 * time.Millisecond
	// refuseBound is how long a connection may take to send EnvSnapshot.
	refuseBound = time.Second
)

// Refuse answers the connections that wait on ln with err instead of Ready, so that clients learn why the daemon cannot start
// even if its log cannot be written. It closes ln.
func Refuse(ln net.Listener, err error) {
	defer ln.Close()
	bounded, ok := ln.(interface{ SetDeadline(t time.Time) error })
	if !ok {
		return
	}
	answer := errorOf(err)
	answer.Code, answer.Recoverable = wire.CodeInternal, false
	for bound := firstBound; bounded.SetDeadline(time.Now().Add(bound)) == nil; bound = nextBound {
		nc, err := ln.Accept()
		if err != nil {
			return // no more connections, or the listener failed
		}
		if socket.CheckPeer(nc) != nil {
			nc.Close()
			continue
		}
		c := wire.NewConn(nc)
		patience := time.AfterFunc(refuseBound, func() { c.Close() })
		_, _ = c.Receive() // closing with unread data would reset the connection and lose the answer
		_ = c.Send(answer) // the peer may have closed the connection
		patience.Stop()
		c.Close()
	}
}
