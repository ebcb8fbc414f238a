package cli

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sublet/wire"
)

func (a *app) policyTest(session *string) *cobra.Command {
	var asJSON, live bool
	var cwd string
	c := &cobra.Command{
		Use: "test 'CMD'", Short: "Say what would be done with a command, and by which rule; runs nothing", Args: cobra.MinimumNArgs(1),
		Long: "test judges a command as if an agent asked for it now, with the rules in force, and says for each mode whether it would\n" +
			"run, be asked about or be refused, and why. It is judged for a fresh shell in the current folder; with --live for the\n" +
			"shell of the window last typed in, with its aliases, functions and folder.",
		Example: "  sublet policy test 'git push --force'\n  sublet policy test --live 'make deploy'",
		RunE: func(_ *cobra.Command, args []string) error {
			r := &wire.PolicyRequest{Op: "test", Command: wire.OSString(strings.Join(args, " ")), Live: live}
			if cwd != "" {
				dir, err := filepath.Abs(cwd)
				if err != nil {
					return err
				}
				r.Cwd = wire.OSString(dir)
			}
			return a.policies(*session, r, func(reply *wire.PolicyReply) error {
				if reply.Verdict == nil {
					return errors.New("the daemon is older than `policy test`; `sublet daemon restart` starts this one")
				}
				if asJSON {
					fields, err := view(reply)
					if err != nil {
						return err
					}
					return a.printJSON(map[string]any{
						"command": string(r.Command), "verdict": fields["verdict"], "mode": reply.Mode, "outcomes": fields["outcomes"],
					})
				}
				a.drawVerdict(string(r.Command), *reply.Verdict)
				a.drawOutcomes(reply.Outcomes, reply.Mode)
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().BoolVar(&live, "live", false, "in the shell of the window last typed in")
	c.Flags().StringVar(&cwd, "cwd", "", "in this folder")
	return c
}

func (a *app) policyAccept(session *string) *cobra.Command {
	return &cobra.Command{
		Use: "accept", Short: "Take what agents changed in your shell for your own", Args: cobra.NoArgs,
		Long: "What an agent's command changed in your shell without your word (PATH, aliases, functions, pagers, git's variables) makes\n" +
			"later commands that it decides riskier. accept takes these changes for yours. `sublet policy suspects` lists them.",
		RunE: func(*cobra.Command, []string) error {
			var names []string
			if err := a.policies(*session, &wire.PolicyRequest{Op: "get"}, func(reply *wire.PolicyReply) error {
				names = reply.Suspects
				return nil
			}); err != nil {
				return err
			}
			if len(names) == 0 {
				a.printf("nothing to accept\n")
				return nil
			}
			return a.policies(*session, &wire.PolicyRequest{Op: "accept"}, func(*wire.PolicyReply) error {
				a.printf("accepted: %s\n", plain(strings.Join(names, " ")))
				return nil
			})
		},
	}
}

func (a *app) policySuspects(session *string) *cobra.Command {
	return &cobra.Command{
		Use: "suspects", Short: "List what agents changed in your shell without your word", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.policies(*session, &wire.PolicyRequest{Op: "get"}, func(reply *wire.PolicyReply) error {
				for _, name := range reply.Suspects {
					a.printf("%s\n", plain(name))
				}
				return nil
			})
		},
	}
}

func (a *app) policySecrets(session *string) *cobra.Command {
	return &cobra.Command{
		Use: "secrets [mask|show]", Short: "Print or set whether models see what looks like a secret", Args: cobra.MaximumNArgs(1),
		Long: "What looks like a key, a token or a password is masked before a model gets it. show lets the models of one session see it\n" +
			"as it is, until mask; what is stored and logged stays masked.",
		RunE: func(_ *cobra.Command, args []string) error {
			r := &wire.PolicyRequest{Op: "get"}
			if len(args) == 1 {
				if args[0] != "mask" && args[0] != "show" {
					return &usageError{errors.New(args[0] + " is neither mask nor show")}
				}
				if *session == "" {
					return &usageError{hinted{"secrets are shown to the models of one session", "name it with --session"}}
				}
				r.Op, r.Secrets = "set_secrets", args[0]
			}
			return a.policies(*session, r, func(reply *wire.PolicyReply) error {
				a.printf("%s\n", plain(reply.Secrets))
				return nil
			})
		},
	}
}
