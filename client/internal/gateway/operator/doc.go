// Package operator implements the two dialects of port 60100: S3, requests answered by typed events, and S4, requests answered
// by results, one JSON object a line over TCP or one a message over WebSocket. Each line shows its dialect, so both may be used
// on one connection. Agents, sessions and policy are the daemon's; a request becomes a turn of a gateway.Session, and pure
// functions translate that turn's native events (fold.go, s3.go, s4.go). "The documents" are the two dialects' specifications; marks
// such as F8 and L16 are their statements, listed in docs/conformance.md.
package operator
