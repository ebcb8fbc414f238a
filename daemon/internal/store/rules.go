package store

import (
	"context"
	"encoding/json"
	"fmt"

	"sublet/wire"
)

// examples is the stored form of a rule's examples.
type examples struct {
	Match   []string `json:"match"`
	NoMatch []string `json:"no_match"`
}

// AddRule stores a rule of scope project or always.
func (s *Store) AddRule(ctx context.Context, r wire.Rule) error {
	text, err := json.Marshal(examples{r.Match, r.NoMatch})
	if err != nil {
		return fmt.Errorf("add rule: %w", err)
	}
	_, err = s.exec(ctx, "add rule",
		"INSERT INTO rules (id, decision, pattern, scope, subject, source, created_at, expires_at, examples) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		r.ID, r.Decision, r.Pattern, r.Scope, []byte(r.Subject), r.Source, r.CreatedAtMS, r.ExpiresAtMS, string(text))
	return err
}

// Rules returns all stored rules, oldest first, expired ones included.
func (s *Store) Rules(ctx context.Context) ([]wire.Rule, error) {
	var list []wire.Rule
	err := each(ctx, s.db, func(scan func(...any) error) error {
		var r wire.Rule
		var subject, text []byte
		if err := scan(&r.ID, &r.Decision, &r.Pattern, &r.Scope, &subject, &r.Source, &r.CreatedAtMS, &r.ExpiresAtMS, &text); err != nil {
			return err
		}
		var e examples
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("examples of %s: %w", r.ID, err)
		}
		r.Subject, r.Match, r.NoMatch = wire.OSString(subject), e.Match, e.NoMatch
		list = append(list, r)
		return nil
	}, "SELECT id, decision, pattern, scope, subject, source, created_at, expires_at, examples FROM rules ORDER BY created_at, id")
	return list, s.failed("list rules", err)
}

// DeleteRule removes a rule, or returns ErrNotFound.
func (s *Store) DeleteRule(ctx context.Context, id wire.RuleID) error {
	return s.one(ctx, "delete rule", "DELETE FROM rules WHERE id = ?", id)
}
