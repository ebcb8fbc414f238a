package gateway

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"sublet/wire"
)

// F19: 4 MiB of events wait for a translator that does not read, unless the Daemon says otherwise. What follows waits in the connection.
// Live output is dropped long before.
func TestInboxBound(t *testing.T) {
	for _, c := range []struct{ inbox, bound int }{{0, 4 << 20}, {1 << 20, 1 << 20}} {
		synctest.Test(t, func(t *testing.T) {
			s := &Session{
				d: &Daemon{Inbox: c.inbox}, log: slog.New(slog.DiscardHandler), ctx: t.Context(), wake: make(chan struct{}, 1),
				room: make(chan struct{}), id: "s",
			}
			send := func(n int64, chunk wire.Chunk) {
				s.handle(&wire.AgentStreamChunk{Event: wire.Event{Seq: n, SessionID: "s"}, Chunk: chunk})
			}
			text := strings.Repeat("x", 64<<10-256) // 64 KiB with what remote.Size adds
			last := int64(c.bound / (64 << 10))
			for n := int64(1); n <= last; n++ {
				send(n, wire.Chunk{Type: wire.ChunkText, Text: text})
				send(0, wire.Chunk{Type: wire.ChunkToolOutput, Data: make([]byte, liveBound)})
			}
			go send(last+1, wire.Chunk{Type: wire.ChunkText, Text: "y"})
			synctest.Wait()
			newest := func() int64 { return s.inbox[len(s.inbox)-1].Meta().Seq }
			if s.size != c.bound || newest() != last {
				t.Errorf("inbox %d: %d bytes up to event %d, want %d up to %d", c.inbox, s.size, newest(), c.bound, last)
			}
			if _, err := s.Next(t.Context(), 1); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if newest() != last+1 {
				t.Errorf("inbox %d: event %d did not follow when there was room", c.inbox, last+1)
			}
		})
	}
}
