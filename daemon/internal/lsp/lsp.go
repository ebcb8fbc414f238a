// Package lsp asks language servers what is wrong with a file: gopls, pyright, typescript-language-server or tsc, rust-analyzer
// and clangd, where they are installed. A server is started by the first file of a project that is opened or checked, kept, and
// ended when nobody has asked for a while. Its messages are untrusted: they are bounded and cleaned. The caller decides how it is
// started and confined.
package lsp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"
)

// Program is a server that was started.
type Program struct {
	io.Reader               // its output
	io.Writer               // its input
	End       func()        // ends it with all that it started, and waits for that
	Why       func() string // how it ended and its last words; "" = it runs
}

// Start starts a program in dir. The error is fs.ErrNotExist if it is not installed.
type Start func(dir string, args []string) (Program, error)

const (
	// maxServers bounds the servers of one session; the one that was asked least recently is ended for another.
	maxServers = 4
	// idleBound is how long a server that nobody asks is kept.
	idleBound = 10 * time.Minute
	// silentBound is how long a server may leave questions without an answer, its start included.
	silentBound = time.Minute
)

// Servers are the language servers of one session. The zero value is ready; it is safe for concurrent use.
type Servers struct {
	mu sync.Mutex
	// below: guarded by mu
	running map[key]*server
	failed  map[key]bool         // servers that are not started again
	live    map[*server]struct{} // those in running, and those that are ending
}

type key struct {
	*language
	root string
}

// A Finding is a server's report on a file.
type Finding struct {
	By    string   // the server's name; "" = none answered
	Lines []string // problems, as NAME:LINE:COLUMN: TEXT
	Fault error    // why this server is not used any more; it is returned once
}

// Check asks what would be wrong with path, which is in the project at root, if its content were text. It returns when ctx ends
// at the latest; a server that is slow to start serves later calls.
func (s *Servers) Check(ctx context.Context, start Start, root, path string, text []byte) Finding {
	l, id := languageOf(path)
	if l == nil {
		return Finding{}
	}
	v := s.get(start, key{l, root}, document{})
	if v == nil {
		return Finding{}
	}
	lines, by, err := v.ask(ctx, path, id, string(text))
	switch {
	case err == nil:
		return Finding{By: by, Lines: lines}
	case errors.Is(err, fs.ErrNotExist): // it may be installed later
		s.drop(v, nil)
	case ctx.Err() == nil || errors.As(err, new(*faultError)):
		if s.drop(v, err) {
			return Finding{Fault: fmt.Errorf("%s is not used any more: %w", by, err)}
		}
	}
	return Finding{}
}

// Open starts the server for path, which is in the project at root and has the content text, unless it runs. A server loads the
// project of a file when it is opened, which takes longer than a Check may. Open does not block.
func (s *Servers) Open(start Start, root, path string, text []byte) {
	if l, id := languageOf(path); l != nil {
		s.get(start, key{l, root}, document{path, id, string(text)})
	}
}

// get returns the server for k; nil: it failed before. If there is none, it starts one and opens first there, if it has a path.
func (s *Servers) get(start Start, k key, first document) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed[k] {
		return nil
	}
	v := s.running[k]
	if v == nil {
		s.makeRoomLocked()
		v = newServer(k)
		if s.running == nil {
			s.running, s.failed, s.live = map[key]*server{}, map[key]bool{}, map[*server]struct{}{}
		}
		s.running[k], s.live[v] = v, struct{}{}
		go s.run(v, start, first) // until drop or Close ends it
		v.idle = time.AfterFunc(idleBound, func() { s.drop(v, nil) })
	}
	v.used = time.Now()
	v.idle.Reset(idleBound)
	return v
}

func (s *Servers) run(v *server, start Start, first document) {
	v.run(start, first)
	s.mu.Lock()
	delete(s.live, v)
	s.mu.Unlock()
	close(v.gone)
}

// makeRoomLocked ends the server that was asked least recently if there are maxServers of them.
func (s *Servers) makeRoomLocked() {
	if len(s.running) < maxServers {
		return
	}
	var oldest *server
	for _, v := range s.running {
		if oldest == nil || v.used.Before(oldest.used) {
			oldest = v
		}
	}
	s.dropLocked(oldest)
}

// drop ends a server, in the background. With a cause it is not started again. It reports whether this call ended it.
func (s *Servers) drop(v *server, cause error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[v.key] != v {
		return false
	}
	if cause != nil {
		s.failed[v.key] = true
	}
	s.dropLocked(v)
	return true
}

func (s *Servers) dropLocked(v *server) {
	delete(s.running, v.key)
	v.idle.Stop()
	v.cancel()
}

// Close ends all servers and waits for their end. A later Check starts it again.
func (s *Servers) Close() {
	s.mu.Lock()
	for _, v := range s.running {
		s.dropLocked(v)
	}
	live := slices.Collect(maps.Keys(s.live))
	s.mu.Unlock()
	for _, v := range live {
		<-v.gone
	}
}
