package hub

import (
	"context"
	"errors"

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

// path is a path that the client named, against the client's folder.
func (c *Client) path(p wire.OSString) (string, error) {
	_, cwd := c.environ()
	path, err := archive.Path(p, cwd)
	if err != nil {
		return "", invalid("path: %v", err)
	}
	return path, nil
}

// load reads a saved session as a new one: its events get new ids of session and their numbers anew.
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
	if err != nil {
		return invalid("path: %s: %v", visible.Exact(path), err)
	}
	s := c.hub.newSession(info.Cwd)
	defer c.hub.release(s)
	if err := s.events.Rename(ctx, visible.Exact(visible.Cut(info.Name, maxName))); err != nil {
		return err
	}
	numbers, err := archive.Copy(in.Event, s.events.Emit)
	if err != nil && !errors.Is(err, archive.ErrNotStored) {
		err = invalid("path: %s: %v", visible.Exact(path), err)
	}
	if err != nil {
		return errors.Join(err, s.remove(ctx))
	}
	err = in.Images(func(seq int64, images []*picture.Image) (err error) {
		if seq = numbers[seq]; seq != 0 && len(images) > 0 { // else of an event that was left out
			err = c.hub.opts.Store.KeepImages(ctx, s.id, seq, images)
		}
		return err
	})
	if _, ok := errors.AsType[*archive.FormatError](err); ok {
		err = invalid("path: %s: %v", visible.Exact(path), err)
	}
	if err != nil {
		return errors.Join(err, s.remove(ctx))
	}
	// What was under way when the session was saved has no end in the file.
	if err := c.hub.endUnfinished(ctx, s.id, copied); err != nil {
		return err
	}
	out.Session, out.Path, out.Size = s.snapshot(), wire.OSString(path), size
	return nil
}

// fork copies a session's turns, up to one of them, into a new session.
func (c *Client) fork(ctx context.Context, from *session, r *wire.SessionRequest, out *wire.SessionReply) error {
	events, err := c.hub.opts.Store.AllEvents(ctx, from.id)
	if err == nil {
		if events, err = archive.UntilTurn(events, r.Turn); errors.Is(err, archive.ErrRunning) {
			err = ErrSessionBusy
		} else if err != nil {
			err = invalid("%v", err)
		}
	}
	if err != nil {
		return err
	}
	info := from.snapshot()
	s := c.hub.newSession(info.Cwd)
	defer c.hub.release(s)
	if err := s.events.Rename(ctx, info.Name); err != nil {
		return err
	}
	numbers, err := archive.Copy(archive.Each(events), s.events.Emit)
	if err == nil {
		err = c.hub.opts.Store.CopyImages(ctx, from.id, s.id, numbers)
	}
	if err == nil { // a compaction may be under way
		err = c.hub.endUnfinished(ctx, s.id, copied)
	}
	if err != nil {
		return errors.Join(err, s.remove(ctx))
	}
	out.Session = s.snapshot()
	return nil
}

// copied is what is unfinished in a copy is ended with.
const copied = "the session was copied before the end of this"
