package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"sublet/wire"
	"sublet/wire/visible"
)

// Append stores events of one session, all or none, each with complete Meta, the first Seq being the session's next number. It stores the
// session as well if that is not Stored yet; otherwise it must exist. When Append returns they are in the database, and info describes the
// session after them. A number that is taken is an error and changes nothing.
func (s *Store) Append(ctx context.Context, info *wire.SessionInfo, list ...wire.EventMessage) error {
	doing := fmt.Sprintf("append event %d of session %s", info.LastSeq+1, info.ID)
	if err := s.checkFile(); err != nil {
		return s.failed(doing, err)
	}
	// Finish the events even if ctx ends. A context without cancellation also saves a goroutine in the driver for each statement.
	ctx = context.WithoutCancel(ctx)
	after := describe(*info, list)
	err := s.tx(ctx, doing, func(tx *sql.Tx) error {
		if !info.Stored {
			if _, err := tx.ExecContext(ctx, "INSERT INTO sessions (id, name, cwd, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
				info.ID, info.Name, []byte(info.Cwd), info.CreatedAtMS, info.UpdatedAtMS); err != nil {
				return err
			}
		}
		for _, m := range list {
			if err := s.appendOne(ctx, tx, m); err != nil {
				return err
			}
		}
		return exactlyOne(tx.StmtContext(ctx, s.updateSession).ExecContext(ctx,
			after.LastSeq, after.UpdatedAtMS, after.Turns, after.Title, after.Agent, after.ID))
	})
	if err == nil {
		*info = after
	}
	return err
}

// describe returns the description of a stored session after the events that follow info.
func describe(info wire.SessionInfo, list []wire.EventMessage) wire.SessionInfo {
	info.Stored = true
	for _, m := range list {
		info.LastSeq, info.UpdatedAtMS = m.Meta().Seq, max(info.UpdatedAtMS, m.Meta().AtMS)
		if t, ok := m.(*wire.TurnStarted); ok {
			info.Turns, info.Agent, info.Title = info.Turns+1, t.Agent, cmp.Or(info.Title, Title(t.Prompt))
		}
	}
	return info
}

// appendOne stores an event, and what follows from it: the entry in open_turns, and the text for the search.
func (s *Store) appendOne(ctx context.Context, tx *sql.Tx, m wire.EventMessage) error {
	e := m.Meta()
	payload, err := wire.Marshal(forStore(m))
	if err != nil {
		return err
	}
	if _, err := tx.StmtContext(ctx, s.insertEvent).ExecContext(ctx,
		e.SessionID, e.Seq, e.TurnID, wire.KindOf(m), e.AtMS, payload); err != nil {
		return err
	}
	switch m := m.(type) {
	case *wire.TurnStarted:
		_, err = tx.ExecContext(ctx, "INSERT INTO open_turns (turn_id, session_id, request_id, agent, first_seq) VALUES (?, ?, ?, ?, ?)",
			e.TurnID, e.SessionID, e.RequestID, m.Agent, e.Seq)
	case *wire.AgentComplete:
		if err := indexAnswer(ctx, tx, e); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM open_turns WHERE turn_id = ?", e.TurnID)
	case *wire.CompactionStarted: // a session has one at a time, in a turn or outside
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO open_turns (turn_id, session_id, request_id, agent, first_seq) VALUES (?, ?, '', '', ?)",
			compactionOf(e.SessionID), e.SessionID, e.Seq)
	case *wire.CompactionComplete:
		_, err = tx.ExecContext(ctx, "DELETE FROM open_turns WHERE turn_id = ?", compactionOf(e.SessionID))
	}
	if text := searchable(m); text != "" && err == nil {
		err = index(ctx, tx, e, text)
	}
	return err
}

// checkFile returns errGone if the file at the database's path is not the opened one any more. SQLite would go on writing to a
// removed file, whose content is lost when the daemon ends.
func (s *Store) checkFile() error {
	if now, err := os.Stat(s.path); err != nil || !os.SameFile(s.opened, now) {
		return errGone
	}
	return nil
}

