package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"sublet/wire"
)

// CreateSession adds a session. LastSeq, Turns, Agent, Running and Stored of info are ignored.
func (s *Store) CreateSession(ctx context.Context, info wire.SessionInfo) error {
	_, err := s.exec(ctx,
		"INSERT INTO sessions (id, name, title, cwd, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)",
		info.ID, info.Name, info.Title, []byte(info.Cwd), info.CreatedAtMS, info.UpdatedAtMS)
	if err != nil {
		return s.fault(fmt.Errorf("create session: %w", err))
	}
	return nil
}

const sessionColumns = "id, name, title, cwd, created_at, updated_at, last_seq, turns, agent"

func scanSession(row interface{ Scan(...any) error }) (wire.SessionInfo, error) {
	info := wire.SessionInfo{Stored: true}
	var cwd []byte
	err := row.Scan(&info.ID, &info.Name, &info.Title, &cwd, &info.CreatedAtMS, &info.UpdatedAtMS, &info.LastSeq, &info.Turns, &info.Agent)
	info.Cwd = wire.OSString(cwd)
	return info, err
}

// Session returns one session, or ErrNotFound.
func (s *Store) Session(ctx context.Context, id wire.SessionID) (wire.SessionInfo, error) {
	info, err := scanSession(s.db.QueryRowContext(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return wire.SessionInfo{}, ErrNotFound
	}
	if err != nil {
		return wire.SessionInfo{}, s.fault(fmt.Errorf("read session: %w", err))
	}
	return info, nil
}

// ErrCursor reports a cursor that no earlier page returned.
var ErrCursor = errors.New("not the cursor of an earlier page")

// Sessions returns up to limit sessions, the most recently used first, from cursor on ("" = the start), without those of agents.
// next is "" at the end.
func (s *Store) Sessions(ctx context.Context, cursor string, limit int) (list []wire.SessionInfo, next string, err error) {
	before, id := int64(math.MaxInt64), ""
	if cursor != "" {
		at, rest, ok := strings.Cut(cursor, ":")
		before, err = strconv.ParseInt(at, 10, 64)
		if !ok || err != nil {
			return nil, "", fmt.Errorf("%w: %q", ErrCursor, cursor)
		}
		id = rest
	}
	rows, err := s.db.QueryContext(ctx, "SELECT "+sessionColumns+
		" FROM sessions WHERE (updated_at, id) < (?, ?) AND id NOT IN (SELECT own_id FROM agents) ORDER BY updated_at DESC, id DESC LIMIT ?", before, id, limit+1)
	if err != nil {
		return nil, "", s.fault(fmt.Errorf("list sessions: %w", err))
	}
	defer rows.Close()
	for rows.Next() {
		info, err := scanSession(rows)
		if err != nil {
			return nil, "", s.fault(fmt.Errorf("list sessions: %w", err))
		}
		list = append(list, info)
	}
	if err := rows.Err(); err != nil {
		return nil, "", s.fault(fmt.Errorf("list sessions: %w", err))
	}
	if len(list) > limit {
		list = list[:limit]
		last := list[limit-1]
		next = strconv.FormatInt(last.UpdatedAtMS, 10) + ":" + string(last.ID)
	}
	return list, next, nil
}

// Rename sets a session's name, or returns ErrNotFound.
func (s *Store) Rename(ctx context.Context, id wire.SessionID, name string) error {
	return s.one(ctx, "rename session", "UPDATE sessions SET name = ? WHERE id = ?", name, id)
}

// Delete removes a session with those that its agents have, and, by foreign keys, their events; Deleted then reports true for their
// ids. It returns ErrNotFound if there is none.
func (s *Store) Delete(ctx context.Context, id wire.SessionID) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		for _, query := range []string{
			"INSERT OR IGNORE INTO deleted_sessions (id) SELECT own_id FROM agents WHERE session_id = ?1 UNION SELECT ?1",
			// The full-text index has no foreign keys, and needs rows that the cascade removes.
			"DELETE FROM texts WHERE rowid IN (SELECT row FROM text_rows WHERE session_id IN (SELECT own_id FROM agents WHERE session_id = ?1 UNION SELECT ?1))",
			"DELETE FROM sessions WHERE id IN (SELECT own_id FROM agents WHERE session_id = ?1)",
		} {
			if _, err := tx.ExecContext(ctx, query, id); err != nil {
				return s.fault(fmt.Errorf("delete session: %w", err))
			}
		}
		return exactlyOne(tx.ExecContext(ctx, "DELETE FROM sessions WHERE id = ?", id))
	})
}

// Deleted reports whether a session of that id was deleted.
func (s *Store) Deleted(ctx context.Context, id wire.SessionID) (bool, error) {
	var n int
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM deleted_sessions WHERE id = ?", id).Scan(&n); err != nil {
		return false, s.fault(fmt.Errorf("look for a deleted session: %w", err))
	}
	return n > 0, nil
}

// Clear removes a session's events. Its numbers continue, so that no client takes a new event for one it has seen. It returns
// ErrNotFound if there is no session.
func (s *Store) Clear(ctx context.Context, id wire.SessionID) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		for _, query := range []string{
			deleteTexts, "DELETE FROM text_rows WHERE session_id = ?",
			"DELETE FROM images WHERE session_id = ?", "DELETE FROM events WHERE session_id = ?", "DELETE FROM open_turns WHERE session_id = ?",
		} {
			if _, err := tx.ExecContext(ctx, query, id); err != nil {
				return s.fault(fmt.Errorf("clear session: %w", err))
			}
		}
		return exactlyOne(tx.ExecContext(ctx, "UPDATE sessions SET turns = 0, title = '' WHERE id = ?", id))
	})
}

// one runs a statement that must change a row; ErrNotFound if it changes none.
func (s *Store) one(ctx context.Context, doing, query string, args ...any) error {
	if err := exactlyOne(s.exec(ctx, query, args...)); err != nil {
		if errors.Is(err, ErrNotFound) {
			return err
		}
		return s.fault(fmt.Errorf("%s: %w", doing, err))
	}
	return nil
}

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
