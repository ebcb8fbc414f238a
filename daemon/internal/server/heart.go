package server

import (
	"sync"
	"time"

	"sublet/daemon/internal/hub"
	"sublet/wire"
)

// lastBound is how much longer a client may be silent after DeadAfter. If it was this process that was stopped, this is time to
// read what the client has sent, or for the client to answer a heartbeat.
const lastBound = 5 * time.Second

// heart sends heartbeats while work is in progress that the client takes part in, and closes the connection if nothing was
// received for DeadAfter plus lastBound. On an idle connection its timer is stopped; the next message starts it.
type heart struct {
	conn *conn

	mu sync.Mutex
	// below: guarded by mu
	timer      *time.Timer
	client     *hub.Client // nil before the handshake
	beating    bool
	ended      bool
	since      time.Time // when the silence began: the last message received, or the first heartbeat
	lastChance bool      // DeadAfter has passed, and lastBound runs
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
	h.since, h.lastChance = time.Now(), false
	if _, beat := m.(*wire.Heartbeat); !beat {
		h.wakeLocked()
	}
}

// sent records a message to the client.
func (h *heart) sent() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.beating {
		h.since = time.Now()
		h.wakeLocked()
	}
}

// wakeLocked starts the timer unless it runs.
func (h *heart) wakeLocked() {
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
	ended, client := h.ended, h.client
	h.mu.Unlock()
	if ended {
		return
	}
	c := h.conn
	busy := client != nil && client.Busy() // without mu: Busy takes locks under which sent, which takes mu, is called
	h.mu.Lock()
	silence := time.Since(h.since)
	dead := false
	switch {
	case h.ended:
		busy = false
	case !busy:
		h.beating, h.lastChance = false, false
	case silence < wire.DeadAfter:
		h.timer.Reset(wire.HeartbeatEvery)
	case !h.lastChance:
		h.lastChance = true
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
		// conn.Send would count as a message to the client.
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
