package hosted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/daemon/internal/child"
	"sublet/daemon/internal/mask"
	"sublet/wire/visible"
)

// A FaultError reports an agent that was given up, or that failed.
type FaultError struct {
	Agent string
	Why   string
	Todo  string // what to do; "" = nothing to say
}

func (e *FaultError) Error() string { return fmt.Sprintf("%s: %s", e.Agent, e.Why) }

// Hint returns what to do next.
func (e *FaultError) Hint() string { return e.Todo }

// fault returns err as an error for people. The cause that it names is the first of these that applies: the reason of giveUp, the bound
// that was exceeded, the end of ctx, the exit of the process if lost (the connection ended by itself), the agent's own error.
func (h *host) fault(ctx context.Context, name string, err error, lost bool) error {
	if f, ok := errors.AsType[*FaultError](err); ok {
		return f
	}
	h.mu.Lock()
	cause := h.cause
	h.mu.Unlock()
	f := &FaultError{Agent: name, Why: shown(message(err), 500)}
	bad, first, flood := h.bad.seen()
	switch bound := h.in.meter.Fault(); {
	case cause != nil:
		f.Why = cause.Error()
		return f
	case bound != nil || flood:
		f.Why = cmp.Or(bound, child.ErrFlood).Error()
		return f
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.Why = fmt.Sprintf("it did not answer within %v", h.agents.o.Start)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case lost && h.proc.EndReason() != "":
		f.Why = h.proc.EndReason()
	}
	if !lost {
		return f
	}
	f.Why += h.proc.LastWords()
	if bad > 0 {
		f.Why += "; what it sent is not the protocol: " + first
		f.Todo = "is `command` below [agents." + name + "] the program that speaks the Agent Client Protocol?"
	}
	return f
}

// lost reports whether the connection has ended. The SDK then fails requests with an error like those that an agent answers with.
func (h *host) lost() bool {
	select {
	case <-h.conn.Done():
		return true
	default:
		return false
	}
}

// message returns the text of an agent's error.
func message(err error) string {
	refused, ok := errors.AsType[*sdk.RequestError](err)
	if !ok {
		return err.Error()
	}
	if data, ok := refused.Data.(map[string]any); ok {
		for _, key := range []string{"details", "error", "message"} {
			if text, ok := data[key].(string); ok && text != "" {
				return refused.Message + ": " + text
			}
		}
	}
	return refused.Message
}

// badLines is the SDK's log handler. It counts the lines of an agent that are not the protocol.
type badLines struct {
	undecodedUpdate func() // called for an update that the SDK cannot decode

	mu sync.Mutex
	// below: guarded by mu
	count int
	first string
	flood bool // updates came faster than they were handled
}

// Enabled implements slog.Handler. The SDK logs as an error what it cannot decode or queue.
func (b *badLines) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

// Handle implements slog.Handler. The prefixes are those of the messages that the SDK logs.
func (b *badLines) Handle(_ context.Context, rec slog.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	undecoded := strings.HasPrefix(rec.Message, "failed to handle notification")
	b.flood = b.flood || strings.HasPrefix(rec.Message, "failed to queue notification")
	rec.Attrs(func(at slog.Attr) bool {
		if undecoded && at.Key == "method" && at.Value.String() == sdk.ClientMethodSessionUpdate {
			b.undecodedUpdate()
		}
		if at.Key == "raw" {
			if b.count++; b.count == 1 {
				b.first = visible.Exact(shown(mask.String(at.Value.String()), 100))
			}
		}
		return true
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (b *badLines) WithAttrs([]slog.Attr) slog.Handler { return b }

// WithGroup implements slog.Handler.
func (b *badLines) WithGroup(string) slog.Handler { return b }

func (b *badLines) seen() (count int, first string, flood bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count, b.first, b.flood
}
