package server_test

import (
	"testing"

	"sublet/wire"
)

// A resume whose session cannot be read gets one answer, and leaves the connection where it was. It used to be told of the
// new session and of the failure, and got the events of neither from then on.
func TestResumeThatCannotRead(t *testing.T) {
	r := newRig(t, say("first", "one"))
	held := r.dial(withoutShell) // keeps its session in memory, so that only its events need the store
	held.ended(held.ask("first"))
	p := r.dial(withoutShell)
	own := p.session
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	resume := func(id wire.SessionID) *wire.SessionRequest {
		return &wire.SessionRequest{RequestID: requestID(), Op: "resume", SessionID: &id}
	}
	req := resume(held.session)
	p.send(req)
	p.refused(req.RequestID)
	p.reached()
	if has(p, func(m *wire.SessionReply) bool { return m.RequestID == req.RequestID }) || count[*wire.Error](p) != 1 {
		t.Errorf("answered twice:\n%s", p.story())
	}
	// Its session is still the one it had: nothing of it is stored, so nothing needs to be read.
	again := &wire.SessionRequest{RequestID: requestID(), Op: "get"}
	p.send(again)
	if got := await(p, func(m *wire.SessionReply) bool { return m.RequestID == again.RequestID }); got.Session.ID != own {
		t.Errorf("attached to %s, want %s", got.Session.ID, own)
	}

	// A handshake that cannot read is refused before Ready, not after it.
	late := r.connect()
	late.send(hello(withoutShell, inSession(held.session, 0)))
	if err := late.over(); err == nil || has(late, func(*wire.Ready) bool { return true }) || count[*wire.Error](late) != 1 {
		t.Errorf("got %v and\n%s", err, late.story())
	}
}
