package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Backoff describes how a call is retried. DefaultBackoff returns a usable one; the zero value is not.
type Backoff struct {
	Tries  int           // in all, the first one included
	Budget time.Duration // for waits and attempts that receive nothing, up to the start of the last
	First  time.Duration // wait before the second try; each further wait doubles
	// Silence is how long an attempt may receive nothing before it gives up. Do only mentions it in reports; the
	// attempt keeps to it (Watchdog). It is also the Budget of waits that the provider asks for.
	Silence     time.Duration
	replaceable bool // see Request

	// Sleep waits for d or until ctx ends, then returning context.Cause(ctx). Tests replace it.
	Sleep func(ctx context.Context, d time.Duration) error
}

// DefaultBackoff is at most 4 tries in 20 s: waits of about 1, 2 and 4 s.
func DefaultBackoff() Backoff {
	return Backoff{Tries: 4, Budget: 20 * time.Second, First: time.Second, Sleep: Sleep}
}

// Do calls attempt until it succeeds, fails with an error that is not temporary, or tries or budget are used up. It passes the
// deltas of attempts on to onDelta. A failed attempt is repeated even if deltas were shown, since no tool has run on an
// incomplete answer; a DeltaVoid then withdraws them. A DeltaWait is sent before and after each pause, and when nothing came
// for SilenceReport. Only time in which nothing comes counts against the budget. If a provider asks for a longer pause than
// is left of Silence, the call ends. When ctx ends, Do returns context.Cause(ctx) at once.
func (b Backoff) Do(ctx context.Context, log *slog.Logger, onDelta func(Delta), attempt func(show func(Delta)) error) error {
	var idle time.Duration
	for try := 1; ; try++ {
		w := watch{onDelta: onDelta, begun: time.Now(), limit: b.Silence}
		w.arm()
		err := attempt(w.show)
		shown, silent := w.stop()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pe, ok := errors.AsType[*Error](err)
		if !ok {
			return err
		}
		idle += silent
		// Jitter of a quarter, so that agents that were refused together do not retry together.
		wait := b.First << (try - 1)
		wait += time.Duration(rand.Int64N(int64(wait)/4 + 1))
		wait = max(wait, pe.RetryAfter)
		budget := b.Budget
		if pe.RetryAfter > 0 && !b.replaceable {
			budget = max(budget, b.Silence)
		}
		if try >= b.Tries || !pe.temporary() || idle+wait > budget {
			return pe
		}
		log.Info("model call failed, trying again", "provider", pe.Provider, "kind", string(pe.Kind), "try", try, "wait", wait)
		if shown {
			onDelta(Delta{Type: DeltaVoid, Text: pe.Message})
		}
		onDelta(Delta{Type: DeltaWait, Text: fmt.Sprintf("waiting %v before try %d of %d: %v", wait.Round(100*time.Millisecond), try+1, b.Tries, pe)})
		if err := b.Sleep(ctx, wait); err != nil {
			return err
		}
		idle += wait // so that an injected Sleep counts too
		onDelta(Delta{Type: DeltaWait})
	}
}

// Stream makes requests by try as Do does, and returns the response of the one that succeeds. If one is refused before it has
// shown anything, learn may find in the error what the next one is to leave out, which is then made at once.
func (b Backoff) Stream(ctx context.Context, req Request, log *slog.Logger, onDelta func(Delta), try func(show func(Delta)) (Response, error), learn func(error) bool) (Response, error) {
	b.replaceable = req.Replaceable
	var resp Response
	err := b.Do(ctx, log, onDelta, func(show func(Delta)) (err error) {
		for {
			began := false
			resp, err = try(func(d Delta) { began = true; show(d) })
			if err == nil || began || !learn(err) {
				return err
			}
		}
	})
	return resp, err
}

// temporary reports whether a retry may succeed.
func (e *Error) temporary() bool {
	return !e.Lasting && (e.Kind == ErrOverloaded || e.Kind == ErrBroken || e.Kind == ErrUnreachable)
}

// SilenceReport is how long a request may receive nothing before that is reported to the user.
const SilenceReport = 20 * time.Second

// watch passes on the deltas of one attempt and reports when none come.
type watch struct {
	onDelta func(Delta)
	begun   time.Time
	limit   time.Duration // silence after which the attempt is ended
	timer   *time.Timer

	mu sync.Mutex
	// guarded by mu:
	first, last time.Time // of the deltas; zero: none yet
	reported    bool      // silence was reported, and its end was not yet
	over        bool
}

// arm begins to watch: after SilenceReport without a delta it sends a DeltaWait.
func (w *watch) arm() {
	w.timer = time.AfterFunc(SilenceReport, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.over {
			w.reported = true
			w.onDelta(Delta{Type: DeltaWait, Text: fmt.Sprintf("nothing has come from the model for %v; the request is given up after %v", SilenceReport, w.limit)})
		}
	})
}

// show passes d on, after an empty DeltaWait if silence was reported before.
func (w *watch) show(d Delta) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
	if w.first.IsZero() {
		w.first = w.last
	}
	if w.reported {
		w.reported = false
		w.onDelta(Delta{Type: DeltaWait})
	}
	w.timer.Reset(SilenceReport)
	w.onDelta(d)
}

// stop ends the reports. It returns whether the attempt has shown any delta, and how long it received nothing.
func (w *watch) stop() (shown bool, silent time.Duration) {
	w.timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.reported {
		w.onDelta(Delta{Type: DeltaWait})
	}
	return !w.first.IsZero(), time.Since(w.begun) - w.last.Sub(w.first)
}

// Sleep waits for d. If ctx ends first it returns context.Cause(ctx).
func Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
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

// ErrStalled is the cause of a stream that was ended because nothing came for too long.
var ErrStalled = errors.New("provider: nothing came for too long")

// Watchdog returns a child of ctx that ends with ErrStalled if nothing is read for limit through the readers that feed returns.
// Call stop when the stream is done.
func Watchdog(ctx context.Context, limit time.Duration) (watched context.Context, feed func(io.ReadCloser) io.ReadCloser, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(ErrStalled) })
	feed = func(r io.ReadCloser) io.ReadCloser { return &fed{r, func() { timer.Reset(limit) }} }
	return watched, feed, func() { timer.Stop(); cancel(context.Canceled) }
}

// fed is a reader that resets the watchdog with each read that returns bytes.
type fed struct {
	io.ReadCloser
	alive func()
}

func (f *fed) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if n > 0 {
		f.alive()
	}
	return n, err
}

// Default limits of silence. A local server may process a long prompt for minutes before it sends anything.
const (
	SilenceLimit      = 2 * time.Minute
	LocalSilenceLimit = 10 * time.Minute
)

// Silence returns how long a request may receive nothing before it is given up.
func (f Fault) Silence() time.Duration {
	switch {
	case f.Config.Silence > 0:
		return f.Config.Silence
	case isLocal(f.BaseURL):
		return LocalSilenceLimit
	}
	return SilenceLimit
}

// isLocal reports whether a server is on this computer or in a private network.
func isLocal(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".localhost")
}
