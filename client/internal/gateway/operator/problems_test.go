package operator

import (
	"errors"
	"testing"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// L13 to L25, L27, L32: every error of the daemon in both dialects. recoverable is the daemon's word: whether the same
// request may succeed later.
func TestErrorCodes(t *testing.T) {
	for _, c := range []struct {
		code, kind, s3, s4 string
	}{
		{wire.CodeInvalidMessage, "", "INVALID_REQUEST", "INVALID_REQUEST"},
		{wire.CodeDuplicateID, "", "INVALID_REQUEST", "INVALID_REQUEST"},
		{wire.CodeNotFoundAgent, "", "AGENT_NOT_FOUND", "AGENT_NOT_FOUND"},
		{wire.CodeNotFoundSession, "", "SESSION_NOT_FOUND", "SESSION_NOT_FOUND"},
		{wire.CodeToolNotAvailable, "", "TOOL_ERROR", "TOOL_NOT_AVAILABLE"},
		{wire.CodeToolFailed, "", "TOOL_ERROR", "TOOL_EXECUTION_FAILED"},
		{wire.CodePermissionDenied, "", "TOOL_ERROR", "TOOL_EXECUTION_FAILED"},
		{wire.CodeProvider, "", "PROVIDER_ERROR", "PROVIDER_ERROR"},
		{wire.CodeProvider, "overloaded", "RATE_LIMIT", "RATE_LIMIT_EXCEEDED"},
		{wire.CodeTokenLimit, "", "TOKEN_LIMIT", "CONTEXT_TOO_LARGE"},
		{wire.CodeTooLarge, "", "INVALID_REQUEST", "CONTEXT_TOO_LARGE"},
		{wire.CodeRateLimited, "", "RATE_LIMIT", "RATE_LIMIT_EXCEEDED"},
		{wire.CodeTimeout, "", "TIMEOUT", "TIMEOUT"},
		{wire.CodeInternal, "", "INTERNAL_ERROR", "INTERNAL_ERROR"},
		{wire.CodeShuttingDown, "", "INTERNAL_ERROR", "INTERNAL_ERROR"},
		{"of_tomorrow", "", "INTERNAL_ERROR", "INTERNAL_ERROR"},
	} {
		for _, recoverable := range []bool{true, false} {
			p := problemOf(&wire.Error{Code: c.code, Message: "x", Details: map[string]string{"kind": c.kind}, Recoverable: recoverable})
			if p.s3 != c.s3 || p.s4 != c.s4 || p.recoverable != recoverable {
				t.Errorf("%s %s: got %s, %s, recoverable %v; want %s, %s, %v", c.code, c.kind, p.s3, p.s4, p.recoverable, c.s3, c.s4, recoverable)
			}
		}
	}
	for _, err := range []error{gateway.ErrAway, errors.New("x")} {
		if p := away(err); p.s3 != "INTERNAL_ERROR" || !p.recoverable || errors.Is(err, gateway.ErrAway) && p.hint == "" {
			t.Errorf("%v: got %+v", err, p)
		}
	}
}

// M1, M2, M3: the four stop reasons that the documents know, whatever a turn's own are.
func TestStopReasons(t *testing.T) {
	for _, c := range []struct{ status, stop, want string }{
		{"", "", ""},
		{wire.StatusSuccess, "end_turn", "end_turn"},
		{wire.StatusSuccess, "max_tokens", "max_tokens"},
		{wire.StatusSuccess, "tool_use", "tool_use"},
		{wire.StatusSuccess, "", "end_turn"},
		{wire.StatusSuccess, "refusal", "error"},
		{wire.StatusError, "end_turn", "error"},
		{wire.StatusCancelled, "", "error"},
		{wire.StatusTimeout, "", "error"},
	} {
		if got := (&turn{status: c.status, stop: c.stop}).stopReason(); got != c.want {
			t.Errorf("%q %q: got %q, want %q", c.status, c.stop, got, c.want)
		}
	}
}
