package wire_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"sublet/wire"
	"sublet/wire/wiretest"
)

func mustMarshal(t testing.TB, m wire.Message) []byte {
	t.Helper()
	p, err := wire.Marshal(m)
	if err != nil {
		t.Fatalf("Marshal(%s): %v", wire.KindOf(m), err)
	}
	return p
}

// What is sent is what is read, for every kind and with every odd value.
func TestRoundTrip(t *testing.T) {
	for _, m := range wiretest.All() {
		p := mustMarshal(t, m)
		got, err := wire.Unmarshal(bytes.Clone(p))
		if err != nil {
			t.Errorf("Unmarshal(%s): %v\n% x", wire.KindOf(m), err, p)
			continue
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%s:\n got %+v\nwant %+v", wire.KindOf(m), got, m)
		}
		if again := mustMarshal(t, got); !bytes.Equal(again, p) {
			t.Errorf("%s encodes differently the second time", wire.KindOf(m))
		}
	}
}

// An independent implementation, msgpack/v5, reads every message as a plain array and map, with all fields there (A14),
// and what it writes from such a map is read here.
func TestLibraryReadsAndWritesTheSame(t *testing.T) {
	for _, m := range wiretest.All() {
		p := mustMarshal(t, m)
		var tree []any
		if err := msgpack.Unmarshal(p, &tree); err != nil {
			t.Errorf("msgpack/v5 cannot read %s: %v", wire.KindOf(m), err)
			continue
		}
		if tree[0] != wire.KindOf(m) {
			t.Errorf("kind: got %v, want %s", tree[0], wire.KindOf(m))
		}
		body := tree[1].(map[string]any)
		for _, name := range fieldNames(reflect.TypeOf(m).Elem()) {
			if _, ok := body[name]; !ok {
				t.Errorf("%s: field %s does not travel", wire.KindOf(m), name)
			}
		}
		var buf bytes.Buffer
		enc := msgpack.NewEncoder(&buf)
		enc.UseCompactInts(true)
		if err := enc.Encode(tree); err != nil {
			t.Fatal(err)
		}
		got, err := wire.Unmarshal(buf.Bytes())
		if err != nil {
			t.Errorf("Unmarshal of what msgpack/v5 wrote for %s: %v", wire.KindOf(m), err)
			continue
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%s through msgpack/v5:\n got %+v\nwant %+v", wire.KindOf(m), got, m)
		}
	}
}

func fieldNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && f.Type.Kind() == reflect.Struct {
			names = append(names, fieldNames(f.Type)...)
		} else {
			names = append(names, f.Tag.Get("msgpack"))
		}
	}
	return names
}

