package wire_test

import (
	"bytes"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"sublet/wire"
	"sublet/wire/wiretest"
)

func benchChunk() *wire.AgentStreamChunk {
	m := wiretest.Full("AgentStreamChunk").(*wire.AgentStreamChunk)
	m.Chunk = wire.Chunk{Type: wire.ChunkText, Text: "about thirty-three bytes of text "}
	return m
}

// Perf goal W7: a chunk is encoded without allocating, decoded with one allocation, and its frame is at most 200 bytes
// over its ids (here 36 + 36 + 2 bytes) and text.
func TestChunkCosts(t *testing.T) {
	m := benchChunk()
	buf := make([]byte, 0, 1024)
	frame, _ := wire.AppendFrame(buf, m)
	if over := len(frame) - 74 - len(m.Chunk.Text); over > 200 {
		t.Errorf("%d bytes over ids and text, want at most 200", over)
	}
	if n := testing.AllocsPerRun(1000, func() { wire.AppendFrame(buf, m) }); n != 0 {
		t.Errorf("encode: %v allocations, want 0", n)
	}
	if n := testing.AllocsPerRun(1000, func() { wire.Unmarshal(frame[4:]) }); n > 1 {
		t.Errorf("decode: %v allocations, want 1", n)
	}
}

// The other kinds that travel often are encoded without allocating too.
func TestHotKindsEncodeWithoutAllocating(t *testing.T) {
	buf := make([]byte, 0, 64<<10)
	for _, m := range []wire.Message{
		benchChunk(), wiretest.Full("CommandOutput"), &wire.CommandOutput{Data: make([]byte, 32<<10)}, wiretest.Full("Heartbeat"),
	} {
		if n := testing.AllocsPerRun(1000, func() { wire.AppendFrame(buf, m) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", wire.KindOf(m), n)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, kind := range []string{"AgentStreamChunk", "CommandOutput", "Heartbeat", "CommandResult", "EnvSnapshot"} {
		m := wiretest.Full(kind)
		b.Run(kind+"/wire", func(b *testing.B) {
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst, _ = wire.AppendFrame(dst[:0], m)
			}
			b.SetBytes(int64(len(dst)))
		})
		if kind != "AgentStreamChunk" { // its union is not the library's to encode
			b.Run(kind+"/msgpack-v5", func(b *testing.B) {
				b.ReportAllocs()
				var buf bytes.Buffer
				enc := msgpack.NewEncoder(&buf)
				enc.UseCompactInts(true)
				for b.Loop() {
					buf.Reset()
					if err := enc.Encode(m); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, kind := range []string{"AgentStreamChunk", "CommandOutput", "Heartbeat", "CommandResult", "EnvSnapshot"} {
		p := mustMarshal(b, wiretest.Full(kind))
		b.Run(kind+"/wire", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				if _, err := wire.Unmarshal(p); err != nil {
					b.Fatal(err)
				}
			}
		})
		if kind != "AgentStreamChunk" {
			b.Run(kind+"/msgpack-v5", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					var name string
					m, _ := wire.New(kind)
					d := msgpack.NewDecoder(bytes.NewReader(p))
					d.DecodeArrayLen()
					name, _ = d.DecodeString()
					if err := d.Decode(m); err != nil || name != kind {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
