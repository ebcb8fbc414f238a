package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
	"sublet/wire/socket"
	"sublet/wire/wiretest"
)

// Nothing is served before the handshake, and versions are negotiated (B1 to B3).
func TestHandshake(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	p.send(&wire.StatusRequest{RequestID: "early"})
	if e := p.refused("early"); e.Code != wire.CodeInvalidMessage || !strings.Contains(e.Hint, "EnvSnapshot") {
		t.Errorf("early: got %s %q", e.Code, e.Hint)
	}
	nowhere := wire.SessionID("no-such-session")
	p.send(hello(func(e *wire.EnvSnapshot) { e.SessionID = &nowhere }))
	await(p, func(m *wire.Error) bool { return m.Code == wire.CodeNotFoundSession })
	p.send(hello(func(e *wire.EnvSnapshot) { e.ProtocolMax = wire.Version + 5 })) // may be tried again
	ready := await(p, func(*wire.Ready) bool { return true })
	if ready.Protocol != wire.Version || ready.Daemon.PID == 0 || ready.Session.ID == "" || ready.Session.Stored || ready.Limits[wire.LimitFrame] != wire.MaxFrame {
		t.Errorf("ready: %+v", ready)
	}
	for _, c := range []struct {
		low, high int
		hint      string
	}{{2, 3, "`kill "}, {0, 0, "older"}} {
		q := r.connect()
		q.send(hello(func(e *wire.EnvSnapshot) { e.ProtocolMin, e.ProtocolMax = c.low, c.high }))
		e := await(q, func(*wire.Error) bool { return true })
		if e.Code != wire.CodeVersion || !strings.Contains(e.Hint, c.hint) || e.Details["protocol_max"] != "1" {
			t.Errorf("versions %d to %d: got %s %q %v", c.low, c.high, e.Code, e.Hint, e.Details)
		}
		if err := q.over(); !errors.Is(err, io.EOF) {
			t.Errorf("connection ended with %v", err)
		}
	}
}

// An announced length over the limit, which is smaller before the handshake, is answered and ends the connection (N9).
func TestOversizeHandshake(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	p.send(hello(func(e *wire.EnvSnapshot) { e.Env["BIG"] = wire.OSString(strings.Repeat("x", wire.MaxHandshakeFrame)) }))
	e := await(p, func(*wire.Error) bool { return true })
	if e.Code != wire.CodeTooLarge || e.Details["limit"] == "" {
		t.Errorf("got %s %v", e.Code, e.Details)
	}
	p.over()
}

// What cannot be read is answered and the connection goes on (C11, C12).
func TestUnreadableMessages(t *testing.T) {
	r := newRig(t)
	client, daemon := wiretest.Pipe()
	r.conns.Go(func() { r.server.ServeConn(r.ctx, daemon, 0) })
	frame, err := wire.AppendFrame(nil, hello(script))
	if err != nil {
		t.Fatal(err)
	}
	frame = append(frame, 0, 0, 0, 7, 0x92, 0xa4, 'N', 'o', 'p', 'e', 0x80)
	frame = append(frame, 0, 0, 0, 3, 0xc1, 0xc1, 0xc1)
	if _, err := client.Write(frame); err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, rig: r, conn: wire.NewConn(client), changed: make(chan struct{})}
	p.done.Go(p.read)
	defer p.close()
	e := await(p, func(m *wire.Error) bool { return m.Code == wire.CodeUnknownKind })
	if e.Details["kind"] != "Nope" {
		t.Errorf("details: %v", e.Details)
	}
	await(p, func(m *wire.Error) bool { return m.Code == wire.CodeInvalidMessage })
	p.send(&wire.StatusRequest{RequestID: "still"})
	await(p, func(m *wire.StatusReply) bool { return m.RequestID == "still" })
}

// Status and lease-free calls leave no empty sessions behind; the first event stores one.
func TestNoEmptySessions(t *testing.T) {
	r := newRig(t, say("hello", "hi"))
	p := r.dial()
	nothingLent(t, p)
	if list := p.sessions(&wire.SessionRequest{Op: "list"}).Sessions; len(list) != 0 {
		t.Errorf("stored: %+v", list)
	}
	p.ended(p.ask("hello"))
	if list := p.sessions(&wire.SessionRequest{Op: "list"}).Sessions; len(list) != 1 || list[0].ID != p.session || list[0].Title != "hello" {
		t.Errorf("stored: %+v", list)
	}
}

