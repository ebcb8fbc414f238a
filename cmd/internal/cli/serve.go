package cli

import (
	"github.com/spf13/cobra"
)

// serve is the parent of the foreign protocols; each has a file of its own.
func (a *app) serve() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the agents to other programs, in a protocol of theirs",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	return c
}
