package launch

import (
	"errors"
	"fmt"

	"sublet/wire"
	"sublet/wire/socket"
)

// A StartError reports a daemon that was started but does not serve. A daemon answers why: Err is a *wire.Error then. One that
// crashed has written the reason into its log.
type StartError struct {
	Err     error
	LogPath string
}

func (e *StartError) Error() string {
	if answer := failedStart(e.Err); answer != nil {
		return "the daemon did not start: " + answer.Message
	}
	return fmt.Sprintf("the daemon did not start: %v", e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// Hint returns the daemon's hint, else where to look.
func (e *StartError) Hint() string {
	if answer := failedStart(e.Err); answer != nil && answer.Hint != "" {
		return answer.Hint
	}
	return "its log is " + e.LogPath + "; `sublet doctor` checks what it needs, `sublet daemon run` starts it in the foreground"
}

// A WedgedError reports a daemon that runs but does not answer. The client does not kill it: the pid may be another process's
// by now, and the daemon may be writing.
type WedgedError struct {
	Paths socket.Paths
	Err   error
}

func (e *WedgedError) Error() string { return "the daemon does not answer: " + e.Err.Error() }
func (e *WedgedError) Unwrap() error { return e.Err }

// Hint returns how to end it.
func (e *WedgedError) Hint() string {
	hint := "`sublet daemon logs` shows what it did last"
	if pid, ok := socket.Holder(e.Paths.Lock); ok {
		hint += fmt.Sprintf("; `kill %d` ends it, `kill -9 %d` if it must be; nothing that was shown is lost. Then start again", pid, pid)
	}
	return hint
}

// failedStart returns the Error by which a daemon reports that it cannot start; nil for another error.
func failedStart(err error) *wire.Error {
	if e, ok := errors.AsType[*wire.Error](err); ok && e.Code == wire.CodeInternal && !e.Recoverable {
		return e
	}
	return nil
}
