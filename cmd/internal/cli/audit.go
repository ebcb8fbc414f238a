package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/daemon"
)

func (a *app) audit() *cobra.Command {
	var asJSON bool
	var since, session string
	c := explained(command("audit", "What agents were allowed and refused, and what they ran", cobra.NoArgs, func([]string) error {
		from, err := sinceTime(since, time.Now())
		if err != nil {
			return &usageError{err}
		}
		paths, err := a.paths()
		if err != nil {
			return err
		}
		wanted := func(e *daemon.AuditEntry) bool {
			return !e.At.Before(from) && (session == "" || e.Session == session)
		}
		if asJSON {
			return daemon.ReadAudit(daemon.AuditLog(paths), func(e daemon.AuditEntry) error {
				if !wanted(&e) {
					return nil
				}
				return a.printJSON(e)
			})
		}
		return a.auditTable(daemon.AuditLog(paths), wanted)
	}), "audit prints the audit log, the oldest line first: one line for each decision and one for each execution. It needs no\n"+
		"daemon. --since takes a time back from now (90m, 24h, 7d), a date or a time (2006-01-02, 2006-01-02T15:04:05Z).",
		"  sublet audit --since 24h\n  sublet audit --json | jq 'select(.decision == \"deny\")'\n  sublet audit verify")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	c.Flags().StringVar(&since, "since", "", "only what came after this time")
	c.Flags().StringVar(&session, "session", "", "only of this session")
	c.AddCommand(a.auditVerify())
	return c
}

// sinceTime parses the value of --since; "" is the zero time.
func sinceTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--since %q is neither a time back from now (90m, 24h, 7d) nor a date (2006-01-02)", s)
}

// auditPage is how many lines of the table are aligned with each other, so that a long log is not kept in memory.
const auditPage = 200

func (a *app) auditTable(path string, wanted func(*daemon.AuditEntry) bool) error {
	w := a.table("")
	n := 0
	err := daemon.ReadAudit(path, func(e daemon.AuditEntry) error {
		if !wanted(&e) {
			return nil
		}
		if n == 0 {
			fmt.Fprintln(w, "TIME\tWHAT\tLEVEL\tBY\tAGENT\tCOMMAND")
		}
		if n++; n%auditPage == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		what, by := e.Decision, e.By
		switch e.Event {
		case "execution":
			what = e.Status
			if e.ExitCode != nil && *e.ExitCode != 0 {
				what += " " + strconv.Itoa(*e.ExitCode)
			}
			by = ms(e.DurationMS)
		case "broken":
			what, by = "broken", e.Why
		}
		command := e.Command
		if e.Tool != "" && e.Tool != "bash" {
			command = e.Tool + ": " + command
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", e.At.Local().Format(time.DateTime), firstLine(what, 20), e.Level,
			firstLine(by, 40), firstLine(e.Agent, 20), firstLine(command, 100))
		return err
	})
	if err != nil {
		return err
	}
	if n == 0 {
		a.printf("nothing in the audit log for that\n")
	}
	return w.Flush()
}

func (a *app) auditVerify() *cobra.Command {
	var asJSON bool
	return withJSON(explained(command("verify", "Check that the audit log is as it was written", cobra.NoArgs, func([]string) error {
		paths, err := a.paths()
		if err != nil {
			return err
		}
		rep, err := daemon.VerifyAudit(daemon.AuditLog(paths))
		if err != nil {
			return err
		}
		if asJSON {
			err = a.printJSON(map[string]any{
				"ok": len(rep.Faults) == 0, "entries": rep.Entries, "first": rep.First, "last": rep.Last,
				"faults": append([]string{}, rep.Faults...), "notes": append([]string{}, rep.Notes...),
			})
		} else {
			for _, n := range rep.Notes {
				a.printf("note: %s\n", plain(n))
			}
			for _, f := range rep.Faults {
				a.printf("fault: %s\n", plain(f))
			}
			if len(rep.Faults) == 0 {
				a.printf("intact: %d entries, %d to %d\n", rep.Entries, rep.First, rep.Last)
			}
		}
		if err == nil && len(rep.Faults) > 0 {
			err = errors.New("the audit log was changed after it was written")
		}
		return err
	}), "verify goes along the chain of hashes through all files of the log: each line names the one before it, and the last one\n"+
		"is noted beside the log. It lists what was changed, removed, added or cut off, with file and line; exit status 1 then.", ""), &asJSON, "")
}
