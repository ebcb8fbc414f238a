package store

import (
	"context"
	"database/sql"
)

// Spend adds the cost of a request in US dollars to a day, such as 2026-11-25, and returns the day's total. With usd 0 it
// only returns the total.
func (s *Store) Spend(ctx context.Context, day string, usd float64) (total float64, err error) {
	err = s.tx(ctx, "add to the day's spending", func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `INSERT INTO spending (day, usd) VALUES (?, ?)
			ON CONFLICT (day) DO UPDATE SET usd = usd + excluded.usd RETURNING usd`, day, usd).Scan(&total)
	})
	return total, err
}
