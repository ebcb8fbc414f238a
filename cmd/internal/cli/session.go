package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/wire"
)

func (a *app) session() *cobra.Command {
	c := &cobra.Command{Use: "session", Short: "Conversations that are stored: list, show, resume, search", Args: cobra.NoArgs, RunE: needsSubcommand}
	c.AddCommand(a.sessionList(), a.sessionShow(), a.sessionResume(), a.sessionSearch(), a.sessionExport(), a.sessionSave(), a.sessionLoad(), a.sessionFork(),
		a.sessionRename(), a.sessionRemove())
	return c
}

// sessions calls f with a connection for requests on sessions.
func (a *app) sessions(f func(ctx context.Context, c *client.Conn) error) error {
	return a.connected(false, f)
}

func id(s string) *wire.SessionID {
	v := wire.SessionID(s)
	return &v
}

func (a *app) sessionList() *cobra.Command {
	var asJSON bool
	var limit int
	c := &cobra.Command{
		Use: "ls", Short: "List sessions, newest first", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if limit < 0 {
				return &usageError{errors.New("--limit must not be negative")}
			}
			return a.sessions(func(ctx context.Context, c *client.Conn) error { return a.listSessions(ctx, c, limit, asJSON) })
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a session")
	c.Flags().IntVarP(&limit, "limit", "n", 0, "at most so many (0 = all)")
	return c
}

func (a *app) listSessions(ctx context.Context, c *client.Conn, limit int, asJSON bool) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	shown := 0
	for r := (&wire.SessionRequest{Op: "list"}); ; {
		r.RequestID, r.Limit = "", 1000
		if limit > 0 {
			r.Limit = min(1000, limit-shown)
		}
		reply, err := c.Sessions(ctx, r)
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
				title := s.Name
				if title == "" {
					title = s.Title
				}
				state := ""
				if s.Running {
					state = " (running)"
				}
				fmt.Fprintf(w, "%s\t%s\t%d\t%s%s\n", s.ID, when(s.UpdatedAtMS), s.Turns, firstLine(title, 60), state)
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
	c := &cobra.Command{
		Use: "show ID", Short: "Print a session", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions(func(ctx context.Context, c *client.Conn) error { return a.showSession(ctx, c, args[0], asJSON) })
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print its events, one JSON object a line")
	return c
}

func (a *app) showSession(ctx context.Context, c *client.Conn, session string, asJSON bool) error {
	out := &transcript{app: a}
	for after := int64(0); ; {
		reply, err := c.Sessions(ctx, &wire.SessionRequest{
			Op: "get", SessionID: id(session), IncludeHistory: true, IncludeBlocks: true, AfterSeq: after, Limit: 1000,
		})
		if err != nil {
			return err
		}
		last := after
		for _, e := range reply.Events {
			m, ok := e.Message.(wire.EventMessage)
			if !ok {
				continue // of a kind this build does not know
			}
			last = m.Meta().Seq
			if asJSON {
				err = a.printMessage(m)
			} else {
				out.show(m)
			}
			if err != nil {
				return err
			}
		}
		if !reply.More || last == after {
			out.endLine()
			return nil
		}
		after = last
	}
}

// transcript prints stored events for people to read.
type transcript struct {
	app  *app
	open bool
}

func (t *transcript) endLine() {
	if t.open {
		t.app.printf("\n")
		t.open = false
	}
}

func (t *transcript) show(m wire.EventMessage) {
	switch m := m.(type) {
	case *wire.TurnStarted:
		t.endLine()
		t.app.printf("\n> %s\n\n", strings.ReplaceAll(strings.TrimSpace(plain(m.Prompt)), "\n", "\n  "))
	case *wire.TurnSteered:
		t.endLine()
		t.app.printf("\n> %s\n\n", strings.ReplaceAll(strings.TrimSpace(plain(m.Prompt)), "\n", "\n  "))
	case *wire.AgentStreamChunk:
		switch {
		case isDelegate(m.Agent):
		case m.Chunk.Type == wire.ChunkText:
			text := plain(m.Chunk.Text)
			t.app.printf("%s", text)
			t.open = text != "" && !strings.HasSuffix(text, "\n") || text == "" && t.open
		case m.Chunk.Type == wire.ChunkVoid:
			t.endLine()
			t.app.printf("[void: %s]\n", oneLine(m.Chunk.Text))
		case m.Chunk.Type == wire.ChunkBlock && m.Chunk.Block != nil:
			t.endLine()
			t.app.printf("%s\n", strings.TrimRight(plain(m.Chunk.Block.Content), "\n"))
		}
	case *wire.CommandResult:
		t.endLine()
		sign, what := "$", string(m.Command)
		if m.Tool != "" {
			sign = m.Tool + ":"
		}
		status := ""
		switch {
		case m.ExitCode != nil && *m.ExitCode != 0:
			status = fmt.Sprintf("  [exit %d]", *m.ExitCode)
		case m.Tool != "" && m.Status != wire.StatusSuccess && m.Status != wire.StatusOK:
			status = "  [" + m.Status + "]"
		}
		t.app.printf("  %s %s%s\n", sign, firstLine(what, 100), status)
	case *wire.CompactionComplete:
		t.endLine()
		t.app.printf("\n[compaction: %s]\n", plain(m.Status))
	case *wire.Error:
		t.endLine()
		t.app.printf("error: %s\n", oneLine(m.Error()))
	case *wire.AgentComplete:
		t.endLine()
		if m.Status != wire.StatusSuccess {
			t.app.printf("[%s]\n", plain(m.Status))
		}
	}
}

func (a *app) sessionResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume [ID]", Short: "Open the terminal program on a session (default: the last)", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.open("", true)
			}
			return a.open(wire.SessionID(args[0]), false)
		},
	}
}

