package wire_test

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"sublet/wire"
)

// What somebody waits for is on its way when Send returns, without a goroutine's help.
func TestAwaitedMessagesAreWrittenAtOnce(t *testing.T) {
	a, b := socketPair(t)
	c := wire.NewConn(a, wire.Options{})
	defer c.Close()
	defer b.Close()
	raw, err := b.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []wire.Message{
		&wire.AcquireShellLease{LeaseRef: wire.LeaseRef{LeaseID: "l1", Fence: 1}},
		&wire.CommandCompleted{LeaseRef: wire.LeaseRef{LeaseID: "l1", Fence: 1}, Output: bytes.Repeat([]byte("x"), 20<<10)},
		&wire.StatusRequest{RequestID: "r1"},
	} {
		want, err := wire.AppendFrame(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Send(m); err != nil {
			t.Fatal(err)
		}
		if n := c.Pending(); n != 0 {
			t.Errorf("%s: %d bytes still queued", m.Kind(), n)
		}
		got, n, readErr := make([]byte, 64<<10), 0, error(nil)
		if err := raw.Read(func(fd uintptr) bool {
			n, readErr = syscall.Read(int(fd), got) // never waits
			return true
		}); err != nil || readErr != nil || !bytes.Equal(got[:max(0, n)], want) {
			t.Errorf("%s: read %d bytes of %d: %v, %v", m.Kind(), n, len(want), err, readErr)
		}
	}
}

// A peer that reads late gets everything, whole and in order, whichever way each of it was written: at once, in part, or by
// the writer.
func TestWritingAtOnceKeepsTheOrder(t *testing.T) {
	const n = 300
	a, b := socketPair(t)
	c, peer := wire.NewConn(a, wire.Options{}), wire.NewConn(b, wire.Options{})
	defer c.Close()
	defer peer.Close()
	for i := range n { // 2 MB: the socket holds a small part
		var m wire.Message
		switch i % 4 {
		case 0:
			m = &wire.ShellLeaseAcquired{LeaseRef: wire.LeaseRef{LeaseID: "l1", Fence: uint64(i)}}
		case 1:
			m = &wire.CommandCompleted{LeaseRef: wire.LeaseRef{LeaseID: "l1", Fence: uint64(i)}, Output: bytes.Repeat([]byte("x"), 29_000)}
		default:
			m = &wire.AgentThinking{Event: wire.Event{Seq: int64(i)}}
		}
		if err := c.Send(m); err != nil {
			t.Fatal(i, err)
		}
	}
	for i := range n {
		m, err := peer.Receive()
		if err != nil {
			t.Fatal(i, err)
		}
		got := -1
		switch m := m.(type) {
		case wire.LeaseMessage:
			got = int(m.Ref().Fence)
		case *wire.AgentThinking:
			got = int(m.Seq)
		}
		if got != i {
			t.Fatalf("message %d: got %s %d", i, m.Kind(), got)
		}
	}
}

// A connection that the peer has closed is told as the writer tells it.
func TestWritingAtOnceToNobody(t *testing.T) {
	a, b := socketPair(t)
	c := wire.NewConn(a, wire.Options{})
	defer c.Close()
	b.Close()
	_ = c.Send(&wire.StatusRequest{RequestID: "r1"}) // queued before anybody knows
	<-c.Done()
	if err := c.Send(&wire.StatusRequest{RequestID: "r2"}); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v, want what broke the connection", err)
	}
}
