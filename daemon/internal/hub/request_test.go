package hub

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"sublet/daemon/internal/agent"
	"sublet/wire"
)

// Ids are remembered up to a bound. A request that still runs can be cancelled after that, too.
func TestRequestIDsAreBounded(t *testing.T) {
	h := newHub(t)
	c := &Client{hub: h}
	first := wire.RequestID("first")
	cancelled := false
	o := &operation{origin: c, request: first, cancel: func(error) { cancelled = true }}
	if err := errors.Join(c.RememberID(first), h.begin(o)); err != nil {
		t.Fatal(err)
	}
	defer h.work.Done()
	if err := c.RememberID(first); !errors.Is(err, ErrDuplicateID) {
		t.Errorf("a repeat: %v", err)
	}
	for n := range maxRequestIDs + 10 {
		if err := c.RememberID(wire.RequestID(strconv.Itoa(n))); err != nil {
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

// ending is a client that is slow to take in how a turn ends.
type ending struct {
	*window
	ended, goOn chan struct{}
}

func (e *ending) Send(m wire.Message) {
	if m, ok := m.(*wire.AgentComplete); ok && m.RequestID == "first" {
		e.ended <- struct{}{}
		<-e.goOn
	}
	e.window.Send(m)
}

// What a turn has not taken in when it ends can be cancelled still: it would begin a turn of its own.
func TestCancelWhatSteeredAnEndedTurn(t *testing.T) {
	h := newHub(t)
	w := &ending{window: &window{t: t}, ended: make(chan struct{}), goOn: make(chan struct{})}
	c := &Client{hub: h, Peer: w, cwd: "/"}
	s := watched(t, h, c)
	begun, steered := make(chan struct{}), make(chan struct{})
	u := c.turn(s, "first")
	u.work = func(context.Context, *turn) agent.Outcome {
		close(begun)
		<-steered
		return agent.Outcome{AgentComplete: wire.AgentComplete{Status: wire.StatusSuccess}}
	}
	if err := h.enqueue(u); err != nil {
		t.Fatal(err)
	}
	<-begun
	id := wire.RequestID("said")
	said := c.turn(s, id)
	if said.steers = s.running(); said.steers != u {
		t.Fatal("no turn could be steered")
	}
	h.hold(s.id, s)
	if err := errors.Join(c.RememberID(id), h.enqueue(said)); err != nil {
		t.Fatal(err)
	}
	close(steered)
	<-w.ended
	if err := c.Cancel(&wire.CancelRequest{RequestID: &id}); err != nil {
		t.Error(err)
	}
	close(w.goOn)
	if e := awaitSent[*wire.Error](w.window); e.RequestID != id || e.Code != wire.CodeCancelled {
		t.Errorf("got %+v", e)
	}
}

// A prompt for the turn that has just ended does not steer the one behind it, which has yet to begin.
func TestWhatHasNotBegunIsNotSteered(t *testing.T) {
	h := newHub(t)
	c := &Client{hub: h, Peer: deaf{}, cwd: "/"}
	s := watched(t, h, c)
	next := c.turn(s, "next")
	next.work = func(context.Context, *turn) agent.Outcome { return agent.Outcome{} }
	if _, err := s.queue(next, 1); err != nil {
		t.Fatal(err)
	}
	if s.running() != nil {
		t.Error("it would be steered")
	}
}
