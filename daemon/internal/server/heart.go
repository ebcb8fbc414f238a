package server

import (
	"sync"
	"time"

	"sublet/daemon/internal/hub"
	"sublet/wire"
)

// lastBound is how long a client that was silent for DeadAfter has left. The silence may be this process's own, if it was
// stopped: then what the client sent lies in the socket and is read within that time, and a heartbeat is answered.
const lastBound = 5 * time.Second

// heart sends heartbeats while something runs that the client takes part in, and ends the connection when nothing came
// back for DeadAfter and lastBound. An idle connection is left asleep: traffic wakes the heart, and a round with nothing
// to wait for puts it to sleep again.
type heart struct {
	conn *conn

	mu sync.Mutex
	// below: guarded by mu
	timer   *time.Timer
	client  *hub.Client // nil before the handshake
	beating bool
	ended   bool
	since   time.Time // of the silence: the last message, or the first beat
	last    bool      // lastBound runs
	nonce   uint64
}

// attached tells whom the heart beats for.
func (h *heart) attached(c *hub.Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.client = c
}

// heard notes a message of the client, nil for one that could not be read.
func (h *heart) heard(m wire.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since, h.last = time.Now(), false
	if _, beat := m.(*wire.Heartbeat); !beat {
		h.wake()
	}
}

// sent notes a message to the client.
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
