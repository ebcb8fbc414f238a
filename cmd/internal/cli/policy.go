package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/wire"
)

// policies has the flags of `policy` and of the commands below it.
type policies struct {
	*app
	session string
}

func (a *app) policy() *cobra.Command {
	p := &policies{app: a}
	c := family("policy", "What may run without a question: rules and modes",
		"Modes: plan (what only reads runs, the rest is refused), ask (what only reads runs, the rest is asked; the default),\n"+
			"auto (undoable changes inside the project run too), full (high risk too). Critical is always asked. Rules allow, ask or\n"+
			"deny by command; deny wins.",
		p.list(), p.add(), command("rm ID...", "Revoke rules", cobra.MinimumNArgs(1), p.remove),
		command("mode [MODE]", "Print the mode, or set that of a session", cobra.MaximumNArgs(1), p.mode), p.test(),
		command("suspects", "List what agents changed in your shell without your approval", cobra.NoArgs, p.suspects),
		explained(command("accept", "Take what agents changed in your shell for your own", cobra.NoArgs, p.accept),
			"What an agent's command changed in your shell without your approval (PATH, aliases, functions, pagers, git's variables) makes\n"+
				"later commands that it decides riskier. accept approves these changes. `sublet policy suspects` lists them.", ""),
		explained(command("secrets [mask|show]", "Print or set whether models see what looks like a secret", cobra.MaximumNArgs(1), p.secrets),
			"What looks like a key, a token or a password is masked before a model gets it. show lets the models of one session see it\n"+
				"as it is, until mask; what is stored and logged stays masked.", ""))
	c.PersistentFlags().StringVar(&p.session, "session", "", "for this session, where a rule or mode is a session's")
	return c
}

// ask sends one request.
func (p *policies) ask(r *wire.PolicyRequest) (reply *wire.PolicyReply, err error) {
	err = p.connect(func(ctx context.Context, c *client.Conn) error {
		reply, err = wire.Call(ctx, c, r)
		return err
	})
	return reply, err
}

// connect runs do on a connection to the session.
func (p *policies) connect(do func(ctx context.Context, c *client.Conn) error) error {
	session, err := p.findSession(p.session)
	if err != nil {
		return err
	}
	return p.connected(autoStart, do, func(o *client.Options) { o.Session = session })
}

func (p *policies) list() *cobra.Command {
	var asJSON bool
	return withJSON(command("ls", "List the rules in force", cobra.NoArgs, func([]string) error {
		reply, err := p.ask(&wire.PolicyRequest{Op: "list"})
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.printElements(reply, "rules")
		case len(reply.Rules) == 0:
			p.printf("no rules; mode %s\n", reply.Mode)
			return nil
		}
		w := p.table("ID\tDECISION\tSCOPE\tEXPIRES\tSOURCE\tPATTERN")
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
				p.printf("%s: %s\n", r.ID, plain(r.Fault))
			}
		}
		return nil
	}), &asJSON, "rule")
}

func (p *policies) add() *cobra.Command {
	var rule wire.Rule
	var expires time.Duration
	c := explained(command("add PATTERN", "Add a rule", cobra.MinimumNArgs(1), func(args []string) error {
		switch {
		case !slices.Contains([]string{"allow", "ask", "deny"}, rule.Decision):
			return &usageError{fmt.Errorf("decision %q is none of allow, ask, deny", rule.Decision)}
		case !slices.Contains([]string{"session", "project", "always"}, rule.Scope):
			return &usageError{fmt.Errorf("scope %q is none of session, project, always", rule.Scope)}
		case rule.Scope == "session" && p.session == "":
			return &usageError{errors.New("a session's rule needs --session")}
		case expires < 0:
			return &usageError{errors.New("--expires must not be negative")}
		}
		rule.Pattern = strings.Join(args, " ")
		if expires > 0 {
			at := time.Now().Add(expires).UnixMilli()
			rule.ExpiresAtMS = &at
		}
		_, err := p.ask(&wire.PolicyRequest{Op: "add", Rule: &rule})
		return err
	}), "add makes a rule for what PATTERN names: `bash: git push *`, `write: src/**`, `fetch: HOST`, `tool: NAME` and so on. It is\n"+
		"matched on each simple command after it was judged, so allowing one never allows what is chained to it. --match and\n"+
		"--no-match are examples: what the rule must and must not be about. They are checked now and whenever it is loaded; one\n"+
		"that allows and fails one of its examples allows nothing.",
		"  sublet policy add 'bash: go test *' --match 'go test ./...' --no-match 'go test ./... && rm -rf ~'\n"+
			"  sublet policy add --decision deny --scope project 'bash: git push *'")
	c.Flags().StringVar(&rule.Decision, "decision", "allow", "allow, ask or deny")
	c.Flags().StringVar(&rule.Scope, "scope", "always", "session, project (the one of the current folder) or always")
	c.Flags().DurationVar(&expires, "expires", 0, "forget it after this time (0 = never)")
	c.Flags().StringArrayVar(&rule.Match, "match", nil, "an example that the rule must be about; may be repeated")
	c.Flags().StringArrayVar(&rule.NoMatch, "no-match", nil, "an example that the rule must not be about; may be repeated")
	return c
}

