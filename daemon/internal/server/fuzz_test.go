package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
	"sublet/wire/wiretest"
)

// FuzzConversation plays a client that says anything at any time, before its handshake and after, in any order, with ids
// that fit and ids that do not. Whatever it says, nothing panics, and the daemon answers it at the end or has closed the
// connection; another client is always answered.
func FuzzConversation(f *testing.F) {
	kinds := slices.DeleteFunc(wire.Kinds(), func(k string) bool {
		return k == "ShutdownRequest" // it works, and there would be nobody left to talk to
	})
	at := func(kind string) byte { return byte(slices.Index(kinds, kind)) }
	hello, status := at("EnvSnapshot"), at("StatusRequest")
	for _, k := range kinds {
		for variant := range byte(5) {
			f.Add([]byte{hello, fitting, at(k), variant, status, fitting})
		}
		f.Add([]byte{at(k), fitting, hello, fitting, at(k), fitting, at(k), 0})
	}
	f.Add([]byte{hello, fitting, hello, 2, at("AgentRequest"), fitting, at("CancelRequest"), 0, at("CompactRequest"), fitting})
	f.Add([]byte{hello, fitting, garbage, 0x93, 0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{garbage, 0x92, 0xa1, 'x', 0x80})
	f.Add([]byte{})

	var panicked atomic.Pointer[string]
	r := newRig(f, scripted.Script{Match: ".", Steps: []scripted.Step{{Text: "well"}}})
	r.close()
	r.log = slog.New(watchFor{"panicked", &panicked})
	r.start()
	other := r.dial(withoutShell)
	f.Fuzz(func(t *testing.T, script []byte) {
		client, daemon := wiretest.Pipe()
		done := make(chan struct{})
		go func() { // ends with the connection
			defer close(done)
			r.server.ServeConn(r.ctx, daemon, 0)
		}()
		conn := wire.NewConn(client, wire.Options{})
		answered := make(chan struct{})
		go func() { // ends with the connection
			defer close(answered)
			for {
				m, err := conn.Receive()
				if wire.Recoverable(err) {
					continue
				}
				if err != nil {
					return
				}
				if reply, ok := m.(*wire.StatusReply); ok && reply.RequestID == "last" {
					return
				}
				if e, ok := m.(*wire.Error); ok && e.RequestID == "last" { // too many requests, or no handshake
					return
				}
			}
		}()
		for len(script) >= 2 && conn.Err() == nil {
			if script[0] == garbage {
				frame := binary.BigEndian.AppendUint32(nil, uint32(len(script)-1))
				_, _ = client.Write(append(frame, script[1:]...))
				break
			}
			_ = conn.Send(message(kinds[int(script[0])%len(kinds)], script[1]))
			script = script[2:]
		}
		_ = conn.Send(&wire.StatusRequest{RequestID: "last"})
		bound := time.NewTimer(20 * time.Second)
		defer bound.Stop()
		select {
		case <-answered:
		case <-bound.C:
			t.Error("no answer, and the connection is open")
		}
		conn.Close()
		select {
		case <-done:
		case <-bound.C:
			t.Fatal("the server does not let go of the connection")
		}
		<-answered
		if why := panicked.Load(); why != nil {
			t.Fatal(*why)
		}
		other.t = t
		id := requestID()
		other.send(&wire.StatusRequest{RequestID: id})
		if reply := await(other, func(m wire.Message) bool { return wireID(m) == id }); reply == nil {
			t.Error("the other client has no answer")
		}
		other.forget()
		other.t = f
	})
}

const (
	fitting = 3 // the variant whose ids fit
	garbage = 255
)

// message is one of that kind: everything set, nothing set, odd values, or everything set and ids that fit.
func message(kind string, variant byte) wire.Message {
	switch variant % 5 {
	case 0:
		return wiretest.Full(kind)
	case 1:
		return wiretest.Zero(kind)
	case 2:
		return wiretest.Odd(kind)
	}
	m := wiretest.Full(kind)
	if variant%5 == 4 {
		m = wiretest.Zero(kind)
	}
	v := reflect.ValueOf(m).Elem()
	if id := v.FieldByName("RequestID"); id.IsValid() && id.Kind() == reflect.String {
		id.SetString(string(requestID()))
	}
	for _, name := range []string{"SessionID", "Agent", "Model"} { // the connection's own, and the usual ones
		if field := v.FieldByName(name); field.IsValid() {
			field.SetZero()
		}
	}
	switch m := m.(type) {
	case *wire.EnvSnapshot:
		m.ProtocolMin, m.ProtocolMax, m.Capabilities = 1, 1, []string{wire.CapShell, wire.CapConfirm, wire.CapRestore}
		m.Client.PID = int(1_000_000 + pids.Add(1))
	case *wire.AgentRequest:
		m.Options = wire.RequestOptions{}
		m.Attachments = nil
	case *wire.CompactRequest:
		m.Op = "preview"
	case *wire.SessionRequest:
		m.Op = "get"
	}
	return m
}

func wireID(m wire.Message) wire.RequestID {
	switch m := m.(type) {
	case *wire.StatusReply:
		return m.RequestID
	case *wire.Error: // over its rate
		return m.RequestID
	}
	return ""
}

// forget drops what was received: a fuzzer plays for long.
func (p *peer) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.received = nil
}

// watchFor is a log that remembers the first record whose message holds a word.
type watchFor struct {
	word  string
	found *atomic.Pointer[string]
}

func (w watchFor) Enabled(context.Context, slog.Level) bool { return true }
func (w watchFor) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w watchFor) WithGroup(string) slog.Handler            { return w }
func (w watchFor) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, w.word) {
		var text bytes.Buffer
		fmt.Fprintln(&text, r.Message)
		r.Attrs(func(a slog.Attr) bool {
			fmt.Fprintf(&text, "%s: %v\n", a.Key, a.Value)
			return true
		})
		first := text.String()
		w.found.CompareAndSwap(nil, &first)
	}
	return nil
}
