package client

import (
	"context"
	"io"
	"io/fs"
	"net"
	"os"

	"sublet/client/internal/gateway"
	"sublet/client/internal/gateway/acp"
	"sublet/client/internal/gateway/jsonrpc"
	"sublet/client/internal/gateway/mcp"
	"sublet/client/internal/gateway/operator"
	"sublet/client/internal/gateway/stdio"
	"sublet/client/web"
	"sublet/wire"
)

// Limits are those of a client of a gateway.
type Limits = gateway.Limits

// JSONRPC are the options of ServeJSONRPC; its Daemon is filled in.
type JSONRPC = jsonrpc.Options

// ServeJSONRPC serves JSON-RPC 2.0 over a unix socket until ctx ends. Its errors are those of the socket and of Dial.
func ServeJSONRPC(ctx context.Context, o Options, j JSONRPC) error {
	j.Daemon = gatewayDaemon(o)
	return jsonrpc.Serve(ctx, j)
}

// JSONRPCSocket returns the default path of ServeJSONRPC's socket; with compat, under the name in the protocol's document.
func JSONRPCSocket(getenv func(string) string, pid int, compat bool) string {
	return jsonrpc.Path(getenv, pid, compat)
}

// Stdio are the options of ServeStdio; its Daemon is filled in.
type Stdio = stdio.Options

// ServeStdio serves JSON lines on standard input and output until input ends or ctx does. Its errors are those of Dial, and
// of an output that cannot be written to.
func ServeStdio(ctx context.Context, o Options, s Stdio) error {
	s.Daemon = gatewayDaemon(o)
	return stdio.Serve(ctx, s)
}

// ACP are the options of ServeACP; its Daemon is filled in.
type ACP = acp.Options

// ServeACP serves the Agent Client Protocol on standard input and output until input ends or ctx does. Its errors are those
// of Dial.
func ServeACP(ctx context.Context, o Options, s ACP) error {
	s.Daemon = gatewayDaemon(o)
	return acp.Serve(ctx, s)
}

// MCP are the options of ServeMCP; its Daemon is filled in.
type MCP = mcp.Options

// ServeMCP serves the Model Context Protocol on standard input and output until input ends or ctx does.
func ServeMCP(ctx context.Context, o Options, s MCP) error {
	s.Daemon, s.Client = gatewayDaemon(o), mcp.Parent()
	s.Hosted = os.Getenv(wire.HostedVariable)
	return mcp.Serve(ctx, s)
}

// ServeMCPHTTP serves the same by streamable HTTP on ln, for programs of this machine that bear s.Token, until ctx ends.
func ServeMCPHTTP(ctx context.Context, o Options, s MCP, ln net.Listener) error {
	s.Daemon = gatewayDaemon(o)
	return mcp.ServeHTTP(ctx, s, ln)
}

// Operator are the options of ServeOperator; its Daemon and Project are filled in.
type Operator = operator.Options

// OperatorPage is the page that ServeOperator can serve.
var OperatorPage fs.FS = web.Files

// ServeOperator serves the operator protocol's two dialects over TCP and WebSocket on ln until ctx is done. It closes ln unless it
// returns an error of Dial; its other errors are those of ln.
func ServeOperator(ctx context.Context, o Options, so Operator, ln net.Listener) error {
	so.Daemon = gatewayDaemon(o)
	so.Project = so.Daemon.Cwd
	if err := so.Daemon.Check(ctx); err != nil {
		return err
	}
	return operator.New(so).Serve(ctx, ln)
}

// ShowTerminal prints the output of a command of an ACP session in an editor's terminal; path is the server's last argument.
// It returns the exit status.
func ShowTerminal(ctx context.Context, path string, w io.Writer) (status int, err error) {
	return acp.Show(ctx, path, w)
}

// gatewayDaemon returns the daemon for gateways: Open starts one where none runs, Find does not. They lend no shell: agents of their
// clients use private ones.
func gatewayDaemon(o Options) *gateway.Daemon {
	return &gateway.Daemon{
		Open: launcher(o).Open, Find: finder(o).Open, Version: o.Version, Cwd: o.cwd(), Env: environment(o.Env),
		Credentials: credentials(o), Log: o.Log, Limits: o.Limits,
	}
}
