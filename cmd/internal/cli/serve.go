package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon/config"
)

func (a *app) serve() *cobra.Command {
	return family("serve", "Serve the agents to other programs, in a protocol of theirs",
		"serve translates a foreign protocol in front of the daemon: editors, terminals and scripts that speak it use sublet's\n"+
			"agents, under the same policy. It runs in the foreground until SIGINT or SIGTERM.",
		a.serveJSONRPC(), a.serveOperator(), a.serveStdio(), a.serveACP(), a.serveMCP())
}

// gateway returns a command that runs one gateway until a signal or the end of its input ends it. It logs to standard error, with
// --trace each message too. If the settings cannot be read, it does not start.
func (a *app) gateway(use, short, long, example string, run func(ctx context.Context, o client.Options, c config.Config) error) *cobra.Command {
	var trace bool
	c := explained(command(use, short, cobra.NoArgs, func([]string) error {
		o, err := a.options()
		if err != nil {
			return err
		}
		settings, err := config.Load(o.Paths.Config)
		if err != nil {
			return err
		}
		level := slog.LevelWarn
		if trace {
			level = slog.LevelDebug
		}
		o.Log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
		l := settings.Limits
		o.Limits = client.Limits{MessageBytes: l.MessageBytes, RequestsPerSecond: l.RequestsPerSecond, RunningTurns: l.RunningTurns}
		ctx, stop := interruptible(context.Background())
		defer stop()
		if err = run(ctx, o, settings); errors.Is(err, errInterrupted) {
			return nil // a signal ended it
		}
		return err
	}), long, example)
	c.Flags().BoolVar(&trace, "trace", false, "log what happens on standard error")
	return c
}

// withApprove adds the flag --approve to a command. The function that it returns gives the policy mode of its level, which decides where
// nobody can be asked. The default level does not override a mode plan of the settings.
func withApprove(c *cobra.Command, level *string) func(config.Config) (mode string, err error) {
	c.Flags().StringVar(level, "approve", "low", "what runs, as nobody can be asked: deny (mode plan), low (ask), medium (auto), high (full: no command is held); never what is critical")
	return func(conf config.Config) (string, error) {
		mode, ok := map[string]string{"deny": "plan", "low": "ask", "medium": "auto", "high": "full"}[*level]
		switch {
		case !ok:
			return "", &usageError{fmt.Errorf("--approve %q is none of deny, low, medium, high", *level)}
		case !c.Flags().Changed("approve") && conf.Policy.Mode == "plan":
			return "plan", nil
		}
		return mode, nil
	}
}

func (a *app) serveJSONRPC() *cobra.Command {
	var path, tokenFile string
	var compat bool
	c := a.gateway("jsonrpc", "JSON-RPC 2.0 over a unix socket, as OpenAgent-Terminal speaks it",
		"Serves JSON-RPC 2.0, one message a line, over a unix socket that only you can use. The socket's path is the first\n"+
			"line on standard output; it is removed at the end. docs/jsonrpc.md has the protocol and a session to try.",
		"  sublet serve jsonrpc --socket /tmp/agents.sock",
		func(ctx context.Context, o client.Options, conf config.Config) (err error) {
			if path != "" && compat {
				return &usageError{errors.New("--socket and --compat-name both name the socket")}
			}
			if path == "" {
				path = client.JSONRPCSocket(a.env, os.Getpid(), compat)
			}
			j := client.JSONRPC{Ready: func() { a.printf("%s\n", path) }}
			if path, err = filepath.Abs(path); err != nil {
				return err
			}
			if j.Socket = path; tokenFile != "" {
				if j.Token, err = readToken(tokenFile); err != nil {
					return err
				}
			}
			return client.ServeJSONRPC(ctx, o, j)
		})
	c.Flags().StringVar(&path, "socket", "", "path of the socket (default $XDG_RUNTIME_DIR/sublet-PID.sock, else in /tmp)")
	c.Flags().BoolVar(&compat, "compat-name", false, "name the socket as the protocol's document does: openagent-terminal-PID.sock")
	c.Flags().StringVar(&tokenFile, "token-file", "", "ask each client for the token in the first line of this file")
	return c
}

// readToken returns the first line of a file, without white space around it.
func readToken(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("%s: its first line is empty, and should be the token", path)
	}
	return line, nil
}

func (a *app) serveStdio() *cobra.Command {
	var approve string
	var mode func(config.Config) (string, error)
	c := a.gateway("stdio", "JSON lines on standard input and output, for a program that starts it as its child",
		"Serves one JSON object a line on standard input and output; everything else goes to standard error. It ends when its\n"+
			"input does, once what runs has finished. docs/stdio.md has the protocol and a session to try.",
		`  echo '{"id":"1","kind":"user_message","message":"what is in this folder?"}' | sublet serve stdio`,
		func(ctx context.Context, o client.Options, conf config.Config) (err error) {
			s := client.Stdio{In: a.stdin, Out: a.stdout}
			if s.Mode, err = mode(conf); err != nil {
				return err
			}
			// Writing to a parent that has ended is an error rather than SIGPIPE, so that running requests can be cancelled.
			signal.Ignore(syscall.SIGPIPE)
			return client.ServeStdio(ctx, o, s)
		})
	mode = withApprove(c, &approve)
	return c
}

func (a *app) serveACP() *cobra.Command {
	var show string
	c := a.gateway("acp", "The Agent Client Protocol, for editors such as Zed, JetBrains' and Neovim",
		"Serves the Agent Client Protocol on standard input and output, for an editor that starts it; it asks there before\n"+
			"anything risky. docs/acp.md explains how to set up each editor.", "",
		func(ctx context.Context, o client.Options, conf config.Config) error {
			if show != "" { // the process in an editor's terminal
				status, err := client.ShowTerminal(ctx, show, a.stdout)
				if err == nil {
					err = exitCode(status)
				}
				return err
			}
			signal.Ignore(syscall.SIGPIPE) // a write to an editor that has ended is an error instead
			return client.ServeACP(ctx, o, client.ACP{
				In: a.stdin, Out: a.stdout,
				Runtime: o.Paths.Runtime, Show: []string{o.Executable, "serve", "acp", "--show"},
			})
		})
	c.Flags().StringVar(&show, "show", "", "print a command's output; the editor's terminals run this")
	if err := c.Flags().MarkHidden("show"); err != nil {
		panic(err) // only if the flag above does not exist
	}
	return c
}

func (a *app) serveMCP() *cobra.Command {
	var listen string
	var answer time.Duration
	c := a.gateway("mcp", "The Model Context Protocol: other agents (Claude Code, Codex, Gemini CLI, …) run commands in your shell",
		"Serves your live shell as a tool to an agent of another program, which starts this command and talks to it over its\n"+
			"standard input and output. Each command is judged, asked about in your sublet window, run there and written into the\n"+
			"audit log, as those of sublet's own agents are. docs/agents.md explains how to set up each agent.", "",
		func(ctx context.Context, o client.Options, conf config.Config) error {
			s := client.MCP{In: a.stdin, Out: a.stdout, Answer: answer}
			if listen != "" {
				return a.serveMCPHTTP(ctx, o, s, listen)
			}
			signal.Ignore(syscall.SIGPIPE) // a write to a client that has ended is an error instead
			return client.ServeMCP(ctx, o, s)
		})
	c.Flags().StringVar(&listen, "http", "", "serve streamable HTTP on this address, such as 127.0.0.1:0, and print its url and token as one JSON line")
	c.Flags().DurationVar(&answer, "answer", 5*time.Minute, "how long a question waits for you in the window; then it is a no")
	return c
}
