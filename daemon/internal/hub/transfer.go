package hub

import (
	"context"
	"errors"
	"path/filepath"

	"sublet/daemon/internal/archive"
	"sublet/daemon/internal/picture"
	"sublet/wire"
	"sublet/wire/visible"
)

// export writes a session as text: json or markdown.
func (s *session) export(ctx context.Context, r *wire.SessionRequest) (string, error) {
	events, err := s.hub.opts.Store.AllEvents(ctx, s.id)
	if err != nil {
		return "", err
	}
	switch r.Format {
	case "json", "":
		return archive.JSON(s.snapshot(), events)
	case "markdown":
		return archive.Markdown(s.snapshot(), events), nil
	}
	return "", invalid("format: %q is neither json nor markdown", visible.Exact(visible.Cut(r.Format, 64)))
}

// save writes a session to a file, atomically and readable by the user alone.
func (c *Client) save(ctx context.Context, s *session, r *wire.SessionRequest, out *wire.SessionReply) error {
	path, err := c.path(r.Path)
	if err != nil {
		return err
	}
	out.Path = wire.OSString(path)
	out.Size, err = archive.Save(path, s.snapshot(), func(w *archive.Writer) error {
		if !r.IncludeHistory {
			return nil
		}
		events, err := s.hub.opts.Store.AllEvents(ctx, s.id)
		for _, e := range archive.Envelopes(events, r.IncludeBlocks) {
			w.Event(e.Message)
		}
		return errors.Join(err, c.hub.opts.Store.EachImage(ctx, s.id, w.Image))
	})
	if fault, ok := errors.AsType[*archive.FormatError](err); ok {
		return invalid("path: %v", fault)
	}
	return err
}

// path returns a path of the client as an absolute one; a relative path begins in the client's folder.
func (c *Client) path(p wire.OSString) (string, error) {
	path := string(p)
	if path == "" {
		return "", invalid("path: is missing")
	}
	if !filepath.IsAbs(path) {
		_, cwd := c.environ()
		path = filepath.Join(string(cwd), path)
	}
	if !filepath.IsAbs(path) {
		return "", invalid("path: %s is not absolute, and the client named no folder", visible.Exact(string(p)))
	}
	return filepath.Clean(path), nil
}

// load reads a saved session as a new one.
func (c *Client) load(ctx context.Context, r *wire.SessionRequest, out *wire.SessionReply) error {
	path, err := c.path(r.Path)
	if err != nil {
		return err
	}
	f, size, err := archive.Open(path)
	if err != nil {
		return invalid("path: %v", err)
	}
	defer f.Close()
	in, info, err := archive.NewReader(f)
	if err == nil {
		out.Session, err = c.copySession(ctx, info, in.Event, func(to wire.SessionID, numbers map[int64]int64) error {
			return in.Images(func(seq int64, images []*picture.Image) (err error) {
				if seq = numbers[seq]; seq != 0 { // else of an event that was left out
					err = c.hub.opts.Store.KeepImages(ctx, to, seq, images)
				}
				return err
			})
		})
	}
	if _, ok := errors.AsType[*archive.FormatError](err); ok {
		return invalid("path: %s: %v", visible.Exact(path), err)
	}
	out.Path, out.Size = wire.OSString(path), size
	return err
}

// fork copies a session's turns, up to one of them, into a new session.
func (c *Client) fork(ctx context.Context, from *session, r *wire.SessionRequest, out *wire.SessionReply) error {
	events, err := c.hub.opts.Store.AllEvents(ctx, from.id)
	if err != nil {
		return err
	}
	if events, err = archive.UntilTurn(events, r.Turn); errors.Is(err, archive.ErrRunning) {
		return ErrSessionBusy
	} else if err != nil {
		return invalid("%v", err)
	}
	out.Session, err = c.copySession(ctx, from.snapshot(), archive.Each(events), func(to wire.SessionID, numbers map[int64]int64) error {
		return c.hub.opts.Store.CopyImages(ctx, from.id, to, numbers)
	})
	return err
}

// copySession makes a new session of the events that next returns, with new ids and numbers: see archive.Copy. images adds their images.
func (c *Client) copySession(ctx context.Context, from wire.SessionInfo, next func() (wire.EventMessage, error), images func(to wire.SessionID, numbers map[int64]int64) error) (wire.SessionInfo, error) {
	s := c.hub.newSession(from.Cwd, from.Name)
	defer c.hub.release(s)
	numbers, err := archive.Copy(next, s.events.Emit)
	if err == nil {
		err = images(s.id, numbers)
	}
	if err == nil { // what was under way has no end in the copy
		err = c.hub.endUnfinished(ctx, s.id, "the session was copied before the end of this")
	}
	if err != nil {
		return wire.SessionInfo{}, errors.Join(err, s.remove(ctx))
	}
	return s.snapshot(), nil
}
