package gateway

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"sublet/wire"
)

// Handed writes images that clients send as bytes to files, since the daemon reads attachments from files. Close removes them. The
// zero value is ready; it is safe for concurrent use.
type Handed struct {
	mu sync.Mutex
	// guarded by mu
	kept   []string
	closed bool
}

// Decode decodes base64 with or without padding.
func Decode(text string) ([]byte, error) {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, errors.New("is not base64")
	}
	return b, nil
}

// Image is a picture that a client sent as bytes.
type Image struct {
	Content []byte
	MIME    string // as the client gave it
}

// Attach writes images to files that last as long as the turn, and returns list with them.
func (t *Turn) Attach(list []wire.Attachment, images []Image) ([]wire.Attachment, error) {
	for _, i := range images {
		path, err := t.turns.Handed.Keep(i.Content, i.MIME)
		if err != nil {
			return nil, err
		}
		t.files = append(t.files, path)
		list = append(list, wire.Attachment{Path: wire.OSString(path), MIME: i.MIME})
	}
	return list, nil
}

// Keep writes a file, which only its user can read, and returns its path, which is valid until Remove. The type only determines the
// file's suffix.
func (h *Handed) Keep(content []byte, mime string) (path string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", ErrClosed
	}
	f, err := os.CreateTemp("", "sublet-image-*"+map[string]string{
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
	}[mime]) // 0600
	if err != nil {
		return "", fmt.Errorf("keep a file for the daemon: %w", err)
	}
	h.kept = append(h.kept, f.Name())
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("keep a file for the daemon: %w", err)
	}
	return f.Name(), nil
}

// removeLocked removes files. A file that was removed already is not an error.
func (h *Handed) removeLocked(paths []string) (err error) {
	paths = slices.Clone(paths) // they may be a part of kept, which DeleteFunc overwrites
	h.kept = slices.DeleteFunc(h.kept, func(p string) bool { return slices.Contains(paths, p) })
	for _, p := range paths {
		if gone := os.Remove(p); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// Remove removes files of Keep after their turn has ended.
func (h *Handed) Remove(paths ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.removeLocked(paths) // a file that cannot be removed is left behind
}

// Close removes all files; Keep returns ErrClosed afterwards.
func (h *Handed) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.removeLocked(h.kept)
}
