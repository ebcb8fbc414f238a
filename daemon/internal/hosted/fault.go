package hosted

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"
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
	switch bound := h.in.meter.Fault(); {
	case cause != nil:
		f.Why = cause.Error()
		return f
	case bound != nil:
		f.Why = bound.Error()
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
	if first := h.in.notProtocol(); first != "" {
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
