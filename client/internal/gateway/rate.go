package gateway

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate limits the requests of a client in a second. The zero value is ready.
type Rate struct {
	once    sync.Once
	limiter *rate.Limiter
}

// Take counts one request. If there were more than limit within a second it returns false, and how long until the next one is
// accepted. A limit of 0 or less means no limit.
func (r *Rate) Take(limit int) (ok bool, retry time.Duration) {
	if limit <= 0 {
		return true, 0
	}
	r.once.Do(func() { r.limiter = rate.NewLimiter(0, limit) })
	r.limiter.SetLimit(rate.Limit(limit)) // another one than before, if the settings have changed
	r.limiter.SetBurst(limit)
	next := r.limiter.Reserve()
	if retry = next.Delay().Round(time.Millisecond); retry > 0 {
		next.Cancel()
	}
	return retry == 0, retry
}
