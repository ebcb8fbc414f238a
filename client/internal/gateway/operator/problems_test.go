package operator

import (
	"encoding/json"
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
	for _, recoverable := range []bool{true, false} {
		e := s3Refusal("1", "", &problem{s3: "X", message: "y", hint: "do so", recoverable: recoverable, details: map[string]any{"a": 1}}, 1).body
		if details := e["details"].(body); e["recoverable"] != recoverable || details["hint"] != "do so" || details["a"] != 1 {
			t.Errorf("got %+v", e)
		}
	}
	for _, err := range []error{gateway.ErrAway, errors.New("x")} {
		if p := problemFor(err); p.s3 != "INTERNAL_ERROR" || !p.recoverable || errors.Is(err, gateway.ErrAway) && p.hint == "" {
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

// G4: what a tool's result says is what the daemon told.
func TestToolResult(t *testing.T) {
	of := wire.Event{SessionID: "s", TurnID: "t", RequestID: "r"}
	s := &s3Turn{id: "1", agent: "architect"}
	s.translate(&wire.TurnStarted{Event: of, Agent: "orchestrator"})
	s.translate(&wire.AgentStreamChunk{Event: of, Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: "e", Tool: "bash", Arguments: "{}"}})
	for status, failed := range map[string]string{wire.StatusSuccess: "", wire.StatusError: "Tool 'bash' failed: made"} {
		out := s.translate(&wire.CommandResult{Event: of, ExecutionID: "e", Tool: "bash", Status: status, Output: []byte("made\nmore"), DurationMS: 125})
		if m := decodeTyped(t, out[0]); m["duration"] != 125.0 || m.str("output") != "made\nmore" || m.str("error") != failed || m.str("toolID") != "e" {
			t.Errorf("%s: got %v", status, m)
		}
	}
}

// decodeTyped is decode without a look at the time.
func decodeTyped(t *testing.T, raw []byte) (m msg) {
	t.Helper()
	if err := errors.Join(json.Unmarshal(raw, &m), typed(m)); err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	return m
}
