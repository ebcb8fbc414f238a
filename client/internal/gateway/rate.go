package gateway

import (
	"sync"
	"time"
)

// Rate limits the requests of a client in a second. The zero value is ready.
type Rate struct {
	mu sync.Mutex
	// guarded by mu
	tokens float64
	at     time.Time
}

// Take counts one request. If there were more than limit within a second it returns false, and how long until the next one is
// accepted. A limit of 0 or less is no limit.
func (r *Rate) Take(limit int) (ok bool, retry time.Duration) {
	if limit <= 0 {
		return true, 0
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() {
		r.tokens = float64(limit)
	} else {
		r.tokens = min(float64(limit), r.tokens+now.Sub(r.at).Seconds()*float64(limit))
	}
	r.at = now
	if r.tokens < 1 {
		return false, time.Duration((1 - r.tokens) / float64(limit) * float64(time.Second)).Round(time.Millisecond)
	}
	r.tokens--
	return true, 0
}
