package store

import (
	"context"
	"fmt"

	"sublet/wire"
)

// AddRule stores a rule of scope project or always.
func (s *Store) AddRule(ctx context.Context, r wire.Rule) error {
	_, err := s.db.ExecContext(ctx,
		"INSERT INTO rules (id, decision, pattern, scope, subject, source, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		r.ID, r.Decision, r.Pattern, r.Scope, []byte(r.Subject), r.Source, r.CreatedAtMS, r.ExpiresAtMS)
	if err != nil {
		return fmt.Errorf("add rule: %w", err)
	}
	return nil
}

// Rules lists all stored rules, the oldest first, expired ones too.
func (s *Store) Rules(ctx context.Context) ([]wire.Rule, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT id, decision, pattern, scope, subject, source, created_at, expires_at FROM rules ORDER BY created_at, id")
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	defer rows.Close()
	var list []wire.Rule
	for rows.Next() {
		var r wire.Rule
		var subject []byte
		if err := rows.Scan(&r.ID, &r.Decision, &r.Pattern, &r.Scope, &subject, &r.Source, &r.CreatedAtMS, &r.ExpiresAtMS); err != nil {
			return nil, fmt.Errorf("list rules: %w", err)
		}
		r.Subject = wire.OSString(subject)
		list = append(list, r)
	}
	return list, rows.Err()
}

// DeleteRule removes a rule, or returns ErrNotFound.
func (s *Store) DeleteRule(ctx context.Context, id wire.RuleID) error {
	return s.one(ctx, "delete rule", "DELETE FROM rules WHERE id = ?", id)
}
