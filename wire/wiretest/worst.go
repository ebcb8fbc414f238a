package wiretest

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Worst returns payloads of about n bytes that cost a receiver the most, by memory or by time, each under what it is
// made of. Some are messages, most are not. n is at least 3 MiB: some spend all the values that a payload may hold.
func Worst(n int) map[string][]byte {
	const values = 1<<20 - 16 // nearly all that a payload may hold
	var (
		str   = func(s string) []byte { return append([]byte{0xa0 | byte(len(s))}, s...) }
		head  = func(c byte, n int) []byte { return binary.BigEndian.AppendUint32([]byte{c}, uint32(n)) }
		list  = func(n int, each ...byte) []byte { return append(head(0xdd, n), bytes.Repeat(each, n)...) }
		field = func(kind, key string, value []byte) []byte {
			return slices.Concat([]byte{0x92}, str(kind), []byte{0x81}, str(key), value)
		}
		padding = func(p []byte) []byte { return append(head(0xc6, n-len(p)), make([]byte, n-len(p))...) }
		// padded is the field next to a long one that nobody reads, so that the value alone may unfold by as much.
		padded = func(kind, key string, value []byte) []byte {
			return slices.Concat([]byte{0x92}, str(kind), []byte{0x82}, str(key), value, str("unknown"), padding(value))
		}
	)
	// keys is a map of n keys of size bytes, at most 1<<16 of which differ.
	keys := func(n, size int) []byte {
		p := head(0xdf, n)
		for i := range n {
			key := binary.BigEndian.AppendUint32(bytes.Repeat([]byte{'k'}, size-4), 0x20202020|uint32(i&15)|uint32(i>>4&15)<<8|uint32(i>>8&15)<<16|uint32(i>>12&15)<<24)
			p = append(append(p, 0xa0|byte(size)), key...)
			p = append(p, 0xa0)
		}
		return p
	}
	return map[string][]byte{
		"a list of empty texts":             field("ShellState", "options", list(n, 0xa0)),
		"a million empty texts":             padded("ShellState", "options", list(values, 0xa0)),
		"a million texts of a byte":         padded("ShellState", "options", list(values, 0xa1, 'x')),
		"as many texts as there is room":    padded("ShellState", "options", list(n*3/2/18, 0xa3, 'a', 'b', 'c')),
		"a million empty structs":           padded("ShellState", "functions", list(values, 0x80)),
		"as many structs as there is room":  padded("ShellState", "functions", list(n*3/2/54, 0x80)),
		"as many long structs":              padded("SessionReply", "sessions", list(n*3/2/180, 0x80)),
		"as many unions":                    padded("SessionReply", "events", list(n/300, append(append([]byte{0x92}, str("AgentStreamChunk")...), 0x80)...)),
		"texts in lists in structs":         padded("PolicyReply", "rules", list(60_000, append([]byte{0x81}, append(str("match"), 0x93, 0xa0, 0xa0, 0xa0)...)...)),
		"a list of lists":                   field("ShellState", "unknown", list(n/2, 0x91, 0xc0)),
		"lists in lists":                    field("ShellState", "unknown", bytes.Repeat([]byte{0x91}, n)),
		"lists in lists, as deep as may be": field("ShellState", "unknown", list(33_000, append(bytes.Repeat([]byte{0x91}, 28), 0xc0)...)),
		"a long text that nobody reads":     field("ShellState", "unknown", append(head(0xdb, n), bytes.Repeat([]byte("x"), n)...)),
		"a long text":                       field("AgentRequest", "prompt", append(head(0xdb, n), bytes.Repeat([]byte("é"), n/2)...)),
		"a long text with a fault":          field("AgentRequest", "prompt", append(head(0xdb, n), append(bytes.Repeat([]byte("é"), n/2-1), 0xff, 0xff)...)),
		"long output":                       field("CommandOutput", "data", padding(nil)),
		"an announced list":                 field("ShellState", "options", head(0xdd, 1<<31)),
		"maps of unread keys":               padded("ShellState", "unknown", list(7, keys(1<<16, 4)...)),
		"a map of short keys":               padded("EnvSnapshot", "env", keys(16_000, 5)),
		"a map of longer keys":              padded("EnvSnapshot", "env", keys(16_000, 31)),
		"unknown keys":                      slices.Concat([]byte{0x92}, str("ShellState"), keys(n/32, 30)),
		"a map of as many keys as may be":   padded("EnvSnapshot", "env", keys(1<<16, 4)),
	}
}