func (p *peer) sessions(r *wire.SessionRequest) *wire.SessionReply {
	p.t.Helper()
	r.RequestID = requestID()
	p.send(r)
	return await(p, func(m *wire.SessionReply) bool { return m.RequestID == r.RequestID })
}

// Heartbeats flow only while something runs; then a minute of silence ends the connection. An idle one is left asleep (C1).
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := filepath.Join(t.TempDir(), "gate")
		r := newRig(t, scripted.Script{Match: "wait", Steps: []scripted.Step{{WaitFile: gate}}})
		p := r.dial(withoutShell)
		time.Sleep(10 * time.Minute)
		if n := count[*wire.Heartbeat](p); n != 0 {
			t.Errorf("idle: %d heartbeats", n)
		}
		id := p.ask("wait")
		p.began(id)
		time.Sleep(5*wire.HeartbeatEvery + time.Second)
		if n := count[*wire.Heartbeat](p); n != 5 {
			t.Errorf("busy: got %d heartbeats in 76 s, want 5", n)
		}
		// A peer that reads and says nothing is dead after a minute.
		q := r.connect()
		q.mute = true
		q.send(hello(inSession(p.session, 0), withoutShell))
		begin := time.Now()
		q.over()
		if silence := time.Since(begin); silence < wire.DeadAfter || silence > wire.DeadAfter+wire.HeartbeatEvery+5*time.Second {
			t.Errorf("dead after %v", silence)
		}
		p.send(&wire.CancelRequest{RequestID: &id})
		p.ended(id)
		r.close()
		p.close()
		q.close()
	})
}

// heldReads is a daemon's end of a connection that reads nothing while it is held, as that of a process that was stopped.
type heldReads struct {
	io.ReadWriteCloser
	held atomic.Pointer[chan struct{}] // closed to go on; nil: it is not held
}

func (h *heldReads) Read(p []byte) (int, error) {
	n, err := h.ReadWriteCloser.Read(p)
	if held := h.held.Load(); held != nil {
		<-*held
	}
	return n, err
}

// A daemon that was stopped for longer than a client may be silent reads what the client sent meanwhile before it judges:
// the result of a command that ended then was lost.
func TestStoppedDaemonReadsBeforeItJudges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, bash("hang", "block"))
		held := &heldReads{}
		p := r.connectOver(func(daemon io.ReadWriteCloser) io.ReadWriteCloser {
			held.ReadWriteCloser = daemon
			return held
		})
		p.shell = newFakeShell(p)
		p.send(hello())
		p.session = await(p, func(*wire.Ready) bool { return true }).Session.ID
		p.shell.announce()
		other := r.dial(withoutShell, inSession(p.session, 0))
		id := p.ask("hang")
		executing(p, "block")
		synctest.Wait()
		goOn := make(chan struct{})
		held.held.Store(&goOn)
		time.Sleep(30 * time.Second)
		p.shell.finish()
		time.Sleep(wire.DeadAfter - 30*time.Second + time.Second) // its clock has run out before its reader runs
		p.close()                                                 // the client has given it up as well
		close(goOn)
		if end := other.ended(id); end.Status != wire.StatusSuccess {
			t.Errorf("end: %s", end.Status)
		}
		if res := await(other, func(*wire.CommandResult) bool { return true }); res.Status != wire.StatusSuccess {
			t.Errorf("result: %s %q", res.Status, res.Output)
		}
		r.close()
		other.close()
	})
}

// A question waits a week, also for a closed window, then it is a no.
func TestQuestionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, bash("clean", "rm -rf build"))
		asking(r)
		p := r.dial()
		id := p.ask("clean")
		q := question(p, anyQuestion)
		p.close()
		time.Sleep(7*24*time.Hour - time.Minute)
		back := r.dial(inSession(p.session, 0), asPID(p.pid))
		if has(back, func(*wire.ConfirmationResolved) bool { return true }) {
			t.Error("it ran out too early")
		}
		time.Sleep(time.Minute)
		if got := back.resolved(q); got.Decision != "deny" || got.By != "expiry" {
			t.Errorf("got %s by %s", got.Decision, got.By)
		}
		if end := back.ended(id); end.Status != wire.StatusSuccess || len(end.Refused) != 1 {
			t.Errorf("end: %+v", end)
		}
		r.close()
		back.close()
	})
}

