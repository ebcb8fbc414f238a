// Package store keeps sessions, their numbered events and the user's rules in SQLite, and the audit log beside it. When
// Append returns, the event is on disk and in order; events are never changed. Numbering and masking are left to the hub.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	_ "modernc.org/sqlite" // pure Go: building needs no C compiler
)

// ErrNotFound reports that there is no session, or no rule, with that id.
var ErrNotFound = errors.New("store: not found")

// A Store is safe for concurrent use.
type Store struct {
	db     *sql.DB
	path   string
	opened fs.FileInfo // of the file at path when it was opened
	log    *slog.Logger
	// Prepared once, since parsing these took half of the time of Append.
	insertEvent, updateSession *sql.Stmt
	// writing has one token, which a writer takes. SQLite allows one writer at a time and the others poll with growing pauses,
	// so that of five hundred concurrent sessions some never wrote. Here writers wait in order.
	writing chan struct{}
	leftOut sync.Map // session ids for which undecodable events were logged
}

// busyBound is how long a call waits for another process that has locked the database.
const busyBound = 5 * time.Second

// Open opens or creates the database at path, mode 0600, in an existing folder, and migrates its schema. A file that is newer
// than this build, corrupt, or locked by another process for longer than busyBound is not changed; the error is a *FaultError
// if there is a hint for the user.
func Open(ctx context.Context, path string, log *slog.Logger) (*Store, error) {
	s, err := openWithin(ctx, path, log, busyBound)
	if err != nil {
		return nil, (&Store{path: path}).fault(err)
	}
	return s, nil
}

// openWithin is Open with a bound of its own for a locked database, and without hints.
func openWithin(ctx context.Context, path string, log *slog.Logger, busy time.Duration) (*Store, error) {
	// SQLite creates files with the umask; its journal files copy the mode of this one.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	opened, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	// synchronous=NORMAL: a commit survives kill -9 of any process, since the write has reached the kernel; a power cut may lose
	// the last commits, but keeps their order. FULL costs twelve times as much. _txlock=immediate: BEGIN locks for writing, else a
	// transaction that reads first could fail when it writes.
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(" +
		strconv.FormatInt(busy.Milliseconds(), 10) + ")&_pragma=foreign_keys(1)&_txlock=immediate"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	db.SetMaxOpenConns(4) // one writes, see Store.writing; the others read meanwhile
	s := &Store{db: db, path: path, opened: opened, log: log, writing: make(chan struct{}, 1)}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", path, err), db.Close())
	}
	if err := errors.Join(s.prepare(ctx), forgetChanges(ctx, s.db)); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", path, err), db.Close())
	}
	return s, nil
}

// prepare prepares the two statements that each Append runs.
func (s *Store) prepare(ctx context.Context) (err error) {
	if s.insertEvent, err = s.db.PrepareContext(ctx,
		"INSERT INTO events (session_id, seq, turn_id, kind, at, payload) VALUES (?, ?, ?, ?, ?, ?)"); err != nil {
		return err
	}
	s.updateSession, err = s.db.PrepareContext(ctx,
		"UPDATE sessions SET last_seq = ?1, updated_at = ?2, turns = ?3, title = ?4, agent = ?5 WHERE id = ?6 AND last_seq <= ?1")
	return err
}

// Close waits for running calls and closes the file.
func (s *Store) Close() error { return s.db.Close() }

func (s *Store) migrate(ctx context.Context) error {
	var version int
	if err := s.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("%w (schema %d, this build knows %d)", errNewer, version, len(migrations))
	}
	for ; version < len(migrations); version++ {
		err := s.tx(ctx, fmt.Sprintf("migration %d", version+1), func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, migrations[version]); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version+1)) // a PRAGMA takes no parameters
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lockWriting waits for the writing token, first come, first served. The caller must call unlockWriting, unless ctx ended first.
func (s *Store) lockWriting(ctx context.Context) error {
	select {
	case s.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Store) unlockWriting() { <-s.writing }

// exec runs one writing statement. doing is for its error.
func (s *Store) exec(ctx context.Context, doing, query string, args ...any) (sql.Result, error) {
	if err := s.lockWriting(ctx); err != nil {
		return nil, err
	}
	defer s.unlockWriting()
	res, err := s.db.ExecContext(ctx, query, args...)
	return res, s.failed(doing, err)
}

// one is exec for a statement that must change a row; ErrNotFound if it changes none.
func (s *Store) one(ctx context.Context, doing, query string, args ...any) error {
	return exactlyOne(s.exec(ctx, doing, query, args...))
}

// exactlyOne returns ErrNotFound if a statement about one row, named by its key, has changed none.
func exactlyOne(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}

// errEnough is returned by the function that each calls when it wants no more rows.
var errEnough = errors.New("no more rows are wanted")

// each runs a query and calls row for each row of the result, until row returns an error, which each returns; errEnough only ends it.
func each(ctx context.Context, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, row func(scan func(...any) error) error, query string, args ...any,
) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

// failed adds to an error, if it is one, what was being done, and the hint for the user.
func (s *Store) failed(doing string, err error) error {
	if err == nil || errors.Is(err, ErrNotFound) {
		return err
	}
	return s.fault(fmt.Errorf("%s: %w", doing, err))
}

// tx runs do in a transaction. doing is for its error.
func (s *Store) tx(ctx context.Context, doing string, do func(*sql.Tx) error) error {
	if err := s.lockWriting(ctx); err != nil {
		return err
	}
	defer s.unlockWriting()
	tx, err := s.db.BeginTx(ctx, nil)
	if err == nil {
		if err = do(tx); err == nil {
			err = tx.Commit()
		} else {
			err = errors.Join(err, tx.Rollback())
		}
	}
	return s.failed(doing, err)
}

// Size returns the bytes on disk, journal included.
func (s *Store) Size() int64 {
	var total int64
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(filepath.Clean(s.path + suffix)); err == nil {
			total += info.Size()
		}
	}
	return total
}

// Spend adds the cost of a request in US dollars to a day, such as 2026-11-25, and returns the day's total. With usd 0 it
// only returns the total.
func (s *Store) Spend(ctx context.Context, day string, usd float64) (total float64, err error) {
	err = s.tx(ctx, "add to the day's spending", func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `INSERT INTO spending (day, usd) VALUES (?, ?)
			ON CONFLICT (day) DO UPDATE SET usd = usd + excluded.usd RETURNING usd`, day, usd).Scan(&total)
	})
	return total, err
}
