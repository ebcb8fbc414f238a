package remote

import (
	"context"
	"errors"
	"io"
	"reflect"
	"sync"
	"testing"
	"time"

	"sublet/wire"
	"sublet/wire/wiretest"
)

// What a script's first byte of two may say in place of a kind.
const (
	scriptGarbage = 255 // a frame whose payload is the rest of the script
	scriptBytes   = 254 // the rest of the script as it is: no frame, or half of one
	scriptClose   = 253 // the end
)

// FuzzDaemon plays a daemon that says anything, in any order, under ids that fit what waits and ids that do not. Whatever it
// says, the client does not panic, each call returns by the connection's end at the latest with the answer or an error,
// never both or neither, and Close returns.
func FuzzDaemon(f *testing.F) {
	kinds := wire.Kinds()
	for i := range kinds {
		for variant := range byte(3 + len(waiting)) {
			f.Add([]byte{byte(i), variant, byte(i), variant})
		}
	}
	f.Add([]byte{scriptGarbage, 0x92, 0xa5, 'R', 'e', 'a', 'd', 'y'})
	f.Add([]byte{scriptBytes, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{scriptBytes, 0, 0, 0, 9, 0x92})
	f.Add([]byte{scriptClose, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		theirs, ours := wiretest.Pipe()
		ready := &wire.Ready{Protocol: wire.Version, Session: wire.SessionInfo{ID: "s1"}}
		c, err := Dial(t.Context(), Options{
			Open: func(context.Context, *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
				conn := wire.NewConn(ours)
				conn.SetMaxFrame(32 << 10)
				return conn, ready, nil
			},
			Snapshot: func() *wire.EnvSnapshot { return &wire.EnvSnapshot{} },
			Handle:   func(wire.Message) {}, Up: func(*wire.Ready) {}, Down: func(error) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			var calls sync.WaitGroup
			ask := func(ask func() (any, error)) {
				calls.Go(func() {
					if got, err := ask(); (err == nil) == reflect.ValueOf(got).IsNil() {
						t.Errorf("got %v and %v", got, err)
					}
				})
			}
			heard := &listener{r: theirs, sent: make(chan struct{})}
			calls.Go(func() { _, _ = io.Copy(io.Discard, heard) }) // ends with the pipe
			ask(func() (any, error) {
				return wire.Call(t.Context(), c, &wire.SessionRequest{RequestID: waiting[0], Op: "resume", SessionID: &ready.Session.ID})
			})
			ask(func() (any, error) {
				return wire.Call(t.Context(), c, &wire.PolicyRequest{RequestID: waiting[1], Op: "get"})
			})
			ask(func() (any, error) {
				return c.Turn(t.Context(), &wire.AgentRequest{RequestID: waiting[2], Prompt: "x"}, func(wire.Message) {})
			})
			<-heard.sent
			perform(theirs, kinds, script)
			theirs.Close()
			calls.Wait()
			if _, err := wire.Call(t.Context(), c, &wire.StatusRequest{}); !errors.Is(err, ErrDisconnected) {
				t.Errorf("after the end: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		select {
		case <-over:
		case <-time.After(time.Minute):
			t.Fatal("the client hangs")
		}
	})
}

// waiting are the ids of the calls that wait.
var waiting = []wire.RequestID{"r1", "r2", "r3"}

// listener is a daemon's ear: sent closes once the client said something.
type listener struct {
	r    io.Reader
	once sync.Once
	sent chan struct{}
}

func (l *listener) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	l.once.Do(func() { close(l.sent) })
	return n, err
}

// perform writes what the script says: two bytes a message, its kind and how it is filled in.
func perform(to io.Writer, kinds []string, script []byte) {
	for ; len(script) >= 2; script = script[2:] {
		switch script[0] {
		case scriptClose:
			return
		case scriptBytes:
			_, _ = to.Write(script[1:]) // a client that left is what this is about
			return
		case scriptGarbage:
			payload := script[1:]
			_, _ = to.Write(append([]byte{0, 0, byte(len(payload) >> 8), byte(len(payload))}, payload...))
			return
		}
		out, err := wire.AppendFrame(nil, spoken(kinds[int(script[0])%len(kinds)], script[1]))
		if err != nil {
			continue // such as one over the limit
		}
		if _, err := to.Write(out); err != nil {
			return
		}
	}
}

// spoken is a message of a kind: all of it, nothing, odd values, or one under the id of a call that waits.
func spoken(kind string, variant byte) wire.Message {
	switch variant %= byte(3 + len(waiting)); variant {
	case 0:
		return wiretest.Full(kind)
	case 1:
		return wiretest.Zero(kind)
	case 2:
		return wiretest.Odd(kind)
	}
	m := wiretest.Full(kind)
	v := reflect.ValueOf(m).Elem()
	set := func(name, value string) {
		if field := v.FieldByName(name); field.IsValid() && field.Kind() == reflect.String {
			field.SetString(value)
		}
	}
	set("RequestID", string(waiting[variant-3]))
	set("SessionID", "s1")
	set("TurnID", "")
	return m
}
