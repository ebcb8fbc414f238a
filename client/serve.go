package client

import (
	"os"

	"sublet/client/internal/gateway"
)

// gatewayDaemon is the daemon as the translators of foreign protocols reach it. They lend no shell: the agents of their
// clients get private ones.
//
//lint:ignore U1000 the dialects, which follow, are made with it
func gatewayDaemon(o Options) *gateway.Daemon {
	d := &gateway.Daemon{
		Open: launcher(o).Open, Find: finder(o).Open, Version: o.Version, Cwd: o.Cwd, Env: environment(o.Env),
		Credentials: credentials(o), Log: o.Log,
	}
	if d.Cwd == "" {
		d.Cwd, _ = os.Getwd() // "" tells the daemon nothing, which is true
	}
	return d
}
