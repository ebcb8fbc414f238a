package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sublet/wire"
)

// DecideFolder stores whether the user trusts the folder at path, so that its instruction files are more than data.
func (s *Store) DecideFolder(ctx context.Context, path string, trusted bool) error {
	_, err := s.exec(ctx, "trust folder", "INSERT OR REPLACE INTO folders (path, trusted, decided_at) VALUES (?, ?, ?)", []byte(path), trusted, time.Now().UnixMilli())
	return err
}

// Folders returns the folders that the user decided about, by path.
func (s *Store) Folders(ctx context.Context) ([]wire.TrustedFolder, error) {
	list := []wire.TrustedFolder{}
	err := each(ctx, s.db, func(scan func(...any) error) error {
		var f wire.TrustedFolder
		var path []byte
		err := scan(&path, &f.Trusted, &f.DecidedAtMS)
		f.Path = wire.OSString(path)
		list = append(list, f)
		return err
	}, "SELECT path, trusted, decided_at FROM folders ORDER BY path")
	return list, s.failed("list folders", err)
}

// TrustsFolder returns the decision that applies to dir, whose links must be resolved: that of dir or of the nearest folder above it,
// up to the top of its repository. A repository inside a trusted folder needs a decision of its own.
func (s *Store) TrustsFolder(ctx context.Context, dir string) (trusted, decided bool, err error) {
	list, err := s.Folders(ctx)
	if err != nil || !filepath.IsAbs(dir) {
		return false, false, err
	}
	decisions := map[string]bool{}
	for _, f := range list {
		decisions[string(f.Path)] = f.Trusted
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if trusted, decided = decisions[at]; decided {
			return trusted, true, nil
		}
		if strings.HasSuffix(filepath.Dir(at), "/.sublet/worktrees") {
			continue // an agent's working tree belongs to its repository
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil || at == filepath.Dir(at) {
			return false, false, nil
		}
	}
}

// ForgetFolder removes the decision about the folder at path; it returns ErrNotFound if there is none.
func (s *Store) ForgetFolder(ctx context.Context, path string) error {
	return s.one(ctx, "forget folder", "DELETE FROM folders WHERE path = ?", []byte(path))
}
