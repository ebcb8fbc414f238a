package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/wire"
)

// jobWait is how long the daemon waits for new output before it answers.
const jobWait = 30 * time.Second

func (a *app) job() *cobra.Command {
	return family("job", "Background jobs of agents: list them, watch one, end it", "",
		a.jobList(), a.jobTail(), a.asks("attach ID", "Print the output of a job until it ends; exits with its status", cobra.ExactArgs(1), a.jobAttach),
		a.asks("kill ID...", "End jobs with everything they started", cobra.MinimumNArgs(1), a.jobKill))
}

func (a *app) jobList() *cobra.Command {
	var asJSON bool
	return withJSON(a.asks("ls", "List background jobs, the oldest first", cobra.NoArgs, func(ctx context.Context, c *client.Conn, _ []string) error {
		reply, err := wire.Call(ctx, c, &wire.JobRequest{Op: "list"})
		if err != nil {
			return err
		}
		if asJSON {
			return a.printElements(reply, "jobs")
		}
		if len(reply.Jobs) == 0 {
			a.printf("no agent has a background job\n")
			return nil
		}
		w := a.table("ID\tSTATE\tTIME\tAGENT\tSHELL\tCOMMAND")
		for _, j := range reply.Jobs {
			what := firstLine(string(j.Command), 24) // so that the table has 80 columns
			if j.Note != "" {
				what += " (" + plain(j.Note) + ")"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", plain(j.JobID), jobState(j), jobAge(j), plain(j.Agent), plain(j.Shell), what)
		}
		return w.Flush()
	}), &asJSON, "job")
}

func jobState(j wire.Job) string {
	switch {
	case j.State == "ended" && j.ExitCode != nil:
		return fmt.Sprintf("exit %d", *j.ExitCode)
	case j.State == "ended" && j.Terminal:
		return "ended"
	case j.State == "ended":
		return "killed"
	case j.State == "stopped":
		return "wants keys"
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
	c := a.asks("tail ID", "Print the newest output of a job", cobra.ExactArgs(1), func(ctx context.Context, c *client.Conn, args []string) error {
		const fromEnd, most = -1, 1 << 20 // Offset -1: the newest Limit bytes; a reply has 1 MiB at most
		if bytes < 1 || bytes > most {    // a Limit of 0 is the default
			return &usageError{fmt.Errorf("--bytes is from 1 to %d", most)}
		}
		reply, err := wire.Call(ctx, c, &wire.JobRequest{Op: "read", JobID: args[0], Offset: fromEnd, Limit: bytes})
		if err != nil {
			return err
		}
		out := a.jobOutput()
		out.write(reply.Output, true)
		return out.err
	})
	c.Flags().IntVarP(&bytes, "bytes", "c", 8<<10, "at most so many bytes")
	return c
}

// jobOutput returns a printer of a job's output: as it is, or without control sequences on a terminal.
func (a *app) jobOutput() *borrowed {
	out := &borrowed{app: a, stop: func(error) {}}
	if isTerminal(a.stdout) {
		out.keepSequence = keepNone
	}
	return out
}

func (a *app) jobAttach(ctx context.Context, c *client.Conn, args []string) error {
	out := a.jobOutput()
	for at := int64(0); ; {
		reply, err := wire.Call(ctx, c, &wire.JobRequest{Op: "read", JobID: args[0], Offset: at, WaitMS: jobWait.Milliseconds()})
		if err != nil {
			return err
		}
		if out.write(reply.Output, false); out.err != nil {
			return out.err
		}
		at = reply.Offset + int64(len(reply.Output))
		if len(reply.Output) > 0 || len(reply.Jobs) != 1 || reply.Jobs[0].State != "ended" {
			continue
		}
		out.write(nil, true)
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
}

func (a *app) jobKill(ctx context.Context, c *client.Conn, args []string) error {
	for _, id := range args {
		reply, err := wire.Call(ctx, c, &wire.JobRequest{Op: "kill", JobID: id})
		if err != nil {
			return err
		}
		for _, j := range reply.Jobs {
			a.printf("%s: %s\n", plain(j.JobID), strings.TrimSpace(jobState(j)+"  "+plain(j.Note)))
		}
	}
	return nil
}
