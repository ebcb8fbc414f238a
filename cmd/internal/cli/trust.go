package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"sublet/wire"
)

func (a *app) trust() *cobra.Command {
	return family("trust", "Folders whose instructions agents follow",
		"In a trusted folder AGENTS.md, CLAUDE.md and .sublet.md instruct agents, and .sublet/agents adds agents. In any other\n"+
			"they are data, which agents may read as any file. The first question in a folder that has such files asks once.\n"+
			"A folder is the top of a repository, with all below it but other repositories.",
		a.trustList(), a.trustChange("add", "trust", "Trust a folder"), a.trustChange("rm", "untrust", "Forget what was decided about a folder"))
}

func (a *app) trustList() *cobra.Command {
	var asJSON bool
	return withJSON(command("ls", "List the folders that were decided about", cobra.NoArgs, func([]string) error {
		reply, err := (&policies{app: a}).ask(&wire.PolicyRequest{Op: "trust_list"})
		switch {
		case err != nil:
			return err
		case asJSON:
			return a.printElements(reply, "folders")
		case len(reply.Folders) == 0:
			a.printf("no folder is trusted\n")
			return nil
		}
		w := a.table("TRUSTED\tSINCE\tFOLDER")
		for _, f := range reply.Folders {
			trusted := "no"
			if f.Trusted {
				trusted = "yes"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", trusted, when(f.DecidedAtMS), plain(string(f.Path)))
		}
		return w.Flush()
	}), &asJSON, "folder")
}

func (a *app) trustChange(use, op, short string) *cobra.Command {
	return command(use+" [FOLDER]", short+" (default: the current one)", cobra.MaximumNArgs(1), func(args []string) error {
		dir, err := filepath.Abs(append(args, ".")[0])
		if err != nil {
			return err
		}
		reply, err := (&policies{app: a}).ask(&wire.PolicyRequest{Op: op, Cwd: wire.OSString(dir)})
		if err == nil {
			a.printf("%s\n", plain(string(reply.Folder)))
		}
		return err
	})
}
