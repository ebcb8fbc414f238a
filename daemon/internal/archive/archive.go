// Package archive converts sessions: to and from files that another daemon can load, and to texts for people and scripts.
//
// A saved session is a file: one line that says what it is, then frames as on the wire: a SessionReply that holds the session, its
// events in order, and then their images, each a frame with a JSON object.
package archive

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"sublet/daemon/internal/picture"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	header    = "sublet session 1\n"
	imageMark = '{' // how the frame of an image begins: a message begins with a msgpack array

	maxEventImages = 2 * picture.MaxMany
	maxImageName   = 4 << 10 // bytes
)

// A Writer writes a saved session.
type Writer struct {
	w    *bufio.Writer
	Size int64 // bytes written
	err  error // the first one; nothing is written after it
}

// NewWriter begins a saved session.
func NewWriter(w io.Writer, info wire.SessionInfo) *Writer {
	out := &Writer{w: bufio.NewWriter(w)}
	out.write([]byte(header), nil)
	out.write(wire.AppendFrame(nil, &wire.SessionReply{Session: info}))
	return out
}

func (w *Writer) write(frame []byte, err error) {
	if w.err == nil {
		w.err = err
	}
	if w.err == nil {
		w.Size += int64(len(frame))
		_, w.err = w.w.Write(frame)
	}
}

// Event writes the next event.
func (w *Writer) Event(m wire.Message) { w.write(wire.AppendFrame(nil, m)) }

// Image writes an image of the event of that number, after all events and in their order.
func (w *Writer) Image(seq int64, i *picture.Image) error {
	w.write(imageFrame(savedImage{seq, i.Name, i.MIME, i.Width, i.Height, i.Size, i.Data}))
	return w.err
}

// Close writes out what is left, and returns the first error of the Writer.
func (w *Writer) Close() error {
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// A FormatError reports why a file is not a saved session.
type FormatError struct{ What string }

func (e *FormatError) Error() string { return e.What }

func formatError(format string, args ...any) error { return &FormatError{fmt.Sprintf(format, args...)} }

// A Reader reads a saved session. What is wrong with it is a *FormatError.
type Reader struct {
	r       *bufio.Reader
	n       int    // events read
	payload []byte // the first image's
}

// NewReader reads the beginning of a saved session and returns its SessionInfo.
func NewReader(r io.Reader) (in *Reader, info wire.SessionInfo, err error) {
	in = &Reader{r: bufio.NewReader(r)}
	head := make([]byte, len(header))
	if _, err := io.ReadFull(in.r, head); err != nil || !bytes.Equal(head, []byte(header)) {
		return nil, info, formatError("it is not a saved session")
	}
	payload, err := readPayload(in.r)
	if err != nil {
		return nil, info, formatError("the session's own record cannot be read")
	}
	first, err := wire.Unmarshal(payload)
	saved, ok := first.(*wire.SessionReply)
	if err != nil || !ok {
		return nil, info, formatError("the session's own record cannot be read")
	}
	return in, saved.Session, nil
}

// Event returns the next event; io.EOF after the last one.
func (in *Reader) Event() (wire.EventMessage, error) {
	in.n++
	payload, err := readPayload(in.r)
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err == nil && payload[0] == imageMark {
		in.payload = payload
		return nil, io.EOF
	}
	var m wire.Message
	if err == nil {
		m, err = wire.Unmarshal(payload)
	}
	event, ok := m.(wire.EventMessage)
	if err != nil || !ok {
		return nil, formatError("event %d cannot be read", in.n)
	}
	return event, nil
}

// Images reads the images, after the events, and calls keep with those of one event at a time and its number in the file. An
// image that models do not take is an error, since anybody may have written the file.
func (in *Reader) Images(keep func(seq int64, images []*picture.Image) error) error {
	payload := in.payload
	if payload == nil {
		return nil
	}
	var of int64
	var images []*picture.Image
	size := 0
	for n := 1; ; n++ {
		i, seq, err := readImage(payload)
		if err != nil || seq < of {
			return formatError("image %d of the file cannot be read", n)
		}
		if seq > of && len(images) > 0 {
			if err := keep(of, images); err != nil {
				return err
			}
			images, size = nil, 0
		}
		of = seq
		images, size = append(images, i), size+len(i.Data)
		if len(images) > maxEventImages || size > picture.MaxRequest {
			return formatError("image %d of the file is more than an event can have", n)
		}
		if payload, err = readPayload(in.r); errors.Is(err, io.EOF) {
			return keep(of, images)
		} else if err != nil {
			return formatError("image %d of the file cannot be read", n+1)
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

// readImage takes an image's type and size from its bytes. Without bytes it takes them from the record, within bounds. The name
// is cleaned.
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

// maxSaved bounds a file that is loaded, in bytes.
const maxSaved = 1 << 30

// Save writes a session to a file, atomically and readable by the user alone, and returns its size. fill writes its history. A
// file that cannot be made there is a *FormatError.
func Save(path string, info wire.SessionInfo, fill func(*Writer) error) (size int64, err error) {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path))) // 0600
	if err != nil {
		return 0, formatError("%v", err)
	}
	defer f.Cleanup()
	w := NewWriter(f, info)
	err = fill(w)
	if err = errors.Join(err, w.Close()); err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		return 0, fmt.Errorf("save session: %w", err)
	}
	return w.Size, nil
}

// Open opens a file that Save wrote, and returns its size. What is wrong with it is a *FormatError.
func Open(path string) (f *os.File, size int64, err error) {
	f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe does not wait for a writer then
	if err != nil {
		return nil, 0, formatError("%v", err)
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxSaved {
		f.Close()
		return nil, 0, formatError("%s is not a file of at most %d bytes", visible.Exact(path), maxSaved)
	}
	return f, st.Size(), nil
}
