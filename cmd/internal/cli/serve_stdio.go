package cli

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon/config"
)

func (a *app) serveStdio() *cobra.Command {
	var approve string
	var trace bool
	c := &cobra.Command{
		Use:   "stdio",
		Short: "JSON lines on standard input and output, for a program that starts it as its child",
		Long: "Serves one JSON object a line on standard input and output; everything else goes to standard error. It ends when its\n" +
			"input does, once what runs has finished. docs/stdio.md has the protocol and a session to try.",
		Example: `  echo '{"id":"1","kind":"user_message","message":"what is in this folder?"}' | sublet serve stdio`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			chosen := c.Flags().Changed("approve")
			return a.serving(false, func(ctx context.Context, o client.Options, conf config.Config) error {
				mode, err := approval(approve, chosen, conf)
				if err != nil {
					return err
				}
				// Writing to a parent that has ended is an error rather than SIGPIPE, so that running requests can be cancelled.
				signal.Ignore(syscall.SIGPIPE)
				s := client.Stdio{In: a.stdin, Out: a.stdout, Mode: mode, MaxLine: conf.Limits.MessageBytes}
				if trace {
					s.Trace = func(direction, what, id string) { fmt.Fprintf(a.stderr, "[%s] %s %s\n", direction, what, oneLine(id)) }
				}
				return client.ServeStdio(ctx, o, s)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&approve, "approve", "low", approveUsage)
	f.BoolVar(&trace, "trace", false, "tell each message on standard error")
	return c
}
