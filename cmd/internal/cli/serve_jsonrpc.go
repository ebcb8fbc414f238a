package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon/config"
)

func (a *app) serveJSONRPC() *cobra.Command {
	var path, tokenFile string
	var compat, trace bool
	c := &cobra.Command{
		Use:   "jsonrpc",
		Short: "JSON-RPC 2.0 over a unix socket, as OpenAgent-Terminal speaks it",
		Long: "Serves JSON-RPC 2.0, one message a line, over a unix socket that only you can use. The socket's path is the first\n" +
			"line on standard output; it is removed at the end. docs/jsonrpc.md has the protocol and a session to try.",
		Example: "  sublet serve jsonrpc --socket /tmp/agents.sock",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if path != "" && compat {
				return &usageError{errors.New("--socket and --compat-name both name the socket")}
			}
			if path == "" {
				path = client.JSONRPCSocket(a.env, os.Getpid(), compat)
			}
			at, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			j := client.JSONRPC{Socket: at, Ready: func() { fmt.Fprintln(a.stdout, at) }}
			if tokenFile != "" {
				if j.Token, err = secret(tokenFile); err != nil {
					return err
				}
			}
			return a.serving(trace, func(ctx context.Context, o client.Options, c config.Config) error {
				j.MaxLine = c.Limits.MessageBytes
				return client.ServeJSONRPC(ctx, o, j)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&path, "socket", "", "path of the socket (default $XDG_RUNTIME_DIR/sublet-PID.sock, else in /tmp)")
	f.BoolVar(&compat, "compat-name", false, "name the socket as the protocol's document does: openagent-terminal-PID.sock")
	f.StringVar(&tokenFile, "token-file", "", "ask each client for the token in the first line of this file")
	f.BoolVar(&trace, "trace", false, "log every message's kind on standard error")
	return c
}
