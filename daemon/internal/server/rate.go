package server

import "time"

// bucket is a token bucket: it allows a number of requests a second, with bursts of the same number. Only the connection's
// reader uses it.
type bucket struct {
	tokens float64
	last   time.Time
}

// take reports whether one more request may pass at limit per second.
func (b *bucket) take(limit int) bool {
	now := time.Now()
	if b.last.IsZero() {
		b.tokens = float64(limit)
	} else {
		b.tokens = min(float64(limit), b.tokens+now.Sub(b.last).Seconds()*float64(limit))
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
