package server

import "time"

// bucket limits requests to a number in a second, with bursts of as many. It belongs to the connection's reader.
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
