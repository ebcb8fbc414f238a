package cli

import (
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sublet/wire"
)

func (a *app) trust() *cobra.Command {
	c := &cobra.Command{
		Use: "trust", Short: "Folders whose instructions agents follow", Args: cobra.NoArgs, RunE: needsSubcommand,
		Long: "In a trusted folder AGENTS.md, CLAUDE.md and .sublet.md instruct agents, and .sublet/agents adds agents. In any other\n" +
			"they are data, which agents may read as any file. The first question in a folder that has such files asks once.\n" +
			"A folder is the top of a repository, with all below it but other repositories.",
	}
	c.AddCommand(a.trustList(), a.trustChange("add", "trust", "Trust a folder"), a.trustChange("rm", "untrust", "Forget what was decided about a folder"))
	return c
}

func (a *app) trustList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "List the folders that were decided about", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.policies("", &wire.PolicyRequest{Op: "trust_list"}, func(reply *wire.PolicyReply) error {
				if asJSON {
					return a.printElements(reply, "folders")
				}
				if len(reply.Folders) == 0 {
					a.printf("no folder is trusted\n")
					return nil
				}
				w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "TRUSTED\tSINCE\tFOLDER")
				for _, f := range reply.Folders {
					trusted := "no"
					if f.Trusted {
						trusted = "yes"
					}
					fmt.Fprintf(w, "%s\t%s\t%s\n", trusted, when(f.DecidedAtMS), plain(string(f.Path)))
				}
				return w.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a folder")
	return c
}

func (a *app) trustChange(use, op, short string) *cobra.Command {
	return &cobra.Command{
		Use: use + " [FOLDER]", Short: short + " (default: the current one)", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := filepath.Abs(append(args, ".")[0])
			if err != nil {
				return err
			}
			return a.policies("", &wire.PolicyRequest{Op: op, Cwd: wire.OSString(dir)}, func(reply *wire.PolicyReply) error {
				a.printf("%s\n", plain(string(reply.Folder)))
				return nil
			})
		},
	}
}
