package gateway

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/wire"
)

// handedAge is how long a file is kept if its client went away before the turn ended.
const handedAge = 24 * time.Hour

// Handed keeps data as files: images and the like that clients send as bytes, since the daemon reads attachments from files, and
// outputs of which a client gets the path. Its private folder is made with the first file and removed by Close. The zero value
// is ready; it is safe for concurrent use.
type Handed struct {
	Parent string // where the folder is made; "" = where temporary files are
	Folder string // beginning of its name; "" = "sublet-handed-"
	File   string // pattern of the files' names, as os.CreateTemp has it; "" = "image-*"
	Max    int    // files kept at once; another one replaces the oldest; 0 = any number

	mu sync.Mutex
	// guarded by mu
	dir    string
	kept   []string // the oldest first; only with Max
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

// Keep writes a file and returns its path, which is valid until Remove. The type only determines the file's suffix.
func (h *Handed) Keep(content []byte, mime string) (path string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", ErrClosed
	}
	h.sweepLocked(time.Now())
	if h.dir == "" {
		if h.dir, err = os.MkdirTemp(h.Parent, cmp.Or(h.Folder, "sublet-handed-")); err != nil { // 0700
			return "", fmt.Errorf("keep a file for the daemon: %w", err)
		}
	}
	f, err := os.CreateTemp(h.dir, cmp.Or(h.File, "image-*")+map[string]string{
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
	}[mime]) // 0600
	if err != nil {
		return "", fmt.Errorf("keep a file for the daemon: %w", err)
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("keep a file for the daemon: %w", errors.Join(err, os.Remove(f.Name())))
	}
	if h.Max > 0 {
		if h.kept = append(h.kept, f.Name()); len(h.kept) > h.Max {
			os.Remove(h.kept[0]) // it may have been removed already; Close removes the folder
			h.kept = h.kept[1:]
		}
	}
	return f.Name(), nil
}

// sweepLocked removes old files, and creates the folder again if it was removed.
func (h *Handed) sweepLocked(now time.Time) {
	if h.dir == "" {
		return
	}
	left, err := os.ReadDir(h.dir)
	if errors.Is(err, fs.ErrNotExist) {
		h.dir, h.kept = "", nil
	}
	if err != nil {
		return // the following write reports the error
	}
	for _, e := range left {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > handedAge {
			os.Remove(filepath.Join(h.dir, e.Name()))
		}
	}
}

// Remove removes files of Keep after their turn has ended.
func (h *Handed) Remove(paths ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range paths {
		os.Remove(p) // it may have been removed already
	}
	h.kept = slices.DeleteFunc(h.kept, func(p string) bool { return slices.Contains(paths, p) })
}

// Close removes all files; Keep returns ErrClosed afterwards.
func (h *Handed) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.dir == "" {
		return nil
	}
	return os.RemoveAll(h.dir)
}
