package gateway

import (
	"context"
	"testing"

	"sublet/wire"
	"sublet/wire/wiretest"
)

// A page without a number that counts on, as a daemon of another version may send one, ends a history; it is not asked for
// for ever.
func TestHistoryEnds(t *testing.T) {
	asked := make(chan struct{}, 100)
	d := &Daemon{Open: func(context.Context, *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
		theirs, ours := wiretest.Pipe()
		c := wire.NewConn(theirs)
		go func() { // ends with the session's connection
			defer c.Close()
			for {
				m, err := c.Receive()
				if err != nil {
					return
				}
				if r, ok := m.(*wire.SessionRequest); ok {
					asked <- struct{}{}
					known := wire.Envelope{Message: &wire.TurnStarted{Event: wire.Event{SessionID: "s", Seq: 7}}}
					_ = c.Send(&wire.SessionReply{RequestID: r.RequestID, Op: r.Op, More: true, Events: []wire.Envelope{known, {Message: &wire.Notice{}}}}) // a client that left asks no more
				}
			}
		}()
		return wire.NewConn(ours), &wire.Ready{Protocol: wire.Version, Session: wire.SessionInfo{ID: "s"}}, nil
	}}
	s, err := d.Connect(t.Context(), Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	if _, err := s.History(t.Context(), "s", 0, func(wire.EventMessage) { n++ }); err != nil || n != 2 || len(asked) != 2 {
		t.Errorf("got %d events of %d pages, %v", n, len(asked), err)
	}
}
