package store

import (
	"context"
	"fmt"

	"sublet/wire"
)

// SetFolder stores whether a folder is trusted.
func (s *Store) SetFolder(ctx context.Context, f wire.TrustedFolder) error {
	_, err := s.exec(ctx, "INSERT OR REPLACE INTO folders (path, trusted, decided_at) VALUES (?, ?, ?)", []byte(f.Path), f.Trusted, f.DecidedAtMS)
	if err != nil {
		return s.fault(fmt.Errorf("trust folder: %w", err))
	}
	return nil
}

// Folders returns the folders that the user decided about, by path.
func (s *Store) Folders(ctx context.Context) ([]wire.TrustedFolder, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT path, trusted, decided_at FROM folders ORDER BY path")
	if err != nil {
		return nil, s.fault(fmt.Errorf("list folders: %w", err))
	}
	defer rows.Close()
	list := []wire.TrustedFolder{}
	for rows.Next() {
		var f wire.TrustedFolder
		var path []byte
		if err := rows.Scan(&path, &f.Trusted, &f.DecidedAtMS); err != nil {
			return nil, s.fault(fmt.Errorf("list folders: %w", err))
		}
		f.Path = wire.OSString(path)
		list = append(list, f)
	}
	return list, rows.Err()
}

// DeleteFolder removes the decision about a folder, or returns ErrNotFound.
func (s *Store) DeleteFolder(ctx context.Context, path wire.OSString) error {
	return s.one(ctx, "forget folder", "DELETE FROM folders WHERE path = ?", []byte(path))
}
