package hub

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sublet/daemon/internal/picture"
	"sublet/wire"
	"sublet/wire/visible"
)

// A saved session is a file: one line that says what it is, then frames as on the wire: a SessionReply that holds the
// session, its events in order, and then their images, each a frame with a JSON object.
const (
	savedHeader = "sublet session 1\n"
	imageMark   = '{' // how the frame of an image begins: a message begins with a msgpack array

	maxSaved       = 1 << 30 // bytes of a file that is loaded
	maxEventImages = 2 * picture.MaxMany
	maxImageName   = 4 << 10 // bytes
)

// save writes a session to a file, atomically and readable by the user alone.
func (c *Client) save(ctx context.Context, s *session, r *wire.SessionRequest, out *wire.SessionReply) error {
	path, err := c.path(r.Path)
	if err != nil {
		return err
	}
	info := s.snapshot()
	f, err := os.CreateTemp(filepath.Dir(path), ".sublet-*") // 0600
	if err != nil {
		return invalid("path: %v", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	w := bufio.NewWriter(f)
	write := func(frame []byte, err error) error {
		out.Size += int64(len(frame))
		if err == nil {
			_, err = w.Write(frame)
		}
		return err
	}
	err = write([]byte(savedHeader), nil)
	if err == nil {
		err = write(wire.AppendFrame(nil, &wire.SessionReply{Session: info}))
	}
	if err == nil && r.IncludeHistory {
		err = c.saveHistory(ctx, s, r.IncludeBlocks, write)
	}
	if err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	if err := errors.Join(w.Flush(), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	out.Path = wire.OSString(path)
	return nil
}

// saveHistory writes the events of a session and their images.
func (c *Client) saveHistory(ctx context.Context, s *session, blocks bool, write func([]byte, error) error) error {
	events, err := s.events(ctx, 0)
	if err != nil {
		return err
	}
	for _, e := range envelopes(events, blocks) {
		if err := write(wire.AppendFrame(nil, e.Message)); err != nil {
			return err
		}
	}
	return c.hub.opts.Store.EachImage(ctx, s.id, func(seq int64, i *picture.Image) error {
		return write(imageFrame(savedImage{seq, i.Name, i.MIME, i.Width, i.Height, i.Size, i.Data}))
	})
}

// path is a path that the client named, against the client's folder.
func (c *Client) path(p wire.OSString) (string, error) {
	if p == "" {
		return "", invalid("path: is missing")
	}
	path := string(p)
	if !filepath.IsAbs(path) {
		_, cwd := c.environ()
		path = filepath.Join(string(cwd), path)
	}
	if !filepath.IsAbs(path) {
		return "", invalid("path: %s is not absolute, and the client told no folder", visible.Exact(string(p)))
	}
	return filepath.Clean(path), nil
}

// load reads a saved session as a new one: its events get new ids of session and their numbers anew.
func (c *Client) load(ctx context.Context, r *wire.SessionRequest, out *wire.SessionReply) error {
	path, err := c.path(r.Path)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return invalid("path: %v", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxSaved {
		return invalid("path: %s is not a file of at most %d bytes", visible.Exact(path), maxSaved)
	}
	in := bufio.NewReader(f)
	head := make([]byte, len(savedHeader))
	if _, err := io.ReadFull(in, head); err != nil || !bytes.Equal(head, []byte(savedHeader)) {
		return invalid("path: %s is not a saved session", visible.Exact(path))
	}
	payload, err := readPayload(in)
	if err != nil {
		return invalid("path: %s: the session's own record cannot be read", visible.Exact(path))
	}
	first, err := wire.Unmarshal(payload)
	saved, ok := first.(*wire.SessionReply)
	if err != nil || !ok {
		return invalid("path: %s: the session's own record cannot be read", visible.Exact(path))
	}
	s := c.hub.newSession(saved.Session.Cwd)
	defer c.hub.release(s)
	s.mu.Lock()
	s.info.Name = visible.Exact(visible.Cut(saved.Session.Name, maxName))
	s.mu.Unlock()
	turns := map[wire.TurnID]wire.TurnID{} // a turn's id is unique in the store, so a copy has one of its own
	numbers := map[int64]int64{}           // new ones of events, by those in the file
	for n := 1; ; n++ {
		payload, err := readPayload(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && payload[0] == imageMark {
			if err := c.loadImages(ctx, s, numbers, in, payload); err != nil {
				_ = s.remove(ctx)
				return err
			}
			break
		}
		var m wire.Message
		if err == nil {
			m, err = wire.Unmarshal(payload)
		}
		event, ok := m.(wire.EventMessage)
		if err != nil || !ok {
			_ = s.remove(ctx)
			return invalid("path: %s: event %d cannot be read", visible.Exact(path), n)
		}
		e := event.Meta()
		if e.TurnID != "" {
			if turns[e.TurnID] == "" {
				turns[e.TurnID] = wire.TurnID(wire.NewID())
			}
			e.TurnID = turns[e.TurnID]
		}
		before := e.Seq
		if err := s.emit(event); err != nil {
			return err
		}
		numbers[before] = event.Meta().Seq
	}
	// What was under way when the session was saved has no end in the file.
	if err := c.hub.endUnfinished(ctx, s.id); err != nil {
		return err
	}
	out.Session, out.Path, out.Size = s.snapshot(), wire.OSString(path), st.Size()
	return nil
}

// loadImages reads the images of a saved session, of which payload is the first, and keeps them with their events. What is
// no image that models take, in a file that anybody may have written, is an error.
func (c *Client) loadImages(ctx context.Context, s *session, numbers map[int64]int64, in io.Reader, payload []byte) error {
	var of int64 // the event whose images these are, as the file numbers it
	var images []*picture.Image
	size := 0
	keep := func() error {
		seq := numbers[of]
		if seq == 0 || len(images) == 0 {
			return nil // of an event that was left out
		}
		return c.hub.opts.Store.KeepImages(ctx, s.id, seq, images)
	}
	for n := 1; ; n++ {
		i, seq, err := readImage(payload)
		if err != nil || seq < of {
			return invalid("path: image %d of the file cannot be read", n)
		}
		if seq > of {
			if err := keep(); err != nil {
				return err
			}
			of, images, size = seq, nil, 0
		}
		images, size = append(images, i), size+len(i.Data)
		if len(images) > maxEventImages || size > picture.MaxRequest {
			return invalid("path: image %d of the file is more than an event can have", n)
		}
		if payload, err = readPayload(in); errors.Is(err, io.EOF) {
			return keep()
		} else if err != nil {
			return invalid("path: image %d of the file cannot be read", n+1)
		}
	}
}

// readPayload reads one frame of a saved session; io.EOF at the end.
func readPayload(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := int(head[0])<<24 | int(head[1])<<16 | int(head[2])<<8 | int(head[3])
	if size == 0 || size > wire.MaxFrame {
		return nil, fmt.Errorf("frame of %d bytes", size)
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return payload, nil
}

// savedImage is an image in a saved session.
type savedImage struct {
	Seq    int64  `json:"seq"` // of its event, in the file
	Name   string `json:"name"`
	MIME   string `json:"mime"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Size   int    `json:"size"`
	Data   []byte `json:"data"` // null: the pixels are not kept any more
}

func imageFrame(i savedImage) ([]byte, error) {
	payload, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...), nil
}

// readImage trusts nothing of an image's record but its name: what it is, its bytes say.
func readImage(payload []byte) (*picture.Image, int64, error) {
	var r savedImage
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, 0, err
	}
	name := visible.Exact(visible.Cut(r.Name, maxImageName))
	if r.Data != nil {
		i, err := picture.Read(name, bytes.NewReader(r.Data))
		return i, r.Seq, err
	}
	if r.Width <= 0 || r.Height <= 0 || r.Width > picture.MaxSide || r.Height > picture.MaxSide || r.Size < 0 || r.Size > picture.MaxBytes || !picture.Known(r.MIME) {
		return nil, 0, errors.New("no image")
	}
	return &picture.Image{Name: name, MIME: r.MIME, Width: r.Width, Height: r.Height, Size: r.Size}, r.Seq, nil
}
