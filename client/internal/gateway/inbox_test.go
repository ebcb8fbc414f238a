package gateway

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"sublet/client/internal/remote"
	"sublet/wire"
)

// F19: 4 MiB of events wait for a translator that does not read, unless the Daemon says otherwise; the next one makes a
// pause, and what comes over the old connection after that is left to the store. Live output is left out long before.
func TestInboxBound(t *testing.T) {
	for _, c := range []struct{ inbox, bound int }{{0, 4 << 20}, {1 << 20, 1 << 20}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		away := func(context.Context, *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) { return nil, nil, ErrAway }
		s := &Session{
			d: &Daemon{Inbox: c.inbox, Open: away}, log: slog.New(slog.DiscardHandler), ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1),
			changed: make(chan struct{}), linked: true, number: 1, id: "s",
		}
		s.conn = remote.Keep(ctx, remote.Options{
			Open: away, Log: s.log, Handle: func(wire.Message) {}, Up: func(*wire.Ready) {}, Down: func(error) {},
			Snapshot: func() *wire.EnvSnapshot { return s.d.snapshot(Options{}) },
		})
		send := func(n int64, chunk wire.Chunk) {
			s.handle(1, &wire.AgentStreamChunk{Event: wire.Event{Seq: n, SessionID: "s"}, Chunk: chunk})
		}
		text := strings.Repeat("x", 64<<10-256) // 64 KiB with what sizeOf adds
		last := int64(c.bound / (64 << 10))
		for n := int64(1); n <= last; n++ {
			send(n, wire.Chunk{Type: wire.ChunkText, Text: text})
			send(0, wire.Chunk{Type: wire.ChunkToolOutput, Data: make([]byte, liveBound)})
		}
		if s.paused || s.size != c.bound {
			t.Fatalf("inbox %d: paused %v with %d bytes, want all of %d taken", c.inbox, s.paused, s.size, c.bound)
		}
		send(last+1, wire.Chunk{Type: wire.ChunkText, Text: "y"})
		send(last+2, wire.Chunk{Type: wire.ChunkText, Text: "z"})
		if !s.paused || s.linked || s.seq != last || len(s.inbox) != int(last) {
			t.Errorf("inbox %d: paused %v at event %d with %d messages, want a pause at %d", c.inbox, s.paused, s.seq, len(s.inbox), last)
		}
		s.Close()
	}
}
