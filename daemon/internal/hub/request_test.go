package hub

import (
	"errors"
	"strconv"
	"testing"

	"sublet/wire"
)

// Ids are remembered up to a bound. A request that still runs can be cancelled after that, too.
func TestRequestIDsAreBounded(t *testing.T) {
	h := newHub(t)
	c := &Client{hub: h}
	first := wire.RequestID("first")
	cancelled := false
	o := &operation{client: c, request: first, cancel: func(error) { cancelled = true }}
	if err := errors.Join(c.Seen(first), h.begin(o)); err != nil {
		t.Fatal(err)
	}
	defer h.work.Done()
	if err := c.Seen(first); !errors.Is(err, ErrDuplicateID) {
		t.Errorf("a repeat: %v", err)
	}
	for n := range maxRequestIDs + 10 {
		if err := c.Seen(wire.RequestID(strconv.Itoa(n))); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.seen) != maxRequestIDs || len(c.seenOrder) != maxRequestIDs {
		t.Errorf("%d ids, %d in order, want %d", len(c.seen), len(c.seenOrder), maxRequestIDs)
	}
	if err := c.Cancel(&wire.CancelRequest{RequestID: &first}); err != nil || !cancelled {
		t.Errorf("the one that runs: %v", err)
	}
}
