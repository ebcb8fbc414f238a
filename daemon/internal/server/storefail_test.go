package server_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sublet/daemon/internal/provider/scripted"
	"sublet/daemon/internal/store"
	"sublet/wire"
)

// breakStore makes the store fail as one whose file was deleted, until the returned function puts the file back.
func (r *rig) breakStore() (mend func()) {
	r.t.Helper()
	r.faulty.Store(true)
	path := filepath.Join(r.dir, "sublet.db")
	if err := os.Rename(path, path+".away"); err != nil {
		r.t.Fatal(err)
	}
	return func() {
		r.t.Helper()
		_ = os.Remove(path) // a connection to the store may have made a new one meanwhile
		if err := os.Rename(path+".away", path); err != nil {
			r.t.Fatal(err)
		}
	}
}

// failedUnstored waits for the end of a request whose turn the store did not take, and returns it.
func (p *peer) failedUnstored(id wire.RequestID) *wire.AgentComplete {
	p.t.Helper()
	end := p.ended(id)
	if end.Status != wire.StatusError || end.Seq != 0 || end.TurnID == "" {
		p.t.Errorf("got status %s, seq %d, turn %q, want an unstored end with status error", end.Status, end.Seq, end.TurnID)
	}
	failures := 0
	for _, m := range p.all() {
		if e, ok := m.(*wire.Error); ok && e.RequestID == id {
			failures++
			if e.TurnID != end.TurnID || e.Seq != 0 || !strings.Contains(e.Message, "cannot be written") || e.Hint == "" {
				p.t.Errorf("got %+v, want an unstored error in words, of turn %s", e, end.TurnID)
			}
		}
	}
	if failures != 1 {
		p.t.Errorf("got %d errors, want 1\n%s", failures, p.story())
	}
	return end
}

// A turn that cannot be stored ends with an error in words and one AgentComplete, for every client of the session, whether
// the store fails before the turn begins or while it runs. Clients used to get the Error only, and waited for ever.
func TestStoreFails(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	r := newRig(t, say("hello", "hi"), scripted.Script{Match: "wait", Steps: []scripted.Step{{WaitFile: gate, Text: "waited"}}})
	p := r.dial(withoutShell)
	p.ended(p.ask("hello"))
	other := r.dial(withoutShell, inSession(p.session, 0))

	mend := r.breakStore()
	before := p.ask("hello")
	p.failedUnstored(before)
	other.failedUnstored(before)
	mend()
	if end := p.ended(p.ask("hello")); end.Status != wire.StatusSuccess {
		t.Errorf("mended: got %s", end.Status)
	}

	during := p.ask("wait")
	p.began(during)
	mend = r.breakStore()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	lost := p.failedUnstored(during)
	other.failedUnstored(during)
	if has(p, func(m *wire.AgentStreamChunk) bool { return m.Chunk.Text == "waited" }) {
		t.Error("shown before it was stored")
	}

	// A client that attaches finds no turn that seems to run, whether the store can be written by then or not.
	r.dial(withoutShell, inSession(p.session, 0)).failedUnstored(during)
	mend()
	late := r.dial(withoutShell, inSession(p.session, 0))
	if end := late.ended(during); end.TurnID != lost.TurnID || end.Status != wire.StatusError || end.Seq == 0 {
		t.Errorf("stored later: got %+v", end)
	}
	if end := late.ended(late.ask("hello")); end.Status != wire.StatusSuccess {
		t.Errorf("afterwards: got %s", end.Status)
	}
	checkNumbers(t, late, 0)
	numbered := &peer{received: slices.DeleteFunc(other.all(), func(m wire.Message) bool {
		e, ok := m.(wire.EventMessage)
		return ok && e.Meta().Seq == 0
	})}
	checkNumbers(t, numbered, 0)
}

