package wire_test

import (
	"testing"

	"sublet/wire"
)

// An agent that works for another one has a number behind its last dash, whatever dashes its role has.
func TestIsDelegate(t *testing.T) {
	for name, want := range map[string]bool{
		"engineer-1": true, "gemini-cli-12": true, "code-reviewer-1": true,
		"": false, "7": false, "orchestrator": false, "gemini-cli": false, "engineer-": false,
	} {
		if got := wire.IsDelegate(name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}
