package server

import (
	"sync"
	"time"

	"sublet/daemon/internal/hub"
	"sublet/wire"
)

// mostUnanswered is how many heartbeats in a row a client may leave unanswered before it counts as dead: those of DeadAfter. They are
// counted, and not the time, since a daemon that was stopped for a while must read what the client has sent before it judges.
const mostUnanswered = int(wire.DeadAfter / wire.HeartbeatEvery)

// heart sends heartbeats while work is in progress that the client takes part in, and closes the connection if the client sends nothing
// after mostUnanswered of them. On an idle connection its timer is stopped; the next message starts it.
type heart struct {
	conn *conn

	mu sync.Mutex
	// below: guarded by mu
	timer      *time.Timer
	client     *hub.Client // nil before the handshake
	beating    bool
	ended      bool
	unanswered int // heartbeats since the last message of the client
	nonce      uint64
}

// attached sets the client after the handshake.
func (h *heart) attached(c *hub.Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.client = c
}

// heard records a message from the client; nil for one that could not be decoded.
func (h *heart) heard(m wire.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unanswered = 0
	if _, beat := m.(*wire.Heartbeat); !beat {
		h.startLocked()
	}
}

// sent records a message to the client.
func (h *heart) sent() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.startLocked()
}

// startLocked starts the timer unless it runs.
func (h *heart) startLocked() {
	if h.beating || h.ended {
		return
	}
	h.beating = true
	if h.timer == nil {
		h.timer = time.AfterFunc(wire.HeartbeatEvery, h.beat)
		return
	}
	h.timer.Reset(wire.HeartbeatEvery)
}

// beat is the timer's function: it sends a heartbeat, ends a dead connection, or stops if nothing runs any more.
func (h *heart) beat() {
	h.mu.Lock()
	client := h.client
	h.mu.Unlock()
	busy := client != nil && client.Busy() // without mu: Busy takes locks under which sent, which takes mu, is called
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended:
	case !busy:
		h.beating, h.unanswered = false, 0
	case h.unanswered == mostUnanswered:
		h.conn.log.Info("client is dead", "unanswered", h.unanswered)
		h.conn.cancel()
	default:
		h.timer.Reset(wire.HeartbeatEvery)
		h.unanswered++
		h.nonce++
		// conn.Send would count as a message to the client.
		_ = h.conn.Conn.Send(&wire.Heartbeat{Nonce: h.nonce, AtMS: time.Now().UnixMilli()})
	}
}

func (h *heart) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	if h.timer != nil {
		h.timer.Stop()
	}
}
