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

// Take counts one request. If there were more than limit within a second, which is the same in each call, it returns false, and how
// long until the next one is accepted.
func (r *Rate) Take(limit int) (ok bool, retry time.Duration) {
	r.once.Do(func() { r.limiter = rate.NewLimiter(rate.Limit(limit), limit) })
	next := r.limiter.Reserve()
	if retry = next.Delay().Round(time.Millisecond); retry > 0 {
		next.Cancel()
	}
	return retry == 0, retry
}
