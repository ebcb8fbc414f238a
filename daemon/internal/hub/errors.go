package hub

import (
	"context"
	"errors"
	"fmt"

	"sublet/daemon/internal/eventlog"
	"sublet/daemon/internal/lend"
	"sublet/wire"
)

// Why a request is refused. The server turns them into codes.
var (
	ErrDuplicateID   = errors.New("a request with this id was made before on this connection")
	ErrNoSession     = eventlog.ErrNoSession
	ErrSessionExists = errors.New("there is such a session already") // of the id that a client chose for a new one
	ErrSessionBusy   = errors.New("a turn runs in this session")
	ErrNoAgent       = errors.New("there is no such agent")
	ErrNoTool        = errors.New("there is no such tool")
	ErrNoRule        = errors.New("there is no such rule")
	ErrNotYours      = errors.New("this client may not do that")
)

// An InvalidError is a request whose fields make no sense.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }

func invalid(format string, args ...any) error {
	return &InvalidError{Reason: fmt.Sprintf(format, args...)}
}

// A LimitError is a limit of the connection, or of the session, that a request would pass.
type LimitError struct {
	Limit   int
	Session bool
}

func (e *LimitError) Error() string {
	if e.Session {
		return fmt.Sprintf("%d requests run or wait in this session already", e.Limit)
	}
	return fmt.Sprintf("%d requests of this connection run or wait already", e.Limit)
}

// Hint describes what to do.
func (e *LimitError) Hint() string {
	if e.Session {
		return "wait for one to end, or begin a new session"
	}
	return "wait for one to end, or cancel one; `[limits] running_turns` sets how many there may be"
}

// A BusyDaemonError refuses a stop that was asked for only if nothing runs.
type BusyDaemonError struct{ Turns int }

func (e *BusyDaemonError) Error() string { return fmt.Sprintf("%d turns run", e.Turns) }

// errStopped is the error of work that the daemon ends when it stops. It is not a cancellation by a person, but code that only asks
// whether work was cancelled sees context.Canceled.
var errStopped = fmt.Errorf("%w: %w", lend.ErrShuttingDown, context.Canceled)

// stopped is the cause with which a turn's context ends.
type stopped struct {
	status string // wire.StatusCancelled, wire.StatusTimeout, wire.StatusError
	why    string
	err    error // context.Canceled or context.DeadlineExceeded, so that errors.Is finds it everywhere
}

func (s *stopped) Error() string { return s.why }
func (s *stopped) Unwrap() error { return s.err }

func cancelledBy(who, reason string) *stopped {
	why := "cancelled"
	if who != "" {
		why += " by " + who
	}
	if reason != "" {
		why += ": " + reason
	}
	return &stopped{wire.StatusCancelled, why, context.Canceled}
}
