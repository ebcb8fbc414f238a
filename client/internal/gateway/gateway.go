// Package gateway is what the gateways, which serve foreign protocols, have in common: a session of the daemon that outlives its
// connection, lines of JSON in and out with their limits, and files that a request names. The dialects' messages are left to
// the packages below this one; none of them holds agents, or state that the daemon should hold.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"sublet/client/internal/remote"
	"sublet/wire"
)

// linkBound is how long a request waits for the daemon to come back.
const linkBound = 20 * time.Second

// ErrClosed reports that the session's Close was called.
var ErrClosed = remote.ErrClosed

// ErrAway reports that the daemon did not come back within linkBound.
var ErrAway error = awayError{}

type awayError struct{}

func (awayError) Error() string {
	return "the daemon is not reachable and did not come back within 20 s"
}

func (awayError) Hint() string {
	return "`sublet daemon status` and `sublet doctor` look for the reason"
}

// Opener dials and shakes hands, as launch.Launcher.Open does.
type Opener func(context.Context, *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error)

// Daemon is how the daemon is reached. Open, Env and Credentials are required.
type Daemon struct {
	Open        Opener // starts a daemon where none runs
	Find        Opener // starts none: for a daemon that was stopped on request; nil = Open
	Version     string // of this build
	Cwd         string
	Env         map[string]wire.OSString // no value of a variable that looks like a secret
	Credentials map[string]string        // only what the settings name; kept in the daemon's memory
	Log         *slog.Logger             // nil = none; see Logger
	Inbox       int                      // bytes of events that may wait for a slow client; 0 = 4 MiB
	Patience    time.Duration            // how long a request of a client waits for the daemon's answer; 0 = 20 s: a launcher gives up sooner, and with a reason
	Limits      Limits
}

// Limits are those of one client; 0 = the documents' numbers (N1 to N3; such marks are rows of docs/conformance.md).
type Limits struct {
	MessageBytes      int // 10 MiB
	RequestsPerSecond int // 100
	RunningTurns      int // 3
}

// Limited returns d's Limits with the documents' numbers filled in.
func (d *Daemon) Limited() Limits {
	l := d.Limits
	return Limits{cmp.Or(l.MessageBytes, MaxLine), cmp.Or(l.RequestsPerSecond, 100), cmp.Or(l.RunningTurns, 3)}
}

// Logger returns Log, or a logger that discards what it gets.
func (d *Daemon) Logger() *slog.Logger {
	if d.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return d.Log
}

// ErrNoAnswer reports that the daemon did not answer within Daemon.Patience.
var ErrNoAnswer = errors.New("the daemon did not answer in time")

// bound is ctx for what waits for the daemon's answer.
func (d *Daemon) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, cmp.Or(d.Patience, 20*time.Second), ErrNoAnswer)
}

// Options for Connect.
type Options struct {
	Name    string         // who connects, as the audit log shows it, such as "sublet serve jsonrpc"
	Session wire.SessionID // to attach to, without its earlier events; "" = a new one
	Confirm bool           // somebody is there to answer questions
	Place   Place          // where the client is; zero = where the gateway was started
	// MCPServers are those whose tools agents have in this session's requests; see wire.EnvSnapshot.
	MCPServers []wire.MCPServer
}

// Place is the environment that a client works in. What is zero is taken from the gateway's own.
type Place struct {
	Cwd  string
	Env  map[string]wire.OSString
	Term wire.TermInfo
}

// snapshot describes a client.
func (d *Daemon) snapshot(o Options) *wire.EnvSnapshot {
	s := &wire.EnvSnapshot{
		Client: wire.ClientInfo{Name: o.Name, Version: d.Version},
		Cwd:    wire.OSString(cmp.Or(o.Place.Cwd, d.Cwd)), Env: o.Place.Env, Term: o.Place.Term,
		Credentials: d.Credentials, Capabilities: []string{}, Leases: []wire.HeldLease{},
		MCPServers: o.MCPServers,
	}
	if s.Env == nil {
		s.Env = d.Env
	}
	if o.Confirm {
		s.Capabilities = append(s.Capabilities, wire.CapConfirm)
	}
	return s
}

// Check reports whether the daemon can be reached, and starts it where none runs, so that the first client does not wait
// for that.
func (d *Daemon) Check(ctx context.Context) error {
	s := d.snapshot(Options{Name: "sublet serve"})
	s.ProtocolMin, s.ProtocolMax = wire.MinVersion, wire.Version
	wc, _, err := d.Open(ctx, s)
	if err != nil {
		return err
	}
	return wc.Close()
}
