package server_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
	"sublet/wire/jsonview"
	"sublet/wire/wiretest"
)

// A client whose connection is cut after every event, or after every second, third, … one, while a turn with all that a
// turn has goes on: it gets each event exactly once, in order, and the same as those who were never cut (C6, C7).
func TestCutAtEveryEvent(t *testing.T) {
	args := func(v any) json.RawMessage {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	long := strings.Repeat("word ", 20)
	r := newRig(t, scripted.Script{Match: "everything", Steps: []scripted.Step{
		{Reasoning: "well", Text: long, ChunkBytes: 10, ChunkMS: 1, ToolCalls: []scripted.Call{{Name: "bash", Arguments: args(map[string]string{"command": "ls"})}}},
		{Text: long, ChunkBytes: 10, ChunkMS: 1, ToolCalls: []scripted.Call{{Name: "bash", Arguments: args(map[string]string{"command": "rm -rf build"})}}},
		{Text: "and", ToolCalls: []scripted.Call{{Name: "todo", Arguments: args(map[string]any{"items": []map[string]string{{"text": "more", "status": "pending"}}})}}},
		{Text: long, ChunkBytes: 10, ChunkMS: 1},
	}})
	asking(r)
	p := r.dial()
	var cutters sync.WaitGroup
	seen := make([][]wire.EventMessage, 5)
	for i := range seen {
		cutters.Go(func() { seen[i] = cutAfterEvery(r, p.session, i+1) })
	}
	id := p.ask("everything")
	p.answer(question(p, anyQuestion), wire.DecisionAllow)
	end := p.ended(id)
	cutters.Wait()

	whole := r.dial(withoutShell, inSession(p.session, 0)) // from the store, in one go
	whole.ended(id)
	want := map[int64]wire.EventMessage{}
	for _, m := range whole.all() {
		if e, ok := m.(wire.EventMessage); ok && e.Meta().Seq > 0 {
			want[e.Meta().Seq] = e
		}
	}
	if end.Seq < 30 || int64(len(want)) != end.Seq {
		t.Fatalf("the store has %d events up to %d", len(want), end.Seq)
	}
	for i, events := range seen {
		next := int64(1)
		for _, m := range events {
			if m.Meta().Seq != next {
				t.Fatalf("cut after every %d: event %d after %d", i+1, m.Meta().Seq, next-1)
			}
			// The question goes out as it would run and is kept masked; here it holds no secret, so the two are the same.
			if got, stored := jsonview.Of(m), jsonview.Of(want[next]); !bytes.Equal(got, stored) {
				t.Errorf("cut after every %d: event %d is\n%s, stored is\n%s", i+1, next, got, stored)
			}
			next++
		}
		if next != end.Seq+1 {
			t.Errorf("cut after every %d: %d events, want %d", i+1, next-1, end.Seq)
		}
	}
}

// cutAfterEvery attaches to a session, cuts the connection after n stored events with whatever is still on its way, and
// does so again with what it has seen, until the turn's end.
func cutAfterEvery(r *rig, id wire.SessionID, n int) (seen []wire.EventMessage) {
	for {
		client, daemon := wiretest.Pipe()
		r.conns.Go(func() { r.server.ServeConn(r.ctx, daemon, 0) })
		conn := wire.NewConn(client)
		if err := conn.Send(hello(withoutShell, inSession(id, int64(len(seen))))); err != nil {
			r.t.Errorf("hello: %v", err)
		}
		over := false
		for got := 0; got < n && !over; {
			m, err := conn.Receive()
			if err != nil {
				r.t.Errorf("after %d events: %v", len(seen), err)
				over = true
				break
			}
			e, ok := m.(wire.EventMessage)
			if !ok || e.Meta().Seq == 0 || live(e) {
				continue
			}
			if _, asks := m.(*wire.ConfirmationRequest); asks && e.Meta().Seq <= int64(len(seen)) {
				continue // a question that is still open is sent again
			}
			seen = append(seen, e)
			got++
			_, over = m.(*wire.AgentComplete)
		}
		conn.Close()
		if over {
			return seen
		}
	}
}

// A client that is stopped for a minute (SIGSTOP: it reads nothing) while a turn streams does not slow another one by a
// millisecond; it is cut off meanwhile, and when it continues and comes back it has missed nothing.
func TestStoppedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces, size = 1200, 400 // more than the pipe holds
		r := newRig(t, scripted.Script{Match: "talk", Steps: []scripted.Step{
			{Text: strings.Repeat("x", pieces*size), ChunkBytes: size, ChunkMS: 50}, // for a minute
		}})
		p := r.dial(withoutShell)
		attach := func(after int64) *wire.Conn {
			client, daemon := wiretest.Pipe()
			r.conns.Go(func() { r.server.ServeConn(r.ctx, daemon, 0) })
			conn := wire.NewConn(client)
			if err := conn.Send(hello(withoutShell, inSession(p.session, after))); err != nil {
				t.Fatal(err)
			}
			if m, err := conn.Receive(); err != nil {
				t.Fatalf("handshake: %v, %v", m, err)
			}
			return conn
		}
		// read returns the numbers that come, up to the turn's end or the connection's.
		read := func(conn *wire.Conn, each func(wire.EventMessage)) (numbers []int64, over bool) {
			for !over {
				m, err := conn.Receive()
				if err != nil {
					return numbers, false
				}
				e, ok := m.(wire.EventMessage)
				if !ok || e.Meta().Seq == 0 {
					if h, ok := m.(*wire.Heartbeat); ok && !h.Reply {
						_ = conn.Send(&wire.Heartbeat{Nonce: h.Nonce, Reply: true})
					}
					continue
				}
				if each != nil {
					each(e)
				}
				first := e.Meta().Seq
				if c, ok := m.(*wire.AgentStreamChunk); ok {
					first = c.SeqFirst
				}
				for ; first <= e.Meta().Seq; first++ {
					numbers = append(numbers, first)
				}
				_, over = m.(*wire.AgentComplete)
			}
			return numbers, true
		}

		stopped, other := attach(0), attach(0)
		late := time.Duration(0)
		var reading sync.WaitGroup
		reading.Go(func() {
			if _, over := read(other, func(e wire.EventMessage) {
				late = max(late, time.Since(time.UnixMilli(e.Meta().AtMS)))
			}); !over {
				t.Error("the other client was cut off")
			}
		})
		id := p.ask("talk")
		time.Sleep(time.Minute)
		end := p.ended(id)
		reading.Wait()
		if late >= time.Millisecond {
			t.Errorf("the other client got an event %v late", late)
		}

		got, over := read(stopped, nil) // what had reached it
		stopped.Close()
		if over || len(got) >= int(end.Seq) {
			t.Errorf("it was not cut off: %d of %d events", len(got), end.Seq)
		}
		stopped = attach(got[len(got)-1])
		rest, over := read(stopped, nil)
		if !over {
			t.Error("it did not get the end")
		}
		got = append(got, rest...)
		for i, seq := range got {
			if seq != int64(i+1) {
				t.Fatalf("event %d after %d", seq, i)
			}
		}
		if int64(len(got)) != end.Seq {
			t.Errorf("%d events, want %d", len(got), end.Seq)
		}
		stopped.Close()
		other.Close()
		r.close()
		p.close()
	})
}
