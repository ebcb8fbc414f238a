package wire_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sublet/wire"
	"sublet/wire/jsonview"
	"sublet/wire/wiretest"
)

var update = flag.Bool("update", false, "write wire/testdata/vectors anew")

// vectors are the messages that PROTOCOL.md points other implementations to, by the name of their files.
func vectors() map[string]wire.Message {
	all := map[string]wire.Message{}
	for _, k := range wire.Kinds() {
		all[k] = wiretest.Full(k)
	}
	for _, c := range wiretest.Chunks() {
		m := wiretest.Full("AgentStreamChunk").(*wire.AgentStreamChunk)
		m.Chunk = c
		all["AgentStreamChunk."+c.Type] = m
	}
	for _, code := range wire.Codes() {
		all["Error."+code] = wiretest.ErrorOf(code)
	}
	// What is unset is nil, what is not UTF-8 is bin, and …_base64 in JSON.
	all["AgentRequest.unset"] = wiretest.Zero("AgentRequest")
	all["CommandCompleted.unset"] = wiretest.Zero("CommandCompleted")
	all["CommandCompleted.bytes"] = wiretest.Odd("CommandCompleted")
	return all
}

// Every kind has a vector, and each is read and written both ways: frame to message to frame, JSON to message to JSON.
// A8, A9: the length in four bytes, then msgpack.
func TestVectors(t *testing.T) {
	dir := filepath.Join("testdata", "vectors")
	want := vectors()
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, m := range want {
			frame, err := wire.AppendFrame(nil, m)
			if err != nil {
				t.Fatal(err)
			}
			view := jsonview.Of(m)
			write(t, filepath.Join(dir, name+".hex"), hexLines(frame))
			write(t, filepath.Join(dir, name+".json"), append(view, '\n'))
		}
	}
	for name, m := range want {
		text, err := os.ReadFile(filepath.Join(dir, name+".hex"))
		if err != nil {
			t.Fatalf("%v (go test ./wire -run Vectors -update writes them)", err)
		}
		frame, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
		if err != nil {
			t.Fatalf("%s.hex: %v", name, err)
		}
		view, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := wire.AppendFrame(nil, m); !bytes.Equal(got, frame) {
			t.Errorf("%s: encodes to % x, want % x", name, got, frame)
		}
		if got, err := wire.Unmarshal(frame[4:]); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s.hex: got %+v, %v, want %+v", name, got, err, m)
		}
		if got := jsonview.Of(m); !bytes.Equal(append(got, '\n'), view) {
			t.Errorf("%s: JSON is %s, want %s", name, got, view)
		}
		if got, err := wiretest.FromJSON(view); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s.json: got %+v, %v, want %+v", name, got, err, m)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2*len(want) {
		t.Errorf("%d files, %v, want %d: one is left over", len(files), err, 2*len(want))
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// hexLines writes 32 bytes a line.
func hexLines(p []byte) []byte {
	var b bytes.Buffer
	for len(p) > 0 {
		n := min(32, len(p))
		b.WriteString(hex.EncodeToString(p[:n]) + "\n")
		p = p[n:]
	}
	return b.Bytes()
}
