package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sublet/wire"
	"sublet/wire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuiteInMemory(t *testing.T) {
	wiretest.Run(t, func(*testing.T) (io.ReadWriteCloser, io.ReadWriteCloser) { return wiretest.Pipe() })
}

func socketPair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err = net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

// What a peer sent before it closed is received, also where writing to it has failed by then.
func TestReceiveAfterAFailedWrite(t *testing.T) {
	a, b := socketPair(t)
	peer, c := wire.NewConn(a), wire.NewConn(b)
	defer c.Close()
	if err := peer.Send(&wire.Heartbeat{Nonce: 7}); err != nil {
		t.Fatal(err)
	}
	peer.Close()
	for c.Send(&wire.Heartbeat{}) == nil {
		runtime.Gosched() // until the writer has found out
	}
	<-c.Done()
	if m, err := c.Receive(); err != nil || m.(*wire.Heartbeat).Nonce != 7 {
		t.Errorf("got %v, %v, want the peer's last message", m, err)
	}
	if _, err := c.Receive(); err == nil || wire.Recoverable(err) != nil {
		t.Errorf("got %v, want the end", err)
	}
}

// A peer that reads nothing is cut off after exactly 30 s, not earlier, and Send never waits.
func TestSlowPeerIsCutOffAfterThirtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := wiretest.Pipe()
		defer b.Close()
		c := wire.NewConn(a)
		defer c.Close()
		start := time.Now()
		for range 8 {
			if err := c.Send(&wire.CommandResult{Output: make([]byte, 32<<10)}); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("Send waited %v", d)
		}
		<-c.Done()
		if d := time.Since(start); d != 30*time.Second {
			t.Errorf("cut off after %v, want exactly 30s", d)
		}
		if !errors.Is(c.Err(), wire.ErrSlow) {
			t.Errorf("got %v, want ErrSlow", c.Err())
		}
	})
}

// A peer that reads slowly but steadily gets the longest frame, over 500 KB/s as well.
func TestSteadyPeerGetsALongFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := wiretest.Pipe()
		defer b.Close()
		c := wire.NewConn(a)
		defer c.Close()
		if err := c.Send(&wire.CommandResult{Output: make([]byte, 16_000_000)}); err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 50_000)
		for left := 16_000_000; left > 0; {
			n, err := b.Read(p)
			if err != nil {
				t.Fatalf("%d bytes are missing: %v, %v", left, err, c.Err())
			}
			left -= n
			time.Sleep(time.Second / 10)
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A client that is slow gets every event, in order: text, ends, results and questions are never dropped or moved.
func TestSlowClientGetsAllText(t *testing.T) {
	a, b := wiretest.Pipe()
	c, peer := wire.NewConn(a), wire.NewConn(b)
	defer c.Close()
	defer peer.Close()
	const n = 50_000
	var want strings.Builder
	for i := range int64(n) {
		text := "word "
		want.WriteString(text)
		chunk := &wire.AgentStreamChunk{Event: wire.Event{SessionID: "s", TurnID: "t", Seq: i + 1}, SeqFirst: i + 1, Agent: "orchestrator"}
		chunk.Chunk = wire.Chunk{Type: wire.ChunkText, Text: text}
		if err := c.Send(chunk); err != nil {
			t.Fatal(err)
		}
		if i == n/2 {
			c.Send(&wire.ConfirmationRequest{ConfirmationID: "q", Event: wire.Event{Seq: 0}})
		}
	}
	c.Send(&wire.AgentComplete{Status: wire.StatusSuccess})
	var got strings.Builder
	next, questions := int64(1), 0
	for {
		m, err := peer.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *wire.AgentStreamChunk:
			if m.Seq != next {
				t.Fatalf("got seq %d, want %d", m.Seq, next)
			}
			next++
			got.WriteString(m.Chunk.Text)
			continue
		case *wire.ConfirmationRequest:
			if questions++; next != n/2+2 {
				t.Errorf("the question came after %d, want after %d", next-1, n/2+1)
			}
			continue
		}
		break
	}
	if got.String() != want.String() || next != n+1 || questions != 1 {
		t.Errorf("got %d bytes up to seq %d and %d questions, want %d up to %d and 1", got.Len(), next-1, questions, want.Len(), n)
	}
}

