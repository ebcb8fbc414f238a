package wire

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sublet/wire/visible"
)

// Errors of a Conn.
var (
	ErrClosed = errors.New("wire: connection closed")
	// ErrSlow means that the peer was cut off: it read nothing for 30 s, or 64 MiB waited for it.
	ErrSlow = errors.New("wire: the peer stopped reading and was cut off")
)

// Sentinels for error codes: errors.Is(err, ErrLeaseStale) holds for every *Error whose Code is lease_stale, on
// both ends of a connection.
var (
	ErrInvalidMessage   error = codeError(CodeInvalidMessage)
	ErrUnknownKind      error = codeError(CodeUnknownKind)
	ErrVersion          error = codeError(CodeVersion)
	ErrTooLarge         error = codeError(CodeTooLarge)
	ErrTooManyQueries   error = codeError(CodeTooManyQueries)
	ErrDuplicateID      error = codeError(CodeDuplicateID)
	ErrNotFoundSession  error = codeError(CodeNotFoundSession)
	ErrPermissionDenied error = codeError(CodePermissionDenied)
	ErrCancelled        error = codeError(CodeCancelled)
	ErrTimeout          error = codeError(CodeTimeout)
	ErrLeaseStale       error = codeError(CodeLeaseStale)
	ErrLeaseDenied      error = codeError(CodeLeaseDenied)
	ErrShuttingDown     error = codeError(CodeShuttingDown)
)

// codeError is an error code as a target of errors.Is.
type codeError string

func (c codeError) Error() string { return strings.ReplaceAll(string(c), "_", " ") }

// Codes returns every error code, in the order of PROTOCOL.md. The slice is the caller's.
func Codes() []string {
	return []string{
		CodeInvalidMessage, CodeUnknownKind, CodeVersion, CodeTooLarge, CodeRateLimited, CodeTooManyQueries, CodeDuplicateID,
		CodeNotFoundSession, CodeNotFoundAgent, CodeToolNotAvailable, CodeToolFailed, CodeProvider, CodeModel, CodeTokenLimit,
		CodePermissionDenied, CodeCancelled, CodeTimeout, CodeLeaseStale, CodeLeaseDenied, CodeShuttingDown, CodeInternal,
	}
}

// Error returns the message, or the code in words if there is none.
func (e *Error) Error() string {
	if e.Message != "" {
		return e.Message
	}
	return codeError(e.Code).Error()
}

// Is makes errors.Is compare an Error with ErrLeaseStale and the other sentinels by code.
func (e *Error) Is(target error) bool {
	code, ok := target.(codeError)
	return ok && string(code) == e.Code
}

// unknownKind is the error of Receive for a message of a kind that this build does not know.
func unknownKind(kind string, id RequestID) *Error {
	return &Error{
		Event: Event{RequestID: id}, Code: CodeUnknownKind, Message: "unknown kind " + quote(kind),
		Hint: "the other side speaks a newer protocol, or a wrong name", Details: map[string]string{"kind": clip(kind)}, Recoverable: true,
	}
}

// invalid returns the error of Receive for a payload that is not a message. kind, id and field, such as
// "chunk.block.annotations[3].line", are "" where they could not be read.
func invalid(kind string, id RequestID, field, reason string) *Error {
	where := cmp.Or(kind, "payload")
	if field != "" {
		where += " field " + field
	}
	return &Error{
		Event: Event{RequestID: id}, Code: CodeInvalidMessage, Message: where + ": " + reason,
		Details: map[string]string{"kind": clip(kind), "field": clip(field)}, Recoverable: true,
	}
}

// tooLarge is the error for a payload over the limit: one that was therefore not sent, or one that the peer announced, after
// which the connection ends.
func tooLarge(size, limit int64) *Error {
	return &Error{
		Code: CodeTooLarge, Message: fmt.Sprintf("payload of %d bytes is over the limit of %d", size, limit),
		Hint:    "send less at once, in pages or as a file's path",
		Details: map[string]string{"size": strconv.FormatInt(size, 10), "limit": strconv.FormatInt(limit, 10)},
	}
}

// Recoverable returns the answer to an error of Receive that concerns one message only, after which the caller receives the
// next; nil for any other error.
func Recoverable(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok && e.Recoverable {
		return e
	}
	return nil
}

// HintOf returns what to do about an error: that of an *Error, or of one with a method Hint; "" if it has none.
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return h.Hint()
	}
	return ""
}

// Explain returns an error with its hint.
func Explain(err error) string {
	if hint := HintOf(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}

// quote quotes text of the peer: clipped, and with control characters escaped.
func quote(s string) string { return strconv.QuoteToASCII(clip(s)) }

// clip bounds text of the peer that goes into an answer to 64 bytes.
func clip(s string) string { return visible.Clip(s, 64) }
