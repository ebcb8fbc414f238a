package client

import (
	"context"
	"io/fs"
	"net"

	"sublet/client/internal/gateway/operator"
	"sublet/client/web"
)

// OperatorOptions are the options of ServeOperator. Listener is required.
type OperatorOptions struct {
	Listener          net.Listener
	Mode              string   // policy mode of the turns that clients begin: plan, ask, auto, full; "" = the settings'
	Token             string   // what every client must show; "" = nothing, and only this machine is served
	UI                bool     // serve the page, whose user may answer questions
	Hosts, Origins    []string // names and origins, beside this server's own, that browsers may use
	RequestsPerSecond int      // of one connection; 0 = 100
	RunningQueries    int      // of one connection; 0 = 3
	MaxMessage        int      // bytes of an incoming message; 0 = 10 MiB
}

// ServeOperator serves the operator protocol's two dialects over TCP and WebSocket until ctx is done. It starts the daemon if
// none runs. Errors are those of Dial and of the listener, which it closes.
func ServeOperator(ctx context.Context, o Options, so OperatorOptions) error {
	d := gatewayDaemon(o)
	if err := d.Check(ctx); err != nil {
		return err
	}
	var page fs.FS
	if so.UI {
		page = web.Files
	}
	return operator.New(operator.Options{
		Daemon: d, Project: d.Cwd, Mode: so.Mode, Token: so.Token, Page: page, Hosts: so.Hosts, Origins: so.Origins,
		RequestsPerSecond: so.RequestsPerSecond, RunningQueries: so.RunningQueries, MaxMessage: so.MaxMessage, Log: o.Log,
	}).Serve(ctx, so.Listener)
}
