package store

import (
	"context"
	"database/sql"
	"errors"

	"sublet/wire"
)

// PutAgent stores the record, as JSON, of an agent of a session. own is the session that the agent has itself.
func (s *Store) PutAgent(ctx context.Context, session wire.SessionID, name string, own wire.SessionID, record []byte) error {
	_, err := s.exec(ctx, "store agent", `INSERT INTO agents (session_id, name, own_id, record) VALUES (?, ?, ?, ?)
		ON CONFLICT (session_id, name) DO UPDATE SET record = excluded.record`, session, name, own, string(record))
	return err
}

// Agents returns the records of all agents of sessions that exist.
func (s *Store) Agents(ctx context.Context) (records [][]byte, err error) {
	err = each(ctx, s.db, func(scan func(...any) error) error {
		var text string
		err := scan(&text)
		records = append(records, []byte(text))
		return err
	}, "SELECT record FROM agents")
	return records, s.failed("read agents", err)
}

// PutHosted stores a record, as JSON: which session of its own program a hosted agent uses for ours. It does nothing if ours is not stored.
func (s *Store) PutHosted(ctx context.Context, session wire.SessionID, agent string, record []byte) error {
	_, err := s.exec(ctx, "store an agent's session", `INSERT INTO hosted (session_id, agent, record) SELECT id, ?, ? FROM sessions WHERE id = ?
		ON CONFLICT (session_id, agent) DO UPDATE SET record = excluded.record`, agent, string(record), session)
	return err
}

// Hosted returns the record of PutHosted, nil if there is none.
func (s *Store) Hosted(ctx context.Context, session wire.SessionID, agent string) (record []byte, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT record FROM hosted WHERE session_id = ? AND agent = ?", session, agent).Scan(&record)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return record, s.failed("read an agent's session", err)
}
