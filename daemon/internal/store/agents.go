package store

import (
	"context"
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
