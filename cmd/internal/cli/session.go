package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/wire"
)

func (a *app) session() *cobra.Command {
	return family("session", "Conversations that are stored: list, show, resume, search",
		"Sessions are conversations that are stored. ID is a session's id, its name, or at least four characters with which its id begins or ends.",
		a.sessionList(), a.sessionShow(), command("resume [ID]", "Open the terminal program on a session (default: the last)", cobra.MaximumNArgs(1), a.sessionResume),
		a.sessionSearch(), a.sessionExport(), a.asks("save ID FILE", "Write a session to a file that load reads", cobra.ExactArgs(2), a.sessionSave),
		a.asks("load FILE", "Make a session of a file that save wrote, and print its id", cobra.ExactArgs(1), a.sessionLoad), a.sessionFork(),
		a.asks("rename ID NAME", "Name a session", cobra.ExactArgs(2), sessionRename),
		a.asks("rm ID...", "Delete sessions with everything in them", cobra.MinimumNArgs(1), sessionRemove))
}

func (a *app) sessionList() *cobra.Command {
	var asJSON bool
	var limit int
	c := command("ls", "List sessions, newest first", cobra.NoArgs, func([]string) error {
		if limit < 0 {
			return &usageError{errors.New("--limit must not be negative")}
		}
		return a.connected(autoStart, func(ctx context.Context, c *client.Conn) error { return a.listSessions(ctx, c, limit, asJSON) })
	})
	c.Flags().IntVarP(&limit, "limit", "n", 0, "at most so many (0 = all)")
	return withJSON(c, &asJSON, "session")
}

func (a *app) listSessions(ctx context.Context, c *client.Conn, limit int, asJSON bool) error {
	w := a.table("")
	shown := 0
	for r := (&wire.SessionRequest{Op: "list"}); ; {
		r.RequestID, r.Limit = "", 1000 // the daemon's limit for one reply
		if limit > 0 {
			r.Limit = min(1000, limit-shown)
		}
		reply, err := wire.Call(ctx, c, r)
		if err != nil {
			return err
		}
		if asJSON {
			if err := a.printElements(reply, "sessions"); err != nil {
				return err
			}
		} else {
			if shown == 0 && len(reply.Sessions) > 0 {
				fmt.Fprintln(w, "ID\tCHANGED\tTURNS\tTITLE")
			}
			for _, s := range reply.Sessions {
				state := ""
				if s.Running {
					state = " (running)"
				}
				fmt.Fprintf(w, "%s\t%s\t%d\t%s%s\n", s.ID, when(s.UpdatedAtMS), s.Turns, firstLine(cmp.Or(s.Name, s.Title), 60), state)
			}
		}
		shown += len(reply.Sessions)
		if !reply.More || len(reply.Sessions) == 0 || limit > 0 && shown >= limit {
			return w.Flush()
		}
		r.Cursor = reply.Cursor
	}
}

