package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
)

// The main flow of S1: request, lease, execute, complete, release, answer; every event has its number, and is in the
// store when it arrives (D1, E1, E16, F1, G13, T3).
func TestTurn(t *testing.T) {
	r := newRig(t, bash("list", "ls", "cd /w/sub", "pwd"))
	p := r.dial()
	id := p.ask("list")
	end := p.ended(id)
	if end.Status != wire.StatusSuccess || end.Summary != "done with list" {
		t.Errorf("end: got %s %q\n%s", end.Status, end.Summary, p.story())
	}
	if got, want := p.shell.ran(), []string{"ls", "cd /w/sub", "pwd"}; !slices.Equal(got, want) {
		t.Errorf("commands: got %q, want %q", got, want)
	}
	checkNumbers(t, p, 0)
	stored, more, err := r.store.Events(context.Background(), p.session, 0, 1000)
	if err != nil || more {
		t.Fatal(err, more)
	}
	if got, want := len(stored), int(end.Seq); got != want {
		t.Errorf("stored: got %d events, want %d", got, want)
	}
	var results []string
	for _, m := range p.all() {
		if res, ok := m.(*wire.CommandResult); ok {
			results = append(results, string(res.Command)+" in "+string(res.Cwd))
		}
	}
	if got, want := strings.Join(results, ", "), "ls in /w, cd /w/sub in /w/sub, pwd in /w/sub"; got != want {
		t.Errorf("results: got %q, want %q", got, want)
	}
	if n := count[*wire.AcquireShellLease](p); n != 3 {
		t.Errorf("leases: got %d, want one for each command; none was asked for a place already left", n)
	}
	nothingLent(t, p)
}

// checkNumbers looks that stored events came once each, in order, without a gap, from after on.
func checkNumbers(t testing.TB, p *peer, after int64) {
	t.Helper()
	last := after
	for _, m := range p.all() {
		e, ok := m.(wire.EventMessage)
		if !ok || e.Meta().SessionID == "" || live(e) {
			continue
		}
		first := e.Meta().Seq
		if c, ok := m.(*wire.AgentStreamChunk); ok {
			first = c.SeqFirst
		}
		if first != last+1 {
			t.Errorf("event %s: got number %d after %d", wire.KindOf(m), first, last)
		}
		last = e.Meta().Seq
	}
}

// live reports whether an event is one that is not stored: what a tool prints, and the refusal of a request.
func live(m wire.EventMessage) bool {
	if e, ok := m.(*wire.Error); ok {
		return e.Seq == 0
	}
	c, ok := m.(*wire.AgentStreamChunk)
	return ok && (c.Chunk.Type == wire.ChunkToolOutput || c.Chunk.Type == wire.ChunkToolCallDelta)
}

// nothingLent looks that the daemon and the client agree that no lease is left.
func nothingLent(t *testing.T, p *peer) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		id := requestID()
		p.send(&wire.StatusRequest{RequestID: id})
		st := await(p, func(m *wire.StatusReply) bool { return m.RequestID == id })
		clean := p.shell == nil || p.shell.free()
		for _, l := range st.Leases {
			clean = clean && l.LeaseID == "" && len(l.Queue) == 0
		}
		if clean {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a lease is left: %+v, the client's shell free: %v", st.Leases, p.shell.free())
		}
		time.Sleep(20 * time.Millisecond) // a connection has 100 requests a second; asked without a pause, the rest of the test is refused
	}
}

