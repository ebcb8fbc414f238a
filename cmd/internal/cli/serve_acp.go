package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon/config"
)

func (a *app) serveACP() *cobra.Command {
	var trace bool
	var show string
	c := &cobra.Command{
		Use:   "acp",
		Short: "The Agent Client Protocol, for editors such as Zed, JetBrains' and Neovim",
		Long: "Serves the Agent Client Protocol on standard input and output, for an editor that starts it; it asks there before\n" +
			"anything risky. docs/acp.md tells how each editor is set up.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if show != "" {
				return a.showTerminal(show)
			}
			return a.serving(trace, func(ctx context.Context, o client.Options, conf config.Config) error {
				signal.Ignore(syscall.SIGPIPE) // an editor that is gone is an error of a write
				s := client.ACP{In: a.stdin, Out: a.stdout, MaxLine: conf.Limits.MessageBytes, RequestsPerSecond: conf.Limits.RequestsPerSecond, Runtime: o.Paths.Runtime}
				if self, err := os.Executable(); err == nil { // else output is shown in the tool calls
					s.Show = []string{self, "serve", "acp", "--show"}
				}
				return client.ServeACP(ctx, o, s)
			})
		},
	}
	c.Flags().BoolVar(&trace, "trace", false, "log what happens on standard error")
	c.Flags().StringVar(&show, "show", "", "print a command's output; the editor's terminals run this")
	if err := c.Flags().MarkHidden("show"); err != nil {
		panic(err) // a flag of the line above
	}
	return c
}

// showTerminal is the process in an editor's terminal.
func (a *app) showTerminal(path string) error {
	ctx, stop := interruptible(context.Background())
	defer stop()
	status, err := client.ShowTerminal(ctx, path, a.stdout)
	if err != nil {
		return err
	}
	return exitCode(status)
}
