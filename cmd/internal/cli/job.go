package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/wire"
)

// jobWait is how long one question for new output waits.
const jobWait = 30 * time.Second

func (a *app) job() *cobra.Command {
	c := &cobra.Command{
		Use: "job", Short: "Background jobs of agents: list them, watch one, end it", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.jobList(), a.jobTail(), a.jobAttach(), a.jobKill())
	return c
}

func (a *app) jobList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "List background jobs, the oldest first", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.connected(false, func(ctx context.Context, c *client.Conn) error {
				reply, err := c.Jobs(ctx, &wire.JobRequest{Op: "list"})
				if err != nil {
					return err
				}
				if asJSON {
					return a.printElements(reply, "jobs")
				}
				for _, j := range reply.Jobs {
					a.printf("%-5s %-24s %9s  %s  %s: %s\n", plain(j.JobID), jobState(j), jobAge(j), plain(j.Agent), plain(j.Shell), firstLine(string(j.Command), 100))
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a job")
	return c
}

func jobState(j wire.Job) string {
	switch {
	case j.State == "ended" && j.ExitCode != nil:
		return fmt.Sprintf("exit %d", *j.ExitCode)
	case j.State == "ended":
		return "killed"
	case j.State == "stopped":
		return "stopped, wants keyboard"
	}
	return plain(j.State)
}

func jobAge(j wire.Job) string {
	end := time.Now()
	if j.EndedAtMS > 0 {
		end = time.UnixMilli(j.EndedAtMS)
	}
	return end.Sub(time.UnixMilli(j.StartedAtMS)).Round(time.Second).String()
}

func (a *app) jobTail() *cobra.Command {
	var bytes int
	c := &cobra.Command{
		Use: "tail ID", Short: "Print the newest output of a job", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.connected(false, func(ctx context.Context, c *client.Conn) error {
				reply, err := c.Jobs(ctx, &wire.JobRequest{Op: "read", JobID: args[0], Offset: -1, Limit: bytes})
				if err != nil {
					return err
				}
				a.jobOutput(reply.Output)
				return nil
			})
		},
	}
	c.Flags().IntVarP(&bytes, "bytes", "c", 8<<10, "at most so many bytes")
	return c
}

func (a *app) jobAttach() *cobra.Command {
	return &cobra.Command{
		Use: "attach ID", Short: "Print the output of a job until it ends; exits with its status", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.connected(false, func(ctx context.Context, c *client.Conn) error {
				for at := int64(0); ; {
					reply, err := c.Jobs(ctx, &wire.JobRequest{Op: "read", JobID: args[0], Offset: at, WaitMS: jobWait.Milliseconds()})
					if err != nil {
						return err
					}
					a.jobOutput(reply.Output)
					at = reply.Offset + int64(len(reply.Output))
					if len(reply.Output) > 0 || len(reply.Jobs) != 1 || reply.Jobs[0].State != "ended" {
						continue
					}
					j := reply.Jobs[0]
					if j.Note != "" {
						fmt.Fprintf(a.stderr, "sublet: %s\n", plain(j.Note))
					}
					switch {
					case j.ExitCode == nil:
						return exitCode(exitFailed)
					case *j.ExitCode != 0:
						return exitCode(*j.ExitCode)
					}
					return nil
				}
			})
		},
	}
}

func (a *app) jobKill() *cobra.Command {
	return &cobra.Command{
		Use: "kill ID...", Short: "End jobs with everything they started", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.connected(false, func(ctx context.Context, c *client.Conn) error {
				for _, id := range args {
					reply, err := c.Jobs(ctx, &wire.JobRequest{Op: "kill", JobID: id})
					if err != nil {
						return err
					}
					for _, j := range reply.Jobs {
						a.printf("%s: %s\n", plain(j.JobID), strings.TrimSpace(jobState(j)+"  "+plain(j.Note)))
					}
				}
				return nil
			})
		},
	}
}

// jobOutput prints a job's output, without control sequences on a terminal.
func (a *app) jobOutput(b []byte) {
	text := string(b)
	if isTerminal(os.Stdout) {
		text = plain(text)
	}
	a.printf("%s", text)
}
