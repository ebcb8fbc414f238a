package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sublet/client"
	"sublet/wire"
)

// Exit statuses. The root command's help lists them.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitDenied    = 3
	exitNoDaemon  = 4
	exitTimeout   = 5
	exitCancelled = 130

	// lease run passes on the command's own status, and has two of its own, as timeout(1) and env(1) do.
	exitLeaseTimeout = 124
	exitLeaseFailed  = 125
)

// exitCode is an error that ends the program with a status and no message, because the command has printed one.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// coded is an error with an exit status of its own.
type coded struct {
	error
	code int
}

func (e coded) Unwrap() error { return e.error }

// usageError is a command that was called wrongly.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// hinted is an error with a hint.
type hinted struct{ message, hint string }

func (e hinted) Error() string { return e.message }
func (e hinted) Hint() string  { return e.hint }

var errInterrupted = errors.New("interrupted")

// report prints an error in one line, its hint in another, and returns the exit status.
func (a *app) report(err error) int {
	var quiet exitCode
	if errors.As(err, &quiet) {
		return int(quiet)
	}
	var usage *usageError
	hint := hintOf(err)
	if hint == "" && errors.As(err, &usage) {
		hint = usageHint(a.called)
	}
	a.printNotice("error", err.Error(), hint)
	return statusOf(err)
}

// printNotice prints a line on standard error that begins with its kind, such as "error", and a hint below it; "" = none.
func (a *app) printNotice(kind, text, hint string) {
	fmt.Fprintf(a.stderr, "sublet: %s: %s\n", oneLine(kind), oneLine(text))
	if hint != "" {
		fmt.Fprintf(a.stderr, "sublet: hint: %s\n", oneLine(hint))
	}
}

func hintOf(err error) string {
	hint := wire.HintOf(err)
	if hint == "" && errors.Is(err, client.ErrNoDaemon) {
		return "`sublet daemon start` starts one; so does `sublet`"
	}
	return hint
}

func statusOf(err error) int {
	var own coded
	var usage *usageError
	var start *client.StartError
	var wedged *client.WedgedError
	switch {
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled), errors.Is(err, wire.ErrCancelled):
		return exitCancelled
	case errors.Is(err, client.ErrNoDaemon), errors.Is(err, client.ErrDisconnected),
		errors.As(err, &start), errors.As(err, &wedged), errors.Is(err, wire.ErrVersion):
		return exitNoDaemon
	case errors.Is(err, wire.ErrPermissionDenied), errors.Is(err, wire.ErrLeaseDenied):
		return exitDenied
	case errors.Is(err, wire.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	}
	return exitFailed
}

// statusOfTurn returns the exit status for a turn that ended; nil = 0. A turn in which something was refused has exitDenied, also if it
// succeeded, because a script cannot be asked.
func statusOfTurn(end *wire.AgentComplete) error {
	switch end.Status {
	case wire.StatusSuccess:
		if len(end.Refused) > 0 {
			return exitCode(exitDenied)
		}
		return nil
	case wire.StatusCancelled:
		return exitCode(exitCancelled)
	case wire.StatusTimeout:
		return exitCode(exitTimeout)
	case wire.StatusDenied:
		return exitCode(exitDenied)
	default:
		return exitCode(exitFailed)
	}
}

// oneLine returns untrusted text as one line, safe to display on a terminal.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(plain(s), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