// On a full disk each command of the user's would be followed by the same error. Only the first of a row is.
func TestStoreFailsForTheUsersCommands(t *testing.T) {
	r := newRig(t)
	p := r.dial()
	run := func(command wire.OSString) { p.send(&wire.CommandResult{Command: command, ExecutionID: "mine"}) }
	stored := func(command wire.OSString) {
		t.Helper()
		run(command)
		await(p, func(m *wire.CommandResult) bool { return m.Command == command })
	}
	stored("make")
	for round := 1; round <= 2; round++ {
		mend := r.breakStore()
		run("df")
		run("rm old")
		p.send(&wire.Heartbeat{Nonce: uint64(round)}) // messages are taken in order
		await(p, func(m *wire.Heartbeat) bool { return m.Reply && m.Nonce == uint64(round) })
		mend()
		stored(wire.OSString(fmt.Sprint("make ", round)))
		var errs []*wire.Error
		for _, m := range p.all() {
			if e, ok := m.(*wire.Error); ok {
				errs = append(errs, e)
			}
		}
		if len(errs) != round || !strings.Contains(errs[0].Message, "your commands are not in the conversation") || errs[0].Hint == "" {
			t.Errorf("round %d: got %+v", round, errs)
		}
	}
}

// A compaction that cannot be stored ends too.
func TestStoreFailsInACompaction(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	summary := scripted.Script{Match: "Summarise", Steps: []scripted.Step{{WaitFile: gate, Text: "what was done: many things"}}}
	r := newRig(t, summary, say("hello", strings.Repeat("a long answer ", 2000)))
	p := r.dial(withoutShell)
	for range 6 {
		p.ended(p.ask("hello"))
	}
	run := &wire.CompactRequest{RequestID: requestID(), Op: "run"}
	p.send(run)
	await(p, func(*wire.CompactionStarted) bool { return true })
	mend := r.breakStore()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := func(p *peer) *wire.CompactionComplete {
		t.Helper()
		return await(p, func(m *wire.CompactionComplete) bool { return m.RequestID == run.RequestID })
	}
	for _, c := range []*peer{p, r.dial(withoutShell, inSession(p.session, 0))} {
		if end := ended(c); end.Status != wire.StatusError || end.Seq != 0 {
			t.Errorf("broken: got %s, seq %d", end.Status, end.Seq)
		}
	}
	mend()
	if end := ended(r.dial(withoutShell, inSession(p.session, 0))); end.Status != wire.StatusError || end.Seq == 0 {
		t.Errorf("mended: got %s, seq %d", end.Status, end.Seq)
	}

	mend = r.breakStore()
	defer mend()
	for _, op := range []string{"run", "undo"} {
		id := requestID()
		p.send(&wire.CompactRequest{RequestID: id, Op: op})
		end := await(p, func(m *wire.CompactionComplete) bool { return m.RequestID == id })
		if end.Status != wire.StatusError || end.Seq != 0 || !strings.Contains(end.Summary, "removed") {
			t.Errorf("%s: got %s, seq %d, %q", op, end.Status, end.Seq, end.Summary)
		}
	}
}

// An audit log that somebody removes is told to every client at the next decision and goes on in a new file; where it cannot
// be written nothing is allowed.
func TestAuditLogRemoved(t *testing.T) {
	r := newRig(t, bash("list", "ls"))
	r.faulty.Store(true)
	p, other := r.dial(), r.dial(withoutShell)
	p.ended(p.ask("list"))
	path := filepath.Join(r.dir, "audit.log")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p.ended(p.ask("list"))
	for _, c := range []*peer{p, other} {
		n := await(c, func(*wire.Notice) bool { return true })
		if n.Level != "error" || !strings.Contains(n.Text, path+" was removed after entry 2") || n.Hint == "" {
			t.Errorf("got %+v", n)
		}
	}
	if rep, err := store.VerifyAudit(path); err != nil || rep.Last != 5 || len(rep.Faults) == 0 {
		t.Errorf("got %+v, %v; want entries 3 to 5 and a fault", rep, err)
	}
	ran := len(p.shell.ran())
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	end := p.ended(p.ask("list"))
	if len(p.shell.ran()) != ran || len(end.Refused) != 1 || !strings.Contains(end.Refused[0].Reason, "could not be recorded") {
		t.Errorf("ran %q, refused %+v", p.shell.ran(), end.Refused)
	}
}
