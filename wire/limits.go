package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

const (
	// MaxFrame is the longest payload in bytes: the longest foreign line (10 MiB) fits with room for its envelope.
	MaxFrame = 16 << 20
	// MaxHandshakeFrame is the longest payload before Ready: an environment, not a conversation.
	MaxHandshakeFrame = 4 << 20
	// MaxDepth is how deep arrays and maps may nest in a payload.
	MaxDepth = 32
	// MaxElements is how many values a payload may hold.
	MaxElements = 1 << 20
	// MaxEntries is how many entries one map may have: to find a key among them costs more than to read a value.
	MaxEntries = 1 << 16

	HeartbeatEvery = 15 * time.Second
	DeadAfter      = 60 * time.Second       // of silence while heartbeats flow
	LeaseGrace     = 60 * time.Second       // how long a fence is good after the link dropped in mid-command
	ShellUseBound  = 200 * time.Millisecond // how long the daemon waits for a ShellUseReply
)

// Fingerprint binds an approval to what was approved: lower-case hex SHA-256 of command NUL cwd NUL state digest.
func Fingerprint(command, cwd OSString, stateDigest string) string {
	h := sha256.New()
	h.Write([]byte(command))
	h.Write([]byte{0})
	h.Write([]byte(cwd))
	h.Write([]byte{0})
	h.Write([]byte(stateDigest))
	return hex.EncodeToString(h.Sum(nil))
}
