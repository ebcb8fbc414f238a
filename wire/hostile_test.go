package wire_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sublet/wire"
	"sublet/wire/wiretest"
)

// What a payload of n bytes takes to decode, its own not counted, is at most this: PROTOCOL.md, section 4.
func mayTake(n int) uint64 { return uint64(2*n + 256<<10) }

// taken is how much memory f allocates. The runtime's own now and then adds to it, so the least of some runs counts.
func taken(runs int, f func()) uint64 {
	least := ^uint64(0)
	for range runs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

func text(s string) []byte {
	if len(s) < 32 {
		return append([]byte{0xa0 | byte(len(s))}, s...)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0xdb}, uint32(len(s))), s...)
}

func listHead(n int) []byte { return binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(n)) }
func mapHead(n int) []byte  { return binary.BigEndian.AppendUint32([]byte{0xdf}, uint32(n)) }

// entry is {key: value}.
func entry(key string, value []byte) []byte {
	return slices.Concat([]byte{0x81}, text(key), value)
}

func message(kind string, body []byte) []byte {
	return slices.Concat([]byte{0x92}, text(kind), body)
}

// bomb is a payload made to unfold.
type bomb struct {
	where   string
	payload []byte
}

// bombs puts n of the smallest elements into every list and map that a value of the type holds, however deep, and lists
// of such lists. wrap makes a payload of a value.
func bombs(typ reflect.Type, where string, n int, wrap func([]byte) []byte) (all []bomb) {
	switch {
	case typ == reflect.TypeFor[wire.Chunk]():
		block := reflect.TypeFor[wire.Block]()
		return bombs(block, where+".block", n, func(v []byte) []byte { return wrap(entry("block", v)) })
	case typ == reflect.TypeFor[wire.Envelope]():
		return nil
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return bombs(typ.Elem(), where, n, wrap)
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				all = append(all, bombs(f.Type, where, n, wrap)...)
				continue
			}
			name := f.Tag.Get("msgpack")
			all = append(all, bombs(f.Type, where+"."+name, n, func(v []byte) []byte { return wrap(entry(name, v)) })...)
		}
	case reflect.Map:
		all = append(all, bomb{where + " many entries", wrap(manyKeys(n/5, 0xa0))})
		all = append(all, bomb{where + " few entries", wrap(manyKeys(9, 0xa0))})
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for _, each := range smallest(typ.Elem()) {
			k := max(1, n/len(each))
			all = append(all, bomb{where + fmt.Sprintf(" %d of % x", k, each), wrap(append(listHead(k), bytes.Repeat(each, k)...))})
		}
		for _, inner := range bombs(typ.Elem(), where+"[]", 20, func(v []byte) []byte { return v }) {
			k := max(1, n/len(inner.payload))
			all = append(all, bomb{inner.where, wrap(append(listHead(k), bytes.Repeat(inner.payload, k)...))})
		}
	}
	return all
}

// smallest are short values that make an element, and some that make more of it.
func smallest(typ reflect.Type) [][]byte {
	switch {
	case typ == reflect.TypeFor[wire.Envelope]():
		all := [][]byte{{0xc0}}
		for _, kind := range wire.Kinds() {
			all = append(all, message(kind, []byte{0x80}))
		}
		return all
	case typ.Kind() == reflect.String:
		return [][]byte{text(""), text("x"), text("sixteen bytes   ")}
	case typ.Kind() == reflect.Struct:
		all := [][]byte{{0x80}}
		for i := range typ.NumField() {
			if f := typ.Field(i); f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Map {
				value := []byte{0x80}
				switch f.Type.String() {
				case "*int", "*int64", "*float64":
					value = []byte{0}
				case "*bool":
					value = []byte{0xc2}
				}
				all = append(all, entry(f.Tag.Get("msgpack"), value))
			}
		}
		return all
	}
	return nil
}

// manyKeys is a map of n different keys.
func manyKeys(n int, value ...byte) []byte {
	p := mapHead(n)
	for i := range n {
		p = append(p, 0xa3, byte(i>>14)|0x20, byte(i>>7)&0x7f, byte(i)&0x7f)
		p = append(p, value...)
	}
	return p
}

// No payload makes the receiver take more than twice its length and 256 KiB, whatever tiny elements it unfolds to: every
// list and every map of every kind is tried, with every size of payload. It was 16 MiB for any frame.
func TestHostilePayloads(t *testing.T) {
	sizes := []int{500, 4 << 10, 100 << 10}
	tried := 0
	for _, kind := range wire.Kinds() {
		m, _ := wire.New(kind)
		for _, n := range sizes {
			for _, b := range bombs(reflect.TypeOf(m), kind, n, func(v []byte) []byte { return message(kind, v) }) {
				tried++
				notTooMuch(t, b)
			}
		}
	}
	if tried < 400 {
		t.Errorf("only %d payloads: are the lists not found?", tried)
	}
}

