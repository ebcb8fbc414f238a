package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sublet/wire"
)

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newSession(t testing.TB, s *Store, id string, at int64) wire.SessionID {
	t.Helper()
	info := wire.SessionInfo{ID: wire.SessionID(id), Cwd: "/tmp/\xff", CreatedAtMS: at, UpdatedAtMS: at}
	if err := s.Append(t.Context(), &info); err != nil {
		t.Fatal(err)
	}
	return info.ID
}

// appendTo appends an event to its session, which exists unless the event is one of nobody's.
func appendTo(ctx context.Context, s *Store, e wire.EventMessage) error {
	info, err := s.Session(ctx, e.Meta().SessionID)
	if errors.Is(err, ErrNotFound) {
		info, err = wire.SessionInfo{ID: e.Meta().SessionID, Stored: true}, nil
	}
	if err != nil {
		return err
	}
	return s.Append(ctx, &info, e)
}

func event(session wire.SessionID, seq int64) wire.Event {
	return wire.Event{SessionID: session, TurnID: "t1", RequestID: "r1", Seq: seq, AtMS: 1000 + seq}
}

func mustAppend(t testing.TB, s *Store, events ...wire.EventMessage) {
	t.Helper()
	for _, e := range events {
		if err := appendTo(t.Context(), s, e); err != nil {
			t.Fatal(err)
		}
	}
}

func text(session wire.SessionID, seq int64, text string) *wire.AgentStreamChunk {
	return &wire.AgentStreamChunk{Event: event(session, seq), SeqFirst: seq, Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: text}}
}

func TestEventsComeBackAsTheyWere(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sublet.db"))
	id := newSession(t, s, "s1", 1)
	code := 7
	want := []wire.EventMessage{
		&wire.TurnStarted{Event: event(id, 1), Agent: "orchestrator", Prompt: "what is\nhere"},
		text(id, 2, "two "), text(id, 3, "words"),
		&wire.CommandResult{Event: event(id, 4), Tool: "bash", Command: "ls \xff", Output: []byte("zebra\xff"), ExitCode: &code},
		&wire.AgentComplete{Event: event(id, 5), Status: wire.StatusSuccess},
	}
	mustAppend(t, s, want...)
	got, more, err := s.Events(t.Context(), id, 0, 100)
	if err != nil || more {
		t.Fatal(more, err)
	}
	if len(got) != len(want) {
		t.Fatalf("got %d events, want %d", len(got), len(want))
	}
	for i := range want {
		g, err1 := wire.Marshal(got[i])
		w, err2 := wire.Marshal(want[i])
		if err := errors.Join(err1, err2); err != nil || !reflect.DeepEqual(g, w) {
			t.Errorf("event %d: got %+v, want %+v (%v)", i, got[i], want[i], err)
		}
	}
	if page, more, err := s.Events(t.Context(), id, 1, 2); err != nil || !more || len(page) != 2 || page[0].Meta().Seq != 2 {
		t.Errorf("got %d events from %v, more %v, %v; want 2 from 2 and more", len(page), page, more, err)
	}
	info, err := s.Session(t.Context(), id)
	if err != nil || info.Title != "what is" || info.Turns != 1 || info.LastSeq != 5 || info.Cwd != "/tmp/\xff" || info.UpdatedAtMS != 1005 {
		t.Errorf("got %+v, %v", info, err)
	}
	for query, seq := range map[string]int64{"two words": 5, "zebra": 4, "what": 1, `"quo AND (`: 0} {
		hits, err := s.Search(t.Context(), Search{Query: query, Limit: 10})
		if err != nil {
			t.Errorf("search %q: %v", query, err)
		}
		if seq == 0 && len(hits) != 0 || seq != 0 && (len(hits) != 1 || hits[0].Seq != seq) {
			t.Errorf("search %q: got %+v, want event %d", query, hits, seq)
		}
	}
	for q, want := range map[Search]int{ // the session was begun in /tmp/\xff, and zebra printed at 1004
		{Project: "/tmp/\xff"}: 1, {Project: "/tmp"}: 1, {Project: "/"}: 1, {Project: "/tm"}: 0, {Project: "/tmp/\xff/x"}: 0,
		{SinceMS: 1004}: 1, {SinceMS: 1005}: 0, {Project: "/tmp/", SinceMS: 1}: 1,
	} {
		q.Query, q.Limit = "zebra", 10
		if hits, err := s.Search(t.Context(), q); err != nil || len(hits) != want {
			t.Errorf("%+v: got %+v, %v, want %d", q, hits, err, want)
		}
	}
}

// a number is given once; a refused event changes nothing.
func TestNumberIsGivenOnce(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sublet.db"))
	id := newSession(t, s, "s1", 1)
	mustAppend(t, s, text(id, 1, "a"), text(id, 2, "b"))
	for _, bad := range []*wire.AgentStreamChunk{text(id, 2, "again"), text(id, 1, "old"), text("nobody", 1, "x")} {
		if err := appendTo(t.Context(), s, bad); err == nil {
			t.Errorf("append of %s %d: got no error", bad.SessionID, bad.Seq)
		}
	}
	if got, _, err := s.Events(t.Context(), id, 0, 10); err != nil || len(got) != 2 {
		t.Errorf("got %d events, %v; want 2", len(got), err)
	}
}