// index adds a text to the full-text index and its row to text_rows: see deleteTexts.
func index(ctx context.Context, tx *sql.Tx, e *wire.Event, text string) error {
	res, err := tx.ExecContext(ctx, "INSERT INTO text_rows (session_id) VALUES (?)", e.SessionID)
	if err != nil {
		return err
	}
	row, err := res.LastInsertId()
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO texts (rowid, session_id, seq, at, body) VALUES (?, ?, ?, ?, ?)", row, e.SessionID, e.Seq, e.AtMS, text)
	return err
}

// deleteTexts removes a session's texts from the index by row: fts5 would have to scan the whole index to find them by
// session. The caller deletes the rows of text_rows afterwards.
const deleteTexts = "DELETE FROM texts WHERE rowid IN (SELECT row FROM text_rows WHERE session_id = ?)"

// indexAnswer indexes a turn's answer as one text. It was stored in pieces of a few bytes, and a search for words in
// different pieces would not find it.
func indexAnswer(ctx context.Context, tx *sql.Tx, e *wire.Event) error {
	var chunks []wire.EventMessage
	err := each(ctx, tx, func(scan func(...any) error) error {
		var payload []byte
		if err := scan(&payload); err != nil {
			return err
		}
		m, _ := wire.Unmarshal(payload) // Events logs an error; index the answer without this piece
		if c, ok := m.(*wire.AgentStreamChunk); ok && (c.Chunk.Type == wire.ChunkText || c.Chunk.Type == wire.ChunkVoid) {
			chunks = append(chunks, c)
		}
		return nil
	}, `SELECT payload FROM events WHERE session_id = ? AND kind = 'AgentStreamChunk' AND turn_id = ?
		AND seq > (SELECT first_seq FROM open_turns WHERE turn_id = ?) ORDER BY seq`, e.SessionID, e.TurnID, e.TurnID)
	var answer strings.Builder
	for _, m := range wire.WithoutVoid(chunks) {
		answer.WriteString(m.(*wire.AgentStreamChunk).Chunk.Text)
	}
	if err != nil || answer.Len() == 0 {
		return err
	}
	return index(ctx, tx, e, answer.String())
}

// searchable returns the text of an event for the index: of prompts, commands with their output, and summaries.
func searchable(m wire.EventMessage) string {
	switch m := m.(type) {
	case *wire.TurnSteered:
		return m.Prompt
	case *wire.TurnStarted:
		return m.Prompt
	case *wire.CommandResult:
		return strings.ToValidUTF8(string(m.Command)+"\n"+string(m.Output)+string(m.OutputTail), "\uFFFD")
	case *wire.CompactionComplete:
		return m.Summary
	}
	return ""
}

// Title is the first line of a prompt, at most 80 bytes, never cut inside a character.
func Title(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	if len(line) <= 80 {
		return line
	}
	return visible.Cut(line, 77) + "…"
}

// Events returns up to limit events of a session with numbers above after, in order. more reports whether others follow. An
// event that this build cannot decode is left out, which is logged once for each session.
func (s *Store) Events(ctx context.Context, id wire.SessionID, after int64, limit int) (events []wire.EventMessage, more bool, err error) {
	// No LIMIT: rows that cannot be decoded do not count, and SQLite reads rows only on demand.
	err = each(ctx, s.db, func(scan func(...any) error) error {
		if more = len(events) == limit; more {
			return errEnough
		}
		var seq int64
		var payload []byte
		if err := scan(&seq, &payload); err != nil {
			return err
		}
		m, err := wire.Unmarshal(payload)
		event, ok := m.(wire.EventMessage)
		if err != nil || !ok {
			if _, logged := s.leftOut.LoadOrStore(id, true); !logged {
				s.log.Warn("stored events left out", "session", id, "first_seq", seq, "err", err)
			}
			return nil
		}
		events = append(events, event)
		return nil
	}, "SELECT seq, payload FROM events WHERE session_id = ? AND seq > ? ORDER BY seq", id, after)
	return events, more, s.failed("read events", err)
}

// Unfinished is a turn that began and has no AgentComplete or, without a TurnID, a compaction without CompactionComplete.
type Unfinished struct {
	SessionID wire.SessionID
	TurnID    wire.TurnID
	RequestID wire.RequestID
	Agent     string
}

