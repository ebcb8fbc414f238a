package server_test

import (
	"testing"

	"sublet/wire"
)

// A client may choose a session's id, as those of S3 do: it is taken once, found again by that id, and does
// not come back after it was deleted. The session knows the agent of its latest turn, which S3's lists ask for (K3).
func TestChosenSessionID(t *testing.T) {
	r := newRig(t, say("hello", "hi"))
	p := r.dial(func(e *wire.EnvSnapshot) { e.Cwd = wire.OSString(r.dir) })
	refused := func(op string, id wire.SessionID, want string) {
		t.Helper()
		req := &wire.SessionRequest{RequestID: requestID(), Op: op, SessionID: &id}
		p.send(req)
		if e := p.refused(req.RequestID); e.Code != want {
			t.Errorf("%s %q: got %s, want %s", op, id, e.Code, want)
		}
	}
	id := wire.SessionID("sess-abc-123")
	refused("resume", id, wire.CodeNotFoundSession)
	made := p.sessions(&wire.SessionRequest{Op: "new", SessionID: &id})
	if made.Session.ID != id || made.Session.Agent != "" {
		t.Fatalf("new: %+v", made.Session)
	}
	refused("new", id, wire.CodeDuplicateID) // in memory
	if end := p.ended(p.ask("hello")); end.SessionID != id {
		t.Errorf("the turn ran in %s", end.SessionID)
	}
	refused("new", id, wire.CodeDuplicateID) // stored
	got := p.sessions(&wire.SessionRequest{Op: "get", SessionID: &id})
	if got.Session.Agent != "orchestrator" {
		t.Errorf("agent: got %q, want orchestrator", got.Session.Agent)
	}
	list := p.sessions(&wire.SessionRequest{Op: "list"}).Sessions
	if len(list) != 1 || list[0].Agent != "orchestrator" {
		t.Errorf("list: %+v", list)
	}
	p.sessions(&wire.SessionRequest{Op: "delete", SessionID: &id})
	refused("new", id, wire.CodeNotFoundSession)
	refused("resume", id, wire.CodeNotFoundSession)
	for _, bad := range []wire.SessionID{"-x", "a b", "../x", "ä", wire.SessionID(make([]byte, 129)), "a\n"} {
		refused("new", bad, wire.CodeInvalidMessage)
	}
}
