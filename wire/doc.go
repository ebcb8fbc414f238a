// Package wire is the native protocol between sublet's client and daemon: every message, kind, error code and limit,
// their encoding, and Conn, which sends and receives them. PROTOCOL.md beside it specifies the same for clients in other
// languages.
//
// A frame is a 4-byte big-endian length and a msgpack payload; a payload is the array [kind, body]. Every field of a
// body is always written. Sockets are in wire/socket; the package has no state beyond a Conn, and no policy.
package wire

// Version is the newest protocol this build speaks; MinVersion the oldest.
//
//	1  2026-11-20  first
const (
	Version    = 1
	MinVersion = 1
)

// Negotiate returns the newest version that both this build and a peer that speaks low to high support; ok is false if
// there is none.
func Negotiate(low, high int) (version int, ok bool) {
	return negotiate(low, high, MinVersion, Version)
}

func negotiate(low, high, ownLow, ownHigh int) (version int, ok bool) {
	version = min(high, ownHigh)
	return version, low <= version && ownLow <= version
}

// Message is the body of a message: a pointer to one of the structs of this package that have a row in the table of kinds.
type Message interface{ isMessage() }

// EventMessage is a message that belongs to a session's numbered, stored history.
type EventMessage interface {
	Message
	// Meta returns the ids of the event for reading and, by the daemon's hub alone, for writing.
	Meta() *Event
}

// Event is what every stored event carries. The hub fills it in; agents leave it empty.
type Event struct {
	SessionID SessionID `msgpack:"session_id"`
	TurnID    TurnID    `msgpack:"turn_id"`    // empty for events outside a turn: user commands, compactions
	RequestID RequestID `msgpack:"request_id"` // of the request that began the turn, also when sent to other connections
	Seq       int64     `msgpack:"seq"`        // grows by one per session, from 1; the event's number in the store
	AtMS      int64     `msgpack:"at_ms"`
}

// Meta implements EventMessage for every struct that embeds Event.
func (e *Event) Meta() *Event { return e }

func (*Event) isMessage() {}
