package wiretest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"

	"sublet/wire"
)

// Connect makes a fresh connection and returns its two ends. Each test closes what it got.
type Connect func(t *testing.T) (a, b io.ReadWriteCloser)

// Run runs the suite that every transport of the protocol passes.
func Run(t *testing.T, connect Connect) {
	pair := func(t *testing.T) (*wire.Conn, *wire.Conn) {
		a, b := connect(t)
		x, y := wire.NewConn(a), wire.NewConn(b)
		t.Cleanup(func() { x.Close(); y.Close() })
		return x, y
	}
	t.Run("every message both ways", func(t *testing.T) {
		x, y := pair(t)
		everyMessage(t, x, y)
		everyMessage(t, y, x)
	})
	t.Run("largest frame", func(t *testing.T) {
		x, y := pair(t)
		m := &wire.CommandOutput{Data: bytes.Repeat([]byte("sublet\n"), (wire.MaxFrame-100)/7)}
		go send(t, x, m)
		expect(t, y, m)
	})
	t.Run("concurrent senders", func(t *testing.T) {
		x, y := pair(t)
		concurrent(t, x, y)
	})
	t.Run("byte by byte", func(t *testing.T) {
		a, b := connect(t)
		defer a.Close()
		y := wire.NewConn(b)
		defer y.Close()
		frame, _ := wire.AppendFrame(nil, Full("Ready"))
		go func() {
			for i := range frame {
				a.Write(frame[i : i+1])
			}
		}()
		expect(t, y, Full("Ready"))
	})
	t.Run("bad payloads do not end it", func(t *testing.T) {
		a, b := connect(t)
		defer a.Close()
		y := wire.NewConn(b)
		defer y.Close()
		badPayloads(t, a, y)
	})
	t.Run("over the limit", func(t *testing.T) {
		a, b := connect(t)
		y := wire.NewConn(b)
		defer y.Close()
		y.SetMaxFrame(1000)
		head := binary.BigEndian.AppendUint32(nil, 5<<20)
		refused(t, a, y, append(head, make([]byte, 5<<20)...), wire.CodeTooLarge, "1000")
	})
	t.Run("length zero", func(t *testing.T) {
		a, b := connect(t)
		y := wire.NewConn(b)
		defer y.Close()
		refused(t, a, y, []byte{0, 0, 0, 0}, wire.CodeInvalidMessage, "zero")
	})
	t.Run("the peer's end is told apart from a cut frame", func(t *testing.T) {
		x, y := pair(t)
		send(t, x, Full("Notice"))
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			x.Close() // flushes
		}()
		expect(t, y, Full("Notice"))
		if _, err := y.Receive(); !errors.Is(err, io.EOF) || wire.Recoverable(err) != nil {
			t.Errorf("after the peer closed: got %v, want io.EOF", err)
		}
		<-closed
		a, b := connect(t)
		y = wire.NewConn(b)
		defer y.Close()
		go func() {
			a.Write([]byte{0, 0, 0, 9, 0x92})
			a.Close()
		}()
		if _, err := y.Receive(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after a cut frame: got %v, want io.ErrUnexpectedEOF", err)
		}
	})
	t.Run("close wakes Receive", func(t *testing.T) {
		x, _ := pair(t)
		errs := make(chan error)
		go func() {
			_, err := x.Receive()
			errs <- err
		}()
		x.Close()
		if err := <-errs; !errors.Is(err, wire.ErrClosed) {
			t.Errorf("Receive: got %v, want ErrClosed", err)
		}
		if err := x.Send(Full("Notice")); !errors.Is(err, wire.ErrClosed) {
			t.Errorf("Send: got %v, want ErrClosed", err)
		}
		<-x.Done()
	})
	t.Run("a peer that does not read blocks nobody and is cut off", func(t *testing.T) {
		x, _ := pair(t)
		m := &wire.CommandResult{Output: make([]byte, 10<<20)}
		for range 6 {
			send(t, x, m)
		}
		for range 2 { // one for what a socket holds
			_ = x.Send(m) // checked below
		}
		<-x.Done()
		if err := x.Err(); !errors.Is(err, wire.ErrSlow) {
			t.Errorf("got %v, want ErrSlow", err)
		}
		if err := x.Send(m); !errors.Is(err, wire.ErrSlow) {
			t.Errorf("Send afterwards: got %v, want ErrSlow", err)
		}
	})
}

