// Package jsonrpc serves agents by JSON-RPC 2.0 over a unix socket, one message a line, as OpenAgent-Terminal's protocol
// specification 1.0.0 defines. Sessions and agents are left to the daemon. Marks such as E14 are rows of docs/conformance.md.
package jsonrpc

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire/socket"
)

// Options for Serve. Daemon and Socket are required.
type Options struct {
	Daemon *gateway.Daemon
	Socket string // see Path
	Token  string // initialize must carry it; "" = none is required (P2)
	// Ready, if not nil, is called once clients can connect.
	Ready func()

	approvalTimeout time.Duration // for tests; 0 = approvalBound
}

// approvalBound is how long a question waits for its answer before it is refused (H10).
const approvalBound = 30 * time.Second

// Path returns the default path of the socket: in $XDG_RUNTIME_DIR, else in /tmp, named after this process; with compat the
// name in the protocol's document (A2).
func Path(getenv func(string) string, pid int, compat bool) string {
	dir := getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(dir) {
		dir = "/tmp"
	}
	name := "sublet-"
	if compat {
		name = "openagent-terminal-"
	}
	return filepath.Join(dir, name+strconv.Itoa(pid)+".sock")
}

// server is the state of one Serve.
type server struct {
	o      Options
	log    *slog.Logger
	limits gateway.Limits
}

// Serve creates the socket, mode 0600, serves every client of the same user, and removes the socket when ctx ends (A3, A4). It
// then cancels running queries and reports that to their clients. It returns nil after such a stop; errors are those of the
// socket and of a daemon that cannot be reached at the start.
func Serve(ctx context.Context, o Options) error {
	if o.approvalTimeout == 0 {
		o.approvalTimeout = approvalBound
	}
	s := &server{o: o, log: o.Daemon.Logger(), limits: o.Daemon.Limited()}
	ln, err := socket.Listen(o.Socket)
	if err != nil {
		return err
	}
	defer os.Remove(o.Socket)
	defer ln.Close()
	if err := o.Daemon.Check(ctx); err != nil {
		return err
	}
	s.log.Info("serving", "socket", o.Socket)
	if o.Ready != nil {
		o.Ready()
	}
	return socket.Serve(ctx, ln, s.log, s.serve)
}
