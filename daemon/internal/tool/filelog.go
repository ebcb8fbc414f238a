package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"sublet/daemon/internal/store"
)

// ErrNothingToUndo reports that no change is recorded.
var ErrNothingToUndo = errors.New("nothing to put back")

// FileLog records what one session's file tools have read and changed. The zero value is ready; it is safe for concurrent
// use and must not be copied. All but Changes is in memory only: after a daemon's restart files must be read again.
type FileLog struct {
	Changes store.Changes // what Undo undoes; without a Store nothing is kept for it

	mu sync.Mutex
	// guarded by mu
	seen    map[seenBy]string  // digest of the content that an agent knows
	reports map[string]checked // the last report of a checker, by path
	missed  map[string][]byte  // the content before the first change that a language server did not check in time, by path
	wrote   map[string]written // what a tool wrote last, by path
	slow    map[string]int     // how many changes are not checked, by folder
}

// seenBy is a file as one agent knows it: what another agent read or changed is not in its conversation.
type seenBy struct{ agent, path string }

// written is the content that a tool wrote.
type written struct {
	digest string
	made   bool // tools made the file, and each found in it what the one before had written
}

// Digest is the lower-case hex SHA-256 of content, as in Action.FileDigest.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Saw records that the agent, as Env.Agent names it, knows path's content with this digest.
func (l *FileLog) Saw(agent, path, digest string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[seenBy]string{}
	}
	l.seen[seenBy{agent, path}] = digest
}

// ReadText returns a file's content, and records that the agent knows it.
func (l *FileLog) ReadText(agent, path string) (string, error) {
	digest, content, err := fileState(path)
	switch {
	case err != nil:
		return "", err
	case digest == "":
		return "", fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	case binaryKind(content) != "":
		return "", fmt.Errorf("%s: is %s, not text", path, binaryKind(content))
	}
	l.Saw(agent, path, digest)
	return string(content), nil
}

// Written returns the text that a tool of this session wrote to path, if the file is unchanged since.
func (l *FileLog) Written(path string) (text string, ok bool) {
	text, _, ok = l.lastWritten(path)
	return text, ok
}

// Made reports whether tools of this session made the file at path, and nobody else changed it since.
func (l *FileLog) Made(path string) bool {
	_, made, ok := l.lastWritten(path)
	return made && ok
}

func (l *FileLog) lastWritten(path string) (text string, made, ok bool) {
	l.mu.Lock()
	w, ok := l.wrote[path]
	l.mu.Unlock()
	if !ok {
		return "", false, false
	}
	now, content, err := fileState(path)
	return string(content), w.made, err == nil && now == w.digest
}

// reported records a checker's report about path, and returns the one before and whether there was one by the same checker.
func (l *FileLog) reported(path string, now checked) (before []string, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, known := l.reports[path]
	if !known && len(now.lines) == 0 {
		return nil, false
	}
	if l.reports == nil {
		l.reports = map[string]checked{}
	}
	l.reports[path] = now
	if !known || was.by != now.by {
		return nil, false
	}
	return was.lines, true
}

// notChecked records before, the content of path before a change that a language server did not check in time. If several
// changes were not checked, the content before the first of them is kept, until checkedBefore returns it.
func (l *FileLog) notChecked(path string, before []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.missed == nil {
		l.missed = map[string][]byte{}
	}
	if _, known := l.missed[path]; !known {
		l.missed[path] = before
	}
}

// checkedBefore returns the content of path before the changes that were not checked, or before if there were none, and forgets them.
func (l *FileLog) checkedBefore(path string, before []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if content, missed := l.missed[path]; missed {
		before = content
	}
	delete(l.missed, path)
	return before
}

// skips reports whether a change in dir is not to be checked, and counts it.
func (l *FileLog) skips(dir string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slow[dir] == 0 {
		return false
	}
	l.slow[dir]--
	return true
}

// skip disables checks for the next n changes in dir.
func (l *FileLog) skip(dir string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slow == nil {
		l.slow = map[string]int{}
	}
	l.slow[dir] = n
}

// Known returns the digest with which the agent last read or wrote path in this session, and whether it did.
func (l *FileLog) Known(agent, path string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.seen[seenBy{agent, path}]
	return d, ok
}

// changed records a change that the agent made.
func (l *FileLog) changed(agent string, c store.FileChange) {
	l.Saw(agent, c.Path, c.After)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrote == nil {
		l.wrote = map[string]written{}
	}
	last := l.wrote[c.Path]
	l.wrote[c.Path] = written{c.After, !c.Existed || last.made && last.digest == Digest(c.Before)}
}

// Undo undoes the last change and removes it from those that can be undone, of which more are left: it restores the old content,
// or removes a created file. If the file is no longer what the change made of it, or its old content is not kept, Undo leaves it as
// it is and returns an error; the change is removed nevertheless, so that those before can be undone. It returns ErrNothingToUndo if
// there is none.
func (l *FileLog) Undo(ctx context.Context) (c store.FileChange, more int, err error) {
	if l.Changes.Store == nil {
		return c, 0, ErrNothingToUndo
	}
	replacing.Lock()
	defer replacing.Unlock()
	c, more, err = l.Changes.Last(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return c, 0, ErrNothingToUndo
	}
	if err != nil {
		return c, 0, err
	}
	now, _, unread := fileState(c.Path)
	kept := "" // why the file stays as it is
	switch {
	case unread != nil:
		kept = "stays as it is, as it cannot be read (" + unread.Error() + ")"
	case now != c.After && c.Existed && !c.Secret && now == Digest(c.Before), now == "" && !c.Existed:
		kept = "is as it was before the change already"
	case now != c.After:
		kept = "was changed since, and stays as it is"
	case c.Secret && c.Existed:
		kept = "holds secrets, so what it was before the change is not kept; it stays as it is"
	case c.Existed:
		err = inFolder(c.Path, false, func(path string) error { return replaceFile(path, c.Before) })
	default:
		err = inFolder(c.Path, false, os.Remove)
	}
	if err == nil {
		err = l.Changes.Remove(ctx, c.ID)
	}
	if err != nil {
		return c, 0, fmt.Errorf("undo: %w", err)
	}
	if kept != "" {
		return c, 0, fmt.Errorf("%s %s; the next /undo takes the change before", c.Path, kept)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.wrote, c.Path)
	return c, more, nil
}
