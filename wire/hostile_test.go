package wire_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"sublet/wire"
)

// What a payload costs is bounded whatever is in it: none makes the receiver allocate more than twice the longest frame
// beyond its own size, however many tiny values it announces or has.
func TestHostilePayloads(t *testing.T) {
	text := func(s string) []byte { return append([]byte{0xa0 | byte(len(s))}, s...) }
	list := func(n int) []byte { return binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(n)) }
	message := func(kind, field string, value []byte) []byte {
		p := append([]byte{0x92}, text(kind)...)
		p = append(append(p, 0x81), text(field)...)
		return append(p, value...)
	}
	const most = 10 << 20
	const tiny, keys = 200_000, 300_000
	for name, payload := range map[string][]byte{
		"a list of empty maps":           message("SessionReply", "sessions", append(list(tiny), bytes.Repeat([]byte{0x80}, tiny)...)),
		"a list of empty texts":          message("ShellState", "options", append(list(tiny), bytes.Repeat([]byte{0xa0}, tiny)...)),
		"a list of nils":                 message("ConfirmationRequest", "grants", append(list(tiny), bytes.Repeat([]byte{0xc0}, tiny)...)),
		"more values than allowed":       message("ShellState", "options", append(list(most), bytes.Repeat([]byte{0xa0}, most)...)),
		"lists in lists":                 message("ShellState", "unknown", bytes.Repeat([]byte{0x91}, most)),
		"a length that is not there":     message("ShellState", "options", list(1<<31)),
		"a long text that nobody reads":  message("ShellState", "unknown", append(binary.BigEndian.AppendUint32([]byte{0xdb}, most), bytes.Repeat([]byte("x"), most)...)),
		"a long value of a known field":  message("CommandOutput", "data", append(binary.BigEndian.AppendUint32([]byte{0xc6}, most), make([]byte, most)...)),
		"text where a list should be":    message("ShellState", "options", text("x")),
		"a map of many keys, all unread": message("ShellState", "unknown", manyKeys(keys)),
		"a map of many keys":             message("EnvSnapshot", "env", manyKeys(keys)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := wire.Unmarshal(payload)
		runtime.ReadMemStats(&after)
		if err != nil && !wire.Recoverable(err) {
			t.Errorf("%s: %v", name, err)
		}
		if cost, limit := after.TotalAlloc-before.TotalAlloc, uint64(len(payload)+2*wire.MaxFrame); cost > limit {
			t.Errorf("%s: %d bytes of payload cost %d, want at most %d", name, len(payload), cost, limit)
		}
	}
}

func manyKeys(n int) []byte {
	p := binary.BigEndian.AppendUint32([]byte{0xdf}, uint32(n))
	for i := range n {
		p = append(p, 0xa3, byte(i>>14)|0x20, byte(i>>7)&0x7f, byte(i)&0x7f, 0xa0)
	}
	return p
}

// Lists and maps have no length of their own but the payload's limits: a shell with more than 1024 functions could not be
// told, and was never lent.
func TestLongLists(t *testing.T) {
	for _, n := range []int{1023, 1024, 1025, 5000, 10_000} {
		m := &wire.ShellState{Aliases: map[string]wire.OSString{}}
		for i := range n {
			name := fmt.Sprint("f", i)
			m.Functions = append(m.Functions, wire.ShellFunction{Name: name, Hash: name, Body: wire.OSString(name)})
			m.Options = append(m.Options, name)
			m.Aliases[name] = wire.OSString(name)
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