func (p *policies) remove(args []string) error {
	for _, rule := range args {
		if _, err := p.ask(&wire.PolicyRequest{Op: "revoke", RuleID: wire.RuleID(rule)}); err != nil {
			return fmt.Errorf("%s: %w", rule, err)
		}
	}
	return nil
}

func (p *policies) mode(args []string) error {
	r := &wire.PolicyRequest{Op: "get"}
	if len(args) == 1 {
		if p.session == "" {
			return &usageError{hinted{"a mode is set for a session", "name it with --session; `[policy] mode` of the settings is for all"}}
		}
		r.Op, r.Mode = "set_mode", args[0]
	}
	reply, err := p.ask(r)
	if err == nil {
		p.printf("%s\n", reply.Mode)
	}
	return err
}

func (p *policies) test() *cobra.Command {
	var asJSON, live bool
	var cwd string
	c := explained(command("test 'CMD'", "Show what would be done with a command, and by which rule; runs nothing", commandText, func(args []string) error {
		r := &wire.PolicyRequest{Op: "test", Command: wire.OSString(strings.Join(args, " ")), Live: live}
		if cwd != "" {
			dir, err := filepath.Abs(cwd)
			if err != nil {
				return err
			}
			if st, err := os.Stat(dir); err != nil || !st.IsDir() {
				return &usageError{fmt.Errorf("--cwd: %s is not a folder", dir)}
			}
			r.Cwd = wire.OSString(dir)
		}
		reply, err := p.ask(r)
		switch {
		case err != nil:
			return err
		case asJSON:
			fields, err := view(reply)
			if err != nil {
				return err
			}
			return p.printJSON(map[string]any{
				"command": string(r.Command), "verdict": fields["verdict"], "mode": reply.Mode, "outcomes": fields["outcomes"],
			})
		}
		p.drawVerdict(string(r.Command), *reply.Verdict)
		p.drawOutcomes(reply.Outcomes, reply.Mode)
		return nil
	}), "test judges a command as if an agent asked for it now, with the rules in force, and shows for each mode whether it would\n"+
		"run, be asked about or be refused, and why. It is judged for a fresh bash in the current folder; with --live for the\n"+
		"shell of the window last typed in, with its aliases, functions and folder.",
		"  sublet policy test 'git push --force'\n  sublet policy test --live 'make deploy'")
	c.Flags().BoolVar(&live, "live", false, "in the shell of the window last typed in")
	c.Flags().StringVar(&cwd, "cwd", "", "in this folder")
	return withJSON(c, &asJSON, "")
}

func (p *policies) suspects([]string) error {
	reply, err := p.ask(&wire.PolicyRequest{Op: "get"})
	if err != nil {
		return err
	}
	for _, name := range reply.Suspects {
		p.printf("%s\n", plain(name))
	}
	return nil
}

func (p *policies) accept([]string) error {
	var reply, after *wire.PolicyReply
	// On one connection, since what is accepted is what was shown there.
	err := p.connect(func(ctx context.Context, c *client.Conn) (err error) {
		if reply, err = wire.Call(ctx, c, &wire.PolicyRequest{Op: "get"}); err == nil && len(reply.Suspects) > 0 {
			after, err = wire.Call(ctx, c, &wire.PolicyRequest{Op: "accept", Suspects: reply.Suspects})
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(reply.Suspects) == 0 {
		p.printf("nothing to accept\n")
		return nil
	}
	for _, name := range reply.Suspects {
		if slices.Contains(after.Suspects, name) {
			p.printf("changed meanwhile, and not accepted: %s\n", plain(name))
		} else {
			p.printf("accepted: %s\n", plain(name))
		}
	}
	return nil
}

func (p *policies) secrets(args []string) error {
	r := &wire.PolicyRequest{Op: "get"}
	if len(args) == 1 {
		if args[0] != "mask" && args[0] != "show" {
			return &usageError{errors.New(args[0] + " is neither mask nor show")}
		}
		if p.session == "" {
			return &usageError{hinted{"secrets are shown to the models of one session", "name it with --session"}}
		}
		r.Op, r.Secrets = "set_secrets", args[0]
	}
	reply, err := p.ask(r)
	if err == nil {
		p.printf("%s\n", plain(reply.Secrets))
	}
	return err
}
