package wire_test

import (
	"reflect"
	"testing"

	"sublet/wire"
	"sublet/wire/wiretest"
)

// Every message to the daemon that has a request_id of its own is a request and returns that id.
func TestRequestOf(t *testing.T) {
	for _, kind := range wire.Kinds() {
		m, _ := wire.New(kind)
		_, event := m.(wire.EventMessage)
		_, lease := m.(wire.LeaseMessage)
		field, has := reflect.TypeOf(m).Elem().FieldByName("RequestID")
		has = has && field.Type == reflect.TypeFor[wire.RequestID]()
		if want := has && !event && !lease && wire.Directions(kind) == wire.ToDaemon; wire.IsRequest(kind) != want {
			t.Errorf("%s is a request: got %v, want %v", kind, !want, want)
		}
		if full := wiretest.Full(kind); wire.IsRequest(kind) && wire.RequestOf(full) == "" {
			t.Errorf("%s: the id of a full one is empty", kind)
		}
	}
}
