package wire_test

import (
	"testing"

	"sublet/wire"
	"sublet/wire/wiretest"
)

// RequestOf returns the id of every kind that is a request.
func TestRequestOf(t *testing.T) {
	for _, kind := range wire.Kinds() {
		m, _ := wire.New(kind)
		if _, ok := m.(wire.OfRequest); wire.IsRequest(kind) && !ok {
			if _, lease := m.(wire.LeaseMessage); !lease {
				t.Errorf("%s is a request, and does not tell its id", kind)
			}
		}
		if full := wiretest.Full(kind); wire.IsRequest(kind) && wire.RequestOf(full) == "" {
			t.Errorf("%s: the id of a full one is empty", kind)
		}
	}
}
