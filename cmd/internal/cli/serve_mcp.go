package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon/config"
)

func (a *app) serveMCP() *cobra.Command {
	var trace bool
	var listen string
	var answer time.Duration
	c := &cobra.Command{
		Use:   "mcp",
		Short: "The Model Context Protocol: other agents (Claude Code, Codex, Gemini CLI, …) run commands in your shell",
		Long: "Serves your live shell as a tool to an agent of another program, which starts this command and talks to it over its\n" +
			"standard input and output. Each command is judged, asked about in your sublet window, run there and written into the\n" +
			"audit log, as those of sublet's own agents are. docs/agents.md tells how each agent is set up.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.serving(trace, func(ctx context.Context, o client.Options, conf config.Config) error {
				s := client.MCP{In: a.stdin, Out: a.stdout, MaxMessage: conf.Limits.MessageBytes, Runtime: o.Paths.Runtime, Answer: answer}
				if listen != "" {
					return a.serveMCPHTTP(ctx, o, s, listen)
				}
				signal.Ignore(syscall.SIGPIPE) // a client that is gone is an error of a write
				return client.ServeMCP(ctx, o, s)
			})
		},
	}
	c.Flags().BoolVar(&trace, "trace", false, "log what happens on standard error")
	c.Flags().StringVar(&listen, "http", "", "serve streamable HTTP on this address, such as 127.0.0.1:0, and print its url and token as one JSON line")
	c.Flags().DurationVar(&answer, "answer", 5*time.Minute, "how long a question waits for you in the window; then it is a no")
	return c
}

// serveMCPHTTP opens the port, prints how to reach it, and serves.
func (a *app) serveMCPHTTP(ctx context.Context, o client.Options, s client.MCP, listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return &usageError{fmt.Errorf("--http %q: %w", listen, err)}
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return &usageError{hinted{"--http " + listen + " is open to other machines, and what is sent is not encrypted", "use 127.0.0.1:0"}}
	}
	s.Token = rand.Text()
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	line, err := json.Marshal(map[string]string{"url": "http://" + ln.Addr().String() + "/mcp", "token": s.Token})
	if err != nil {
		return err
	}
	a.printf("%s\n", line)
	return client.ServeMCPHTTP(ctx, o, s, ln)
}