// Live output is left out when too much waits; offsets tell what is missing, and nothing else is lost.
func TestOutputIsThinnedUnderPressure(t *testing.T) {
	a, b := wiretest.Pipe()
	c, peer := wire.NewConn(a), wire.NewConn(b)
	defer c.Close()
	defer peer.Close()
	data := bytes.Repeat([]byte("y\n"), 500)
	var offset int64
	for range 20_000 {
		if err := c.Send(&wire.CommandOutput{LeaseRef: wire.LeaseRef{LeaseID: "l", Fence: 1}, ExecutionID: "e", Offset: offset, Data: data}); err != nil {
			t.Fatal(err)
		}
		offset += int64(len(data))
	}
	if err := c.Send(&wire.CommandCompleted{Status: wire.StatusOK}); err != nil {
		t.Fatal(err)
	}
	var at, got int64
	for {
		m, err := peer.Receive()
		if err != nil {
			t.Fatal(err)
		}
		out, ok := m.(*wire.CommandOutput)
		if !ok {
			break // CommandCompleted came through
		}
		if out.Offset < at {
			t.Fatalf("offset went back from %d to %d", at, out.Offset)
		}
		at = out.Offset + int64(len(out.Data))
		got += int64(len(out.Data))
	}
	if got < 1<<20 || got > offset/2 {
		t.Errorf("%d of %d bytes came through, want some and not most", got, offset)
	}
}

// The sender may reuse its buffers once Send has returned.
func TestSendTakesACopy(t *testing.T) {
	a, b := wiretest.Pipe()
	c, peer := wire.NewConn(a), wire.NewConn(b)
	defer c.Close()
	defer peer.Close()
	data := make([]byte, 1000)
	for i := range 500 {
		for j := range data {
			data[j] = byte(i)
		}
		c.Send(&wire.CommandOutput{Offset: int64(i) * 1000, Data: data})
	}
	c.Send(&wire.Notice{})
	for {
		m, err := peer.Receive()
		if err != nil {
			t.Fatal(err)
		}
		out, ok := m.(*wire.CommandOutput)
		if !ok {
			return
		}
		for i, d := range out.Data {
			if want := byte((out.Offset + int64(i)) / 1000); d != want {
				t.Fatalf("byte %d is %d, want %d", out.Offset+int64(i), d, want)
			}
		}
	}
}

// An announced length costs at most 2 MiB until its bytes are there, and nothing over the limit.
func TestAnnouncedLengthAllocatesLittle(t *testing.T) {
	for _, c := range []struct {
		announced uint32
		want      error
		most      uint64
	}{
		{0xffffffff, wire.ErrTooLarge, 256 << 10},
		{wire.MaxFrame, io.ErrUnexpectedEOF, 2<<20 + 256<<10},
	} {
		a, b := wiretest.Pipe()
		conn := wire.NewConn(b)
		a.Write(binary.BigEndian.AppendUint32(nil, c.announced))
		a.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := conn.Receive()
		runtime.ReadMemStats(&after)
		if !errors.Is(err, c.want) {
			t.Errorf("%d announced: got %v, want %v", c.announced, err, c.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > c.most {
			t.Errorf("%d announced: %d bytes allocated, want at most %d", c.announced, n, c.most)
		}
		conn.Close()
	}
}

func TestFlushWaitsForTheTransport(t *testing.T) {
	a, b := wiretest.Pipe()
	defer b.Close()
	c := wire.NewConn(a)
	defer c.Close()
	if err := c.Flush(t.Context()); err != nil {
		t.Errorf("nothing queued: %v", err)
	}
	c.Send(&wire.CommandResult{Output: make([]byte, 1<<20)}) // more than the pipe holds
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if err := c.Flush(ctx); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause of ctx", err)
	}
	go io.Copy(io.Discard, b)
	if err := c.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

// Close waits for a peer that does not read, but not for ever.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := wiretest.Pipe()
		defer b.Close()
		c := wire.NewConn(a)
		c.Send(&wire.CommandResult{Output: make([]byte, 1<<20)})
		start := time.Now()
		c.Close()
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("Close took %v, want 2s", d)
		}
		c.Close()
	})
}

// A reply is written by Send itself as far as the socket takes it; the writer continues behind that.
func TestReplyLongerThanTheSocketTakes(t *testing.T) {
	a, b := socketPair(t)
	x, y := wire.NewConn(a), wire.NewConn(b)
	defer x.Close()
	defer y.Close()
	data := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for round := range uint64(3) {
		if err := y.Send(&wire.Heartbeat{Nonce: round}); err != nil {
			t.Fatal(err)
		}
		if m, err := x.Receive(); err != nil || m.(*wire.Heartbeat).Nonce != round {
			t.Fatalf("got %+v, %v", m, err)
		}
		for _, m := range []wire.Message{&wire.CommandOutput{ExecutionID: "e", Data: data}, &wire.Heartbeat{Nonce: round}} {
			if err := x.Send(m); err != nil {
				t.Fatal(err)
			}
		}
		if m, err := y.Receive(); err != nil || !bytes.Equal(m.(*wire.CommandOutput).Data, data) {
			t.Fatalf("the long reply: %T, %v", m, err)
		}
		if m, err := y.Receive(); err != nil || m.(*wire.Heartbeat).Nonce != round {
			t.Fatalf("the message behind it: got %+v, %v", m, err)
		}
	}
}
