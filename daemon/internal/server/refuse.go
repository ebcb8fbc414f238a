package server

import (
	"net"
	"time"

	"sublet/wire"
	"sublet/wire/socket"
)

const (
	// firstBound is how long Refuse waits for the first connection: whoever starts a daemon connects right afterwards.
	firstBound = 200 * time.Millisecond
	// nextBound is how long it waits for each of the others, which are in the listener's queue already. It is shorter than a
	// command takes to start: one that comes after the cause was removed must find no daemon, and start one.
	nextBound = 2 * time.Millisecond
	// refuseBound is how long one of them may take for its EnvSnapshot and for reading the answer.
	refuseBound = time.Second
)

// Refuse answers the connections that wait on ln with err in place of Ready: why the daemon cannot start, which its log
// may not have where the disk is full. It closes ln.
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
			return // nobody is left, or the listener is of no use
		}
		if socket.CheckPeer(nc) != nil {
			nc.Close()
			continue
		}
		c := wire.NewConn(nc, wire.Options{MaxFrame: wire.MaxHandshakeFrame, CloseAfter: refuseBound})
		patience := time.AfterFunc(refuseBound, func() { c.Close() })
		_, _ = c.Receive() // whatever it is: unread, it would cost the peer the answer
		_ = c.Send(answer) // a peer that is gone needs none
		patience.Stop()
		c.Close()
	}
}
