package main

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver
	"sublet/wire"
)

const (
	storedSessions = 10_000
	storedEvents   = 100_000
	perSession     = storedEvents / storedSessions
	storedAsked    = 100 // requests of one measurement
	storedGoal     = 100 // ms
)

// storedRows time what people wait for where there are many sessions: the 95th percentile of requests by one client.
func storedRows(s *site) ([]row, error) {
	d, err := startNative(s, 1) // makes the database
	if err != nil {
		return nil, err
	}
	var first []wire.SessionID
	err = s.sublet("daemon", "stop", "--drain", "0s")
	if err == nil {
		first, err = fill(filepath.Join(s.dir, "state", "sublet.db"))
	}
	if err == nil {
		err = s.sublet("daemon", "start")
	}
	if err != nil {
		return nil, err
	}
	c, err := shakeHands(filepath.Join(s.dir, "run", "daemon.sock"))
	if err != nil {
		return nil, err
	}
	s.cleanup(c.Close)
	d.conns = []*wire.Conn{c}
	limit := func() (float64, error) { return storedGoal, nil }
	line := func(id, name string, request func(i int) *wire.SessionRequest) row {
		return row{id, name, "ms", "the limit", 1, 3, func() (float64, error) { return p95(c, request) }, limit}
	}
	words := vocabulary()
	return []row{
		line("Q1", "10,000 sessions: a page of the list, p95", func(int) *wire.SessionRequest { return &wire.SessionRequest{Op: "list"} }),
		line("Q2", "10,000 sessions: resume one, p95", func(i int) *wire.SessionRequest {
			return &wire.SessionRequest{Op: "resume", SessionID: &first[i%len(first)]}
		}),
		line("Q3", "100,000 events: search two words, p95", func(i int) *wire.SessionRequest {
			return &wire.SessionRequest{Op: "search", Query: words[100+i] + " " + words[300+i]}
		}),
		line("Q4", "100,000 events: search a word in most, p95", func(i int) *wire.SessionRequest {
			return &wire.SessionRequest{Op: "search", Query: words[i%10]}
		}),
		line("Q5", "the same in one project since last week, p95", func(i int) *wire.SessionRequest {
			return &wire.SessionRequest{Op: "search", Query: words[i%10], Project: "/home/user/project3", SinceMS: time.Now().Add(-7 * 24 * time.Hour).UnixMilli()}
		}),
	}, nil
}

// p95 returns the 95th percentile of the milliseconds of requests.
func p95(c *wire.Conn, request func(i int) *wire.SessionRequest) (float64, error) {
	var took []float64
	for i := range storedAsked {
		r := request(i)
		r.RequestID = wire.RequestID(wire.NewID())
		time.Sleep(15 * time.Millisecond) // a client may send 100 in a second
		begun := time.Now()
		if err := answered(c, r); err != nil {
			return 0, fmt.Errorf("%s: %w", r.Op, err)
		}
		took = append(took, float64(time.Since(begun).Microseconds())/1e3)
	}
	slices.Sort(took)
	return took[len(took)*95/100], nil
}

// answered sends a request and waits for its reply or, of resume, for the last event of the session.
func answered(c *wire.Conn, r *wire.SessionRequest) error {
	if err := c.Send(r); err != nil {
		return err
	}
	for {
		m, err := c.Receive()
		switch m := m.(type) {
		case *wire.Error:
			return m
		case *wire.SessionReply:
			switch {
			case r.Op == "list" && len(m.Sessions) < 100, r.Op == "search" && len(m.Hits) == 0:
				return errors.New("the reply is empty")
			case r.Op != "resume":
				return nil
			}
		case *wire.AgentComplete:
			if r.Op == "resume" && m.Seq == perSession {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// vocabulary returns words, the most frequent first.
func vocabulary() []string {
	const syllables = "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro ru sa se si so su ta te ti to tu"
	s := strings.Fields(syllables)
	random := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 20_000)
	for i := range words {
		for range 2 + random.IntN(3) {
			words[i] += s[random.IntN(len(s))]
		}
	}
	return words
}

// fill adds sessions to the database of a daemon that does not run, in one transaction: to have the daemon store each event for
// itself takes minutes. It returns some of their ids.
func fill(file string) (ids []wire.SessionID, err error) {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.Begin()
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	words, random := vocabulary(), rand.New(rand.NewPCG(3, 4))
	often := rand.NewZipf(random, 1.1, 2, uint64(len(words)-1))
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[often.Uint64()])
			b.WriteByte(' ')
		}
		return b.String()
	}
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = tx.Exec(query, args...)
		}
	}
	now, rows := time.Now(), 1000 // above those of the first turn
	for i := range storedSessions {
		id := wire.SessionID(wire.NewID())
		if i%(storedSessions/storedAsked) == 0 {
			ids = append(ids, id)
		}
		at := now.Add(-time.Duration(storedSessions-i) * 10 * time.Minute).UnixMilli()
		exec("INSERT INTO sessions (id, title, cwd, created_at, updated_at, last_seq, turns) VALUES (?, ?, ?, ?, ?, ?, 2)",
			id, text(8), fmt.Appendf(nil, "/home/user/project%d", i%20), at, at, perSession)
		for seq, m := range conversation(text)[:perSession] {
			*m.Meta() = wire.Event{SessionID: id, TurnID: m.Meta().TurnID, Seq: int64(seq + 1), AtMS: at}
			payload, merr := wire.Marshal(m)
			err = errors.Join(err, merr)
			exec("INSERT INTO events (session_id, seq, turn_id, kind, at, payload) VALUES (?, ?, ?, ?, ?, ?)", id, seq+1, m.Meta().TurnID, m.Kind(), at, payload)
			body := ""
			switch m := m.(type) {
			case *wire.TurnStarted:
				body = m.Prompt
			case *wire.CommandResult:
				body = string(m.Command) + "\n" + string(m.Output)
			case *wire.AgentStreamChunk:
				body = m.Chunk.Text
			}
			if body == "" {
				continue
			}
			rows++
			exec("INSERT INTO text_rows (row, session_id) VALUES (?, ?)", rows, id)
			exec("INSERT INTO texts (rowid, session_id, seq, at, body) VALUES (?, ?, ?, ?, ?)", rows, id, seq+1, at, body)
		}
	}
	if err != nil {
		return nil, err
	}
	return ids, tx.Commit()
}

// conversation returns the events of two turns.
func conversation(text func(words int) string) (events []wire.EventMessage) {
	for range 2 {
		turn := wire.Event{TurnID: wire.TurnID(wire.NewID())}
		call := wire.ExecutionID(wire.NewID())
		status := 0
		events = append(events,
			&wire.TurnStarted{Event: turn, Agent: "orchestrator", Model: "test/m", Prompt: text(20)},
			&wire.AgentStreamChunk{Event: turn, Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: call, Tool: "bash", Arguments: `{"command":"make test"}`}},
			&wire.CommandResult{Event: turn, Agent: "orchestrator", ExecutionID: call, Tool: "bash", Command: "make test", Output: []byte(text(200)), ExitCode: &status, Status: wire.StatusSuccess},
			&wire.AgentStreamChunk{Event: turn, Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: text(60)}},
			&wire.AgentComplete{Event: turn, Agent: "orchestrator", Status: wire.StatusSuccess},
		)
	}
	return events
}
