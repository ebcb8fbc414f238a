package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"sublet/wire"
)

// Bounds of the file changes of all sessions together; the oldest are removed first.
const (
	maxChanges     = 1000
	maxChangeBytes = 64 << 20 // of earlier contents; no file that tools change is larger
	maxChangeAge   = 7 * 24 * time.Hour
)

// Changes keeps what the file tools of one session changed, for undo. It is safe for concurrent use.
type Changes struct {
	Store   *Store
	Session wire.SessionID // it must be stored
}

// A FileChange is what a file was before a change, and what the change wrote.
type FileChange struct {
	ID      int64 // set by Add
	Path    string
	Existed bool   // false: the change created the file
	Before  []byte // the file's content before
	Secret  bool   // Before is not stored, since the file holds secrets
	After   string // digest of what was written
}

// Add stores a change that is about to be made and sets its ID. It removes changes beyond the bounds.
func (c Changes) Add(ctx context.Context, f *FileChange) error {
	before := f.Before
	if f.Secret {
		before = nil
	}
	return c.Store.tx(ctx, "record a change for undo", func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "INSERT INTO file_changes (session_id, path, existed, secret, after, at, size, before) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			c.Session, []byte(f.Path), f.Existed, f.Secret, f.After, time.Now().UnixMilli(), len(before), before)
		if err != nil {
			return err
		}
		if f.ID, err = res.LastInsertId(); err != nil {
			return err
		}
		return forgetChanges(ctx, tx)
	})
}

// forgetChanges removes the changes beyond the bounds.
func forgetChanges(ctx context.Context, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
},
) error {
	_, err := db.ExecContext(ctx, `DELETE FROM file_changes WHERE at < ?1 OR id IN (
		SELECT id FROM (SELECT id, sum(size) OVER newest AS bytes, row_number() OVER newest AS n FROM file_changes WINDOW newest AS (ORDER BY id DESC))
		WHERE bytes > ?2 OR n > ?3)`, time.Now().Add(-maxChangeAge).UnixMilli(), maxChangeBytes, maxChanges)
	return err
}

// Last returns the session's newest change, ErrNotFound if there is none, and how many are before it.
func (c Changes) Last(ctx context.Context) (f FileChange, more int, err error) {
	var path []byte
	err = c.Store.db.QueryRowContext(ctx, `SELECT id, path, existed, secret, after, before, (SELECT count(*) - 1 FROM file_changes WHERE session_id = ?1)
		FROM file_changes WHERE session_id = ?1 ORDER BY id DESC LIMIT 1`, c.Session).Scan(&f.ID, &path, &f.Existed, &f.Secret, &f.After, &f.Before, &more)
	if errors.Is(err, sql.ErrNoRows) {
		return f, 0, ErrNotFound
	}
	f.Path = string(path)
	return f, more, c.Store.failed("read the last change", err)
}

// Remove removes a change that was undone or not made.
func (c Changes) Remove(ctx context.Context, id int64) error {
	_, err := c.Store.exec(ctx, "remove a change", "DELETE FROM file_changes WHERE id = ?", id)
	return err
}
