package server

import (
	"sync"
	"time"

	"sublet/daemon/internal/hub"
	"sublet/wire"
)

// lastBound is how much longer a client may be silent after DeadAfter. If this process was stopped meanwhile, it reads within
// that time what the client had sent, and a heartbeat is answered.
const lastBound = 5 * time.Second

// heart sends heartbeats while something runs in which the client takes part, and ends the connection if nothing came for
// DeadAfter and lastBound. On an idle connection its timer is stopped; the next message starts it.
type heart struct {
	conn *conn

	mu sync.Mutex
	// below: guarded by mu
	timer   *time.Timer
	client  *hub.Client // nil before the handshake
	beating bool
	ended   bool
	since   time.Time // when the silence began: the last message received, or the first heartbeat
	last    bool      // DeadAfter has passed, and lastBound runs
	nonce   uint64
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
	h.since, h.last = time.Now(), false
	if _, beat := m.(*wire.Heartbeat); !beat {
		h.wake()
	}
}

// sent records a message to the client.
func (h *heart) sent(wire.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.beating {
		h.since = time.Now()
		h.wake()
	}
}

func (h *heart) wake() {
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

func (h *heart) beat() {
	h.mu.Lock()
	ended, client := h.ended, h.client
	h.mu.Unlock()
	if ended {
		return
	}
	c := h.conn
	busy := client != nil && client.Busy()
	h.mu.Lock()
	silence := time.Since(h.since)
	dead := false
	switch {
	case h.ended:
		busy = false
	case !busy:
		h.beating, h.last = false, false
	case silence < wire.DeadAfter:
		h.timer.Reset(wire.HeartbeatEvery)
	case !h.last:
		h.last = true
		h.timer.Reset(lastBound)
	default:
		dead = true
	}
	h.nonce++
	nonce := h.nonce
	h.mu.Unlock()
	switch {
	case !busy:
	case dead:
		c.log.Info("client is dead", "silence", silence)
		c.Close()
	default:
		_ = c.Conn.Send(&wire.Heartbeat{Nonce: nonce, AtMS: time.Now().UnixMilli()})
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
