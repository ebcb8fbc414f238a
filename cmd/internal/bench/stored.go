package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
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
)

// storedRows measure what people wait for where there are many sessions: the 95th percentile of requests by one client.
func storedRows(s *site) []row {
	s.scripted()
	s.sublet("daemon", "start") // makes the database
	check(s.stopDaemon())
	words := vocabulary()
	resumable := fill(filepath.Join(s.dir, "state", "sublet.db"), words)
	ends := make(chan struct{}, 1)
	c := s.connect(func(m wire.Message) {
		if end, ok := m.(*wire.AgentComplete); ok && end.Seq == perSession {
			ends <- struct{}{}
		}
	})
	request := func(id, name string, make func(i int) *wire.SessionRequest) row {
		i := 0
		return row{id, name, "ms", 100, 3, quantile(0.95, storedAsked, func() float64 {
			r := make(i % storedAsked)
			i++
			return timed(func() {
				reply := must(wire.Call(context.Background(), c, r))
				switch {
				case r.Op == "resume":
					<-ends // the session's last event
				case len(reply.Sessions)+len(reply.Hits) == 0:
					check(fmt.Errorf("the reply to %s is empty", r.Op))
				}
			})
		}), "", nil}
	}
	return []row{
		request("Q1", "10,000 sessions: a page of the list, p95", func(int) *wire.SessionRequest { return &wire.SessionRequest{Op: "list"} }),
		request("Q2", "10,000 sessions: resume one, p95", func(i int) *wire.SessionRequest {
			return &wire.SessionRequest{Op: "resume", SessionID: &resumable[i]}
		}),
		request("Q3", "100,000 events: search two words, p95", func(i int) *wire.SessionRequest {
			return &wire.SessionRequest{Op: "search", Query: words[100+i] + " " + words[300+i]}
		}),
		request("Q4", "100,000 events: search a word in most, p95", func(i int) *wire.SessionRequest {
			return &wire.SessionRequest{Op: "search", Query: words[i%10]}
		}),
		request("Q5", "the same in one project since last week, p95", func(i int) *wire.SessionRequest {
			return &wire.SessionRequest{Op: "search", Query: words[i%10], Project: "/home/user/project3", SinceMS: time.Now().Add(-7 * 24 * time.Hour).UnixMilli()}
		}),
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
// itself takes minutes. It returns the ids of storedAsked of them.
func fill(file string, words []string) (ids []wire.SessionID) {
	db := must(sql.Open("sqlite", file))
	tx := must(db.Begin())
	random := rand.New(rand.NewPCG(3, 4))
	often := rand.NewZipf(random, 1.1, 2, uint64(len(words)-1))
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[often.Uint64()])
			b.WriteByte(' ')
		}
		return b.String()
	}
	insert := func(query string, args ...any) { must(tx.Exec(query, args...)) }
	now, rows := time.Now(), 1000
	for i := range storedSessions {
		id := wire.SessionID(wire.NewID())
		if i%(storedSessions/storedAsked) == 0 {
			ids = append(ids, id)
		}
		at := now.Add(-time.Duration(storedSessions-i) * 10 * time.Minute).UnixMilli()
		insert("INSERT INTO sessions (id, title, cwd, created_at, updated_at, last_seq, turns) VALUES (?, ?, ?, ?, ?, ?, 2)",
			id, text(8), fmt.Appendf(nil, "/home/user/project%d", i%20), at, at, perSession)
		for seq, m := range conversation(text)[:perSession] {
			*m.Meta() = wire.Event{SessionID: id, TurnID: m.Meta().TurnID, Seq: int64(seq + 1), AtMS: at}
			insert("INSERT INTO events (session_id, seq, turn_id, kind, at, payload) VALUES (?, ?, ?, ?, ?, ?)",
				id, seq+1, m.Meta().TurnID, wire.KindOf(m), at, must(wire.Marshal(m)))
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
			insert("INSERT INTO text_rows (row, session_id) VALUES (?, ?)", rows, id)
			insert("INSERT INTO texts (rowid, session_id, seq, at, body) VALUES (?, ?, ?, ?, ?)", rows, id, seq+1, at, body)
		}
	}
	check(errors.Join(tx.Commit(), db.Close()))
	return ids
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