// compactionOf returns the turn_id under which a session's compaction is stored in the table of open turns: the session's
// id, which no turn has.
func compactionOf(id wire.SessionID) wire.TurnID { return wire.TurnID(id) }

// Unfinished returns the turns and compactions that were running when a daemon died.
func (s *Store) Unfinished(ctx context.Context) ([]Unfinished, error) {
	var list []Unfinished
	err := each(ctx, s.db, func(scan func(...any) error) error {
		var u Unfinished
		err := scan(&u.SessionID, &u.TurnID, &u.RequestID, &u.Agent)
		if u.TurnID == compactionOf(u.SessionID) {
			u.TurnID = ""
		}
		list = append(list, u)
		return err
	}, "SELECT session_id, turn_id, request_id, agent FROM open_turns ORDER BY turn_id")
	return list, s.failed("list unfinished turns", err)
}

// Search is what Store.Search looks for: events whose text contains all words of Query. Words are taken literally; the query
// syntax of fts5 is not available.
type Search struct {
	Query   string
	Project string // only sessions begun in this folder or below it; "" = all
	SinceMS int64  // only events since then, in milliseconds since 1970; 0 = all
	Limit   int
}

// maxRanked bounds the matches of a search that are ranked: the newest. It takes some microseconds for each.
const maxRanked = 2000

// Search returns the events that q is about, of the newest maxRanked the best match first.
func (s *Store) Search(ctx context.Context, q Search) ([]wire.SearchHit, error) {
	words := strings.Fields(q.Query)
	if len(words) == 0 {
		return nil, errors.New("search: no words to look for")
	}
	for i, w := range words {
		words[i] = `"` + strings.ReplaceAll(w, `"`, `""`) + `"`
	}
	match, project := strings.Join(words, " "), strings.TrimSuffix(q.Project, "/")
	mine, filter, rank := "", " AND rowid >= ?5", "rank"
	if q.Project != "" || q.SinceMS > 0 { // by the rows of sessions first: for a column of texts a match is read as a whole
		mine = `WITH mine AS MATERIALIZED (SELECT row FROM text_rows WHERE session_id IN (SELECT id FROM sessions WHERE updated_at >= ?2 AND
			(?3 = '' OR cwd = CAST(?3 AS BLOB) OR substr(cwd, 1, length(CAST(?4 AS BLOB))) = CAST(?4 AS BLOB)))) `
		filter = " AND rowid >= max(?5, (SELECT coalesce(min(row), 0) FROM mine)) AND +rowid IN mine" // fts5 uses one bound only
		rank = "bm25(texts)"                                                                          // fts5 computes the column rank before it filters, and this after that
	}
	args := []any{match, q.SinceMS, project, project + "/"}
	var oldest int64 // the row of the last match that is ranked; 0: there are fewer
	err := s.db.QueryRowContext(ctx, mine+"SELECT rowid FROM texts WHERE texts MATCH ?1"+filter+" ORDER BY rowid DESC LIMIT 1 OFFSET ?6", append(args, 0, maxRanked-1)...).Scan(&oldest)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, s.failed("search", err)
	}
	var hits []wire.SearchHit
	err = each(ctx, s.db, func(scan func(...any) error) error {
		if len(hits) == q.Limit {
			return errEnough
		}
		var h wire.SearchHit
		if err := scan(&h.SessionID, &h.Seq, &h.AtMS, &h.Snippet); err != nil {
			return err
		}
		if h.AtMS >= q.SinceMS {
			hits = append(hits, h)
		}
		return nil
	}, mine+`SELECT session_id, seq, at, snippet(texts, 3, '', '', '…', 16) FROM texts
		WHERE texts MATCH ?1`+filter+` ORDER BY `+rank, append(args, oldest)...)
	return hits, s.failed("search", err)
}

// AllEvents returns every stored event of a session.
func (s *Store) AllEvents(ctx context.Context, id wire.SessionID) ([]wire.EventMessage, error) {
	var all []wire.EventMessage
	for after := int64(0); ; after = all[len(all)-1].Meta().Seq {
		page, more, err := s.Events(ctx, id, after, 500)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); !more {
			return all, nil
		}
	}
}
