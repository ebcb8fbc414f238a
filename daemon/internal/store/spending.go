package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Spend adds what a request cost, in US dollars, to its day, such as 2026-11-25, and returns what the day has cost. With 0
// it only returns that.
func (s *Store) Spend(ctx context.Context, day string, usd float64) (total float64, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `INSERT INTO spending (day, usd) VALUES (?, ?)
			ON CONFLICT (day) DO UPDATE SET usd = usd + excluded.usd RETURNING usd`, day, usd).Scan(&total)
	})
	if err != nil {
		return 0, s.fault(fmt.Errorf("add to the day's spending: %w", err))
	}
	return total, nil
}
