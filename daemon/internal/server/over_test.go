package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
)

// What is told as over is over: whoever reads a turn's end may at once begin the next one where only one may run, clear
// and delete the session, and stop a daemon that must be idle. The end used to be sent first, and the turn taken out of
// the books a moment later: too_many_queries, `a turn runs in this session`, `1 turns run`, each now and then.
func TestOverWhenTold(t *testing.T) {
	r := newRig(t, say("Summarise", "what was done"), say("hello", strings.Repeat("answer ", 200)))
	r.set(func(c *config.Config) { c.Limits.RunningTurns, c.Limits.RequestsPerSecond = 1, 1_000_000 })
	window := r.dial()
	p := r.dial(withoutShell)
	request := func(what string, m wire.Message, id wire.RequestID) {
		t.Helper()
		p.send(m)
		answer := await(p, func(m wire.Message) bool {
			switch m := m.(type) {
			case *wire.SessionReply:
				return m.RequestID == id
			case *wire.StatusReply:
				return m.RequestID == id
			case *wire.Error:
				return m.RequestID == id
			}
			return false
		})
		if e, ok := answer.(*wire.Error); ok {
			t.Fatalf("%s: %s: %s", what, e.Code, e.Message)
		}
	}
	session := func(op string) {
		t.Helper()
		id := requestID()
		request(op, &wire.SessionRequest{RequestID: id, Op: op}, id)
	}
	ended := func(id wire.RequestID) {
		t.Helper()
		m := await(p, func(m wire.Message) bool {
			switch m := m.(type) {
			case *wire.AgentComplete:
				return m.RequestID == id
			case *wire.CompactionComplete:
				return m.RequestID == id
			case *wire.ShellLeaseReleased:
				return m.RequestID == id
			case *wire.Error:
				return m.RequestID == id
			}
			return false
		})
		if e, ok := m.(*wire.Error); ok {
			t.Fatalf("%s: %s: %s", id, e.Code, e.Message)
		}
	}
	for n := range 12 {
		p.mu.Lock()
		p.received = nil // else every wait looks through all that came before
		p.mu.Unlock()
		ended(p.ask("hello"))
		ended(p.ask("hello")) // the only one that may run
		id := requestID()
		p.send(&wire.CompactRequest{RequestID: id, Op: "run"})
		ended(id)
		session("clear")
		id = requestID()
		p.send(&wire.LeaseRunRequest{RequestID: id, Command: "true", ClientPID: window.pid})
		ended(id)
		ended(p.ask("hello"))
		session("delete")
		if n%2 == 0 {
			session("new")
			continue
		}
		id = requestID()
		named := wire.SessionID("named-" + string(id))
		request("new", &wire.SessionRequest{RequestID: id, Op: "new", SessionID: &named}, id)
	}
	ended(p.ask("hello"))
	id := requestID()
	request("stop if idle", &wire.ShutdownRequest{RequestID: id, IfIdle: true}, id)
	<-r.stops
}

// A request that waits behind a turn ends when it is cancelled, not when its turn would have come; it never begins, and
// its place is free at once.
func TestCancelOfAQueuedTurnIsToldAtOnce(t *testing.T) {
	r := newRig(t)
	gate := filepath.Join(r.dir, "gate")
	r.play(scripted.Script{Match: "wait", Steps: []scripted.Step{{WaitFile: gate, Text: "waited"}}}, say("quick", "quick answer"))
	p := r.dial()
	first := p.ask("wait")
	p.began(first)
	second, third := p.ask("quick"), p.ask("quick")
	p.send(&wire.CancelRequest{RequestID: &second, Reason: "changed my mind"})
	if e := p.refused(second); e.Code != wire.CodeCancelled || !strings.Contains(e.Message, "changed my mind before it began") {
		t.Errorf("got %s: %s", e.Code, e.Message)
	}
	if has(p, func(m *wire.AgentComplete) bool { return m.RequestID == first }) {
		t.Error("the first turn ended meanwhile")
	}
	status := requestID()
	p.send(&wire.StatusRequest{RequestID: status})
	if st := await(p, func(m *wire.StatusReply) bool { return m.RequestID == status }); st.Turns != 2 {
		t.Errorf("%d turns run and wait, want 2", st.Turns)
	}
	fourth := p.ask("quick") // three may run and wait: the cancelled one counts no more
	p.send(&wire.CancelRequest{RequestID: &second})
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if end := p.ended(fourth); end.Status != wire.StatusSuccess {
		t.Errorf("the fourth: %s", end.Status)
	}
	if begun, end := p.began(third), p.ended(first); begun.Seq < end.Seq {
		t.Errorf("the third began at %d, before the first ended at %d", begun.Seq, end.Seq)
	}
	if has(p, func(m *wire.TurnStarted) bool { return m.RequestID == second }) {
		t.Error("the cancelled one began")
	}
	n := 0
	for _, m := range p.all() {
		if e, ok := m.(*wire.Error); ok && e.RequestID == second {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the cancelled one was answered %d times", n)
	}
}

// A fault of ours, or of a library, ends the one request that ran into it, and is told to whoever waits for it: a
// compaction's used to be swallowed. The daemon and the session go on.
func TestFaultEndsOneRequest(t *testing.T) {
	r := newRig(t, say("hello", strings.Repeat("a long answer ", 2000)))
	r.faulty.Store(true)
	p := r.dial(withoutShell)
	for range 6 {
		p.ended(p.ask("hello"))
	}
	r.spy.Store(&spy{fault: "index out of range"})
	id := requestID()
	p.send(&wire.CompactRequest{RequestID: id, Op: "run"})
	if e := p.refused(id); e.Code != wire.CodeInternal || e.Message != "internal fault: index out of range" {
		t.Errorf("compaction: %s: %s", e.Code, e.Message)
	}
	if end := p.ended(p.ask("hello")); end.Status != wire.StatusError {
		t.Errorf("turn: %s", end.Status)
	}
	r.spy.Store(nil)
	if end := p.ended(p.ask("hello")); end.Status != wire.StatusSuccess {
		t.Errorf("afterwards: %s", end.Status)
	}
}