// an event of a newer or broken build is passed over, and later events still find their numbers.
func TestUndecodableEventKeepsItsNumber(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sublet.db"))
	id := newSession(t, s, "s1", 1)
	mustAppend(t, s, text(id, 1, "a"))
	if _, err := s.db.Exec("INSERT INTO events (session_id, seq, turn_id, kind, at, payload) VALUES (?, 2, '', 'FromTheFuture', 1, x'00')", id); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec("UPDATE sessions SET last_seq = 2"); err != nil {
		t.Fatal(err)
	}
	if err := appendTo(t.Context(), s, text(id, 2, "collides")); err == nil {
		t.Error("number 2 was given twice")
	}
	mustAppend(t, s, text(id, 3, "c"))
	got, _, err := s.Events(t.Context(), id, 0, 10)
	if err != nil || len(got) != 2 || got[1].Meta().Seq != 3 {
		t.Errorf("got %v, %v; want events 1 and 3", got, err)
	}
}

// Reading goes on past any number of events that cannot be decoded, and one line in the log tells of them. It stopped at
// the first page of which none could be: what came later was never seen again.
func TestManyUndecodableEvents(t *testing.T) {
	var log bytes.Buffer
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "sublet.db"), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := newSession(t, s, "s1", 1)
	mustAppend(t, s, text(id, 1, "a"), text(id, 2, "b"), text(id, 1000, "c"), text(id, 1001, "d"))
	for seq := range int64(600) {
		if _, err := s.db.Exec("INSERT INTO events (session_id, seq, turn_id, kind, at, payload) VALUES (?, ?, '', 'FromTheFuture', 1, x'00')", id, 100+seq); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		var got []int64
		after := int64(0)
		for more, pages := true, 0; more; pages++ {
			var page []wire.EventMessage
			if page, more, err = s.Events(t.Context(), id, after, 3); err != nil {
				t.Fatal(err)
			}
			if more && len(page) != 3 || pages > 2 {
				t.Fatalf("page %d: got %d events and more %v", pages, len(page), more)
			}
			for _, m := range page {
				after = m.Meta().Seq
				got = append(got, after)
			}
		}
		if !slices.Equal(got, []int64{1, 2, 1000, 1001}) {
			t.Errorf("got events %v", got)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "session=s1 first_seq=100") {
		t.Errorf("got %d lines in the log, want one of session s1: %s", lines, log.String())
	}
}

