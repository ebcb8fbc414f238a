package gateway

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// handedAge is how long a file is kept whose client went away before its turn had ended.
const handedAge = 24 * time.Hour

// Handed keeps files that clients hand over as bytes and not by path, such as images, for the turns that want them: the
// daemon reads attachments itself. Its folder is private, made with the first file and removed by Close. The zero value is
// ready; it is safe for concurrent use.
type Handed struct {
	mu sync.Mutex
	// guarded by mu
	dir    string
	closed bool
}

// Decode reads base64 as clients write it, with padding or without.
func Decode(text string) ([]byte, error) {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, errors.New("is not base64")
	}
	return b, nil
}

// Keep writes a file and returns its path, until Remove. The type that the client claims only shows in its name.
func (h *Handed) Keep(content []byte, mime string) (path string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", ErrClosed
	}
	if h.dir == "" {
		if h.dir, err = os.MkdirTemp("", "sublet-handed-"); err != nil { // 0700
			return "", fmt.Errorf("keep a file for the daemon: %w", err)
		}
	}
	h.sweepLocked(time.Now())
	f, err := os.CreateTemp(h.dir, "image-*"+map[string]string{
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
	}[mime]) // 0600
	if err != nil {
		return "", fmt.Errorf("keep a file for the daemon: %w", err)
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("keep a file for the daemon: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return f.Name(), nil
}

// sweepLocked removes what was left behind.
func (h *Handed) sweepLocked(now time.Time) {
	left, err := os.ReadDir(h.dir)
	if err != nil {
		return // the write that follows tells
	}
	for _, e := range left {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > handedAge {
			os.Remove(filepath.Join(h.dir, e.Name()))
		}
	}
}

// Remove lets files go that Keep returned: their turn has ended.
func (h *Handed) Remove(paths ...string) {
	for _, p := range paths {
		os.Remove(p) // one that is gone is what is wanted
	}
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
