package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/lease"
	"sublet/wire"
)

func (a *app) lease() *cobra.Command {
	return family("lease", "Borrow the shell of an open sublet, and see who has it", "", a.leaseRun(), a.leaseList(), a.leaseRevoke())
}

// leaseFlags is the arguments of `lease run`.
type leaseFlags struct {
	wait, timeout time.Duration
	json, plain   bool
	cwd           string
	client        int
	command       string
}

func (a *app) leaseRun() *cobra.Command {
	var b leaseFlags
	c := &cobra.Command{
		Use:   "run [flags] -- CMD...",
		Short: "Run a command in the shell of an open sublet",
		Long: "lease run borrows the shell of the sublet that was last typed in, runs the command there, with its aliases, functions\n" +
			"and environment, in front of its user's eyes, and passes on its output and exit status. One argument is shell text;\n" +
			"several are the words of one command. Exit status 124: the command took longer than --timeout; 125: there was no\n" +
			"shell to borrow, or it was not lent.",
		Example: "  sublet lease run -- make test\n  sublet lease run -- 'cd ~/src && ls | wc -l'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := b.bounds(c.Flags().Changed); err != nil {
				return err
			}
			b.command = args[0]
			if len(args) > 1 {
				b.command = shellWords(args)
			}
			return a.runLease(b)
		},
	}
	f := c.Flags()
	f.DurationVar(&b.wait, "wait", 0, "how long to queue for the shell, 0: not at all (default: [lease] wait of the settings)")
	f.DurationVar(&b.timeout, "timeout", 0, "how long the command may run, 1h at most (default: [shell] command_timeout)")
	f.BoolVar(&b.json, "json", false, "print output as {\"data\": …} lines, then one object with the result")
	f.BoolVar(&b.plain, "plain", false, "print output without colours and other control sequences: the command has a terminal, and prints as to one")
	f.StringVar(&b.cwd, "cwd", "", "run it in this folder (default: where the shell is)")
	f.IntVar(&b.client, "client", 0, "pid of the sublet to borrow from (see lease ls)")
	f.SetInterspersed(false)
	return c
}

// leastWait is the wait for --wait 0: even a free shell takes a moment to lend.
const leastWait = 100 * time.Millisecond

// bounds checks --wait and --timeout, if they were given. After it 0 stands for the value of the settings.
func (b *leaseFlags) bounds(given func(flag string) bool) error {
	switch {
	case b.wait < 0:
		return &usageError{fmt.Errorf("--wait %v is negative", b.wait)}
	case given("timeout") && (b.timeout <= 0 || b.timeout > lease.MaxTimeout):
		return &usageError{fmt.Errorf("--timeout %v: it must be more than 0 and %v at most", b.timeout, lease.MaxTimeout)}
	}
	if given("wait") {
		b.wait = max(b.wait, leastWait)
	}
	return nil
}