func notTooMuch(t *testing.T, b bomb) {
	t.Helper()
	var err error
	limit, decode := mayTake(len(b.payload)), func() { _, err = wire.Unmarshal(b.payload) }
	cost := taken(1, decode)
	if cost > limit {
		cost = taken(5, decode) // the runtime's own came between
	}
	if err != nil && wire.Recoverable(err) == nil {
		t.Errorf("%s: %v", b.where, err)
	}
	if cost > limit {
		t.Errorf("%s: %d bytes of payload took %d, want at most %d (%v)", b.where, len(b.payload), cost, limit, err)
	}
}

// The same for long payloads, and for what is no list: they are the worst that was found, by memory or by time (`make bench`
// tells the time).
func TestWorstPayloads(t *testing.T) {
	for where, payload := range wiretest.Worst(4 << 20) {
		notTooMuch(t, bomb{where, payload})
	}
}

// A length that is announced costs little until its bytes are there.
func TestAnnouncedLength(t *testing.T) {
	frame := binary.BigEndian.AppendUint32(nil, wire.MaxFrame)
	for _, came := range []int{0, 1000, 300 << 10, 3 << 20} {
		c := wire.NewConn(reading{bytes.NewReader(append(bytes.Clone(frame), make([]byte, came)...))})
		cost := taken(1, func() {
			if _, err := c.Receive(); err == nil {
				t.Errorf("%d bytes of %d are no message", came, wire.MaxFrame)
			}
		})
		c.Close()
		if limit := uint64(10*came + 320<<10); cost > limit {
			t.Errorf("%d bytes of an announced 16 MiB took %d, want at most %d", came, cost, limit)
		}
	}
}

type reading struct{ io.Reader }

func (reading) Write(p []byte) (int, error) { return len(p), nil }
func (reading) Close() error                { return nil }

// Lists and maps have no length of their own but the payload's limits: a shell with more than 1024 functions could not be
// told, and was never lent. Nor does the bound on memory refuse what a client honestly has.
func TestLongLists(t *testing.T) {
	for _, n := range []int{1023, 1024, 1025, 5000, 10_000} {
		m := &wire.ShellState{Aliases: map[string]wire.OSString{}}
		for i := range n {
			name := fmt.Sprint("name", i)
			m.Functions = append(m.Functions, wire.ShellFunction{Name: name, Hash: strings.Repeat("0f", 32), Body: "f () { :; }"})
			m.Options = append(m.Options, name)
			m.Aliases[name] = wire.OSString("command --option " + name)
		}
		frame, err := wire.AppendFrame(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.Unmarshal(frame[4:])
		if err != nil {
			t.Errorf("%d elements: %v", n, err)
			continue
		}
		st := got.(*wire.ShellState)
		if !slices.Equal(st.Functions, m.Functions) || !slices.Equal(st.Options, m.Options) || !maps.Equal(st.Aliases, m.Aliases) {
			t.Errorf("%d elements: got %d functions, %d options, %d aliases", n, len(st.Functions), len(st.Options), len(st.Aliases))
		}
	}
}

// The densest that this side ever sends is read: long pages of the shortest events, a turn of thousands of tools, many
// short names.
func TestDensePayloads(t *testing.T) {
	page := &wire.SessionReply{}
	tools := &wire.AgentComplete{}
	env := &wire.EnvSnapshot{Env: map[string]wire.OSString{}}
	list, errors := &wire.SessionReply{}, &wire.SessionReply{}
	id := wire.NewID()
	for i := range 1000 { // the longest page
		page.Events = append(page.Events, wire.Envelope{Message: []wire.Message{
			&wire.AgentStreamChunk{Event: wire.Event{SessionID: "s", Seq: 1}, Chunk: wire.Chunk{Type: wire.ChunkText, Text: "a"}},
			&wire.AgentThinking{}, &wire.AgentComplete{}, &wire.CommandResult{}, &wire.ConfirmationRequest{}, &wire.CompactionComplete{},
			&wire.Error{Details: map[string]string{"a": ""}}, &wire.ConfirmationResolved{}, &wire.TurnStarted{},
		}[i%9]})
		errors.Events = append(errors.Events, wire.Envelope{Message: &wire.Error{
			Event: wire.Event{SessionID: wire.SessionID(id), TurnID: wire.TurnID(id), RequestID: wire.RequestID(id)}, Code: "provider", Message: "it is overloaded",
			Details: map[string]string{"kind": "overloaded"},
		}})
		list.Sessions = append(list.Sessions, wire.SessionInfo{})
		env.Env[fmt.Sprint("V", i)] = "1"
	}
	for range 4000 {
		tools.ToolsExecuted = append(tools.ToolsExecuted, "bash")
	}
	for _, m := range []wire.Message{page, list, errors, tools, env} {
		got, err := wire.Unmarshal(mustMarshal(t, m))
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %v, or not what was sent", wire.KindOf(m), err)
		}
	}
}
