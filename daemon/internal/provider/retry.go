package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Backoff is how a call is tried again. The zero value is not usable; start from DefaultBackoff.
type Backoff struct {
	Tries  int           // in all, the first one included
	Budget time.Duration // from the first try to the start of the last
	First  time.Duration // wait before the second try; each further wait doubles
	// Sleep waits for d or until ctx ends, then returning context.Cause(ctx). Tests replace it.
	Sleep func(ctx context.Context, d time.Duration) error
}

// DefaultBackoff is at most 4 tries in 20 s: waits of about 1, 2 and 4 s.
func DefaultBackoff() Backoff {
	return Backoff{Tries: 4, Budget: 20 * time.Second, First: time.Second, Sleep: Sleep}
}

// Do calls attempt until it succeeds, fails in a way that another try would not mend, or the tries or the budget are used
// up. It passes a DeltaWait to onDelta before and after each wait. An attempt that has begun to show anything (began) is never repeated: its text would come twice, and tools may
// have run on it (T4f). A provider that asks for more time than is left ends the turn. When ctx ends, Do returns
// context.Cause(ctx) at once.
func (b Backoff) Do(ctx context.Context, log *slog.Logger, onDelta func(Delta), attempt func() (began bool, err error)) error {
	start := time.Now()
	var slept time.Duration
	for try := 1; ; try++ {
		began, err := attempt()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pe, ok := errors.AsType[*Error](err)
		if !ok || began {
			return err
		}
		err = pe.unbegun()
		if try >= b.Tries || !pe.temporary() {
			return err
		}
		// A quarter of jitter keeps several agents, refused together, from coming back together.
		wait := b.First << (try - 1)
		wait += time.Duration(rand.Int64N(int64(wait)/4 + 1))
		wait = max(wait, pe.RetryAfter)
		// time.Since is what the tries took, slept what an injected Sleep claims to have waited.
		if max(time.Since(start), slept)+wait > b.Budget {
			return err
		}
		log.Info("model call failed, trying again", "provider", pe.Provider, "kind", string(pe.Kind), "try", try, "wait", wait)
		onDelta(Delta{Type: DeltaWait, Text: fmt.Sprintf("waiting %v before try %d of %d: %v", wait.Round(100*time.Millisecond), try+1, b.Tries, err)})
		if err := b.Sleep(ctx, wait); err != nil {
			return err
		}
		slept += wait
		onDelta(Delta{Type: DeltaWait})
	}
}

// temporary tells whether the same request may well succeed a moment later.
func (e *Error) temporary() bool { return e.Kind == ErrOverloaded || e.Kind == ErrBroken }

// Sleep waits for d. If ctx ends first it returns context.Cause(ctx).
func Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// ErrStalled is the cause of a stream that was given up because nothing came for too long.
var ErrStalled = errors.New("provider: nothing came for too long")

// Watchdog ends a context when a stream goes silent.
type Watchdog struct {
	timer *time.Timer
	limit time.Duration
}

// NewWatchdog returns a child of ctx that ends with ErrStalled when Fed is not called for first, at the beginning, and
// for limit after that. Call stop when the stream is done.
func NewWatchdog(ctx context.Context, first, limit time.Duration) (watched context.Context, w *Watchdog, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	w = &Watchdog{limit: limit}
	w.timer = time.AfterFunc(first, func() { cancel(ErrStalled) })
	return watched, w, func() { w.timer.Stop(); cancel(context.Canceled) }
}

// Fed says that something came.
func (w *Watchdog) Fed() { w.timer.Reset(w.limit) }

// Limits of silence. Local servers read a long prompt for minutes before they say a word; once they speak, they speak.
const (
	FirstByteLimit = 15 * time.Minute
	SilenceLimit   = 5 * time.Minute
)
