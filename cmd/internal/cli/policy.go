package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/wire"
)

func (a *app) policy() *cobra.Command {
	var session string
	c := &cobra.Command{
		Use: "policy", Short: "What may run without a question: rules and modes", Args: cobra.NoArgs, RunE: needsSubcommand,
		Long: "Modes: plan (what only reads runs, the rest is refused), ask (what only reads runs, the rest is asked; the default),\n" +
			"auto (undoable changes inside the project run too), full (high risk too). Critical is always asked. Rules allow, ask or\n" +
			"deny by command; deny wins.",
	}
	c.PersistentFlags().StringVar(&session, "session", "", "for this session, where a rule or mode is a session's")
	c.AddCommand(a.policyList(&session), a.policyAdd(&session), a.policyRemove(&session), a.policyMode(&session), a.policyTest(&session),
		a.policySuspects(&session), a.policyAccept(&session), a.policySecrets(&session))
	return c
}

// policies sends one request and calls f with the reply.
func (a *app) policies(session string, r *wire.PolicyRequest, f func(*wire.PolicyReply) error) error {
	ctx, stop := interruptible(context.Background())
	defer stop()
	c, err := a.dial(ctx, false, func(o *client.Options) { o.Session = wire.SessionID(session) })
	if err != nil {
		return err
	}
	defer c.Close()
	reply, err := c.Policy(ctx, r)
	if err != nil {
		return err
	}
	return f(reply)
}

func (a *app) policyList(session *string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "List the rules in force", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.policies(*session, &wire.PolicyRequest{Op: "list"}, func(reply *wire.PolicyReply) error {
				if asJSON {
					return a.printElements(reply, "rules")
				}
				if len(reply.Rules) == 0 {
					a.printf("no rules; mode %s\n", reply.Mode)
					return nil
				}
				w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "ID\tDECISION\tSCOPE\tEXPIRES\tSOURCE\tPATTERN")
				for _, r := range reply.Rules {
					expires := "never"
					if r.ExpiresAtMS != nil {
						expires = when(*r.ExpiresAtMS)
					}
					scope := r.Scope
					if r.Subject != "" {
						scope += " " + firstLine(string(r.Subject), 40)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Decision, plain(scope), expires, plain(r.Source), firstLine(r.Pattern, 80))
				}
				if err := w.Flush(); err != nil {
					return err
				}
				for _, r := range reply.Rules {
					if r.Fault != "" {
						a.printf("%s: %s\n", r.ID, plain(r.Fault))
					}
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a rule")
	return c
}

func (a *app) policyAdd(session *string) *cobra.Command {
	var decision, scope string
	var match, noMatch []string
	var expires time.Duration
	c := &cobra.Command{
		Use: "add PATTERN", Short: "Add a rule", Args: cobra.MinimumNArgs(1),
		Long: "add makes a rule for what PATTERN names: `bash: git push *`, `write: src/**`, `fetch: HOST`, `tool: NAME` and so on. It is\n" +
			"matched on each simple command after it was judged, so allowing one never allows what is chained to it. --match and\n" +
			"--no-match are examples: what the rule must and must not be about. They are checked now and whenever it is loaded; one\n" +
			"that allows and does not do what they say allows nothing.",
		Example: "  sublet policy add 'bash: go test *' --match 'go test ./...' --no-match 'go test ./... && rm -rf ~'\n" +
			"  sublet policy add --decision deny --scope project 'bash: git push *'",
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case decision != "allow" && decision != "ask" && decision != "deny":
				return &usageError{fmt.Errorf("decision %q is none of allow, ask, deny", decision)}
			case scope != "session" && scope != "project" && scope != "always":
				return &usageError{fmt.Errorf("scope %q is none of session, project, always", scope)}
			case scope == "session" && *session == "":
				return &usageError{errors.New("a session's rule needs --session")}
			case expires < 0:
				return &usageError{errors.New("--expires must not be negative")}
			}
			rule := &wire.Rule{Decision: decision, Pattern: strings.Join(args, " "), Scope: scope, Match: match, NoMatch: noMatch}
			if expires > 0 {
				at := time.Now().Add(expires).UnixMilli()
				rule.ExpiresAtMS = &at
			}
			return a.policies(*session, &wire.PolicyRequest{Op: "add", Rule: rule}, func(*wire.PolicyReply) error { return nil })
		},
	}
	c.Flags().StringVar(&decision, "decision", "allow", "allow, ask or deny")
	c.Flags().StringVar(&scope, "scope", "always", "session, project (the one of the current folder) or always")
	c.Flags().DurationVar(&expires, "expires", 0, "forget it after this time (0 = never)")
	c.Flags().StringArrayVar(&match, "match", nil, "an example that the rule must be about; may be repeated")
	c.Flags().StringArrayVar(&noMatch, "no-match", nil, "an example that the rule must not be about; may be repeated")
	return c
}

func (a *app) policyRemove(session *string) *cobra.Command {
	return &cobra.Command{
		Use: "rm ID...", Short: "Revoke rules", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, rule := range args {
				r := &wire.PolicyRequest{Op: "revoke", RuleID: wire.RuleID(rule)}
				if err := a.policies(*session, r, func(*wire.PolicyReply) error { return nil }); err != nil {
					return fmt.Errorf("%s: %w", rule, err)
				}
			}
			return nil
		},
	}
}

func (a *app) policyMode(session *string) *cobra.Command {
	return &cobra.Command{
		Use: "mode [MODE]", Short: "Print the mode, or set that of a session", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			r := &wire.PolicyRequest{Op: "get"}
			if len(args) == 1 {
				if *session == "" {
					return &usageError{hinted{"a mode is set for a session", "name it with --session; `[policy] mode` of the settings is for all"}}
				}
				r.Op, r.Mode = "set_mode", args[0]
			}
			return a.policies(*session, r, func(reply *wire.PolicyReply) error {
				a.printf("%s\n", reply.Mode)
				return nil
			})
		},
	}
}