// A window that is gone for good frees whoever waits for its shell (design section 6: 60 s).
func TestNoShellAfterGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, bash("hang", "block", "ls"))
		p := r.dial()
		p.ask("hang")
		executing(p, "block")
		p.close()
		time.Sleep(wire.LeaseGrace - time.Second)
		late := r.dial(withoutShell, inSession(p.session, 0))
		if has(late, func(*wire.CommandResult) bool { return true }) {
			t.Error("the command was given up before its grace")
		}
		time.Sleep(2 * time.Second)
		res := await(late, func(*wire.CommandResult) bool { return true })
		if res.Status != wire.StatusCancelled || !strings.Contains(string(res.Output), "window was lost") {
			t.Errorf("result: %s %q", res.Status, res.Output)
		}
		second := await(late, func(m *wire.CommandResult) bool { return m.Seq > res.Seq })
		if !strings.Contains(string(second.Output), "no shell to borrow") {
			t.Errorf("the next one: %q", second.Output)
		}
		r.close()
		late.close()
	})
}

// A daemon that died leaves open turns; the next one ends them, with their questions.
func TestEndsTurnsOfADeadDaemon(t *testing.T) {
	r := newRig(t, bash("clean", "rm -rf build"))
	asking(r)
	p := r.dial()
	id := p.ask("clean")
	q := question(p, anyQuestion)
	// What is in the store now is what a kill -9 leaves.
	events, _, err := r.store.Events(context.Background(), p.session, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	info, err := r.store.Session(context.Background(), p.session)
	if err != nil {
		t.Fatal(err)
	}
	r.close()
	p.close()
	r.dir = t.TempDir()
	r.start()
	info.Stored = false
	if err := r.store.Append(context.Background(), &info, events...); err != nil {
		t.Fatal(err)
	}
	r.close()
	r.start()
	late := r.dial(inSession(p.session, 0))
	if got := late.resolved(q); got.Decision != "deny" {
		t.Errorf("question: %+v", got)
	}
	end := late.ended(id)
	if end.Status != wire.StatusError || end.Summary != "daemon restarted" {
		t.Errorf("end: %s %q", end.Status, end.Summary)
	}
	if e := late.refused(id); e.Message != "daemon restarted" || e.Seq != end.Seq-1 {
		t.Errorf("error: %q at %d of %d", e.Message, e.Seq, end.Seq)
	}
	checkNumbers(t, late, 0)
	if end := late.ended(late.ask("anything else")); end.Status != wire.StatusSuccess {
		t.Errorf("the conversation does not go on: %+v", end)
	}
}

// Stopping refuses new work and ends what runs, with proof, and everybody is told.
func TestStop(t *testing.T) {
	r := newRig(t, bash("hang", "block"))
	p := r.dial()
	id := p.ask("hang")
	executing(p, "block")
	busy := requestID()
	p.send(&wire.ShutdownRequest{RequestID: busy, IfIdle: true})
	if e := p.refused(busy); e.Code != wire.CodeShuttingDown || e.Details["turns"] != "1" {
		t.Errorf("if_idle: got %s %v", e.Code, e.Details)
	}
	stop := requestID()
	p.send(&wire.ShutdownRequest{RequestID: stop, DrainMS: 5000})
	if st := await(p, func(m *wire.StatusReply) bool { return m.RequestID == stop }); st.State != "draining" || st.Turns != 1 {
		t.Errorf("reply: %+v", st)
	}
	if drain := <-r.stops; drain != 5*time.Second {
		t.Errorf("drain: %v", drain)
	}
	over := p.ask("hang")
	if e := p.refused(over); e.Code != wire.CodeShuttingDown {
		t.Errorf("new work: %s", e.Code)
	}
	r.close()
	if end := p.ended(id); end.Status != wire.StatusError {
		t.Errorf("end: %s, but nobody cancelled it", end.Status)
	}
	if e := p.refused(id); e.Code != wire.CodeShuttingDown || e.Message != "the daemon was stopped" || e.Seq == 0 {
		t.Errorf("error: %s %q, number %d", e.Code, e.Message, e.Seq)
	}
	if !p.shell.free() {
		t.Error("the client's shell is still lent")
	}
	p.over()
}

// A stop waits for what runs, and not for what waits for a person, nor for what is queued behind that; its end says so,
// and what was shown is kept.
func TestStopDoesNotWaitForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, bash("clean", "rm -rf build"), bash("hang", "block"))
		asking(r)
		p, other := r.dial(), r.dial()
		waits := p.ask("clean")
		q := question(p, anyQuestion)
		behind := p.ask("clean")
		runs := other.ask("hang", func(a *wire.AgentRequest) { a.Options.Mode = "full" })
		executing(other, "block")
		synctest.Wait() // the one behind has arrived

		begun := time.Now()
		drained := make(chan time.Duration, 1)
		go func() { // ends with Drain
			r.hub.Refuse()
			r.hub.Drain(t.Context())
			drained <- time.Since(begun)
		}()
		time.Sleep(20 * time.Second)
		other.shell.finish()
		if end := other.ended(runs); end.Status != wire.StatusSuccess {
			t.Errorf("what ran: %s", end.Status)
		}
		if d := <-drained; d < 20*time.Second || d > 21*time.Second {
			t.Errorf("the drain took %v, want the 20s that the running turn took", d)
		}

		r.close()
		if end := p.ended(waits); end.Status != wire.StatusError || end.StopReason != wire.StatusError || end.Summary == "" {
			t.Errorf("end: %s, %s, %q", end.Status, end.StopReason, end.Summary)
		}
		if e := p.refused(waits); e.Code != wire.CodeShuttingDown || e.Message != "the daemon was stopped while this waited for an answer" || e.Hint == "" {
			t.Errorf("error: %s %q", e.Code, e.Message)
		}
		if res := p.resolved(q); res.Decision != wire.DecisionDeny || res.By != "cancel" {
			t.Errorf("question: %s by %s", res.Decision, res.By)
		}
		if e := p.refused(behind); e.Code != wire.CodeCancelled || e.Message != "the daemon was stopped before it began" || e.TurnID != "" {
			t.Errorf("the one behind: %s %q", e.Code, e.Message)
		}
		p.close()
		other.close()

		r.start()
		late := r.dial(inSession(p.session, 0))
		late.resolved(q)
		late.ended(waits)
		checkNumbers(t, late, 0)
		r.close()
		late.close()
	})
}

