package wire_test

import (
	"bytes"
	"reflect"
	"testing"

	"sublet/wire"
	"sublet/wire/jsonview"
	"sublet/wire/wiretest"
)

// Whatever arrives: no panic, only the documented errors, and what decodes is a value that encodes, decodes to itself
// and encodes to the same bytes again; so does its JSON view.
func FuzzUnmarshal(f *testing.F) {
	for _, m := range wiretest.All() {
		f.Add(mustMarshal(f, m))
	}
	f.Add([]byte("\x92\xa5Ready\x81\xa6limits\x82\xa1a\x01\xa1a\x02"))
	f.Add([]byte("\x92\xa6Notice\xdf\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := wire.Unmarshal(bytes.Clone(payload))
		if err != nil {
			if wire.Recoverable(err) == nil || m != nil {
				t.Fatalf("got %v with error %v", m, err)
			}
			return
		}
		first := mustMarshal(t, m)
		again, err := wire.Unmarshal(bytes.Clone(first))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("got %+v, %v\nwant %+v", again, err, m)
		}
		if second := mustMarshal(t, again); !bytes.Equal(first, second) {
			t.Fatalf("encodes to % x, then to % x", first, second)
		}
		view := jsonview.Of(m)
		if back, err := wiretest.FromJSON(view); err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("through %s:\n got %+v, %v\nwant %+v", view, back, err, m)
		}
	})
}

// Whatever bytes a peer sends, Receive returns messages and documented errors until the end, and Close returns.
func FuzzReceive(f *testing.F) {
	for _, m := range wiretest.All()[:20] {
		frame, _ := wire.AppendFrame(nil, m)
		f.Add(append(frame, 0, 0, 0, 1, 0xc1))
	}
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) > 60<<10 {
			return // what the pipe holds
		}
		a, b := wiretest.Pipe()
		a.Write(stream)
		a.Close()
		c := wire.NewConn(b)
		c.SetMaxFrame(32 << 10)
		defer c.Close()
		for range len(stream) + 1 {
			m, err := c.Receive()
			if err == nil && m == nil {
				t.Fatal("no message and no error")
			}
			if err != nil && wire.Recoverable(err) == nil {
				return
			}
		}
		t.Fatal("more messages than bytes")
	})
}
