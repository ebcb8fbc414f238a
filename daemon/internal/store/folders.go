package store

import (
	"context"

	"sublet/wire"
)

// SetFolder stores whether a folder is trusted.
func (s *Store) SetFolder(ctx context.Context, f wire.TrustedFolder) error {
	_, err := s.exec(ctx, "trust folder", "INSERT OR REPLACE INTO folders (path, trusted, decided_at) VALUES (?, ?, ?)", []byte(f.Path), f.Trusted, f.DecidedAtMS)
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

// DeleteFolder removes the decision about a folder, or returns ErrNotFound.
func (s *Store) DeleteFolder(ctx context.Context, path wire.OSString) error {
	return s.one(ctx, "forget folder", "DELETE FROM folders WHERE path = ?", []byte(path))
}
