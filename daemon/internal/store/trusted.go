package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sublet/wire"
)

// Folders is an in-memory copy of the user's decisions to trust folders or not. Instruction files in all other folders are data.
type Folders struct {
	s  *Store
	mu sync.Mutex

	trusted map[string]bool // by path, with links resolved; guarded by mu
}

// TrustedFolders loads the decisions from the store.
func (s *Store) TrustedFolders(ctx context.Context) (*Folders, error) {
	list, err := s.Folders(ctx)
	if err != nil {
		return nil, err
	}
	f := &Folders{s: s, trusted: make(map[string]bool, len(list))}
	for _, one := range list {
		f.trusted[string(one.Path)] = one.Trusted
	}
	return f, nil
}

// Of returns the decision that applies to dir, whose links must be resolved: that of dir or of the nearest folder above it, up
// to the top of its repository. A repository inside a trusted folder needs a decision of its own.
func (f *Folders) Of(dir string) (trusted, decided bool) {
	if !filepath.IsAbs(dir) {
		return false, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if trusted, decided = f.trusted[at]; decided {
			return trusted, true
		}
		if strings.HasSuffix(filepath.Dir(at), "/.sublet/worktrees") {
			continue // an agent's working tree belongs to its repository
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil || at == filepath.Dir(at) {
			return false, false
		}
	}
}

// Decide stores whether the folder at path is trusted.
func (f *Folders) Decide(ctx context.Context, path string, trusted bool) error {
	one := wire.TrustedFolder{Path: wire.OSString(path), Trusted: trusted, DecidedAtMS: time.Now().UnixMilli()}
	if err := f.s.SetFolder(ctx, one); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trusted[path] = trusted
	return nil
}

// Forget removes the decision about the folder at path; it returns ErrNotFound if there is none.
func (f *Folders) Forget(ctx context.Context, path string) error {
	if err := f.s.DeleteFolder(ctx, wire.OSString(path)); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.trusted, path)
	return nil
}
