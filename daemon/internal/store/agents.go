package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"sublet/wire"
)

// PutAgent stores the record of an agent of a session, which has the session own, as JSON.
func (s *Store) PutAgent(ctx context.Context, session wire.SessionID, name string, own wire.SessionID, record []byte) error {
	_, err := s.exec(ctx, `INSERT INTO agents (session_id, name, own_id, record) VALUES (?, ?, ?, ?)
		ON CONFLICT (session_id, name) DO UPDATE SET record = excluded.record`, session, name, own, string(record))
	if err != nil {
		return s.fault(fmt.Errorf("store agent: %w", err))
	}
	return nil
}

// Agents returns the records of all agents of sessions that exist.
func (s *Store) Agents(ctx context.Context) (records [][]byte, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT record FROM agents")
	if err != nil {
		return nil, s.fault(fmt.Errorf("read agents: %w", err))
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, s.fault(fmt.Errorf("read agents: %w", err))
		}
		records = append(records, []byte(text))
	}
	if err := rows.Err(); err != nil {
		return nil, s.fault(fmt.Errorf("read agents: %w", err))
	}
	return records, nil
}

// PutHosted stores, as JSON, which session of its own an agent of another program has in a session. One that is not stored keeps none.
func (s *Store) PutHosted(ctx context.Context, session wire.SessionID, agent string, record []byte) error {
	_, err := s.exec(ctx, `INSERT INTO hosted (session_id, agent, record) SELECT id, ?, ? FROM sessions WHERE id = ?
		ON CONFLICT (session_id, agent) DO UPDATE SET record = excluded.record`, agent, string(record), session)
	if err != nil {
		return s.fault(fmt.Errorf("store an agent's session: %w", err))
	}
	return nil
}

// Hosted returns the record of PutHosted, nil if there is none.
func (s *Store) Hosted(ctx context.Context, session wire.SessionID, agent string) (record []byte, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT CAST(record AS BLOB) FROM hosted WHERE session_id = ? AND agent = ?", session, agent).Scan(&record)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, s.fault(fmt.Errorf("read an agent's session: %w", err))
	}
	return record, nil
}
