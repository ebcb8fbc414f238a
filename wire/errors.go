package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sublet/wire/visible"
)

// Errors of a Conn.
var (
	ErrClosed = errors.New("wire: connection closed")
	// ErrSlow means that the peer was cut off: it read nothing for Options.SlowAfter, or too many bytes waited for it.
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

// An UnknownKindError reports a message of a kind that this build does not know. The frame boundary is intact: answer
// with Error{unknown_kind} and go on.
type UnknownKindError struct {
	Kind      string
	RequestID RequestID // of the body, where it has one
}

func (e *UnknownKindError) Error() string { return "unknown kind " + quote(e.Kind) }

// Is makes errors.Is(err, ErrUnknownKind) hold.
func (e *UnknownKindError) Is(target error) bool { return target == ErrUnknownKind }

// An InvalidError reports a payload that is not a message. The frame boundary is intact: answer with
// Error{invalid_message} and go on.
type InvalidError struct {
	Kind      string    // "" where it could not be read
	RequestID RequestID // of the body, where it has one
	Field     string    // such as "chunk.block.annotations[3].line"; "" for the payload as a whole
	Reason    string
}

func (e *InvalidError) Error() string {
	var b strings.Builder
	if e.Kind == "" {
		b.WriteString("payload")
	} else {
		b.WriteString(e.Kind)
	}
	if e.Field != "" {
		b.WriteString(" field ")
		b.WriteString(e.Field)
	}
	b.WriteString(": ")
	b.WriteString(e.Reason)
	return b.String()
}

// Is makes errors.Is(err, ErrInvalidMessage) hold.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalidMessage }

// A TooLargeError reports a payload longer than the limit: one that was therefore not sent, or one that the peer
// announced, after which the connection ends.
type TooLargeError struct{ Size, Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("payload of %d bytes is over the limit of %d", e.Size, e.Limit)
}

// Is makes errors.Is(err, ErrTooLarge) hold.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// Recoverable reports whether an error of Receive concerns one message only: the caller answers with Reply(err) and
// receives the next.
func Recoverable(err error) bool {
	var unknown *UnknownKindError
	var invalid *InvalidError
	return errors.As(err, &unknown) || errors.As(err, &invalid)
}

// Reply returns the Error message that answers an error of Receive or Send; nil for one that has no answer, such as a
// lost connection.
func Reply(err error) *Error {
	var unknown *UnknownKindError
	var invalid *InvalidError
	var large *TooLargeError
	switch {
	case errors.As(err, &unknown):
		return &Error{
			Event: Event{RequestID: unknown.RequestID}, Code: CodeUnknownKind, Message: unknown.Error(),
			Hint: "the other side speaks a newer protocol, or a wrong name", Details: map[string]string{"kind": clip(unknown.Kind)}, Recoverable: true,
		}
	case errors.As(err, &invalid):
		return &Error{
			Event: Event{RequestID: invalid.RequestID}, Code: CodeInvalidMessage, Message: invalid.Error(),
			Details: map[string]string{"kind": clip(invalid.Kind), "field": clip(invalid.Field)}, Recoverable: true,
		}
	case errors.As(err, &large):
		return &Error{
			Code: CodeTooLarge, Message: large.Error(), Hint: "send less at once, in pages or as a file's path",
			Details: map[string]string{"size": strconv.FormatInt(large.Size, 10), "limit": strconv.FormatInt(large.Limit, 10)},
		}
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
