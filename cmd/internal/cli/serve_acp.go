package cli

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon/config"
)

func (a *app) serveACP() *cobra.Command {
	var trace bool
	c := &cobra.Command{
		Use:   "acp",
		Short: "The Agent Client Protocol, for editors such as Zed, JetBrains' and Neovim",
		Long: "Serves the Agent Client Protocol on standard input and output, for an editor that starts it; it asks there before\n" +
			"anything risky. docs/acp.md tells how each editor is set up.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.serving(trace, func(ctx context.Context, o client.Options, conf config.Config) error {
				signal.Ignore(syscall.SIGPIPE) // an editor that is gone is an error of a write
				return client.ServeACP(ctx, o, client.ACP{In: a.stdin, Out: a.stdout, MaxLine: conf.Limits.MessageBytes})
			})
		},
	}
	c.Flags().BoolVar(&trace, "trace", false, "log what happens on standard error")
	return c
}