func (a *app) sessionShow() *cobra.Command {
	var asJSON bool
	c := a.asks("show ID", "Print a session as Markdown, or its events", cobra.ExactArgs(1), func(ctx context.Context, c *client.Conn, args []string) error {
		if asJSON {
			return a.printEvents(ctx, c, args[0])
		}
		return a.exportSession(ctx, c, args[0], "markdown")
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print its events, one JSON object a line")
	return c
}

// printEvents prints the JSON view of each event of a session, one a line.
func (a *app) printEvents(ctx context.Context, c *client.Conn, session string) error {
	r, err := sessionRequest(ctx, c, "get", session)
	if err != nil {
		return err
	}
	r.IncludeHistory, r.IncludeBlocks, r.Limit = true, true, 1000
	for {
		reply, err := wire.Call(ctx, c, r)
		if err != nil {
			return err
		}
		after := r.AfterSeq
		for _, e := range reply.Events {
			m, ok := e.Message.(wire.EventMessage)
			if !ok {
				continue // of a kind this build does not know
			}
			r.AfterSeq = m.Meta().Seq
			if err := a.printMessage(m); err != nil {
				return err
			}
		}
		if !reply.More || r.AfterSeq == after {
			return nil
		}
		r.RequestID = ""
	}
}

func (a *app) sessionResume(args []string) error {
	if len(args) == 0 {
		return a.open("", true)
	}
	id, err := a.findSession(args[0])
	if err != nil {
		return err
	}
	return a.open(id, false)
}

// findSession returns the id of a stored session, which is given as for sessionRequest; of "" it is "".
func (a *app) findSession(given string) (id wire.SessionID, err error) {
	if given == "" {
		return "", nil
	}
	err = a.connected(autoStart, func(ctx context.Context, c *client.Conn) error {
		r, err := sessionRequest(ctx, c, "get", given)
		if err != nil {
			return err
		}
		reply, err := wire.Call(ctx, c, r)
		if err == nil {
			id = reply.Session.ID
		}
		return err
	})
	return id, err
}

func (a *app) sessionSearch() *cobra.Command {
	var asJSON bool
	var project, since string
	r := &wire.SessionRequest{Op: "search"}
	c := command("search WORDS...", "Find sessions in which something was said or run", cobra.MinimumNArgs(1), func(args []string) error {
		from, err := sinceTime(since, time.Now())
		if err != nil {
			return &usageError{err}
		}
		if !from.IsZero() {
			r.SinceMS = from.UnixMilli()
		}
		if project != "" {
			if project, err = filepath.Abs(project); err != nil {
				return err
			}
		}
		if r.Limit < 1 || r.Limit > 1000 {
			return &usageError{errors.New("--limit is from 1 to 1000")}
		}
		r.Query, r.Project = strings.Join(args, " "), wire.OSString(project)
		return a.connected(autoStart, func(ctx context.Context, c *client.Conn) error {
			reply, err := wire.Call(ctx, c, r)
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.printElements(reply, "hits")
			case len(reply.Hits) == 0:
				return exitCode(exitFailed) // as grep(1) does
			}
			for _, h := range reply.Hits {
				a.printf("%s  %s  %s\n", h.SessionID, when(h.AtMS), firstLine(strings.ReplaceAll(h.Snippet, "\n", " "), 100))
			}
			return nil
		})
	})
	c.Flags().IntVarP(&r.Limit, "limit", "n", 50, "at most so many")
	c.Flags().StringVar(&project, "project", "", "only sessions begun in this folder or below it, such as .")
	c.Flags().StringVar(&since, "since", "", "only what was said or run since then: a date such as 2026-11-01, or a time back such as 36h or 7d")
	return withJSON(c, &asJSON, "hit")
}

func (a *app) sessionFork() *cobra.Command {
	var turn int
	c := a.asks("fork ID", "Copy a session, up to one of its turns, and print the new id", cobra.ExactArgs(1), func(ctx context.Context, c *client.Conn, args []string) error {
		r, err := sessionRequest(ctx, c, "fork", args[0])
		if err != nil {
			return err
		}
		r.Turn = turn
		return a.newSession(ctx, c, r)
	})
	c.Flags().IntVar(&turn, "at", 0, "the last turn to copy, from 1 (0 = all)")
	return c
}

// newSession prints the id of the session that a request makes.
func (a *app) newSession(ctx context.Context, c *client.Conn, r *wire.SessionRequest) error {
	reply, err := wire.Call(ctx, c, r)
	if err == nil {
		a.printf("%s\n", reply.Session.ID)
	}
	return err
}

func (a *app) sessionExport() *cobra.Command {
	var format string
	c := command("export ID", "Print a session as Markdown, JSON or a page of HTML", cobra.ExactArgs(1), func(args []string) error {
		if !slices.Contains([]string{"markdown", "json", "html"}, format) {
			return &usageError{fmt.Errorf("format %q is none of markdown, json, html", format)}
		}
		return a.connected(autoStart, func(ctx context.Context, c *client.Conn) error { return a.exportSession(ctx, c, args[0], format) })
	})
	c.Flags().StringVar(&format, "format", "markdown", "markdown, json or html")
	return c
}

func (a *app) exportSession(ctx context.Context, c *client.Conn, session, format string) error {
	r, err := sessionRequest(ctx, c, "export", session)
	if err != nil {
		return err
	}
	if r.Format = format; format == "html" {
		r.Format = "markdown"
	}
	reply, err := wire.Call(ctx, c, r)
	if err != nil {
		return err
	}
	if format == "html" {
		page, err := asHTML(cmp.Or(reply.Session.Name, reply.Session.Title, session), []byte(reply.Text))
		a.printf("%s", page)
		return err
	}
	a.printf("%s\n", strings.TrimSuffix(forTerminal(a.stdout, reply.Text), "\n"))
	return nil
}

func (a *app) sessionSave(ctx context.Context, c *client.Conn, args []string) error {
	path, err := filepath.Abs(args[1])
	if err != nil {
		return err
	}
	r, err := sessionRequest(ctx, c, "save", args[0])
	if err != nil {
		return err
	}
	r.Path, r.IncludeHistory, r.IncludeBlocks = wire.OSString(path), true, true
	reply, err := wire.Call(ctx, c, r)
	if err == nil {
		a.printf("%s: %d bytes\n", plain(string(reply.Path)), reply.Size)
	}
	return err
}

func (a *app) sessionLoad(ctx context.Context, c *client.Conn, args []string) error {
	path, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	return a.newSession(ctx, c, &wire.SessionRequest{Op: "load", Path: wire.OSString(path), IncludeHistory: true, IncludeBlocks: true})
}

func sessionRename(ctx context.Context, c *client.Conn, args []string) error {
	r, err := sessionRequest(ctx, c, "rename", args[0])
	if err != nil {
		return err
	}
	r.Name = args[1]
	_, err = c.Request(ctx, r)
	return err
}

func sessionRemove(ctx context.Context, c *client.Conn, args []string) error {
	for _, s := range args {
		r, err := sessionRequest(ctx, c, "delete", s)
		if err == nil {
			_, err = c.Request(ctx, r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// sessionRequest returns a request about one session, given by its id, its name, or at least four characters with which its id begins
// or ends, where no name is the same. Names and parts of ids are searched among the newest 1000 sessions.
func sessionRequest(ctx context.Context, c *client.Conn, op, given string) (*wire.SessionRequest, error) {
	if given == "" { // to the daemon, the session of this connection
		return nil, &usageError{errors.New("a session's id or name must not be empty")}
	}
	id := wire.SessionID(given)
	if len(given) != len(wire.NewID()) {
		list, err := wire.Call(ctx, c, &wire.SessionRequest{Op: "list", Limit: 1000})
		if err != nil {
			return nil, err
		}
		var called, found []wire.SessionID
		for _, s := range list.Sessions {
			switch {
			case s.Name == given:
				called = append(called, s.ID)
			case len(given) >= 4 && (strings.HasPrefix(string(s.ID), given) || strings.HasSuffix(string(s.ID), given)):
				found = append(found, s.ID)
			}
		}
		if len(called) > 0 {
			found = called
		}
		if len(found) > 1 {
			return nil, hinted{fmt.Sprintf("%d sessions are called %s, or have ids that begin or end so", len(found), plain(given)), "`sublet session ls` prints whole ids"}
		}
		if len(found) == 1 {
			id = found[0]
		}
	}
	return &wire.SessionRequest{Op: op, SessionID: &id}, nil
}
