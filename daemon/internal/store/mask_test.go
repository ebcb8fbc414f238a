package store

import (
	"strings"
	"testing"

	"sublet/wire"
)

// What is stored of a question holds no secret; what is shown is what would run.
func TestForStore(t *testing.T) {
	secret := wire.OSString("curl -H 'Authorization: Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyz'")
	q := &wire.ConfirmationRequest{Command: secret}
	Mask(q)
	kept := forStore(q).(*wire.ConfirmationRequest)
	if q.Command != secret || strings.Contains(string(kept.Command), "ghp_0123") {
		t.Errorf("shown %q, kept %q", q.Command, kept.Command)
	}
}