// crowded is a listener in a process that has no free file descriptor at first.
type crowded struct {
	net.Listener
	free bool
}

func (l *crowded) Accept() (net.Conn, error) {
	if !l.free {
		l.free = true
		return nil, &net.OpError{Op: "accept", Net: "unix", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// Serve over a real socket: the peer is the same user, closing it ends every connection, and a lack of file descriptors passes.
func TestServe(t *testing.T) {
	r := newRig(t, say("hello", "hi"))
	path := filepath.Join(t.TempDir(), "s")
	ln, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(ctx, &crowded{Listener: ln}) }()
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, rig: r, conn: wire.NewConn(nc), changed: make(chan struct{})}
	p.done.Go(p.read)
	defer p.close()
	p.send(hello(script))
	await(p, func(*wire.Ready) bool { return true })
	p.ended(p.ask("hello"))
	cancel()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	p.over()
}

// Sessions: list in pages, get, rename, resume, new, search, export, save and load, clear, delete (K1 to K3, K10, K11).
func TestSessions(t *testing.T) {
	r := newRig(t, bash("list files", "ls"), say("hello", "a rare answer"))
	p := r.dial(func(e *wire.EnvSnapshot) { e.Cwd = wire.OSString(r.dir) })
	p.ended(p.ask("hello"))
	p.ended(p.ask("list files"))
	first := p.session
	fresh := p.sessions(&wire.SessionRequest{Op: "new", Name: "second"})
	if fresh.Session.ID == first || fresh.Session.Name != "second" {
		t.Errorf("new: %+v", fresh.Session)
	}
	id := p.ask("hello")
	if end := p.ended(id); end.SessionID != fresh.Session.ID {
		t.Errorf("the turn ran in %s", end.SessionID)
	}
	page := p.sessions(&wire.SessionRequest{Op: "list", Limit: 1})
	if len(page.Sessions) != 1 || !page.More || page.Sessions[0].ID != fresh.Session.ID {
		t.Errorf("page one: %+v", page)
	}
	if rest := p.sessions(&wire.SessionRequest{Op: "list", Limit: 1, Cursor: page.Cursor}); len(rest.Sessions) != 1 || rest.More || rest.Sessions[0].ID != first {
		t.Errorf("page two: %+v", rest)
	}
	got := p.sessions(&wire.SessionRequest{Op: "rename", SessionID: &first, Name: "the first"})
	if got.Session.Name != "the first" {
		t.Errorf("rename: %+v", got.Session)
	}
	history := p.sessions(&wire.SessionRequest{Op: "get", SessionID: &first, IncludeHistory: true, Limit: 3})
	if len(history.Events) != 3 || !history.More || history.Session.Turns != 2 {
		t.Errorf("get: %d events, more %v, %+v", len(history.Events), history.More, history.Session)
	}
	if hits := p.sessions(&wire.SessionRequest{Op: "search", Query: "rare"}).Hits; len(hits) != 2 {
		t.Errorf("search: %+v", hits)
	}
	blank := &wire.SessionRequest{RequestID: "blank", Op: "search", Query: "  "}
	p.send(blank)
	if e := p.refused(blank.RequestID); e.Code != wire.CodeInvalidMessage || !strings.Contains(e.Message, "query: is empty") {
		t.Errorf("a search for nothing: got %v", e)
	}
	for format, wants := range map[string][]string{
		"json":     {`"session": {`, `"kind":"TurnStarted"`, `"prompt":"list files"`},
		"markdown": {"# the first", "## hello", "a rare answer", "$ ls\nran: ls"},
	} {
		text := p.sessions(&wire.SessionRequest{Op: "export", SessionID: &first, Format: format}).Text
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", format, want, text)
			}
		}
	}
	saved := p.sessions(&wire.SessionRequest{Op: "save", SessionID: &first, Path: "saved", IncludeHistory: true, IncludeBlocks: true})
	if saved.Size == 0 || string(saved.Path) != filepath.Join(r.dir, "saved") {
		t.Errorf("save: %d bytes in %s", saved.Size, saved.Path)
	}
	loaded := p.sessions(&wire.SessionRequest{Op: "load", Path: "saved"})
	if loaded.Session.ID == first || loaded.Session.Turns != 2 || loaded.Session.LastSeq != got.Session.LastSeq {
		t.Errorf("load: %+v of %+v", loaded.Session, got.Session)
	}
	mark := len(p.all())
	back := p.sessions(&wire.SessionRequest{Op: "resume", SessionID: &loaded.Session.ID, AfterSeq: 2})
	await(p, func(m *wire.AgentComplete) bool {
		return m.SessionID == loaded.Session.ID && m.Seq == loaded.Session.LastSeq
	})
	replayed := &peer{received: p.all()[mark:]}
	checkNumbers(t, replayed, 2)
	if back.Session.Name != "the first" {
		t.Errorf("resume: %+v", back.Session)
	}
	if cleared := p.sessions(&wire.SessionRequest{Op: "clear"}); cleared.Session.Turns != 0 || cleared.Session.LastSeq == 0 {
		t.Errorf("clear: %+v", cleared.Session)
	}
	end := p.ended(p.ask("hello"))
	if end.Seq <= loaded.Session.LastSeq {
		t.Errorf("numbers began anew after clear: %d", end.Seq)
	}
	p.sessions(&wire.SessionRequest{Op: "delete", SessionID: &first})
	gone := &wire.SessionRequest{RequestID: requestID(), Op: "get", SessionID: &first}
	p.send(gone)
	if e := p.refused(gone.RequestID); e.Code != wire.CodeNotFoundSession {
		t.Errorf("after delete: %s", e.Code)
	}
	var ids []wire.SessionID
	for _, s := range p.sessions(&wire.SessionRequest{Op: "list"}).Sessions {
		ids = append(ids, s.ID)
	}
	if slices.Contains(ids, first) || len(ids) != 2 {
		t.Errorf("left: %v", ids)
	}
}