func send(t *testing.T, c *wire.Conn, m wire.Message) {
	t.Helper()
	if err := c.Send(m); err != nil {
		t.Errorf("Send(%s): %v", wire.KindOf(m), err)
	}
}

func expect(t *testing.T, c *wire.Conn, want wire.Message) {
	t.Helper()
	got, err := c.Receive()
	if err != nil {
		t.Fatalf("Receive: %v, want %s", err, wire.KindOf(want))
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %.300v, want %.300v", got, want)
	}
}

// everyMessage sends all samples while they are received: no transport holds them all.
func everyMessage(t *testing.T, from, to *wire.Conn) {
	t.Helper()
	all := All()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, m := range all {
			send(t, from, m)
			if err := from.Flush(t.Context()); err != nil { // so that nothing is merged
				t.Errorf("Flush: %v", err)
			}
		}
	}()
	for _, m := range all {
		expect(t, to, m)
	}
	<-done
}

// concurrent: frames of several senders never mix, and each sender's order stays.
func concurrent(t *testing.T, x, y *wire.Conn) {
	const senders, each = 8, 200
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				send(t, x, &wire.Notice{Level: fmt.Sprint(s), Text: fmt.Sprint(i), Hint: strings.Repeat("x", i*7)})
			}
		})
	}
	next := map[string]int{}
	for range senders * each {
		m, err := y.Receive()
		if err != nil {
			t.Fatal(err)
		}
		n := m.(*wire.Notice)
		if n.Text != fmt.Sprint(next[n.Level]) || len(n.Hint) != 7*next[n.Level] {
			t.Fatalf("from sender %s: got number %s, want %d", n.Level, n.Text, next[n.Level])
		}
		next[n.Level]++
	}
	wg.Wait()
}

// badPayloads: what is not a message is reported, and the next message is received all the same (C11, C12).
func badPayloads(t *testing.T, raw io.Writer, c *wire.Conn) {
	good, _ := wire.AppendFrame(nil, Full("StatusRequest"))
	for _, bad := range []struct {
		payload string
		want    error
	}{
		{"\xc1", wire.ErrInvalidMessage},
		{"hello", wire.ErrInvalidMessage},
		{"\x92\xa6Notice\x81\xa4text\xdb\xff\xff\xff\xff", wire.ErrInvalidMessage},
		{"\x92\xa6Future\x80", wire.ErrUnknownKind},
	} {
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(bad.payload))), bad.payload...)
		go raw.Write(append(frame, good...))
		_, err := c.Receive()
		if !errors.Is(err, bad.want) || wire.Recoverable(err) == nil {
			t.Errorf("%q: got %v, want %v", bad.payload, err, bad.want)
		}
		expect(t, c, Full("StatusRequest"))
	}
}

// refused: the answer to a frame that costs the connection is read before its end, although the frame's sender is still sending.
func refused(t *testing.T, raw io.ReadWriteCloser, c *wire.Conn, frame []byte, code, names string) {
	t.Helper()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		raw.Write(frame)
	}()
	received := make(chan error, 1)
	go func() {
		_, err := c.Receive()
		c.Close()
		received <- err
	}()
	x := wire.NewConn(raw)
	defer x.Close()
	<-sent
	m, err := x.Receive()
	if e, ok := m.(*wire.Error); err != nil || !ok || e.Code != code || !strings.Contains(e.Message, names) {
		t.Errorf("answer: got %v, %v, want Error{%s} naming %s", m, err, code, names)
	}
	if err, ok := errors.AsType[*wire.Error](<-received); !ok || err.Recoverable || err.Code != code {
		t.Errorf("Receive: got %v, want %s, which ends the connection", err, code)
	}
}