func (a *app) sessionSearch() *cobra.Command {
	var asJSON bool
	var limit int
	var project, since string
	c := &cobra.Command{
		Use: "search WORDS...", Short: "Find sessions in which something was said or run", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			from, err := sinceMS(since, time.Now())
			if err != nil {
				return &usageError{err}
			}
			if project != "" {
				if project, err = filepath.Abs(project); err != nil {
					return err
				}
			}
			if limit < 1 || limit > 1000 {
				return &usageError{errors.New("--limit is from 1 to 1000")}
			}
			return a.sessions(func(ctx context.Context, c *client.Conn) error {
				reply, err := c.Sessions(ctx, &wire.SessionRequest{Op: "search", Query: strings.Join(args, " "), Limit: limit, Project: wire.OSString(project), SinceMS: from})
				if err != nil {
					return err
				}
				if asJSON {
					return a.printElements(reply, "hits")
				}
				for _, h := range reply.Hits {
					a.printf("%s  %s  %s\n", h.SessionID, when(h.AtMS), firstLine(strings.ReplaceAll(h.Snippet, "\n", " "), 100))
				}
				if len(reply.Hits) == 0 {
					return exitCode(exitFailed) // as grep does
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a hit")
	c.Flags().IntVarP(&limit, "limit", "n", 50, "at most so many")
	c.Flags().StringVar(&project, "project", "", "only sessions begun in this folder or below it, such as .")
	c.Flags().StringVar(&since, "since", "", "only what was said or run since then: a date such as 2026-11-01, or a time back such as 36h or 7d")
	return c
}

// sinceMS reads a date, or how far back from now, as milliseconds since 1970; "" is 0.
func sinceMS(text string, now time.Time) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if at, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return at.UnixMilli(), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n).UnixMilli(), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d).UnixMilli(), nil
	}
	return 0, fmt.Errorf("--since: %q is neither a date such as 2026-11-01 nor a time back such as 36h or 7d", text)
}