// A command the user ran is an event of the session, and context for the next question (D4).
func TestUserCommand(t *testing.T) {
	r := newRig(t, say("why", "because"))
	p := r.dial()
	code := 2
	p.send(&wire.CommandResult{Command: "make", ExecutionID: "mine", OutputTail: []byte("token=ghp_0123456789abcdefghijklmnopqrstuvwxyz\nfailed\n"), ExitCode: &code, Cwd: "/w"})
	m := await(p, func(*wire.CommandResult) bool { return true })
	if m.Seq != 1 || m.TurnID != "" || m.ExecutionID != "mine" || m.Command != "make" || strings.Contains(string(m.OutputTail), "ghp_0") {
		t.Errorf("event: %+v", m)
	}
	p.send(&wire.CommandResult{Command: "make", ExecutionID: wire.ExecutionID(strings.Repeat("x", 129))})
	if e := await(p, func(*wire.Error) bool { return true }); e.Code != wire.CodeInvalidMessage || !strings.Contains(e.Message, "execution_id") {
		t.Errorf("an id of 129 bytes: got %s %q", e.Code, e.Message)
	}
	p.ended(p.ask("why"))
	checkNumbers(t, p, 0)
}

// A preview that fails is answered, and stored no more than one that succeeds.
func TestCompactPreviewFails(t *testing.T) {
	r := newRig(t, say("hello", "hi"))
	p := r.dial(withoutShell)
	p.ended(p.ask("hello"))
	if err := os.WriteFile(r.script, []byte("no JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := requestID()
	p.send(&wire.CompactRequest{RequestID: id, Op: "preview"})
	got := await(p, func(m *wire.CompactionComplete) bool { return m.RequestID == id })
	if got.Status != "error" || got.Summary == "" || got.Seq != 0 {
		t.Errorf("%s %q with number %d, want an error with its reason and no number", got.Status, got.Summary, got.Seq)
	}
}

// Compaction is asked for, shown, and taken back (J1 to J3).
func TestCompact(t *testing.T) {
	r := newRig(t, say("^hello$", strings.Repeat("a long answer ", 2000)), scripted.Script{Steps: []scripted.Step{{Waits: "waiting 2s", Text: "what was done: many things"}}})
	p := r.dial(withoutShell)
	for range 6 {
		p.ended(p.ask("hello"))
	}
	compact := func(op string) *wire.CompactionComplete {
		id := requestID()
		p.send(&wire.CompactRequest{RequestID: id, Op: op})
		return await(p, func(m *wire.CompactionComplete) bool { return m.RequestID == id })
	}
	if got := compact("preview"); got.Status != "preview" || got.TokensAfter >= got.TokensBefore {
		t.Errorf("preview: %s, %d to %d tokens", got.Status, got.TokensBefore, got.TokensAfter)
	}
	run := compact("run")
	if run.Status != "success" || run.TokensAfter >= run.TokensBefore || run.Summary == "" {
		t.Errorf("run: %s, %d to %d tokens", run.Status, run.TokensBefore, run.TokensAfter)
	}
	if !has(p, func(m *wire.Notice) bool { return m.Level == "info" && m.Text == "waiting 2s" }) || count[*wire.Notice](p) != 2 {
		t.Errorf("%d notices, want one for the provider's wait in each summary", count[*wire.Notice](p))
	}
	if !has(p, func(m *wire.CompactionStarted) bool { return m.RequestID == run.RequestID && m.Events > 0 }) {
		t.Error("no CompactionStarted")
	}
	if got := compact("undo"); got.Status != "undone" {
		t.Errorf("undo: %s", got.Status)
	}
	if got := compact("undo"); got.Status != "nothing" {
		t.Errorf("undo again: %s", got.Status)
	}
	if end := p.ended(p.ask("hello")); end.Status != "success" {
		t.Errorf("afterwards: %s", end.Status)
	}
}