// A reader skips keys it does not know and leaves absent ones at zero: that is how the protocol grows
// (L31).
func TestUnknownAndAbsentFields(t *testing.T) {
	deep := any("x")
	for range 20 {
		deep = map[string]any{"a": []any{deep}}
	}
	for range 6 {
		deep = deep.(map[string]any)["a"].([]any)[0]
	}
	p, err := msgpack.Marshal([]any{"Notice", map[string]any{"text": "hello", "new_in_9": deep, "also": 1.5}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.Unmarshal(p)
	if want := (&wire.Notice{Text: "hello"}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	pack := func(kind string, body any) []byte {
		p, err := msgpack.Marshal([]any{kind, body})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	type object = map[string]any
	notice := "\x92\xa6Notice"
	nested := func(n int) []byte { return append(bytes.Repeat([]byte{0x91}, n), 0xc0) }
	for _, c := range []struct {
		name    string
		payload []byte
		want    string
	}{
		{"empty", nil, "ends in the middle"},
		{"cut", []byte(notice + "\x81\xa4text\xa5hell"), "ends in the middle"},
		{"trailing byte", []byte(notice + "\x80\xc0"), "1 bytes follow"},
		{"not an array", []byte("\xa6Notice"), "str where array is wanted"},
		{"three elements", []byte("\x93\xa6Notice\x80\xc0"), "array of 3"},
		{"kind is int", []byte("\x92\x01\x80"), "kind is int"},
		{"body is nil", []byte(notice + "\xc0"), "nil where map"},
		{"body is array", []byte(notice + "\x90"), "array where map"},
		{"int key", []byte(notice + "\x81\x01\xa1x"), "key is int"},
		{"duplicate key", []byte(notice + "\x82\xa4text\xa1a\xa4text\xa1b"), "text: it is there twice"},
		{"ext", []byte(notice + "\x81\xa1x\xd4\x01\x00"), "extension type"},
		{"timestamp ext", []byte(notice + "\x81\xa1x\xd6\xff\x00\x00\x00\x00"), "extension type"},
		{"reserved byte", []byte(notice + "\x81\xa1x\xc1"), "0xc1"},
		{"str as bin", pack("Notice", object{"text": []byte("x")}), "text: bin where str"},
		{"str as nil", pack("Notice", object{"text": nil}), "text: nil where str"},
		{"broken UTF-8", []byte(notice + "\x81\xa4text\xa1\xff"), "not UTF-8"},
		{"broken UTF-8 in a path", []byte("\x92\xabEnvSnapshot\x81\xa3cwd\xa1\xff"), "send it as bin"},
		{"negative unsigned", pack("Heartbeat", object{"nonce": -1}), "nonce: negative"},
		{"over int64", pack("Heartbeat", object{"at_ms": uint64(1 << 63)}), "at_ms: int over"},
		{"float for int", pack("Heartbeat", object{"at_ms": 1.5}), "at_ms: float where int"},
		{"infinite", []byte("\x92\xacAgentRequest\x81\xa7options\x81\xabtemperature\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"), "options.temperature: not a finite"},
		{"deep path", pack("Ready", object{"models": []any{object{}, object{"context_window": "big"}}}), "models[1].context_window: str where int"},
		{"map value", pack("Ready", object{"limits": object{"frame": "x"}}), `limits["frame"]: str where int`},
		{"duplicate map key", []byte("\x92\xa5Ready\x81\xa6limits\x82\xa1a\x01\xa1a\x02"), `limits["a"]: it is there twice`},
		{"hot duplicate", []byte("\x92\xa9Heartbeat\x82\xa5nonce\x01\xa5nonce\x01"), "nonce: it is there twice"},
		{"hot duplicate in chunk", []byte("\x92\xb0AgentStreamChunk\x81\xa5chunk\x82\xa4type\xa0\xa4type\xa0"), "chunk.type: it is there twice"},
		// dependencies, section 3: each of these kills or stalls a process that hands it to msgpack/v5.
		{"array32 of 2^32-1", []byte("\x92\xa5Ready\x81\xa6models\xdd\xff\xff\xff\xff"), "ends in the middle"},
		{"map32 of 2^32-1", []byte(notice + "\xdf\xff\xff\xff\xff"), "ends in the middle"},
		{"bin32 of 2^32-1", []byte("\x92\xadCommandOutput\x81\xa4data\xc6\xff\xff\xff\xff"), "ends in the middle"},
		{"array16 nested", bytes.Repeat([]byte{0xdc, 0xff, 0xff}, 5000), "ends in the middle"},
		{"nested to the limit and beyond", nested(wire.MaxDepth + 1), "nests deeper"},
		{"16 million nested", nested(16 << 20), "nests deeper"},
		{"2 million values", append([]byte("\x92\xa6Notice\x81\xa1x\xdd\x00\x20\x00\x00"), make([]byte, 2<<20)...), "more than 1048576 values"},
	} {
		_, err := wire.Unmarshal(c.payload)
		if !errors.Is(err, wire.ErrInvalidMessage) || !strings.Contains(strings.Replace(err.Error(), " field", "", 1), c.want) {
			t.Errorf("%s: got %v, want an invalid message with %q", c.name, err, c.want)
		}
		if wire.Recoverable(err) == nil {
			t.Errorf("%s: no answer", c.name)
		}
	}
	// At the limit of depth it is only not a message.
	if err := wire.Precheck(nested(wire.MaxDepth)); err != nil {
		t.Errorf("%d deep: %v", wire.MaxDepth, err)
	}
}

// The answer to an unknown kind, or a bad field, names the request it answers (C12).
func TestUnmarshalErrorNamesTheRequest(t *testing.T) {
	p, _ := msgpack.Marshal([]any{"FrobRequest\x1b[2J", map[string]any{"x": 1, "request_id": "r7"}})
	_, err := wire.Unmarshal(p)
	if !errors.Is(err, wire.ErrUnknownKind) {
		t.Fatalf("got %v, want an unknown kind", err)
	}
	if reply := wire.Recoverable(err); reply.RequestID != "r7" || strings.ContainsRune(reply.Message, 0x1b) {
		t.Errorf("answer %+v: want request r7 and no control characters", reply)
	}
	p, _ = msgpack.Marshal([]any{"ShutdownRequest", map[string]any{"request_id": "r9", "drain_ms": "soon"}})
	_, err = wire.Unmarshal(p)
	if reply := wire.Recoverable(err); reply == nil || reply.RequestID != "r9" || reply.Details["field"] != "drain_ms" {
		t.Errorf("got %+v for %v, want request r9 and field drain_ms", reply, err)
	}
}

func TestMarshalRefuses(t *testing.T) {
	if _, err := wire.Marshal(nil); err == nil {
		t.Error("nil message: no error")
	}
	if _, err := wire.Marshal((*wire.Heartbeat)(nil)); err == nil {
		t.Error("nil pointer: no error")
	}
	if _, err := wire.Marshal(&wire.Event{}); err == nil {
		t.Error("a struct that is no kind: no error")
	}
	_, err := wire.AppendFrame([]byte("before"), &wire.CommandOutput{Data: make([]byte, wire.MaxFrame)})
	if !errors.Is(err, wire.ErrTooLarge) || wire.Recoverable(err) != nil {
		t.Errorf("got %v, want too large", err)
	}
}

// Text that is not UTF-8, from a program or a model, must not make a message that its reader refuses.
// O7: no byte of a payload is a delimiter.
func TestBrokenTextTravels(t *testing.T) {
	m := &wire.Ready{Daemon: wire.DaemonInfo{Name: "a\xffb"}, Limits: map[string]int64{"ok": 1, "\xff": 2, "\xfe": 3}}
	got, err := wire.Unmarshal(mustMarshal(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if r := got.(*wire.Ready); r.Daemon.Name != "a\uFFFDb" || len(r.Limits) != 1 {
		t.Errorf("got name %q and limits %v", r.Daemon.Name, r.Limits)
	}
}

// A page of history from a newer daemon is read without the events this build does not know.
func TestUnknownKindInsideAnEnvelope(t *testing.T) {
	p, _ := msgpack.Marshal([]any{"SessionReply", map[string]any{"events": []any{
		[]any{"FutureEvent", map[string]any{"seq": 1}}, []any{"Notice", map[string]any{"text": "x"}}, nil,
	}}})
	got, err := wire.Unmarshal(p)
	if err != nil {
		t.Fatal(err)
	}
	events := got.(*wire.SessionReply).Events
	if len(events) != 3 || events[0].Message != nil || events[2].Message != nil || !reflect.DeepEqual(events[1].Message, &wire.Notice{Text: "x"}) {
		t.Errorf("got %+v", events)
	}
}

// Only the fields of its type travel with a chunk.
func TestChunkFields(t *testing.T) {
	m := &wire.AgentStreamChunk{Chunk: wire.Chunk{Type: wire.ChunkText, Text: "x", Tool: "bash", Data: []byte("y")}}
	got, err := wire.Unmarshal(mustMarshal(t, m))
	if want := (wire.Chunk{Type: wire.ChunkText, Text: "x"}); err != nil || !reflect.DeepEqual(got.(*wire.AgentStreamChunk).Chunk, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A small value of a large payload must not keep the payload alive.
func TestSmallValuesOfLargePayloadsAreCopied(t *testing.T) {
	p := mustMarshal(t, &wire.CommandOutput{ExecutionID: "id", Data: make([]byte, 1<<20)})
	m, err := wire.Unmarshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p {
		p[i] = 'x' // never done outside this test: Unmarshal took p over
	}
	out := m.(*wire.CommandOutput)
	if out.ExecutionID != "id" || out.Data[0] != 'x' {
		t.Errorf("got id %q, want a copy; data %q, want it shared", out.ExecutionID, out.Data[:1])
	}
}

func TestErrorsByCode(t *testing.T) {
	for _, s := range []error{
		wire.ErrInvalidMessage, wire.ErrUnknownKind, wire.ErrVersion, wire.ErrTooLarge, wire.ErrTooManyQueries, wire.ErrDuplicateID, wire.ErrNotFoundSession,
		wire.ErrPermissionDenied, wire.ErrCancelled, wire.ErrTimeout, wire.ErrLeaseStale, wire.ErrLeaseDenied, wire.ErrShuttingDown,
	} {
		matches := 0
		for _, code := range wire.Codes() {
			if errors.Is(&wire.Error{Code: code, Message: "m"}, s) {
				matches++
			}
		}
		if matches != 1 {
			t.Errorf("%v matches %d codes, want 1", s, matches)
		}
	}
	if got := (&wire.Error{Code: wire.CodeLeaseStale}).Error(); got != "lease stale" {
		t.Errorf("got %q", got)
	}
}

// PROTOCOL.md has this one, for whoever computes it in another language.
func TestFingerprint(t *testing.T) {
	const want = "90d486c7d1d5154e73b1f42da8832807d1dc3d9e96dbdd1ba14cdeaebce20c16"
	if got := wire.Fingerprint("ls -l", "/home/u", "d1"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
