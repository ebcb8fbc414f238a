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

// maxUndo bounds what a FileLog keeps of earlier file contents, in bytes; the oldest go first.
const maxUndo = 32 << 20

// ErrNothingToUndo says that the session's file tools have changed nothing that is still known.
var ErrNothingToUndo = errors.New("no file change to undo")

// FileLog is what one session's file tools have read and changed. The zero value is ready; it is safe for concurrent
// use and must not be copied. It is kept in memory only: after a daemon's restart files must be read again.
type FileLog struct {
	mu sync.Mutex
	// guarded by mu
	seen    map[string]string // path to the digest the agent knows
	changes []Change
	size    int                 // bytes of Before in changes
	reports map[string][]string // what a checker last said of a path
	wrote   map[string]string   // path to the digest that a tool last gave it
	slow    map[string]int      // changes that are not checked, by folder
}

// Change is one file change that can be undone.
type Change struct {
	Path    string
	Existed bool        // false: the file was created
	Before  []byte      // its content until then
	Mode    fs.FileMode // its mode until then
	After   string      // digest of what was written
}

// Digest is the lower-case hex SHA-256 of content, as in Action.FileDigest.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Saw records that an agent knows path's content with this digest.
func (l *FileLog) Saw(path, digest string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]string{}
	}
	l.seen[path] = digest
}

// Written returns the text that a tool of this session gave path, if the file still holds just that.
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

// reported keeps what a checker says of path now, and returns what it said before, and whether that is known.
func (l *FileLog) reported(path string, lines []string) (before []string, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, known = l.reports[path]; !known && len(lines) == 0 {
		return nil, false
	}
	if l.reports == nil {
		l.reports = map[string][]string{}
	}
	l.reports[path] = lines
	return before, known
}

// skips reports whether a change in dir is one of those that are not checked.
func (l *FileLog) skips(dir string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slow[dir] == 0 {
		return false
	}
	l.slow[dir]--
	return true
}

// skip has the next n changes in dir not checked.
func (l *FileLog) skip(dir string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slow == nil {
		l.slow = map[string]int{}
	}
	l.slow[dir] = n
}

// Known returns the digest under which path was last read or written in this session, and whether it was.
func (l *FileLog) Known(path string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.seen[path]
	return d, ok
}

// Changed records a change that was made. The FileLog owns c.Before from then on.
func (l *FileLog) Changed(c Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]string{}
	}
	l.seen[c.Path] = c.After
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

// Size is the bytes that it keeps of earlier file contents.
func (l *FileLog) Size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// Last returns the change that Undo would put back, and whether there is one.
func (l *FileLog) Last() (Change, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.changes) == 0 {
		return Change{}, false
	}
	return l.changes[len(l.changes)-1], true
}

// Undo puts the last change back and forgets it: the old content returns, a created file goes. It returns
// ErrNothingToUndo where there is none, and an error wrapping ErrChanged, with nothing done, where the file is no longer
// what was written.
func (l *FileLog) Undo() (Change, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.changes) == 0 {
		return Change{}, ErrNothingToUndo
	}
	c := l.changes[len(l.changes)-1]
	now, _, err := fileState(c.Path)
	if err != nil {
		return Change{}, fmt.Errorf("undo: %w", err)
	}
	if now != c.After {
		return Change{}, fmt.Errorf("undo %s: somebody changed it since: %w", c.Path, ErrChanged)
	}
	if c.Existed {
		err = replaceFile(c.Path, c.Before, c.Mode)
	} else {
		err = os.Remove(c.Path)
	}
	if err != nil {
		return Change{}, fmt.Errorf("undo: %w", err)
	}
	l.changes = l.changes[:len(l.changes)-1]
	l.size -= len(c.Before)
	delete(l.wrote, c.Path)
	if c.Existed {
		l.seen[c.Path] = Digest(c.Before)
	} else {
		delete(l.seen, c.Path)
	}
	return c, nil
}
