package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// maxUndo bounds the earlier file contents in a FileLog, in bytes; the oldest are removed first.
const maxUndo = 32 << 20

// ErrNothingToUndo reports that no change is recorded.
var ErrNothingToUndo = errors.New("nothing to put back")

// FileLog records what one session's file tools have read and changed. The zero value is ready; it is safe for concurrent
// use and must not be copied. It is in memory only: after a daemon's restart files must be read again.
type FileLog struct {
	mu sync.Mutex
	// guarded by mu
	seen    map[seenBy]string // digest of the content that an agent knows
	changes []Change
	size    int                // bytes of Before in changes
	reports map[string]checked // the last report of a checker, by path
	wrote   map[string]string  // digest of the content that a tool wrote last, by path
	slow    map[string]int     // how many changes are not checked, by folder
}

// seenBy is a file as one agent knows it: what another agent read or changed is not in its conversation.
type seenBy struct{ agent, path string }

// Change is one file change that can be undone.
type Change struct {
	Path    string
	Existed bool   // false: the file was created
	Before  []byte // its content before the change
	After   string // digest of what was written
	by      seenBy // who wrote it; set by Changed
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
	l.sawLocked(seenBy{agent, path}, digest)
}

func (l *FileLog) sawLocked(f seenBy, digest string) {
	if l.seen == nil {
		l.seen = map[seenBy]string{}
	}
	l.seen[f] = digest
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
	l.mu.Lock()
	digest, ok := l.wrote[path]
	l.mu.Unlock()
	if !ok {
		return "", false
	}
	now, content, err := fileState(path)
	return string(content), err == nil && now == digest
}

// Made reports whether tools of this session made the file at path, and nobody else changed it since.
func (l *FileLog) Made(path string) (made bool) {
	if _, unchanged := l.Written(path); !unchanged {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	last := ""
	for _, c := range l.changes {
		if c.Path == path {
			made = !c.Existed || made && Digest(c.Before) == last // each change found what the one before it wrote
			last = c.After
		}
	}
	return made
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

// Changed records a change by the agent. The FileLog owns c.Before from then on.
func (l *FileLog) Changed(agent string, c Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.by = seenBy{agent, c.Path}
	l.sawLocked(c.by, c.After)
	if l.wrote == nil {
		l.wrote = map[string]string{}
	}
	l.wrote[c.Path] = c.After
	l.changes = append(l.changes, c)
	l.size += len(c.Before)
	for l.size > maxUndo && len(l.changes) > 1 {
		l.size -= len(l.changes[0].Before)
		l.changes[0] = Change{}
		l.changes = l.changes[1:]
	}
}

// Size returns the bytes of earlier file contents that are kept.
func (l *FileLog) Size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// Len returns how many changes can be undone.
func (l *FileLog) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.changes)
}

// Undo undoes the last change and removes it from the log: it restores the old content, or removes a created file. If the
// file was changed since, Undo leaves it as it is and returns an error; the change is removed from the log nevertheless, so that
// those before can be undone. It returns ErrNothingToUndo if there is none.
func (l *FileLog) Undo() (Change, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.changes) == 0 {
		return Change{}, ErrNothingToUndo
	}
	c := l.changes[len(l.changes)-1]
	replacing.Lock()
	defer replacing.Unlock()
	now, _, err := fileState(c.Path)
	if err != nil {
		return Change{}, fmt.Errorf("undo: %w", err)
	}
	switch {
	case now != c.After:
	case c.Existed:
		err = replaceFile(c.Path, c.Before)
	default:
		err = os.Remove(c.Path)
	}
	if err != nil {
		return Change{}, fmt.Errorf("undo: %w", err)
	}
	l.changes = l.changes[:len(l.changes)-1]
	l.size -= len(c.Before)
	if now != c.After {
		return Change{}, fmt.Errorf("%s was changed since, and stays as it is; the next /undo takes the change before", c.Path)
	}
	delete(l.wrote, c.Path)
	if c.Existed {
		l.seen[c.by] = Digest(c.Before)
	} else {
		delete(l.seen, c.by)
	}
	return c, nil
}
