package hub

import (
	"context"
	"slices"
	"testing"

	"sublet/wire"
)

// late is a connection on which something happens while it is being attached: run is called once, when the session's
// description is sent.
type late struct {
	run  func()
	seqs []int64 // of the events that it was sent
}

func (l *late) Send(m wire.Message) {
	switch m := m.(type) {
	case *wire.Ready, *wire.SessionReply:
		run := l.run
		l.run = func() {}
		run()
	case wire.EventMessage:
		l.seqs = append(l.seqs, m.Meta().Seq)
	}
}
func (l *late) Flush(context.Context) error { return nil }
func (*late) End(wire.Message)              {}
func (l *late) PID() int                    { return 0 }

// A client that wants nothing old gets what is stored after the description of the session that it was sent. What came
// between that and its place among the session's clients was lost.
func TestNothingIsLostWhileAttaching(t *testing.T) {
	h := newHub(t)
	first, err := h.Attach(t.Context(), &late{run: func() {}}, &wire.EnvSnapshot{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Detach()
	command := func() {
		if err := first.UserCommand(&wire.CommandResult{Command: "make"}); err != nil {
			t.Error(err)
		}
	}
	command()
	id := first.session.id
	for _, c := range []struct {
		name   string
		attach func(l *late) (*Client, error)
		want   []int64
	}{
		{"with the handshake", func(l *late) (*Client, error) {
			return h.Attach(t.Context(), l, &wire.EnvSnapshot{SessionID: &id, AfterSeq: -1})
		}, []int64{2, 3}},
		{"to a stored session", func(l *late) (*Client, error) {
			run := l.run
			l.run = func() {}
			c, err := h.Attach(t.Context(), l, &wire.EnvSnapshot{})
			if err != nil {
				return nil, err
			}
			l.run = run
			return c, c.Sessions(t.Context(), &wire.SessionRequest{RequestID: "r", Op: "resume", SessionID: &id, AfterSeq: -1})
		}, []int64{4, 5}},
		{"with the last event", func(l *late) (*Client, error) {
			return h.Attach(t.Context(), l, &wire.EnvSnapshot{SessionID: &id, AfterSeq: 4})
		}, []int64{5, 6, 7}},
	} {
		l := &late{run: command}
		client, err := c.attach(l)
		if err != nil {
			t.Fatal(err)
		}
		command()
		if !slices.Equal(l.seqs, c.want) {
			t.Errorf("%s: got events %v, want %v", c.name, l.seqs, c.want)
		}
		client.Detach()
	}
}