// One after the other in a session, side by side in several, at most three for a connection; and a repeated id is
// refused (E22, N3).
func TestTurnsQueue(t *testing.T) {
	r := newRig(t)
	gate := filepath.Join(r.dir, "gate")
	r.play(
		scripted.Script{Match: "wait", Steps: []scripted.Step{{WaitFile: gate, Text: "waited"}}},
		say("quick", "quick answer"),
	)
	p := r.dial()
	first := p.ask("wait")
	p.began(first)
	second := p.ask("quick")
	third := p.ask("quick")
	over := p.ask("quick")
	if e := p.refused(over); e.Code != wire.CodeTooManyQueries || e.Details["limit"] != "3" {
		t.Errorf("the fourth: got %s %v, want too_many_queries with the limit", e.Code, e.Details)
	}
	p.send(&wire.AgentRequest{RequestID: second, Prompt: "quick"})
	if e := await(p, func(m *wire.Error) bool { return m.Code == wire.CodeDuplicateID }); e.RequestID != second {
		t.Errorf("duplicate: got %+v", e)
	}
	other := r.dial()
	if end := other.ended(other.ask("quick")); end.Status != wire.StatusSuccess {
		t.Errorf("another session waits for this one: %+v", end)
	}
	if has(p, func(m *wire.TurnStarted) bool { return m.RequestID == second }) {
		t.Error("the second turn began before the first ended")
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	end := p.ended(first)
	next := p.began(second)
	last := p.ended(third)
	if !(end.Seq < next.Seq && next.Seq < last.Seq) {
		t.Errorf("order: first ended at %d, second began at %d, third ended at %d", end.Seq, next.Seq, last.Seq)
	}
	checkNumbers(t, p, 0)
}

// The requests of connections that are closed stay queued, and a client that connects again and again cannot queue more of them
// in a session than its bound: they used to pile up.
func TestTurnsOfClosedConnectionsAreBounded(t *testing.T) {
	r := newRig(t, scripted.Script{Match: "wait", Steps: []scripted.Step{{WaitFile: "/nonexistent/gate"}}})
	watcher := r.dial()
	var last wire.RequestID
	var p *peer
	for range 34 { // three a connection
		if p != nil {
			p.close()
		}
		p = r.dial(script, inSession(watcher.session, -1))
		p.ask("wait")
		p.ask("wait")
		last = p.ask("wait")
		p.reached()
	}
	e := p.refused(last)
	if e.Code != wire.CodeTooManyQueries || e.Details["limit"] != "100" || !strings.Contains(e.Message, "in this session") {
		t.Errorf("got %s %v: %s", e.Code, e.Details, e.Message)
	}
	id := requestID()
	watcher.send(&wire.StatusRequest{RequestID: id})
	if st := await(watcher, func(m *wire.StatusReply) bool { return m.RequestID == id }); st.Turns != 100 {
		t.Errorf("%d turns run and wait, want 100", st.Turns)
	}
}

// A queued request that is cancelled never begins: one Error answers it. A running one ends with AgentComplete (E14).
func TestCancel(t *testing.T) {
	r := newRig(t, scripted.Script{Match: "wait", Steps: []scripted.Step{{WaitFile: "/nonexistent/gate"}}})
	p := r.dial()
	first, second := p.ask("wait"), wire.RequestID("")
	begun := p.began(first)
	second = p.ask("wait")
	none := wire.TurnID("")
	for i, both := range []*wire.CancelRequest{{TurnID: &begun.TurnID, RequestID: &first}, {}, {TurnID: &none}} {
		p.send(both)
		n := 0
		e := await(p, func(*wire.Error) bool { n++; return n == i+1 })
		if e.Code != wire.CodeInvalidMessage || e.RequestID != "" || !strings.Contains(e.Message, "one of turn_id and request_id") {
			t.Errorf("with both ids, or none: got %s %q for request %q", e.Code, e.Message, e.RequestID)
		}
	}
	p.send(&wire.CancelRequest{TurnID: (*wire.TurnID)(&p.session)}) // no such turn: nothing is answered
	p.send(&wire.CancelRequest{RequestID: &second, Reason: "changed my mind"})
	p.send(&wire.CancelRequest{TurnID: &begun.TurnID})
	if end := p.ended(first); end.Status != wire.StatusCancelled || end.StopReason != "cancelled" {
		t.Errorf("running: got %s %s", end.Status, end.StopReason)
	}
	if e := p.refused(second); e.Code != wire.CodeCancelled {
		t.Errorf("queued: got %s", e.Code)
	}
	// A cancel that crosses with the end is harmless.
	p.send(&wire.CancelRequest{RequestID: &first})
	p.send(&wire.CancelRequest{TurnID: &begun.TurnID})
	unknown := wire.RequestID("never")
	p.send(&wire.CancelRequest{RequestID: &unknown})
	if e := p.refused(unknown); e.Code != wire.CodeInvalidMessage {
		t.Errorf("unknown: got %s", e.Code)
	}
	if has(p, func(m *wire.TurnStarted) bool { return m.RequestID == second }) {
		t.Error("a cancelled request began")
	}
	if n := count[*wire.Error](p); n != 6 { // three without a single id, the two turns' ends, the unknown request
		t.Errorf("%d errors\n%s", n, p.story())
	}
}

// options.timeout_ms bounds a turn (L9, C10).
func TestTurnTimeout(t *testing.T) {
	r := newRig(t, scripted.Script{Match: "wait", Steps: []scripted.Step{{WaitFile: "/nonexistent/gate"}}})
	p := r.dial()
	id := p.ask("wait", func(r *wire.AgentRequest) { r.Options.TimeoutMS = 50 })
	end := p.ended(id)
	if end.Status != wire.StatusTimeout {
		t.Errorf("got %s, want timeout", end.Status)
	}
	if e := p.refused(id); e.Code != wire.CodeTimeout || e.Seq != end.Seq-1 {
		t.Errorf("the stored Error before it: got %s at %d of %d", e.Code, e.Seq, end.Seq)
	}
}

// A turn outlives the window that began it, and whoever comes back gets exactly what was missed.
func TestTurnOutlivesItsWindow(t *testing.T) {
	r := newRig(t)
	gate := filepath.Join(r.dir, "gate")
	r.play(scripted.Script{Match: "wait", Steps: []scripted.Step{{WaitFile: gate, Text: "the answer"}}})
	p := r.dial()
	id := p.ask("wait")
	begun := p.began(id)
	p.close()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	q := r.dial(inSession(p.session, begun.Seq))
	if end := q.ended(id); end.Status != wire.StatusSuccess || end.Summary != "the answer" {
		t.Errorf("got %s %q", end.Status, end.Summary)
	}
	checkNumbers(t, q, begun.Seq)
}

// Whatever the moment at which a client joins, and whatever it has seen, it gets each event once (C6, C7).
func TestResumeAtAnyMoment(t *testing.T) {
	text := strings.Repeat("word ", 60)
	r := newRig(t, scripted.Script{Match: "talk", Steps: []scripted.Step{{Text: text, ChunkBytes: 5, ChunkMS: 1}}})
	p := r.dial(withoutShell)
	id := p.ask("talk")
	await(p, func(m *wire.AgentStreamChunk) bool { return m.Seq > 8 })
	var others []*peer
	var froms []int64
	for i := range 20 {
		from := int64(i * 2 % 7)
		others, froms = append(others, r.dial(withoutShell, inSession(p.session, from))), append(froms, from)
	}
	end := p.ended(id)
	for i, q := range others {
		if got := q.ended(id); got.Seq != end.Seq {
			t.Errorf("client %d: end at %d, want %d", i, got.Seq, end.Seq)
		}
		checkNumbers(t, q, froms[i])
	}
	none := r.dial(withoutShell, inSession(p.session, -1))
	id = none.ask("talk")
	none.ended(id)
	checkNumbers(t, none, end.Seq)
}

// Requests that make no sense are answered, not dropped.
func TestRefusals(t *testing.T) {
	r := newRig(t)
	p := r.dial()
	nowhere := wire.SessionID("no-such-session")
	for i, c := range []struct {
		m    wire.Message
		code string
	}{
		{&wire.AgentRequest{RequestID: "a", Agent: "nobody"}, wire.CodeNotFoundAgent},
		{&wire.AgentRequest{RequestID: "b", SessionID: &nowhere}, wire.CodeNotFoundSession},
		{&wire.AgentRequest{RequestID: "c", Options: wire.RequestOptions{Mode: "yolo"}}, wire.CodeInvalidMessage},
		{&wire.AgentRequest{RequestID: ""}, wire.CodeInvalidMessage},
		{&wire.ToolRequest{RequestID: "d", Tool: "nothing", Arguments: "{}"}, wire.CodeToolNotAvailable},
		{&wire.UndoRequest{RequestID: "e", What: "everything"}, wire.CodeInvalidMessage},
		{&wire.CompactRequest{RequestID: "f", Op: "squeeze"}, wire.CodeInvalidMessage},
		{&wire.SessionRequest{RequestID: "g", Op: "juggle"}, wire.CodeInvalidMessage},
		{&wire.PolicyRequest{RequestID: "h", Op: "set_mode", Mode: "yolo"}, wire.CodeInvalidMessage},
		{&wire.LeaseRevokeRequest{RequestID: "i", LeaseID: "none"}, wire.CodeLeaseStale},
		{&wire.LeaseRevokeRequest{RequestID: "m", ClientPID: 3}, wire.CodeLeaseDenied},
		{&wire.LeaseRevokeRequest{RequestID: "n"}, wire.CodeInvalidMessage},
		{&wire.LeaseRunRequest{RequestID: "o", Command: "ls\x00"}, wire.CodeInvalidMessage},
		{&wire.LeaseRunRequest{RequestID: "p", Command: "ls", Cwd: "sub"}, wire.CodeInvalidMessage},
		{&wire.LeaseRunRequest{RequestID: "q", Command: "ls", WaitMS: -1}, wire.CodeInvalidMessage},
		{&wire.LeaseRunRequest{RequestID: "r", Command: "ls", TimeoutMS: -1}, wire.CodeInvalidMessage},
		{&wire.LeaseRunRequest{RequestID: "j", ClientPID: 3, Command: "ls"}, wire.CodeLeaseDenied},
		{&wire.LeaseRunRequest{RequestID: "k", Command: ""}, wire.CodeInvalidMessage},
		{&wire.ConfirmationResponse{ConfirmationID: "none", Decision: "allow"}, wire.CodeInvalidMessage},
		{&wire.Ready{}, wire.CodeInvalidMessage},
		{&wire.AcquireShellLease{LeaseRef: wire.LeaseRef{RequestID: "l"}}, wire.CodeInvalidMessage},
	} {
		before := count[*wire.Error](p)
		p.send(c.m)
		n := 0
		e := await(p, func(*wire.Error) bool { n++; return n > before })
		if e.Code != c.code || e.Message == "" {
			t.Errorf("%d %s: got %s %q, want %s", i, wire.KindOf(c.m), e.Code, e.Message, c.code)
		}
	}
}

// A tool for a person: a turn without a model (ToolRequest); undo of a file; both under the same policy.
func TestToolAndUndo(t *testing.T) {
	r := newRig(t)
	p := r.dial()
	file := filepath.Join(r.dir, "note.txt")
	for _, path := range []string{filepath.Join(r.dir, "before.txt"), file} {
		id := requestID()
		p.send(&wire.ToolRequest{RequestID: id, Tool: "write", Arguments: fmt.Sprintf(`{"path":%q,"content":"hello\n"}`, path), Cwd: wire.OSString(r.dir)})
		if end := p.ended(id); end.Status != wire.StatusSuccess {
			t.Fatalf("write: got %s %q\n%s", end.Status, end.Summary, p.story())
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "hello\n" {
		t.Errorf("file: got %q, %v", got, err)
	}
	var id wire.RequestID
	for _, left := range []string{"can be undone: 1", "before.txt, which was not there before"} {
		id = requestID()
		p.send(&wire.UndoRequest{RequestID: id, What: "file"})
		if end := p.ended(id); end.Status != wire.StatusSuccess || !strings.HasSuffix(end.Summary, left) {
			t.Errorf("undo: got %s %q, want %q at the end", end.Status, end.Summary, left)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is still there after undo")
	}
	id = requestID()
	p.send(&wire.UndoRequest{RequestID: id, What: "file"})
	if end := p.ended(id); end.Status != wire.StatusError {
		t.Errorf("nothing to undo: got %s", end.Status)
	}
	id = requestID()
	p.send(&wire.ToolRequest{RequestID: id, Tool: "bash", Arguments: `{"command":"ls"}`})
	if end := p.ended(id); end.Status != wire.StatusSuccess || !slices.Equal(p.shell.ran(), []string{"ls"}) {
		t.Errorf("bash: got %s, ran %q", end.Status, p.shell.ran())
	}
}

func canRestore(env *wire.EnvSnapshot) { env.Capabilities = append(env.Capabilities, wire.CapRestore) }

// Any client of a session may have the shell's state put back: the client that lends the shell does it, under a lease of
// its own, so after whatever the user runs. One that does not know how is not asked.
func TestUndoShell(t *testing.T) {
	r := newRig(t, bash("go there", "cd /there"))
	p := r.dial(canRestore)
	second := r.dial(withoutShell, inSession(p.session, 0))
	p.ended(p.ask("go there"))

	p.shell.userRuns()
	id := requestID()
	second.send(&wire.UndoRequest{RequestID: id, What: "shell"})
	await(p, func(m *wire.AcquireShellLease) bool { return m.Agent == "you" && m.Purpose != "" })
	p.shell.userDone()
	if end := second.ended(id); end.Status != wire.StatusSuccess || end.Summary != "put back in the shell: moved to /w" {
		t.Errorf("undo: %s %q\n%s", end.Status, end.Summary, second.story())
	}
	if has(p, func(m *wire.ExecuteLeasedCommand) bool { return m.Command != "cd /there" }) {
		t.Error("beside being put back, it was given a command")
	}
	// The window itself is told, as of everything that happens in its session.
	res := await(p, func(m *wire.CommandResult) bool { return m.Tool == "undo" && strings.Contains(string(m.Output), "/w") })
	if lent := await(p, func(*wire.RestoreShellState) bool { return true }); lent.ExecutionID != res.ExecutionID {
		t.Errorf("the result is of execution %s, the lease's message of %s", res.ExecutionID, lent.ExecutionID)
	}
	nothingLent(t, p)

	id = requestID()
	second.send(&wire.UndoRequest{RequestID: id, What: "shell"})
	if end := second.ended(id); end.Status != wire.StatusError {
		t.Errorf("nothing to undo: %s", end.Status)
	}
	if e := second.refused(id); e.Code != wire.CodeToolFailed || !strings.Contains(e.Message, "nothing to put back in the shell") ||
		has(second, func(m *wire.CommandResult) bool { return m.RequestID == id }) {
		t.Errorf("nothing to undo: %s %q", e.Code, e.Message)
	}

	older := r.dial()
	id = requestID()
	older.send(&wire.UndoRequest{RequestID: id, What: "shell"})
	if e := older.refused(id); !strings.Contains(e.Message, "older") {
		t.Errorf("an older client: %s %q", e.Code, e.Message)
	}
	if has(older, func(*wire.RestoreShellState) bool { return true }) {
		t.Error("a client was asked for what it does not know")
	}
}

// What commands changed in a session's private shell is put back one by one, or all at once.
func TestUndoPrivateShell(t *testing.T) {
	r := newRig(t, bash("one", "export ONE=1; cd /"), bash("two", "export TWO=2"), bash("three", "f() { :; }"))
	p := r.dial(withoutShell, func(env *wire.EnvSnapshot) { env.Cwd = wire.OSString(r.dir) })
	for _, prompt := range []string{"one", "two", "three"} {
		if end := p.ended(p.ask(prompt)); end.Status != wire.StatusSuccess {
			t.Fatalf("%s: %s\n%s", prompt, end.Status, p.story())
		}
	}
	undo := func(all bool, want string) {
		t.Helper()
		id := requestID()
		p.send(&wire.UndoRequest{RequestID: id, What: "shell", All: all})
		if end := p.ended(id); end.Summary != want {
			t.Errorf("got %s %q, want %q", end.Status, end.Summary, want)
		}
	}
	undo(false, "put back in the shell: removed function f")
	undo(true, "put back in the shell: moved to "+r.dir+", unset ONE, TWO")
	undo(true, "undo: nothing to put back in the shell")
}

// The settings' limits are those in force now.
func TestRate(t *testing.T) {
	r := newRig(t)
	r.set(func(c *config.Config) { c.Limits.RequestsPerSecond = 5 })
	p := r.dial()
	for range 12 {
		p.send(&wire.StatusRequest{RequestID: requestID()})
	}
	// Only requests count: what answers the daemon never does.
	for range 50 {
		p.send(&wire.ShellState{Digest: "d", Cwd: "/w"})
		p.send(&wire.Heartbeat{Nonce: 1, Reply: true})
	}
	e := await(p, func(m *wire.Error) bool { return true })
	if e.Code != wire.CodeRateLimited || e.Details["requests_per_second"] != "5" || e.RequestID == "" {
		t.Errorf("got %s %v %q", e.Code, e.Details, e.RequestID)
	}
	deadline := time.Now().Add(patience)
	for count[*wire.StatusReply](p)+count[*wire.Error](p) < 12 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if got := count[*wire.StatusReply](p); got < 5 || got > 8 {
		t.Errorf("answered: got %d of 12 at once, want 5 and what a moment adds", got)
	}
}

// require_approval asks also for what the mode would let run (E3, H12).
func TestRequireApproval(t *testing.T) {
	r := newRig(t, bash("list", "ls"))
	p := r.dial()
	yes := true
	id := p.ask("list", func(r *wire.AgentRequest) { r.Options.RequireApproval = &yes })
	p.answer(question(p, anyQuestion), "deny")
	p.ended(id)
	if got := p.shell.ran(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
}

// A question is asked once: a client that is slow to say what its shell looks like is waited for.
func TestAskedOnceAfterConnecting(t *testing.T) {
	r := newRig(t, bash("clean", "rm -rf build"))
	asking(r)
	p := r.connect()
	p.shell = newFakeShell(p)
	p.send(hello())
	id := p.ask("clean")
	p.began(id)
	p.shell.announce()
	p.answer(question(p, anyQuestion), "allow")
	p.ended(id)
	if n := count[*wire.ConfirmationRequest](p); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
