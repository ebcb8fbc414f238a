package hub

import (
	"errors"
	"strconv"
	"testing"

	"sublet/wire"
)

// Ids are remembered up to a bound, also while the oldest request runs; that one can be cancelled still.
func TestRequestIDsAreBounded(t *testing.T) {
	var r requests
	cancelled := false
	if err := r.add("first"); err != nil {
		t.Fatal(err)
	}
	r.track("first", func(*stopped) { cancelled = true })
	for n := range maxRequestIDs + 10 {
		if err := r.add(wire.RequestID(strconv.Itoa(n))); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.cancels) != maxRequestIDs || len(r.order) != maxRequestIDs {
		t.Errorf("%d ids, %d in order, want %d", len(r.cancels), len(r.order), maxRequestIDs)
	}
	if err := r.add("first"); !errors.Is(err, ErrDuplicateID) {
		t.Errorf("the one that runs: %v", err)
	}
	if r.cancels["first"](nil); !cancelled {
		t.Error("the one that runs cannot be cancelled")
	}
}