func (a *app) sessionFork() *cobra.Command {
	var turn int
	c := &cobra.Command{
		Use: "fork ID", Short: "Copy a session, up to one of its turns, and print the new id", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions(func(ctx context.Context, c *client.Conn) error {
				reply, err := c.Sessions(ctx, &wire.SessionRequest{Op: "fork", SessionID: id(args[0]), Turn: turn})
				if err != nil {
					return err
				}
				a.printf("%s\n", reply.Session.ID)
				return nil
			})
		},
	}
	c.Flags().IntVar(&turn, "at", 0, "the last turn to copy, from 1 (0 = all)")
	return c
}

func (a *app) sessionExport() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "export ID", Short: "Print a session as Markdown, JSON or a page of HTML", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			asked := format
			switch format {
			case "markdown", "json":
			case "html":
				asked = "markdown"
			default:
				return &usageError{fmt.Errorf("format %q is none of markdown, json, html", format)}
			}
			return a.sessions(func(ctx context.Context, c *client.Conn) error {
				r := &wire.SessionRequest{Op: "export", SessionID: id(args[0]), Format: asked}
				var whole strings.Builder
				for {
					reply, err := c.Sessions(ctx, r)
					if err != nil {
						return err
					}
					text := reply.Text
					if format == "html" {
						if whole.WriteString(text); !reply.More {
							page, err := asHTML(cmp.Or(reply.Session.Name, reply.Session.Title, args[0]), []byte(whole.String()))
							if err != nil {
								return err
							}
							a.printf("%s", page)
							return nil
						}
						r.RequestID, r.Cursor = "", reply.Cursor
						continue
					}
					if isTerminal(os.Stdout) {
						text = plain(text)
					}
					a.printf("%s", text)
					if !reply.More {
						if text != "" && !strings.HasSuffix(text, "\n") {
							a.printf("\n")
						}
						return nil
					}
					r.RequestID, r.Cursor = "", reply.Cursor
				}
			})
		},
	}
	c.Flags().StringVar(&format, "format", "markdown", "markdown, json or html")
	return c
}

func (a *app) sessionSave() *cobra.Command {
	return &cobra.Command{
		Use: "save ID FILE", Short: "Write a session to a file that load reads", Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions(func(ctx context.Context, c *client.Conn) error {
				path, err := filepath.Abs(args[1])
				if err != nil {
					return err
				}
				reply, err := c.Sessions(ctx, &wire.SessionRequest{
					Op: "save", SessionID: id(args[0]), Path: wire.OSString(path), IncludeHistory: true, IncludeBlocks: true,
				})
				if err != nil {
					return err
				}
				a.printf("%s: %d bytes\n", plain(string(reply.Path)), reply.Size)
				return nil
			})
		},
	}
}

func (a *app) sessionLoad() *cobra.Command {
	return &cobra.Command{
		Use: "load FILE", Short: "Make a session of a file that save wrote, and print its id", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions(func(ctx context.Context, c *client.Conn) error {
				path, err := filepath.Abs(args[0])
				if err != nil {
					return err
				}
				reply, err := c.Sessions(ctx, &wire.SessionRequest{Op: "load", Path: wire.OSString(path), IncludeHistory: true, IncludeBlocks: true})
				if err != nil {
					return err
				}
				a.printf("%s\n", reply.Session.ID)
				return nil
			})
		},
	}
}

func (a *app) sessionRename() *cobra.Command {
	return &cobra.Command{
		Use: "rename ID NAME", Short: "Name a session", Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions(func(ctx context.Context, c *client.Conn) error {
				_, err := c.Sessions(ctx, &wire.SessionRequest{Op: "rename", SessionID: id(args[0]), Name: args[1]})
				return err
			})
		},
	}
}

func (a *app) sessionRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm ID...", Short: "Delete sessions with everything in them", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions(func(ctx context.Context, c *client.Conn) error {
				for _, s := range args {
					if _, err := c.Sessions(ctx, &wire.SessionRequest{Op: "delete", SessionID: id(s)}); err != nil {
						return fmt.Errorf("%s: %w", s, err)
					}
				}
				return nil
			})
		},
	}
}
