// Package archive converts sessions: to and from files that another daemon can load, and to texts for people and scripts.
//
// A saved session is a file: one line that says what it is, then frames as on the wire: a SessionReply that holds the session, its
// events in order, and then their images, each a frame with a JSON object.
package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/google/renameio/v2"

	"sublet/daemon/internal/picture"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	header    = "sublet session 1\n"
	imageMark = '{' // how the frame of an image begins: a message begins with a msgpack array

	maxImageName = 4 << 10 // bytes
)

// Session is a session as it is saved.
type Session struct {
	Info   wire.SessionInfo
	Events []wire.EventMessage
	Images map[int64][]*picture.Image // by the number of their event
}

// Save writes a session to a file, atomically and readable by the user alone, and returns the file's size.
func Save(path string, s Session) (size int64, err error) {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path))) // 0600
	if err != nil {
		return 0, err
	}
	defer f.Cleanup()
	err = s.write(f)
	if err == nil {
		size, err = f.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		err = f.CloseAtomicallyReplace()
	}
	return size, err
}

// write writes the header, and a frame for each of: the session's description, the events, the images.
func (s Session) write(to io.Writer) error {
	w := bufio.NewWriter(to) // keeps the first error of writing for Flush
	var failed error
	write := func(frame []byte, err error) {
		failed = cmp.Or(failed, err)
		_, _ = w.Write(frame)
	}
	write([]byte(header), nil)
	write(wire.AppendFrame(nil, &wire.SessionReply{Session: s.Info}))
	for _, m := range s.Events {
		write(wire.AppendFrame(nil, m))
	}
	for _, seq := range slices.Sorted(maps.Keys(s.Images)) {
		for _, i := range s.Images[seq] {
			write(imageFrame(savedImage{seq, i.Name, i.MIME, i.Width, i.Height, i.Size, i.Data}))
		}
	}
	return cmp.Or(failed, w.Flush())
}

// maxSaved bounds a file that is loaded, in bytes.
const maxSaved = 1 << 30

// Load reads a file that Save wrote, and returns its size.
func Load(path string) (s Session, size int64, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe does not wait for a writer then
	if err != nil {
		return s, 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxSaved {
		return s, 0, fmt.Errorf("%s is not a file of at most %d bytes", visible.Exact(path), maxSaved)
	}
	if s, err = Read(f); err != nil {
		return s, 0, fmt.Errorf("%s: %w", visible.Exact(path), err)
	}
	return s, st.Size(), nil
}

// Read reads a saved session, which anybody may have written.
func Read(from io.Reader) (s Session, err error) {
	r := bufio.NewReader(from)
	head := make([]byte, len(header))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != header {
		return s, errors.New("it is not a saved session")
	}
	var first wire.Message
	payload, err := readPayload(r)
	if err == nil {
		first, err = wire.Unmarshal(payload)
	}
	saved, ok := first.(*wire.SessionReply)
	if err != nil || !ok {
		return s, errors.New("the session's own record cannot be read")
	}
	s = Session{Info: saved.Session, Images: map[int64][]*picture.Image{}}
	for n := 1; ; n++ {
		payload, err := readPayload(r)
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err == nil {
			err = s.add(payload)
		}
		if err != nil {
			return s, fmt.Errorf("record %d of it cannot be read: %w", n, err)
		}
	}
}

// readPayload reads one frame of a saved session; io.EOF at the end.
func readPayload(r io.Reader) ([]byte, error) {
	var size uint32
	if err := binary.Read(r, binary.BigEndian, &size); err != nil {
		return nil, err
	}
	if size == 0 || size > wire.MaxFrame {
		return nil, fmt.Errorf("a frame of %d bytes", size)
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return payload, nil
}

// add adds the event or image of a frame.
func (s *Session) add(payload []byte) error {
	if payload[0] == imageMark {
		return s.addImage(payload)
	}
	m, err := wire.Unmarshal(payload)
	if err != nil {
		return err
	}
	event, ok := m.(wire.EventMessage)
	if !ok {
		return errors.New("it is no event")
	}
	s.Events = append(s.Events, event)
	return nil
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
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...), err
}

// addImage takes an image's type and size from its bytes. Without bytes it takes them from the record, within bounds. The name
// is cleaned.
func (s *Session) addImage(payload []byte) (err error) {
	var r savedImage
	if err := json.Unmarshal(payload, &r); err != nil {
		return err
	}
	i := &picture.Image{Name: visible.Exact(visible.Cut(r.Name, maxImageName)), MIME: r.MIME, Width: r.Width, Height: r.Height, Size: r.Size}
	if r.Data != nil {
		i, err = picture.Read(i.Name, bytes.NewReader(r.Data))
	} else if r.Width <= 0 || r.Height <= 0 || r.Width > picture.MaxSide || r.Height > picture.MaxSide || r.Size < 0 || r.Size > picture.MaxBytes || !picture.Known(r.MIME) {
		err = errors.New("no image")
	}
	if err != nil {
		return err
	}
	s.Images[r.Seq] = append(s.Images[r.Seq], i)
	return nil
}
