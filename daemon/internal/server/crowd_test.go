package server_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
	"sublet/wire/wiretest"
)

// Many clients, each with a turn that streams to it, all at once: everybody gets everything, and the memory that is in use
// afterwards is the same after each round. The benchmark has five hundred.
func TestManyClients(t *testing.T) {
	r, conns := crowd(t, 40)
	var used [3]uint64
	for round := range used {
		r.streamToAll(t, conns, round)
		used[round] = inUse()
	}
	if limit := used[1] + used[1]/5 + 2<<20; used[2] > limit {
		t.Errorf("memory grows: %d bytes in use after each round", used)
	}
}

// BenchmarkFiveHundredClients is one round of five hundred turns at once.
func BenchmarkFiveHundredClients(b *testing.B) {
	clients := 500
	if testing.Short() {
		clients = 50
	}
	r, conns := crowd(b, clients)
	r.streamToAll(b, conns, -1)
	before, round := inUse(), 0
	for b.Loop() {
		r.streamToAll(b, conns, round)
		round++
	}
	b.ReportMetric(float64(before)/float64(clients), "B/client") // both ends
	b.ReportMetric((float64(inUse())-float64(before))/float64(clients*round), "B-kept/turn")
	b.ReportMetric(float64(clients*round*streamPieces)/b.Elapsed().Seconds(), "chunks/s")
}

const streamPieces = 5

var streamText = strings.Repeat("0123456789", 4*streamPieces)

func crowd(tb testing.TB, clients int) (*rig, []*wire.Conn) {
	r := newRig(tb, scripted.Script{Match: "talk", Steps: []scripted.Step{{Text: streamText, ChunkBytes: 40}}})
	conns := make([]*wire.Conn, clients)
	for i := range conns {
		client, daemon := wiretest.Pipe()
		r.conns.Go(func() { r.server.ServeConn(r.ctx, daemon, 0) })
		conns[i] = wire.NewConn(client)
		tb.Cleanup(func() { conns[i].Close() })
		if err := conns[i].Send(hello(script)); err != nil {
			tb.Fatal(err)
		}
		if m, err := conns[i].Receive(); err != nil || wire.KindOf(m) != "Ready" {
			tb.Fatalf("client %d: %v, %v", i, m, err)
		}
	}
	return r, conns
}

func (r *rig) streamToAll(tb testing.TB, conns []*wire.Conn, round int) {
	var all sync.WaitGroup
	for i, conn := range conns {
		all.Go(func() {
			if err := stream(conn, wire.RequestID(fmt.Sprint("round ", round)), streamText); err != nil {
				tb.Errorf("client %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// stream asks for one turn and reads it to its end.
func stream(conn *wire.Conn, id wire.RequestID, want string) error {
	if err := conn.Send(&wire.AgentRequest{RequestID: id, Prompt: "talk"}); err != nil {
		return err
	}
	got := ""
	for {
		m, err := conn.Receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *wire.AgentStreamChunk:
			if m.Chunk.Type == wire.ChunkText {
				got += m.Chunk.Text
			}
		case *wire.Error:
			return m
		case *wire.AgentComplete:
			if m.Status != wire.StatusSuccess || got != want {
				return fmt.Errorf("ended with %s after %d of %d bytes", m.Status, len(got), len(want))
			}
			return nil
		}
	}
}
