package cli

import (
	"context"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sublet/client"
)

// daemonCommand is the code of a command that needs a connection to the daemon.
type daemonCommand = func(ctx context.Context, c *client.Conn, args []string) error

// command returns a command whose number of arguments n checks.
func command(use, short string, n cobra.PositionalArgs, do func(args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: n, RunE: func(_ *cobra.Command, args []string) error { return do(args) }}
}

// asks returns a command that connects to the daemon, starts it if none runs, makes its requests, and ends.
func (a *app) asks(use, short string, n cobra.PositionalArgs, do daemonCommand) *cobra.Command {
	return command(use, short, n, func(args []string) error {
		return a.connected(autoStart, func(ctx context.Context, c *client.Conn) error { return do(ctx, c, args) })
	})
}

// family returns a command that prints its help and has others below it.
func family(use, short, long string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(below...)
	return c
}

// withJSON adds the flag --json, which prints one JSON object for each named thing; "" = one for everything.
func withJSON(c *cobra.Command, asJSON *bool, each string) *cobra.Command {
	usage := "print one JSON object"
	if each != "" {
		usage += " per " + each
	}
	c.Flags().BoolVar(asJSON, "json", false, usage)
	return c
}

// explained sets a command's long help and example.
func explained(c *cobra.Command, long, example string) *cobra.Command {
	c.Long, c.Example = long, example
	return c
}

// table returns a table on standard output with head as its first row; "" = none. Flush prints it.
func (a *app) table(head string) *tabwriter.Writer {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if head != "" {
		_, _ = w.Write([]byte(head + "\n")) // Flush returns the same error
	}
	return w
}
