package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
	"sublet/wire/wiretest"
)

// FuzzConversation plays a client that says anything at any time, before its handshake and after, in any order, with ids
// that fit and ids that do not. Whatever it says, nothing panics, what the daemon says is well formed, and the daemon
// answers it at the end or has closed the connection; another client is always answered.
//
// The server runs in the fuzzer's own goroutine on bytes in memory, and the frames of the client are made once, or this
// would be a hundred conversations a second.
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
		f.Add([]byte{hello, fitting + 5, at("AgentRequest"), fitting, at(k), fitting + 5, at(k), fitting + 5})
	}
	f.Add([]byte{hello, fitting, hello, 2, at("AgentRequest"), fitting, at("CancelRequest"), 0, at("CompactRequest"), fitting})
	f.Add([]byte{hello, fitting, garbage, 0x93, 0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{garbage, 0x92, 0xa1, 'x', 0x80})
	f.Add([]byte{hello, fitting, noFrame, 0, 0, 0, 0})
	f.Add([]byte{hello, fitting, noFrame, 1, 0, 0, 0, 0xc0})
	f.Add([]byte{noFrame, 0, 0, 0, 9, 0x92})
	f.Add([]byte{})

	frames := make([][]byte, len(kinds)*5) // of one kind, by its variant, are five
	frame := func(kind, variant byte) []byte {
		made := &frames[int(kind)%len(kinds)*5+int(variant)%5]
		if *made == nil {
			*made, _ = wire.AppendFrame(nil, message(kinds[int(kind)%len(kinds)], variant))
		}
		return *made
	}
	var panicked atomic.Pointer[string]
	r := newRig(f, scripted.Script{Match: ".", Steps: []scripted.Step{{Text: "well"}}})
	r.log = slog.New(watchFor{"panicked", &panicked})
	var other *peer
	played, root := 0, r.dir
	renew := func(t testing.TB) { // or the store would grow and grow
		if other != nil {
			other.t = t
			other.close()
		}
		r.t = lasting{t}
		r.close()
		if r.dir != root {
			_ = os.RemoveAll(r.dir)
		}
		r.dir = filepath.Join(root, fmt.Sprint(played))
		if err := os.Mkdir(r.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		r.start()
		other = r.dial(withoutShell)
	}
	f.Cleanup(func() {
		r.t = f
		if other != nil {
			other.close()
		}
	})
	f.Fuzz(func(t *testing.T, script []byte) {
		if played++; other == nil || played%1000 == 0 {
			renew(t)
		}
		c := &talker{answered: make(chan struct{}), closed: make(chan struct{})}
		for i := byte(0); len(script) >= 2 && !c.hangsUp; i++ {
			switch script[0] {
			case garbage:
				c.says = append(binary.BigEndian.AppendUint32(c.says, uint32(len(script)-1)), script[1:]...)
				script = nil
			case noFrame:
				c.says = append(c.says, script[1:]...)
				c.hangsUp = true
			default:
				start := len(c.says)
				c.says = append(c.says, frame(script[0], script[1])...)
				if id := bytes.Index(c.says[start:], anyID); id >= 0 && script[1] < 250 { // else one that was there
					copy(c.says[start+id:], fmt.Sprintf("r%03d", i))
				}
				if pid := bytes.Index(c.says[start:], anyPID); pid >= 0 { // one of the clients that come back
					c.says[start+pid+len(anyPID)-1] = script[1] / 5 % 4
				}
				script = script[2:]
			}
		}
		if !c.hangsUp {
			c.says, _ = wire.AppendFrame(c.says, &wire.StatusRequest{RequestID: lastID})
		}
		r.server.ServeConn(r.ctx, c, 0)
		if c.silent {
			t.Error("no answer, and the connection is open")
		}
		c.wellFormed(t)
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
	})
}

// lasting is a test whose end is not that of what it starts.
type lasting struct{ testing.TB }

func (lasting) Cleanup(func()) {}
func (lasting) Helper()        {}

const (
	fitting = 3   // the variant whose ids fit
	garbage = 255 // the rest is one frame of these bytes
	noFrame = 254 // the rest is bytes, and then the client is gone

	lastID = "the last of its requests"
)

// What a frame holds in place of a request's id and of a client's process id, to be written over.
var (
	anyID  = []byte("r***")
	anyPID = []byte{0xa3, 'p', 'i', 'd', 0xce, 0x00, 0x0f, 0x42, 0x40} // 1,000,000
)

// talker is the client's end of a connection: it says what it has to say, and then listens until its last request is
// answered.
type talker struct {
	says     []byte
	hangsUp  bool // instead of listening
	silent   bool // there was nothing to hear. Read's
	heard    []byte
	answered chan struct{}
	closed   chan struct{}
	once     sync.Once
}

func (c *talker) Read(p []byte) (int, error) {
	if len(c.says) == 0 && !c.hangsUp {
		bound := time.NewTimer(20 * time.Second)
		defer bound.Stop()
		select {
		case <-c.answered:
		case <-c.closed:
		case <-bound.C:
			c.silent = true
		}
	}
	if len(c.says) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.says)
	c.says = c.says[n:]
	return n, nil
}

func (c *talker) Write(p []byte) (int, error) { // from the one writer
	before := len(c.heard)
	c.heard = append(c.heard, p...)
	if bytes.Contains(c.heard[max(0, before-len(lastID)):], []byte(lastID)) {
		select {
		case <-c.answered:
		default:
			close(c.answered)
		}
	}
	return len(p), nil
}

func (c *talker) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// wellFormed reads what was heard. ServeConn has returned, so nobody writes any more.
func (c *talker) wellFormed(t *testing.T) {
	t.Helper()
	for rest := c.heard; len(rest) > 0; {
		n := uint32(math.MaxUint32)
		if len(rest) >= 4 {
			n = binary.BigEndian.Uint32(rest)
		}
		if uint64(n) > uint64(len(rest)-4) {
			t.Fatalf("the daemon's last frame is cut: % x", rest)
		}
		if _, err := wire.Unmarshal(rest[4 : 4+n]); err != nil {
			t.Fatalf("the daemon says what is no message: %v: % x", err, rest[4:4+n])
		}
		rest = rest[4+n:]
	}
}

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
		id.SetString(string(anyID))
	}
	for _, name := range []string{"SessionID", "Agent", "Model"} { // the connection's own, and the usual ones
		if field := v.FieldByName(name); field.IsValid() {
			field.SetZero()
		}
	}
	switch m := m.(type) {
	case *wire.EnvSnapshot:
		m.ProtocolMin, m.ProtocolMax, m.Capabilities = 1, 1, []string{wire.CapShell, wire.CapConfirm, wire.CapRestore}
		m.Client.PID = 1_000_000 // anyPID
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
