package tui

import (
	"strings"
	"testing"

	"sublet/client/internal/lender"
	"sublet/wire"
)

// Pieces of one output that wait are one message, and bounded. What else comes is not merged away.
func TestInboxMerges(t *testing.T) {
	b := newInbox()
	for _, msg := range []any{
		output("x", "ab"), output("x", "cd"), output("y", "e"),
		jobOutput{[]byte("a")},
		jobOutput{[]byte("b")},
		&wire.AgentComplete{}, &wire.AgentComplete{}, output("y", "f"),
	} {
		b.push(msg)
	}
	if n := len(b.queue); n != 6 {
		t.Fatalf("got %d messages, want 6: %v", n, b.queue)
	}
	if o := b.queue[0].(lender.LeasedOutput); string(o.Data) != "abcd" {
		t.Errorf("got %q, want abcd", o.Data)
	}
	for range 10_000 {
		b.push(output("z", strings.Repeat("x", 1024)))
	}
	if o := b.queue[6].(lender.LeasedOutput); len(o.Data) > maxMerged {
		t.Errorf("%d bytes wait", len(o.Data))
	}
}