func TestUnfinishedTurns(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sublet.db"))
	id := newSession(t, s, "s1", 1)
	mustAppend(t, s, &wire.TurnStarted{Event: event(id, 1), Agent: "orchestrator"}, text(id, 2, "half"))
	want := []Unfinished{{SessionID: id, TurnID: "t1", RequestID: "r1", Agent: "orchestrator"}}
	if got, err := s.Unfinished(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	mustAppend(t, s, &wire.CompactionStarted{Event: event(id, 3)})
	want = append([]Unfinished{{SessionID: id}}, want...)
	if got, err := s.Unfinished(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("while it compacts: got %+v, %v; want %+v", got, err, want)
	}
	mustAppend(t, s, &wire.CompactionComplete{Event: event(id, 4)}, &wire.AgentComplete{Event: event(id, 5), Status: wire.StatusError})
	if got, err := s.Unfinished(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("got %+v, %v; want none", got, err)
	}
}

func TestSessionsInPages(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sublet.db"))
	for i := range 5 {
		newSession(t, s, fmt.Sprintf("s%d", i), int64(10+i/2)) // pairs with equal times
	}
	var got []string
	cursor := ""
	for {
		page, next, err := s.Sessions(t.Context(), cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range page {
			got = append(got, string(info.ID))
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if want := "s4 s3 s2 s1 s0"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if _, _, err := s.Sessions(t.Context(), "nonsense", 2); err == nil {
		t.Error("a made-up cursor was taken")
	}
}

func TestRenameClearDelete(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sublet.db"))
	id := newSession(t, s, "s1", 1)
	mustAppend(t, s, text(id, 1, "a"))
	if err := s.Rename(t.Context(), id, "docs"); err != nil {
		t.Fatal(err)
	}
	if err := s.Clear(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if info, err := s.Session(t.Context(), id); err != nil || info.Name != "docs" || info.LastSeq != 1 {
		t.Errorf("got %+v, %v; want the name kept and numbers that go on from 1", info, err)
	}
	mustAppend(t, s, text(id, 2, "b"))
	if gone, err := s.Deleted(t.Context(), id); err != nil || gone {
		t.Errorf("deleted before Delete: %v, %v", gone, err)
	}
	if err := s.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if gone, err := s.Deleted(t.Context(), id); err != nil || !gone {
		t.Errorf("deleted after Delete: %v, %v", gone, err)
	}
	if events, _, err := s.Events(t.Context(), id, 0, 10); err != nil || len(events) != 0 {
		t.Errorf("got %d events of a deleted session, %v", len(events), err)
	}
	_, err := s.Session(t.Context(), id)
	for what, err := range map[string]error{"session": err, "rename": s.Rename(t.Context(), id, "x"), "clear": s.Clear(t.Context(), id), "delete": s.Delete(t.Context(), id)} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s of a deleted session: got %v, want ErrNotFound", what, err)
		}
	}
}

func TestRules(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sublet.db"))
	expires := int64(99)
	want := []wire.Rule{
		{ID: "r1", Decision: "allow", Pattern: "bash: git push *", Scope: "project", Subject: "/p/\xff", Source: "user", CreatedAtMS: 1},
		{ID: "r2", Decision: "deny", Pattern: "bash: rm *", Scope: "always", Source: "user", CreatedAtMS: 2, ExpiresAtMS: &expires},
	}
	for _, r := range want {
		if err := s.AddRule(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Rules(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if err := s.DeleteRule(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteRule(t.Context(), "r1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sublet.db")
	s := open(t, path)
	if _, err := s.db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "newer sublet") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "sublet.db"))
	newSession(t, s, "s1", 1)
	openAudit(t, filepath.Join(dir, "audit.jsonl"))
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600 (%v)", f, info.Mode(), err)
		}
	}
}

// What Append returned from survives kill -9 of the process, whatever it was doing.
func TestKillLosesNothing(t *testing.T) {
	if path := os.Getenv("STORE_TEST_WRITER"); path != "" {
		appendForEver(path)
	}
	path := filepath.Join(t.TempDir(), "sublet.db")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillLosesNothing$")
	cmd.Env = append(os.Environ(), "STORE_TEST_WRITER="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var told int64
	for lines := bufio.NewScanner(out); told < 200 && lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "appended %d", &told); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed: that is what is tested
	s := open(t, path)
	events, _, err := s.Events(t.Context(), "s1", 0, 100_000)
	if err != nil || int64(len(events)) < told || told < 200 {
		t.Errorf("got %d events, %v; %d were told to be on disk", len(events), err, told)
	}
	if info, err := s.Session(t.Context(), "s1"); err != nil || info.LastSeq != int64(len(events)) {
		t.Errorf("got last number %d, %v; want %d", info.LastSeq, err, len(events))
	}
}

func appendForEver(path string) {
	ctx := context.Background()
	s, err := Open(ctx, path, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	info := wire.SessionInfo{ID: "s1"}
	if err := s.Append(ctx, &info); err != nil {
		panic(err)
	}
	for seq := int64(1); ; seq++ {
		if err := s.Append(ctx, &info, text("s1", seq, "x")); err != nil {
			panic(err)
		}
		fmt.Println("appended", seq)
	}
}

func BenchmarkAppend(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "sublet.db"))
	info := wire.SessionInfo{ID: "s1"}
	b.ReportAllocs()
	for seq := int64(1); b.Loop(); seq++ {
		if err := s.Append(b.Context(), &info, text("s1", seq, "a piece of text, as models write")); err != nil {
			b.Fatal(err)
		}
	}
}

// Sessions that write all at once have their turns in order. SQLite's own way is to sleep and try again, and of five hundred
// that did some found no gap for longer than a turn waits: their turns failed.
func TestWritersTakeTurns(t *testing.T) {
	const writers, each = 200, 10
	s := open(t, filepath.Join(t.TempDir(), "s.db"))
	var ready, all sync.WaitGroup
	var done, longest atomic.Int64
	ready.Add(writers)
	for i := range writers {
		id := newSession(t, s, fmt.Sprint("s", i), 1)
		all.Go(func() {
			ready.Done()
			ready.Wait()
			for seq := range int64(each) {
				before := done.Load()
				if err := appendTo(t.Context(), s, text(id, seq+1, "x")); err != nil {
					t.Error(err)
				}
				if n := done.Add(1) - before; n > longest.Load() {
					longest.Store(n)
				}
			}
		})
	}
	all.Wait()
	if limit := int64(4 * writers); longest.Load() > limit {
		t.Errorf("a write waited for %d others of %d writers, want at most %d", longest.Load(), writers, limit)
	}
}

func TestSpend(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sublet.db"))
	for _, tt := range []struct {
		day       string
		usd, want float64
	}{{"2026-11-25", 0, 0}, {"2026-11-25", 0.5, 0.5}, {"2026-11-25", 0.25, 0.75}, {"2026-11-26", 0, 0}, {"2026-11-25", 0, 0.75}} {
		if got, err := s.Spend(t.Context(), tt.day, tt.usd); err != nil || got != tt.want {
			t.Errorf("Spend(%s, %v) = %v, %v, want %v", tt.day, tt.usd, got, err, tt.want)
		}
	}
}
