package gatewaytest

import (
	"encoding/json"
	"testing"
)

// The documents' own examples are of their types, and what differs by one field is not.
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		document, name, value string
		ok                    bool
	}{
		{"S3", "ResponseEvent", `{"type":"turn-started","turnID":"turn-123","agentID":"architect","sessionID":"sess-123","timestamp":1234567890}`, true},
		{"S3", "ResponseEvent", `{"type":"turn-started","turnID":"turn-123","agentID":"architect","sessionID":"sess-123","timestamp":"1"}`, false},
		{"S3", "TurnCompletedEvent", `{"type":"turn-completed","turnID":"t","content":"","toolCalls":[{"name":"bash","input":{},"output":"..."}],
			"usage":{"inputTokens":5,"outputTokens":8,"totalTokens":13},"stopReason":"end_turn","timestamp":1}`, true},
		{"S5", "AgentResponse", `{"type":"ready","version":"1.0.0","capabilities":["streaming","tools","attachments"],"timestamp":1234567890000}`, true},
		{"S5", "AgentResponse", `{"type":"done","timestamp":1}`, false},
		{"S2", "Failure", `{"jsonrpc":"2.0","id":true,"error":{"code":-32700,"message":"Parse error"}}`, false},
		{"S2", "Nothing", `{}`, false},
	} {
		var v any
		if err := json.Unmarshal([]byte(c.value), &v); err != nil {
			t.Fatal(err)
		}
		if err := Document(c.document).Check(c.name, v); (err == nil) != c.ok {
			t.Errorf("%s %s of %s: got %v", c.document, c.value, c.name, err)
		}
	}
}
