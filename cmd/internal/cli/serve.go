package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon/config"
)

// serve is the parent of the foreign protocols; each has a file of its own.
func (a *app) serve() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the agents to other programs, in a protocol of theirs",
		Long: "serve translates a foreign protocol in front of the daemon: editors, terminals and scripts that speak it use sublet's\n" +
			"agents, under the same policy. It runs in the foreground until SIGINT or SIGTERM.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.serveJSONRPC(), a.serveOperator(), a.serveStdio(), a.serveACP(), a.serveMCP())
	return c
}

// serving runs one translator until it is told to stop. It logs to standard error, with trace each message too. What it
// serves is the settings' business: with ones that cannot be read it does not begin.
func (a *app) serving(trace bool, run func(ctx context.Context, o client.Options, c config.Config) error) error {
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
	ctx, stop := interruptible(context.Background())
	defer stop()
	err = run(ctx, o, settings)
	if errors.Is(err, errInterrupted) {
		return nil // asked to stop: that is how it ends
	}
	return err
}

// approval is the policy mode behind --approve=LEVEL, the riskiest that runs where nobody can be asked. chosen says that the
// level was named and is not the default, which does not loosen settings that are stricter. Critical never runs.
func approval(level string, chosen bool, c config.Config) (mode string, err error) {
	switch level {
	case "deny":
		return "plan", nil
	case "low":
		if !chosen && c.Policy.Mode == "plan" {
			return "plan", nil
		}
		return "ask", nil
	case "medium":
		return "auto", nil
	case "high":
		return "full", nil
	}
	return "", &usageError{fmt.Errorf("--approve %q is none of deny, low, medium, high", level)}
}

// approveUsage is the help text of --approve.
const approveUsage = "the riskiest that runs, since nobody can be asked: low, medium, high; deny is low whatever your rules allow"

// secret is the first line of a file, without its end.
func secret(path string) (string, error) {
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
