package server_test

import (
	"os"
	"strings"
	"testing"

	"sublet/daemon/internal/provider/scripted"
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

// A fork has the turns up to one of them, with ids of its own, and is gone on with by itself. One that runs is not copied.
func TestFork(t *testing.T) {
	gate := t.TempDir() + "/gate"
	r := newRig(t, say("first", "one"), say("second", "two"), scripted.Script{Match: "third", Steps: []scripted.Step{{WaitFile: gate, Text: "three"}}})
	p := r.dial(withoutShell, r.there)
	p.ended(p.ask("first"))
	p.ended(p.ask("second"))
	id := p.session
	texts := func(id wire.SessionID) (list []string) {
		for _, e := range p.sessions(&wire.SessionRequest{Op: "get", SessionID: &id, IncludeHistory: true}).Events {
			switch m := e.Message.(type) {
			case *wire.TurnStarted:
				list = append(list, m.Prompt)
			case *wire.AgentComplete:
				list = append(list, m.Summary)
			}
		}
		return list
	}
	one := p.sessions(&wire.SessionRequest{Op: "fork", SessionID: &id, Turn: 1}).Session
	all := p.sessions(&wire.SessionRequest{Op: "fork", SessionID: &id}).Session
	if one.ID == id || one.Turns != 1 || one.Cwd != wire.OSString(r.dir) || all.Turns != 2 {
		t.Errorf("got %+v and %+v", one, all)
	}
	q := r.dial(withoutShell, r.there, inSession(one.ID, 0))
	q.ended(q.ask("second"))
	for id, want := range map[wire.SessionID]string{id: "first one second two", one.ID: "first one second two", all.ID: "first one second two"} {
		if got := strings.Join(texts(id), " "); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
	refused := func(turn int, want string) {
		t.Helper()
		req := &wire.SessionRequest{RequestID: requestID(), Op: "fork", SessionID: &id, Turn: turn}
		p.send(req)
		if e := p.refused(req.RequestID); e.Code != want {
			t.Errorf("fork at %d: got %s %s, want %s", turn, e.Code, e.Message, want)
		}
	}
	refused(3, wire.CodeInvalidMessage)
	refused(-1, wire.CodeInvalidMessage)
	third := p.ask("third")
	await(p, func(m *wire.TurnStarted) bool { return m.Prompt == "third" })
	refused(0, wire.CodeTooManyQueries)
	if got := p.sessions(&wire.SessionRequest{Op: "fork", SessionID: &id, Turn: 2}).Session; got.Turns != 2 || got.Running {
		t.Errorf("got %+v", got)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.ended(third)
}
