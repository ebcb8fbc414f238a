package cli

import (
	"context"
	"fmt"

	"sublet/client"
	"sublet/wire"
)

// maxSearched is how many of the newest sessions resumeLast searches.
const maxSearched = 100

// resumeLast resumes the newest session of the folder dir.
func resumeLast(ctx context.Context, c *client.Conn, dir wire.OSString) error {
	list, err := wire.Call(ctx, c, &wire.SessionRequest{Op: "list", Limit: maxSearched})
	if err != nil {
		return err
	}
	for _, s := range list.Sessions {
		if s.Cwd == dir {
			_, err := wire.Call(ctx, c, &wire.SessionRequest{Op: "resume", SessionID: &s.ID, AfterSeq: s.LastSeq, IncludeHistory: true})
			return err
		}
	}
	return hinted{fmt.Sprintf("no session of %s is among the last %d", plain(string(dir)), maxSearched), "`sublet session ls` lists them; --session ID goes on in one"}
}

// keepSession names the session of a question that was asked, or deletes it.
func (a *app) keepSession(ctx context.Context, c *client.Conn, q question) error {
	ctx = context.WithoutCancel(ctx) // also after an interrupt
	id := c.Ready().Session.ID
	r := &wire.SessionRequest{Op: "rename", SessionID: &id}
	switch {
	case q.ephemeral:
		r.Op = "delete"
	case q.name != "":
		r.Name = q.name
	default:
		return nil
	}
	_, err := c.Request(ctx, r)
	return err
}
