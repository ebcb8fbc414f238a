package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
)

// Changes of files are kept over restarts, within the bounds of all sessions together, and go with their session.
func TestChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sublet.db")
	s := open(t, path)
	one, two := Changes{s, newSession(t, s, "s1", 1)}, Changes{s, newSession(t, s, "s2", 1)}
	add := func(c Changes, name string, size int) {
		t.Helper()
		if err := c.Add(t.Context(), &FileChange{Path: name, Existed: true, Before: make([]byte, size), After: "digest"}); err != nil {
			t.Fatal(err)
		}
	}
	last := func(c Changes, want string) {
		t.Helper()
		f, more, err := c.Last(t.Context())
		got := fmt.Sprintf("%s %d %d", f.Path, len(f.Before), more)
		if errors.Is(err, ErrNotFound) {
			got, err = "none", nil
		}
		if got != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	add(one, "a", 1)
	add(one, "\xff", 2)
	add(two, "c", 3)
	s = open(t, path) // another daemon
	one.Store, two.Store = s, s
	last(one, "\xff 2 1")
	last(two, "c 3 0")
	if f, _, err := one.Last(t.Context()); err != nil || !f.Existed || f.Secret || f.After != "digest" || one.Remove(t.Context(), f.ID) != nil {
		t.Errorf("got %+v, %v", f, err)
	}
	last(one, "a 1 0")

	if _, err := s.db.ExecContext(t.Context(), "UPDATE file_changes SET at = at - ? WHERE path = ?", maxChangeAge.Milliseconds()+1, []byte("a")); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	one.Store, two.Store = s, s
	last(one, "none") // too old
	last(two, "c 3 0")

	add(two, "large", maxChangeBytes/2)
	add(one, "large", maxChangeBytes/2)
	last(two, fmt.Sprintf("large %d 0", maxChangeBytes/2))
	if _, err := s.db.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO file_changes (session_id, path, existed, secret, after, at, size) SELECT session_id, path, existed, secret, after, at, 0 FROM n, file_changes WHERE path = ? AND session_id = ?`,
		maxChanges-1, []byte("large"), one.Session); err != nil {
		t.Fatal(err)
	}
	add(one, "small", 0)
	last(two, "none")
	last(one, fmt.Sprintf("small 0 %d", maxChanges-1))
	if err := s.Clear(t.Context(), one.Session); err != nil {
		t.Fatal(err)
	}
	last(one, fmt.Sprintf("small 0 %d", maxChanges-1)) // a cleared conversation takes no change back
	if err := s.Delete(t.Context(), one.Session); err != nil {
		t.Fatal(err)
	}
	last(one, "none")
	if err := one.Add(t.Context(), &FileChange{Path: "x"}); err == nil {
		t.Error("a change of a deleted session was kept")
	}
}
