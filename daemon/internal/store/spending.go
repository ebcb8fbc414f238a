package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Spend adds the cost of a request in US dollars to a day, such as 2026-11-25, and returns the day's total. With usd 0 it
// only returns the total.
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
