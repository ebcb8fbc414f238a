package hub

import (
	"context"
	"errors"
	"path/filepath"

	"sublet/daemon/internal/archive"
	"sublet/daemon/internal/store"
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
	path, saved := c.path(r.Path), archive.Session{Info: s.snapshot()}
	var err error
	if r.IncludeHistory {
		if saved, err = s.saved(ctx); err != nil {
			return err
		}
	}
	if !r.IncludeBlocks {
		saved.Events = archive.WithoutBlocks(saved.Events)
	}
	out.Path = wire.OSString(path)
	if out.Size, err = archive.Save(path, saved); err != nil {
		return invalid("path: %v", err)
	}
	return nil
}

// saved returns the session with all its events and images.
func (s *session) saved(ctx context.Context) (archive.Session, error) {
	info := s.snapshot()
	events, err := s.hub.opts.Store.AllEvents(ctx, s.id)
	if err != nil {
		return archive.Session{}, err
	}
	images, err := s.hub.opts.Store.Images(ctx, s.id, store.MaxImages)
	return archive.Session{Info: info, Events: events, Images: images}, err
}

// path returns a path of the client as an absolute one; a relative path begins in the client's folder.
func (c *Client) path(p wire.OSString) string {
	if filepath.IsAbs(string(p)) {
		return filepath.Clean(string(p))
	}
	_, cwd := c.environ()
	return filepath.Join("/", string(cwd), string(p))
}

// load reads a saved session as a new one.
func (c *Client) load(ctx context.Context, r *wire.SessionRequest, out *wire.SessionReply) error {
	path := c.path(r.Path)
	saved, size, err := archive.Load(path)
	if err != nil {
		return invalid("path: %v", err)
	}
	out.Path, out.Size = wire.OSString(path), size
	out.Session, err = c.copySession(ctx, saved)
	return err
}

// fork copies a session's turns, up to one of them, into a new session.
func (c *Client) fork(ctx context.Context, s *session, r *wire.SessionRequest, out *wire.SessionReply) error {
	from, err := s.saved(ctx)
	if err != nil {
		return err
	}
	if from.Events, err = archive.UntilTurn(from.Events, r.Turn); errors.Is(err, archive.ErrRunning) {
		return ErrSessionBusy
	} else if err != nil {
		return invalid("%v", err)
	}
	out.Session, err = c.copySession(ctx, from)
	return err
}

// copySession makes a new session of another one's events and images, with new ids and numbers: see archive.Copy.
func (c *Client) copySession(ctx context.Context, from archive.Session) (wire.SessionInfo, error) {
	s := c.hub.newSession(from.Info.Cwd, from.Info.Name)
	defer c.hub.release(s)
	numbers, err := archive.Copy(from.Events, s.events.Emit)
	for seq, images := range from.Images {
		if to := numbers[seq]; to != 0 && err == nil { // else of an event that was left out
			err = c.hub.opts.Store.KeepImages(ctx, s.id, to, images)
		}
	}
	if err == nil { // what was under way has no end in the copy
		err = c.hub.endUnfinished(ctx, s.id, "the session was copied before the end of this")
	}
	if err != nil {
		return wire.SessionInfo{}, errors.Join(err, s.remove(ctx))
	}
	return s.snapshot(), nil
}
