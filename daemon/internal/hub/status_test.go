package hub

import (
	"reflect"
	"testing"
	"time"

	"sublet/wire"
)

// Connections are counted by what they are, and what runs makes the daemon busy.
func TestWhatIsListed(t *testing.T) {
	h := newHub(t)
	ln := openWindow(t, h).c.lender
	of := func(name string, shell bool) *Client {
		c := &Client{info: wire.ClientInfo{Name: name}}
		if shell {
			c.lender = ln
		}
		return c
	}
	h.clients = map[*Client]struct{}{of("sublet", true): {}, of("sublet", false): {}, of("sublet", false): {}, of("acp", false): {}}
	defer func() { h.clients = nil }()
	want := []wire.Connections{{Name: "acp", Count: 1}, {Name: "sublet", Count: 2}, {Name: "sublet", Shell: true, Count: 1}}
	for range 20 { // a map has no order
		if got := h.connectionsLocked(); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
	o := &operation{}
	if err := h.begin(o); err != nil {
		t.Fatal(err)
	}
	if st := (&Client{hub: h, session: watched(t, h)}).status("s", false); st.State != "busy" {
		t.Errorf("with something running: %s", st.State)
	}
	h.end(o)
	h.work.Done()
}

// A stop that somebody asks for is bounded, and asked of whoever can stop.
func TestShutdownIsBounded(t *testing.T) {
	h := newHub(t)
	c := &Client{hub: h, Peer: deaf{}, session: watched(t, h)}
	var drains []time.Duration
	h.opts.Stop = func(drain time.Duration) { drains = append(drains, drain) }
	if err := c.Shutdown(&wire.ShutdownRequest{RequestID: "r0", DrainMS: -1}); err == nil || h.closing {
		t.Errorf("a drain of less than nothing: got %v", err)
	}
	for id, ms := range map[wire.RequestID]int64{"r2": 1000, "r3": int64(time.Hour / time.Millisecond)} {
		drains = nil
		if err := c.Shutdown(&wire.ShutdownRequest{RequestID: id, DrainMS: ms}); err != nil {
			t.Fatal(err)
		}
		if want := min(time.Duration(ms)*time.Millisecond, maxDrain); len(drains) != 1 || drains[0] != want {
			t.Errorf("drains for %v, want %v", drains, want)
		}
	}
}
