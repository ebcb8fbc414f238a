// Package wiretest is what each transport and each codec of the protocol must pass: sample messages, an in-memory
// connection, and the suite.
package wiretest

import (
	"reflect"

	"sublet/wire"
)

// Full returns a message of the kind with every field set, the same each time. It panics for an unknown kind.
func Full(kind string) wire.Message {
	m := Zero(kind)
	fill(reflect.ValueOf(m).Elem(), "")
	return m
}

// Zero returns a message of the kind with nothing set: every field travels all the same.
func Zero(kind string) wire.Message {
	m, ok := wire.New(kind)
	if !ok {
		panic("wiretest: unknown kind " + kind)
	}
	return m
}

// Odd returns a message of the kind with the values that codecs get wrong: texts that are not UTF-8 where those are
// allowed, empty lists and maps as well as nil ones, negative and largest numbers.
func Odd(kind string) wire.Message {
	m := Zero(kind)
	odd(reflect.ValueOf(m).Elem(), 0)
	return m
}

// Chunks returns one chunk of each type with all its fields.
func Chunks() []wire.Chunk {
	const id = wire.ExecutionID("019a7e2b-0000-7000-8000-000000000005")
	return []wire.Chunk{
		{Type: wire.ChunkText, Text: "The tests pass. ✓"},
		{Type: wire.ChunkReasoning, Text: "The build comes first.", Signature: "c2ln"},
		{Type: wire.ChunkToolCallDelta, ExecutionID: id, Tool: "bash", Text: `{"comm`},
		{Type: wire.ChunkToolCall, ExecutionID: id, Tool: "bash", Arguments: `{"command":"go test ./..."}`},
		{Type: wire.ChunkToolOutput, ExecutionID: id, Data: []byte("ok\t\x1b[32msublet\x1b[0m\n\xff")},
		{Type: wire.ChunkToolResult, ExecutionID: id, Tool: "bash", Status: wire.StatusSuccess},
		{Type: wire.ChunkNotice, Text: "context is 80 % full"},
		{Type: wire.ChunkBlock, Block: &wire.Block{
			Type: "diff", Language: "go", Content: "-a\n+b\n", Metadata: map[string]string{"file": "main.go"},
			Annotations: []wire.Annotation{{Line: 3, Type: "warning", Message: "unused"}},
		}},
		{Type: wire.ChunkVoid, Text: "the connection broke off", FromSeq: 7},
		{Type: wire.ChunkContext, Text: "Working directory: /home/u"},
	}
}

// All returns many messages of every kind: full, zero and odd ones, every type of chunk, every error code.
func All() []wire.Message {
	var all []wire.Message
	for _, k := range wire.Kinds() {
		all = append(all, Full(k), Zero(k), Odd(k))
	}
	for _, c := range Chunks() {
		m := Full("AgentStreamChunk").(*wire.AgentStreamChunk)
		m.Chunk = c
		all = append(all, m)
	}
	for _, code := range wire.Codes() {
		all = append(all, ErrorOf(code))
	}
	return all
}

// ErrorOf returns the sample Error of the code.
func ErrorOf(code string) *wire.Error {
	m := Full("Error").(*wire.Error)
	m.Code = code
	return m
}

// text is what the fields with a meaning of their own hold in Full.
var text = map[string]string{
	"session_id":      "019a7e2b-0000-7000-8000-000000000001",
	"turn_id":         "019a7e2b-0000-7000-8000-000000000002",
	"lease_id":        "019a7e2b-0000-7000-8000-000000000003",
	"confirmation_id": "019a7e2b-0000-7000-8000-000000000004",
	"execution_id":    "019a7e2b-0000-7000-8000-000000000005",
	"rule_id":         "019a7e2b-0000-7000-8000-000000000006",
	"request_id":      "r1",
	"cwd":             "/home/ada/projekt ü",
	"command":         "go test ./... | tail -n 3",
	"agent":           "orchestrator",
	"tool":            "bash",
	"model":           "offline/rules",
	"code":            wire.CodeLeaseStale,
	"status":          wire.StatusSuccess,
	"level":           "high",
	"decision":        wire.DecisionAllow,
	"phase":           wire.PhaseExecuting,
	"arguments":       `{"command":"go test ./..."}`,
	"fingerprint":     "5df6e0e2761359d30a8275058e299fcc0381534545f55cf43e41983f5d4c9456",
	"state":           "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	"digest":          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
}

var numbers = map[string]int64{
	"at_ms": 1795132800123, "created_at_ms": 1795132800000, "updated_at_ms": 1795132860000, "started_at_ms": 1795132799000,
	"expires_at_ms": 1795136400000, "seq": 42, "seq_first": 40, "fence": 7, "exit_code": 1, "duration_ms": 1234, "pid": 4242,
	"protocol": wire.Version, "protocol_min": wire.MinVersion, "protocol_max": wire.Version, "timeout_ms": 120000, "term_ms": 30000,
	"wait_ms": 60000, "cols": 80, "rows": 24, "after_seq": -1, "context_window": 128000,
}

func fill(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.String:
		s, ok := text[name]
		if !ok {
			s = "a " + name
		}
		v.SetString(s)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		n, ok := numbers[name]
		if !ok {
			n = int64(len(name)) * 1000
		}
		v.SetInt(n)
	case reflect.Uint64:
		v.SetUint(uint64(numbers[name]) + 1<<40)
	case reflect.Float64:
		v.SetFloat(0.25)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("ok\tsublet\n"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), name)
		fill(v.Index(1), name)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, k := range []string{"LANG", "PATH"} {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(e, k)
			v.SetMapIndex(reflect.ValueOf(k).Convert(v.Type().Key()), e)
		}
	case reflect.Struct:
		switch v.Interface().(type) {
		case wire.Envelope:
			v.Set(reflect.ValueOf(wire.Envelope{Message: Full("TurnStarted")}))
			return
		case wire.Chunk:
			v.Set(reflect.ValueOf(Chunks()[0]))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Tag.Get("msgpack"))
		}
	}
}

func odd(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[wire.OSString]() {
			v.SetString("/tmp/\xff\xfe\x00name")
			return
		}
		v.SetString("\u202e\x1b[31m\x00\"\\\u2028 𝔘")
	case reflect.Int, reflect.Int64:
		v.SetInt(-1 << 63)
	case reflect.Uint64:
		v.SetUint(1<<64 - 1)
	case reflect.Float64:
		v.SetFloat(-1e-300)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		odd(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0, 0xff, 0xc1, 0x80})
			return
		}
		n := 0
		if depth < 2 && v.Type().Elem().Kind() != reflect.String {
			n = 17 // over what a fixarray holds
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			odd(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if depth < 2 {
			e := reflect.New(v.Type().Elem()).Elem()
			odd(e, depth+1)
			v.SetMapIndex(reflect.ValueOf("").Convert(v.Type().Key()), e)
		}
	case reflect.Struct:
		switch v.Interface().(type) {
		case wire.Envelope:
			return
		case wire.Chunk:
			v.Set(reflect.ValueOf(Chunks()[4]))
			return
		}
		for i := range v.NumField() {
			odd(v.Field(i), depth+1)
		}
	}
}
