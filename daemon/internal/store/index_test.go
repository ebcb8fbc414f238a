package store

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sublet/wire"
)

// hits are the sessions whose texts have the word.
func hits(t *testing.T, s *Store, word string) string {
	t.Helper()
	found, err := s.Search(t.Context(), Search{Query: word, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, 0, len(found))
	for _, h := range found {
		ids = append(ids, string(h.SessionID))
	}
	return strings.Join(ids, " ")
}

func prompted(session wire.SessionID, seq int64, prompt string) *wire.TurnStarted {
	e := event(session, seq)
	e.TurnID = wire.TurnID(fmt.Sprint(session, seq))
	return &wire.TurnStarted{Event: e, Agent: "orchestrator", Prompt: prompt}
}

// A session's texts leave the index with it, by their numbers: the whole index used to be read for that, a second for
// 100,000 texts of others.
func TestDeletedTextsAreFoundByTheirNumbers(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sublet.db"))
	for _, id := range []string{"s1", "s2", "s3"} {
		newSession(t, s, id, 1)
		mustAppend(t, s, prompted(wire.SessionID(id), 1, "the zebra of "+id), prompted(wire.SessionID(id), 2, "its stripes"))
	}
	if err := s.Delete(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Clear(t.Context(), "s2"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, prompted("s2", 3, "a giraffe")) // numbers that were freed may be given again
	if zebra, stripes, giraffe := hits(t, s, "zebra"), hits(t, s, "stripes"), hits(t, s, "giraffe"); zebra != "s3" || stripes != "s3" || giraffe != "s2" {
		t.Errorf("got zebra %q, stripes %q, giraffe %q", zebra, stripes, giraffe)
	}
	var left int
	if err := s.db.QueryRow("SELECT count(*) FROM text_rows").Scan(&left); err != nil || left != 3 {
		t.Errorf("got %d numbers of texts, %v; want 3", left, err)
	}
	var plan strings.Builder
	rows, err := s.db.Query("EXPLAIN QUERY PLAN "+deleteTexts, "s3")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(detail + "\n")
	}
	// "INDEX 0:=" is fts5's look-up of one row; its scan of all is "INDEX 0:".
	if text := plan.String(); !strings.Contains(text, "texts VIRTUAL TABLE INDEX 0:=\n") || !strings.Contains(text, "text_rows USING COVERING INDEX") {
		t.Errorf("texts are not looked up:\n%s", text)
	}
}

// A store of before the numbers of texts were kept finds, deletes and clears as ever.
func TestOlderIndexIsTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sublet.db")
	s := open(t, path)
	for _, id := range []string{"s1", "s2"} {
		newSession(t, s, id, 1)
		mustAppend(t, s, prompted(wire.SessionID(id), 1, "the zebra of "+id))
	}
	if _, err := s.db.Exec("DROP TABLE text_rows; DROP TABLE images; DROP TABLE folders; DROP TABLE spending; DROP TABLE agents; DROP TABLE hosted; DROP TABLE file_changes; PRAGMA user_version = 3"); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	mustAppend(t, s, prompted("s2", 2, "another zebra"))
	if err := s.Delete(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	if zebra := hits(t, s, "zebra"); zebra != "s2 s2" {
		t.Errorf("got %q, want both of s2", zebra)
	}
}

// What it costs to delete a session of 20 texts, beside 1,000 and 20,000 texts of others.
func BenchmarkDeleteBesideOthers(b *testing.B) {
	for _, others := range []int{1_000, 20_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			if testing.Short() && others > 1_000 {
				b.Skip()
			}
			s := open(b, filepath.Join(b.TempDir(), "sublet.db"))
			newSession(b, s, "others", 1)
			tx, err := s.db.Begin()
			if err != nil {
				b.Fatal(err)
			}
			for seq := range int64(others) {
				e := event("others", seq+1)
				if err := index(b.Context(), tx, &e, fmt.Sprintf("line %d of what a command printed about the %d files", seq, seq%977)); err != nil {
					b.Fatal(err)
				}
			}
			if err := tx.Commit(); err != nil {
				b.Fatal(err)
			}
			n := 0
			for b.Loop() {
				b.StopTimer()
				n++
				id := newSession(b, s, fmt.Sprint("s", n), 1)
				for seq := range int64(20) {
					mustAppend(b, s, prompted(id, seq+1, "a question about files"))
				}
				b.StartTimer()
				if err := s.Delete(b.Context(), id); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Of very many matches the newest are ranked; those of one project are looked for among all.
func TestSearchForACommonWord(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sublet.db"))
	old := wire.SessionInfo{ID: "old", Cwd: "/old", CreatedAtMS: 1, UpdatedAtMS: 1}
	if err := s.Append(t.Context(), &old); err != nil {
		t.Fatal(err)
	}
	many := newSession(t, s, "many", 2)
	err := s.tx(t.Context(), "index", func(tx *sql.Tx) error {
		err := index(t.Context(), tx, &wire.Event{SessionID: old.ID, Seq: 1, AtMS: 1}, "zebra")
		for i := range int64(maxRanked) {
			err = errors.Join(err, index(t.Context(), tx, &wire.Event{SessionID: many, Seq: i + 1, AtMS: 2}, "a zebra in the grass"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for q, want := range map[Search]wire.SessionID{{}: many, {Project: "/old"}: old.ID, {SinceMS: 2}: many, {Project: "/old", SinceMS: 2}: ""} {
		q.Query, q.Limit = "zebra", 10
		hits, err := s.Search(t.Context(), q)
		if err != nil || want == "" && len(hits) > 0 || want != "" && (len(hits) == 0 || hits[0].SessionID != want) || want == many && len(hits) != 10 {
			t.Errorf("%+v: got %+v, %v, want those of %q", q, hits, err, want)
		}
	}
}
