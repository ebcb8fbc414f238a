// Package operator speaks the two dialects of port 60100: S3, requests answered by typed events, and S4, requests answered
// by results, one JSON object a line over TCP or one a message over WebSocket. Which dialect a line is in is told from the
// line, so both may be used on one connection. Agents, sessions and the policy are the daemon's; a request becomes a turn
// of a gateway.Session, and that turn's native events are translated back by pure functions (turn.go, s3.go, s4.go).
package operator