// roundUp returns d in milliseconds, rounded up so that no bound becomes 0.
func roundUp(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

func (a *app) runLease(b leaseFlags) error {
	if b.cwd != "" {
		dir, err := filepath.Abs(b.cwd)
		if err != nil {
			return err
		}
		b.cwd = dir
	}
	ctx, stop := interruptible(context.Background())
	defer stop()
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	out := newBorrowed(a, b.json, isTerminal(os.Stdout), !b.plain, abort)
	end, err := a.borrow(ctx, b, out)
	failed := err
	switch {
	case err == nil:
	case ctx.Err() != nil:
		failed = coded{errInterrupted, exitCancelled}
	case errors.Is(err, client.ErrDisconnected):
		failed = coded{hinted{"the connection to the daemon was lost before the command's end was reported", "look at the window before you run it again: it may have run"}, exitLeaseFailed}
	default:
		failed = coded{err, exitLeaseFailed}
		if b.json {
			end = &wire.CommandCompleted{Status: wire.StatusRefused, Output: []byte{}, Leftovers: []wire.Process{}, Notes: []string{err.Error()}}
		}
	}
	if printed := out.finish(end); printed != nil {
		return coded{fmt.Errorf("print the output: %w", printed), exitLeaseFailed}
	}
	if failed != nil {
		return failed
	}
	return leaseStatus(ctx, end)
}

// borrow runs the command in the shell and returns its end. After an error the command was not run, unless the error is
// client.ErrDisconnected.
func (a *app) borrow(ctx context.Context, b leaseFlags, out *borrowed) (*wire.CommandCompleted, error) {
	c, err := a.dial(ctx, noStart)
	if errors.Is(err, client.ErrNoDaemon) {
		err = hinted{"no open sublet lends its shell", "start `sublet` in a terminal"}
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.LeaseRun(ctx, &wire.LeaseRunRequest{
		ClientPID: b.client, Command: wire.OSString(b.command), Cwd: wire.OSString(b.cwd),
		WaitMS: roundUp(b.wait), TimeoutMS: roundUp(b.timeout),
	}, out.show)
}

// leaseStatus returns the exit status for a command's end; nil = 0.
func leaseStatus(ctx context.Context, end *wire.CommandCompleted) error {
	switch {
	case end.Status == wire.StatusTimeout:
		return coded{errors.New("the command was ended: it took longer than its time-out"), exitLeaseTimeout}
	case end.Status == wire.StatusCancelled && ctx.Err() != nil:
		return exitCode(exitCancelled)
	case end.Status == wire.StatusCancelled:
		return coded{errors.New("the command was cut off"), exitLeaseFailed} // the notes name the cause
	case end.Status == wire.StatusRefused:
		return coded{errors.New("the command was not run"), exitLeaseFailed}
	case end.Status == wire.StatusShellExited && end.ExitCode == nil:
		return coded{errors.New("the shell ended with the command"), exitLeaseFailed}
	case end.Status != wire.StatusOK && end.ExitCode == nil:
		return coded{fmt.Errorf("the command did not end as it should: %s", end.Status), exitLeaseFailed}
	case end.ExitCode != nil && *end.ExitCode != 0:
		return exitCode(*end.ExitCode)
	case end.ExitCode == nil && end.Signal != "":
		return coded{fmt.Errorf("the command was ended by %s", end.Signal), exitLeaseFailed}
	}
	return nil
}

// shellWords quotes words so that a shell reads them back as they are.
func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+:,./-") == "" {
			quoted[i] = w
			continue
		}
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

func (a *app) leaseList() *cobra.Command {
	var asJSON bool
	return withJSON(command("ls", "List the shells that are lent, to whom, and who waits", cobra.NoArgs, func([]string) error {
		return a.connected(noStart, func(ctx context.Context, c *client.Conn) error {
			s, err := wire.Call(ctx, c, &wire.StatusRequest{Shells: true})
			if err != nil {
				return err
			}
			return a.printLeases(s, asJSON)
		})
	}), &asJSON, "shell")
}

func (a *app) printLeases(s *wire.StatusReply, asJSON bool) error {
	if asJSON {
		return a.printElements(s, "leases")
	}
	if len(s.Leases) == 0 {
		a.printf("no shell is open to be lent\n")
		return nil
	}
	w := a.table("CLIENT\tHOLDER\tFOR\tTERM\tPURPOSE\tWAITING\tLEASE")
	for _, l := range s.Leases {
		holder, held, termMS, purpose := "not lent", "", "", firstLine(l.Purpose, 50)
		switch {
		case l.Silent:
			holder, purpose = "not lent", "the window does not answer"
		case l.Holder == "user" && l.LeaseID == "":
			holder, held, purpose = "user", ms(l.HeldMS), "the user's own command"
		case l.Holder != "":
			holder, held = firstLine(l.Holder, 50), ms(l.HeldMS)
		}
		if l.LeaseID != "" {
			termMS = ms(l.TermMS)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%d\t%s\n", l.ClientPID, holder, held, termMS, purpose, len(l.Queue), l.LeaseID)
		for _, q := range l.Queue {
			fmt.Fprintf(w, "\t%s\t%s\t\t%s\twaits\t%s\n", firstLine(q.Agent, 50), ms(q.WaitedMS), firstLine(q.Purpose, 50), q.LeaseID)
		}
	}
	return w.Flush()
}

func (a *app) leaseRevoke() *cobra.Command {
	r := &wire.LeaseRevokeRequest{}
	c := explained(command("revoke [LEASE]", "Take a shell back from whoever holds it", cobra.MaximumNArgs(1), func(args []string) error {
		return a.connected(noStart, func(ctx context.Context, c *client.Conn) (err error) {
			switch {
			case len(args) == 1:
				r.LeaseID = wire.LeaseID(args[0])
			case r.ClientPID == 0:
				if r.LeaseID, err = onlyLease(ctx, c); err != nil {
					return err
				}
			}
			if _, err = c.Request(ctx, r); errors.Is(err, wire.ErrLeaseDenied) {
				err = coded{err, exitFailed} // there is no such lease, which is no refusal
			}
			return err
		})
	}), "revoke ends the lease with the given id (see lease ls), or with --client every lease of that sublet's shell. Without\n"+
		"either it ends the one lease that is held.", "")
	c.Flags().IntVar(&r.ClientPID, "client", 0, "pid of the sublet whose shell is to be free")
	return c
}

// onlyLease returns the lease that is held, if there is exactly one.
func onlyLease(ctx context.Context, c *client.Conn) (wire.LeaseID, error) {
	s, err := wire.Call(ctx, c, &wire.StatusRequest{})
	if err != nil {
		return "", err
	}
	var held []wire.LeaseID
	for _, l := range s.Leases {
		if l.LeaseID != "" {
			held = append(held, l.LeaseID)
		}
	}
	switch len(held) {
	case 0:
		return "", errors.New("nobody holds a shell")
	case 1:
		return held[0], nil
	}
	return "", hinted{fmt.Sprintf("%d shells are lent", len(held)), "name one: `sublet lease ls` lists them"}
}
