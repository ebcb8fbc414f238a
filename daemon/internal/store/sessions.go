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

const sessionColumns = "id, name, title, cwd, created_at, updated_at, last_seq, turns, agent"

func scanSession(scan func(...any) error) (wire.SessionInfo, error) {
	info := wire.SessionInfo{Stored: true}
	var cwd []byte
	err := scan(&info.ID, &info.Name, &info.Title, &cwd, &info.CreatedAtMS, &info.UpdatedAtMS, &info.LastSeq, &info.Turns, &info.Agent)
	info.Cwd = wire.OSString(cwd)
	return info, err
}

// Session returns one session, or ErrNotFound.
func (s *Store) Session(ctx context.Context, id wire.SessionID) (wire.SessionInfo, error) {
	info, err := scanSession(s.db.QueryRowContext(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE id = ?", id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return wire.SessionInfo{}, ErrNotFound
	}
	return info, s.failed("read session", err)
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
	err = each(ctx, s.db, func(scan func(...any) error) error {
		info, err := scanSession(scan)
		list = append(list, info)
		return err
	}, "SELECT "+sessionColumns+
		" FROM sessions WHERE (updated_at, id) < (?, ?) AND id NOT IN (SELECT own_id FROM agents) ORDER BY updated_at DESC, id DESC LIMIT ?", before, id, limit+1)
	if err != nil {
		return nil, "", s.failed("list sessions", err)
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
	return s.tx(ctx, "delete session", func(tx *sql.Tx) error {
		for _, query := range []string{
			"INSERT OR IGNORE INTO deleted_sessions (id) SELECT own_id FROM agents WHERE session_id = ?1 UNION SELECT ?1",
			// The full-text index has no foreign keys, and needs rows that the cascade removes.
			"DELETE FROM texts WHERE rowid IN (SELECT row FROM text_rows WHERE session_id IN (SELECT own_id FROM agents WHERE session_id = ?1 UNION SELECT ?1))",
			"DELETE FROM sessions WHERE id IN (SELECT own_id FROM agents WHERE session_id = ?1)",
		} {
			if _, err := tx.ExecContext(ctx, query, id); err != nil {
				return err
			}
		}
		return exactlyOne(tx.ExecContext(ctx, "DELETE FROM sessions WHERE id = ?", id))
	})
}

// Deleted reports whether a session of that id was deleted.
func (s *Store) Deleted(ctx context.Context, id wire.SessionID) (bool, error) {
	var n int
	err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM deleted_sessions WHERE id = ?", id).Scan(&n)
	return n > 0, s.failed("look for a deleted session", err)
}

// Clear removes a session's events. Its numbers continue, so that no client takes a new event for one it has seen. It returns
// ErrNotFound if there is no session.
func (s *Store) Clear(ctx context.Context, id wire.SessionID) error {
	return s.tx(ctx, "clear session", func(tx *sql.Tx) error {
		for _, query := range []string{
			deleteTexts, "DELETE FROM text_rows WHERE session_id = ?",
			"DELETE FROM images WHERE session_id = ?", "DELETE FROM events WHERE session_id = ?", "DELETE FROM open_turns WHERE session_id = ?",
		} {
			if _, err := tx.ExecContext(ctx, query, id); err != nil {
				return err
			}
		}
		return exactlyOne(tx.ExecContext(ctx, "UPDATE sessions SET turns = 0, title = '' WHERE id = ?", id))
	})
}
