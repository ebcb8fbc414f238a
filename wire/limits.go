package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

const (
	// MaxFrame is the longest payload in bytes: the longest line of a gateway (10 MiB) fits with its envelope.
	MaxFrame = 16 << 20
	// MaxHandshakeFrame is the longest payload before Ready, which is little more than an environment.
	MaxHandshakeFrame = 4 << 20
	// MaxDepth is how deep arrays and maps may nest in a payload.
	MaxDepth = 32
	// MaxElements is how many values a payload may hold.
	MaxElements = 1 << 20
	// MaxEntries is how many entries one map may have; it is lower because inserting a key costs more than reading a value.
	MaxEntries = 1 << 16

	HeartbeatEvery = 15 * time.Second
	DeadAfter      = 60 * time.Second       // without a message of the peer, while heartbeats are sent
	LeaseGrace     = 60 * time.Second       // how long a fence stays valid after the link was lost during a command
	ShellUseBound  = 200 * time.Millisecond // how long the daemon waits for a ShellUseReply
)

// Fingerprint identifies what an approval covers: lower-case hex SHA-256 of command NUL cwd NUL state digest.
func Fingerprint(command, cwd OSString, stateDigest string) string {
	h := sha256.New()
	h.Write([]byte(command))
	h.Write([]byte{0})
	h.Write([]byte(cwd))
	h.Write([]byte{0})
	h.Write([]byte(stateDigest))
	return hex.EncodeToString(h.Sum(nil))
}
