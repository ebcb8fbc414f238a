package cli

import (
	"context"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon/config"
)

func (a *app) serveMCP() *cobra.Command {
	var trace bool
	var answer time.Duration
	c := &cobra.Command{
		Use:   "mcp",
		Short: "The Model Context Protocol: other agents (Claude Code, Codex, Gemini CLI, …) run commands in your shell",
		Long: "Serves your live shell as a tool to an agent of another program, which starts this command and talks to it over its\n" +
			"standard input and output. Each command is judged, asked about in your sublet window, run there and written into the\n" +
			"audit log, as those of sublet's own agents are. docs/mcp.md tells how each agent is set up.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.serving(trace, func(ctx context.Context, o client.Options, conf config.Config) error {
				signal.Ignore(syscall.SIGPIPE) // a client that is gone is an error of a write
				return client.ServeMCP(ctx, o, client.MCP{
					In: a.stdin, Out: a.stdout, MaxMessage: conf.Limits.MessageBytes, Runtime: o.Paths.Runtime, Answer: answer,
				})
			})
		},
	}
	c.Flags().BoolVar(&trace, "trace", false, "log what happens on standard error")
	c.Flags().DurationVar(&answer, "answer", 5*time.Minute, "how long a question waits for you in the window; then it is a no")
	return c
}
