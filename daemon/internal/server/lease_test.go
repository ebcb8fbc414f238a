package server_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider/scripted"
	"sublet/lease"
	"sublet/wire"
)

func executing(p *peer, command string) *wire.ExecuteLeasedCommand {
	p.t.Helper()
	return await(p, func(m *wire.ExecuteLeasedCommand) bool { return string(m.Command) == command })
}

// cancel reaches the running command at once, and the turn ends with the command's end, not before.
func TestCancelReachesTheCommand(t *testing.T) {
	r := newRig(t, bash("hang", "block", "ls"), bash("list", "ls"))
	p := r.dial()
	id := p.ask("hang")
	exec := executing(p, "block")
	p.send(&wire.CancelRequest{RequestID: &id})
	c := await(p, func(*wire.CancelLeasedCommand) bool { return true })
	if c.ExecutionID != exec.ExecutionID || c.Reason != "user_abort" {
		t.Errorf("cancel: %+v", c)
	}
	if end := p.ended(id); end.Status != wire.StatusCancelled {
		t.Errorf("end: %s", end.Status)
	}
	res := await(p, func(*wire.CommandResult) bool { return true })
	if res.Status != wire.StatusCancelled {
		t.Errorf("result: %s", res.Status)
	}
	nothingLent(t, p)
	if end := p.ended(p.ask("list")); end.Status != wire.StatusSuccess {
		t.Errorf("the next turn: %s", end.Status)
	}
	if got := p.shell.ran(); !slices.Equal(got, []string{"block", "ls"}) {
		t.Errorf("ran %q", got)
	}
}

// A lender that does not report a command's end costs its bound and no more: 5 s after a cancel, the lease's term for a command
// that never started. What is stored says what happened: it was `timeout` ("ran longer than 2m0s") for each of these, 8 s after
// the cancel.
func TestLenderDoesNotAnswer(t *testing.T) {
	term := time.Duration(config.Default().Lease.Term)
	limit := time.Duration(config.Default().Shell.CommandTimeout)
	for _, c := range []struct {
		name        string
		mute, stuck bool
		cancel      bool
		after       time.Duration
		status      string
		says        string
	}{
		{"cancelled before it started", true, false, true, 5 * time.Second, wire.StatusCancelled, "had not started it"},
		{"cancelled while it ran", false, true, true, 5 * time.Second, wire.StatusCancelled, "did not report its end in time"},
		{"never started", true, false, false, term, wire.StatusError, "did not start it within 30s"},
		{"too long", false, true, false, limit + 7*time.Second, wire.StatusTimeout, "ran longer than 2m0s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, bash("hang", "make"), say("after", "well"))
			p := r.dial()
			p.shell.mute, p.shell.stuck = c.mute, c.stuck
			id := p.ask("hang")
			executing(p, "make")
			begun := time.Now()
			if c.cancel {
				p.send(&wire.CancelRequest{RequestID: &id})
			}
			time.Sleep(c.after - 1)
			synctest.Wait()
			if has(p, func(*wire.CommandResult) bool { return true }) {
				t.Errorf("%s: it ended before %v", c.name, c.after)
			}
			end := p.ended(id)
			if took := time.Since(begun); took != c.after {
				t.Errorf("%s: the turn ended after %v, want %v", c.name, took, c.after)
			}
			res := await(p, func(*wire.CommandResult) bool { return true })
			if res.Status != c.status || !strings.Contains(string(res.Output), c.says) ||
				c.status != wire.StatusTimeout && strings.Contains(string(res.Output), "ran longer") {
				t.Errorf("%s: got %s %q, want %s and %q", c.name, res.Status, res.Output, c.status, c.says)
			}
			if cancelled := end.Status == wire.StatusCancelled; cancelled != c.cancel {
				t.Errorf("%s: the turn ended %s", c.name, end.Status)
			}
			nothingLent(t, p)
			r.close()
			p.close()
		})
	}
}

// While the user has the keyboard of a borrowed command its clock stands still: the daemon cancelled it 2 s after its time, in
// the middle of a password, the rest of which then went to whoever read the terminal next.
func TestTheClockStandsStill(t *testing.T) {
	limit := time.Duration(config.Default().Shell.CommandTimeout)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, bash("install", "block"))
		p := r.dial()
		id := p.ask("install")
		exec := executing(p, "block")
		begun := time.Now()
		keyboard := func(has bool) {
			p.send(&wire.CommandStarted{LeaseRef: exec.LeaseRef, ExecutionID: exec.ExecutionID, Keyboard: has})
		}
		keyboard(true)
		time.Sleep(10 * limit)
		keyboard(false)
		time.Sleep(limit + lease.TimeoutSlack - 1)
		synctest.Wait()
		if has(p, func(*wire.CancelLeasedCommand) bool { return true }) {
			t.Error("it was cancelled before its time")
		}
		p.ended(id)
		if took, want := time.Since(begun), 11*limit+lease.TimeoutSlack; took != want {
			t.Errorf("it was ended after %v, want %v", took, want)
		}
		if c := await(p, func(*wire.CancelLeasedCommand) bool { return true }); c.Reason != "timeout" {
			t.Errorf("it was cancelled: %s", c.Reason)
		}
		r.close()
		p.close()
	})
}

// The session's other clients see what a borrowed command prints while it runs; the one that lends the shell has it already.
func TestOthersSeeABorrowedCommandLive(t *testing.T) {
	r := newRig(t, bash("hang", "block"))
	p := r.dial()
	other := r.dial(withoutShell, inSession(p.session, 0))
	second := r.dial(inSession(p.session, 0)) // another window
	id := p.ask("hang")
	exec := executing(p, "block")
	p.send(&wire.CommandOutput{LeaseRef: exec.LeaseRef, ExecutionID: exec.ExecutionID, Data: []byte("half")})
	isLive := func(m *wire.AgentStreamChunk) bool { return m.Chunk.Type == wire.ChunkToolOutput }
	for _, c := range []*peer{other, second} {
		if got := await(c, isLive); got.Chunk.ExecutionID != exec.ExecutionID || string(got.Chunk.Data) != "half" || got.RequestID != id {
			t.Errorf("got %+v", got)
		}
	}
	p.shell.finish()
	p.ended(id)
	if has(p, isLive) {
		t.Error("the window was sent its own output")
	}
}

// cancel while queued behind the user leaves nobody in the line, on either side.
func TestCancelWhileQueued(t *testing.T) {
	r := newRig(t, bash("list", "ls"))
	p := r.dial()
	p.shell.userRuns()
	id := p.ask("list")
	await(p, func(*wire.AcquireShellLease) bool { return true })
	p.send(&wire.CancelRequest{RequestID: &id})
	if end := p.ended(id); end.Status != wire.StatusCancelled {
		t.Errorf("end: %s", end.Status)
	}
	nothingLent(t, p)
	p.shell.userDone()
	if end := p.ended(p.ask("list")); end.Status != wire.StatusSuccess {
		t.Errorf("the next turn: %s", end.Status)
	}
	if got := p.shell.ran(); len(got) != 1 {
		t.Errorf("ran %q", got)
	}
}

// the user ends the agent's command, or takes the shell back: the agent is told at once and goes on.
func TestUserEndsTheCommand(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*fakeShell)
		want string
	}{
		{"Ctrl-C", (*fakeShell).interrupt, "the user stopped this command"},
		{"take back", (*fakeShell).takeBack, "the user took the shell back"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, bash("hang", "block"))
			p := r.dial()
			id := p.ask("hang")
			executing(p, "block")
			c.do(p.shell)
			if end := p.ended(id); end.Status != wire.StatusSuccess {
				t.Errorf("end: %s", end.Status)
			}
			res := await(p, func(*wire.CommandResult) bool { return true })
			if res.Status != wire.StatusCancelled || !strings.Contains(string(res.Output), c.want) {
				t.Errorf("result: %s %q", res.Status, res.Output)
			}
			nothingLent(t, p)
		})
	}
}

// waiting has a bound, and its end says who has the shell; the clock of a command starts when it starts.
func TestWaitEnds(t *testing.T) {
	r := newRig(t, bash("list", "ls"))
	r.set(func(c *config.Config) { c.Lease.Wait = config.Duration(100 * time.Millisecond) })
	p := r.dial()
	p.shell.userRuns()
	end := p.ended(p.ask("list"))
	if end.Status != wire.StatusSuccess {
		t.Errorf("end: %s", end.Status)
	}
	res := await(p, func(*wire.CommandResult) bool { return true })
	if out := string(res.Output); res.Status != wire.StatusError || !strings.Contains(out, "user has held it for 1s") || !strings.Contains(out, "private") {
		t.Errorf("result: %s %q", res.Status, out)
	}
	nothingLent(t, p)
}

// messages under an old fence, of another execution, or repeated, change nothing.
func TestStaleMessages(t *testing.T) {
	r := newRig(t, bash("hang", "ls", "block"))
	p := r.dial()
	id := p.ask("hang")
	old := executing(p, "ls")
	now := executing(p, "block")
	code := 7
	for _, ref := range []wire.LeaseRef{old.LeaseRef, {LeaseID: now.LeaseID, Fence: now.Fence + 1}, {LeaseID: "x", Fence: now.Fence}} {
		p.send(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: now.ExecutionID, Status: wire.StatusOK, ExitCode: &code})
		p.send(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedByUser})
		p.send(&wire.ShellLeaseAcquired{LeaseRef: ref, Cwd: "/w", State: p.shell.digest()})
	}
	p.send(&wire.CommandCompleted{LeaseRef: now.LeaseRef, ExecutionID: old.ExecutionID, Status: wire.StatusOK, ExitCode: &code})
	st := requestID()
	p.send(&wire.StatusRequest{RequestID: st})
	if got := await(p, func(m *wire.StatusReply) bool { return m.RequestID == st }); got.Leases[0].LeaseID != now.LeaseID {
		t.Errorf("the lease was ended: %+v", got.Leases)
	}
	p.shell.finish()
	p.ended(id)
	for _, m := range p.all() {
		if res, ok := m.(*wire.CommandResult); ok && res.ExitCode != nil && *res.ExitCode == code {
			t.Errorf("a stale result was taken: %+v", res)
		}
	}
	nothingLent(t, p)
}

// A client that lends its shell on a second connection is the same client come back: the first one ends, with the reason, and
// gets none of the second one's messages. Both stayed, and each client got the lease messages of the other.
func TestOneConnectionLendsAShell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, bash("list", "ls"), bash("hang", "block"))
		old := r.dial()
		hung := old.ask("hang")
		exec := executing(old, "block")
		synctest.Wait()
		p := r.dial(asPID(old.pid), inSession(old.session, 0), func(env *wire.EnvSnapshot) {
			env.Leases = []wire.HeldLease{{LeaseID: exec.LeaseID, Fence: exec.Fence, ExecutionID: exec.ExecutionID}}
		})
		p.shell.held, p.shell.running = &exec.LeaseRef, exec // the same shell
		e := await(old, func(*wire.Error) bool { return true })
		if e.Code != wire.CodeDuplicateID || e.Recoverable || e.RequestID != "" || e.Details["client_pid"] != fmt.Sprint(old.pid) || !strings.Contains(e.Hint, "client.pid") {
			t.Errorf("the first connection is told %+v", e)
		}
		if err := old.over(); !errors.Is(err, io.EOF) {
			t.Errorf("the first connection ended with %v", err)
		}
		before := count[*wire.AcquireShellLease](old)
		if len(p.ready.Leases) != 1 {
			t.Errorf("the lease was not handed over: %+v", p.ready.Leases)
		}
		p.shell.finish()
		p.ended(hung)
		p.ended(p.ask("list"))
		other := r.dial() // another client
		other.ended(other.ask("list"))
		if n := count[*wire.AcquireShellLease](old); n != before || count[*wire.AcquireShellLease](p) != 1 || count[*wire.AcquireShellLease](other) != 1 {
			t.Errorf("the first connection was asked %d times more, the second %d times", n-before, count[*wire.AcquireShellLease](p))
		}
		nothingLent(t, p)
		r.close()
		for _, c := range []*peer{old, p, other} {
			c.close()
		}
	})
}

// A daemon that was stopped for a while finds connections that their client has given up before the one that it made last.
// They are not served: each ended the one before, the last of them the client's own.
func TestConnectionsThatWereGivenUp(t *testing.T) {
	r := newRig(t, bash("list", "ls"))
	dir := t.TempDir()
	ln, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p := r.dial()
	for range 3 {
		client, err := net.Dial("unix", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := wire.NewConn(client, wire.Options{})
		if err := c.Send(hello(asPID(p.pid), inSession(p.session, 0))); err != nil {
			t.Fatal(err)
		}
		c.Close() // what was sent lies in the socket
		nc, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		r.server.ServeConn(t.Context(), nc, 0)
	}
	p.ended(p.ask("list"))
	if has(p, func(*wire.Error) bool { return true }) {
		t.Errorf("the client's own connection was ended:\n%s", p.story())
	}
}

// Nobody who waits is told anything by a message of another lease, or by one from a connection that lends nothing.
func TestMessagesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.dial()
		p.shell.userRuns()
		s := borrow(r, &wire.LeaseRunRequest{Command: "ls", ClientPID: p.pid})
		await(s, func(*wire.ShellLeaseQueued) bool { return true })
		ref := await(p, func(*wire.AcquireShellLease) bool { return true }).LeaseRef
		another := wire.LeaseRef{LeaseID: ref.LeaseID, Fence: ref.Fence - 1}
		p.send(&wire.ShellLeaseAcquired{LeaseRef: another, Cwd: "/w", State: "#"})
		p.send(&wire.ShellLeaseQueued{LeaseRef: another, Holder: "nobody"})
		for n, m := range []wire.Message{
			&wire.ShellLeaseQueued{LeaseRef: ref, Holder: "nobody"},
			&wire.ShellLeaseAcquired{LeaseRef: ref, Cwd: "/w", State: "#"},
			&wire.ShellState{Digest: "another", Cwd: "/another"},
		} {
			before := count[*wire.Error](s)
			s.send(m)
			synctest.Wait()
			if count[*wire.Error](s) != before+1 {
				t.Errorf("message %d of a connection whose shell it is not is taken", n+1)
			}
		}
		if count[*wire.ShellLeaseQueued](s) != 1 || count[*wire.ShellLeaseAcquired](s) != 0 {
			t.Errorf("the borrower was told: %s", s.story())
		}
		p.shell.userDone()
		await(s, func(m *wire.CommandCompleted) bool { return m.Status == wire.StatusOK })
		r.close()
		for _, c := range []*peer{p, s} {
			c.close()
		}
	})
}

// what was judged for a folder and a state of the shell runs in those, or is judged again: also where a person
// changed one of them while the agent waited for the shell.
func TestJudgedAgainWhenTheShellChanged(t *testing.T) {
	for name, change := range map[string]func(*fakeShell){
		"state":  func(s *fakeShell) { s.version++ },
		"folder": func(s *fakeShell) { s.cwd, s.fixed = "/elsewhere", s.digest() },
		"none":   func(*fakeShell) {},
	} {
		r := newRig(t, bash("list", "ls"))
		p := r.dial()
		p.shell.userRuns()
		id := p.ask("list")
		first := await(p, func(*wire.AcquireShellLease) bool { return true })
		p.shell.mu.Lock()
		change(p.shell)
		p.shell.tellLocked()
		p.shell.mu.Unlock()
		p.shell.userDone()
		p.ended(id)
		exec := executing(p, "ls")
		if again := exec.LeaseID != first.LeaseID; again != (name != "none") {
			t.Errorf("%s changed: judged again %v", name, again)
		}
		if ran := p.shell.ran(); !slices.Equal(ran, []string{"ls"}) {
			t.Errorf("%s changed: ran %q", name, ran)
		}
		nothingLent(t, p)
	}
}

// The next command is judged as soon as the client has answered for the last one, and where that left the shell, also by a
// client that is slow to tell its state.
func TestTheNextCommandWaitsForTheStateOnly(t *testing.T) {
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, bash("two", "cd /there", "rm -rf x"))
			asking(r)
			p := r.dial()
			p.shell.mu.Lock()
			p.shell.silent = silent
			p.shell.mu.Unlock()
			begun := time.Now()
			id := p.ask("two")
			if silent { // it cannot be known that all is told
				time.Sleep(time.Second)
				begun = time.Now()
			}
			q := question(p, func(m *wire.ConfirmationRequest) bool { return m.Command == "rm -rf x" })
			if q.Cwd != "/there" || time.Since(begun) != 0 {
				t.Errorf("silent %v: asked for %s after %v, want /there at once", silent, q.Cwd, time.Since(begun))
			}
			p.answer(q, "deny")
			p.ended(id)
			r.close()
			p.close()
		})
	}
}

// an output near the frame's limit neither breaks the connection nor is stored whole.
func TestOversizeOutput(t *testing.T) {
	r := newRig(t, bash("big", "block", "ls"))
	p := r.dial()
	id := p.ask("big")
	exec := executing(p, "block")
	code := 0
	p.send(&wire.CommandCompleted{
		LeaseRef: exec.LeaseRef, ExecutionID: exec.ExecutionID, Status: wire.StatusOK, ExitCode: &code, Cwd: "/w",
		Output: []byte(strings.Repeat("0123456789abcde\n", 15<<16)),
	})
	p.shell.mu.Lock()
	p.shell.running = nil
	p.shell.mu.Unlock()
	if end := p.ended(id); end.Status != wire.StatusSuccess {
		t.Errorf("end: %s", end.Status)
	}
	res := await(p, func(*wire.CommandResult) bool { return true })
	if len(res.Output) > 256<<10 || res.Truncated == nil {
		t.Errorf("result: %d bytes, truncated %v", len(res.Output), res.Truncated)
	}
}

// Design section 6: the link drops in mid-command; whoever comes back with its lease is adopted, and the turn gets the
// command's end (one that has forgotten is told to drop it, and the agent is told).
func TestLinkDropsInMidCommand(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		r := newRig(t, bash("hang", "block"))
		p := r.dial()
		id := p.ask("hang")
		exec := executing(p, "block")
		p.close()
		back := r.connect()
		back.shell = p.shell
		back.shell.p = back
		env := hello(inSession(p.session, 0), asPID(p.pid))
		if keeps {
			env.Leases = []wire.HeldLease{{LeaseID: exec.LeaseID, Fence: exec.Fence, ExecutionID: exec.ExecutionID}}
		} else {
			back.shell.running, back.shell.held = nil, nil
		}
		back.send(env)
		ready := await(back, func(*wire.Ready) bool { return true })
		if got := len(ready.Leases) == 1; got != keeps {
			t.Errorf("Ready.leases: got %+v, kept %v", ready.Leases, keeps)
		}
		if keeps {
			back.shell.finish()
		}
		end := back.ended(id)
		res := await(back, func(*wire.CommandResult) bool { return true })
		want := wire.StatusSuccess
		if !keeps {
			want = wire.StatusCancelled
		}
		if end.Status != wire.StatusSuccess || res.Status != want {
			t.Errorf("kept %v: end %s, result %s %q", keeps, end.Status, res.Status, res.Output)
		}
		nothingLent(t, back)
		checkNumbers(t, back, 0)
	}
}

// A second client borrows the shell: it waits its turn, sees output and exit code, and the same lease events.
func TestLeaseRun(t *testing.T) {
	r := newRig(t)
	p := r.dial()
	s := r.dial(script)
	id := requestID()
	p.shell.userRuns()
	s.send(&wire.LeaseRunRequest{RequestID: id, Command: "exit 3", CallerPID: 1})
	q := await(s, func(m *wire.ShellLeaseQueued) bool { return m.RequestID == id })
	if q.Holder != "user" {
		t.Errorf("queued: %+v", q)
	}
	p.shell.userDone()
	await(s, func(m *wire.ShellLeaseAcquired) bool { return m.RequestID == id && m.Cwd == "/w" })
	await(s, func(m *wire.CommandStarted) bool { return m.RequestID == id })
	out := await(s, func(m *wire.CommandOutput) bool { return m.RequestID == id })
	done := await(s, func(m *wire.CommandCompleted) bool { return m.RequestID == id })
	await(s, func(m *wire.ShellLeaseReleased) bool { return m.RequestID == id && m.Reason == wire.ReleasedReleased })
	if string(out.Data) != "ran: exit 3\n" || done.ExitCode == nil || *done.ExitCode != 3 {
		t.Errorf("output %q, completed %+v", out.Data, done)
	}
	nothingLent(t, p)

	// Its cancel, its disconnect and a revoke all end it.
	for name, stop := range map[string]func(id wire.RequestID){
		"cancel": func(id wire.RequestID) { s.send(&wire.CancelRequest{RequestID: &id}) },
		"revoke": func(wire.RequestID) {
			s.send(&wire.LeaseRevokeRequest{RequestID: requestID(), ClientPID: p.pid})
		},
	} {
		id := requestID()
		s.send(&wire.LeaseRunRequest{RequestID: id, Command: "block", ClientPID: p.pid})
		await(s, func(m *wire.CommandStarted) bool { return m.RequestID == id })
		stop(id)
		if done := await(s, func(m *wire.CommandCompleted) bool { return m.RequestID == id }); done.Status != wire.StatusCancelled {
			t.Errorf("%s: %s", name, done.Status)
		}
		nothingLent(t, p)
	}
	for range 3 {
		s.send(&wire.LeaseRunRequest{RequestID: requestID(), Command: "block"})
	}
	over := requestID()
	s.send(&wire.LeaseRunRequest{RequestID: over, Command: "block"})
	if e := s.refused(over); e.Code != wire.CodeTooManyQueries {
		t.Errorf("the fourth: %s", e.Code)
	}
	s.close()
	nothingLent(t, p)
}

// Two agents want the shell: one after the other, first come first served (I3).
func TestTwoAgents(t *testing.T) {
	r := newRig(t, bash("one", "block"), bash("two", "ls"))
	p := r.dial()
	other := r.dial(withoutShell, inSession(p.session, -1)) // no shell of its own, but a session with one
	q := r.dial(withoutShell)
	_ = q
	id := p.ask("one")
	executing(p, "block")
	second := requestID()
	other.send(&wire.LeaseRunRequest{RequestID: second, Command: "ls"})
	if got := await(other, func(m *wire.ShellLeaseQueued) bool { return m.RequestID == second }); got.Holder != "orchestrator" || got.Position != 1 {
		t.Errorf("queued behind %q at %d", got.Holder, got.Position)
	}
	if got := p.shell.ran(); len(got) != 1 {
		t.Errorf("ran %q while the first held the shell", got)
	}
	p.shell.finish()
	await(other, func(m *wire.CommandCompleted) bool { return m.RequestID == second })
	p.ended(id)
	nothingLent(t, p)
}

// The audit log has its line before the client is told the command, and the other before the borrower is told the end: a
// daemon that is killed in between has lost neither.
func TestLeaseRunIsAuditedFirst(t *testing.T) {
	r := newRig(t)
	p := r.dial()
	s := r.dial(script)
	last := func() string {
		text, err := os.ReadFile(filepath.Join(r.dir, "audit.log"))
		if err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return lines[len(lines)-1]
	}
	for n := range 20 {
		command := fmt.Sprint("ls ", n)
		decided := make(chan string, 1)
		p.shell.mu.Lock()
		p.shell.onExec = func(*wire.ExecuteLeasedCommand) { decided <- last() }
		p.shell.mu.Unlock()
		id := requestID()
		s.send(&wire.LeaseRunRequest{RequestID: id, Command: wire.OSString(command)})
		await(s, func(m *wire.CommandCompleted) bool { return m.RequestID == id })
		ended := last()
		if line := <-decided; !strings.Contains(line, `"decision"`) || !strings.Contains(line, command) {
			t.Errorf("when the client was told %q the log ended with %s", command, line)
		}
		if !strings.Contains(ended, `"execution"`) || !strings.Contains(ended, command) {
			t.Errorf("when the borrower was told the end of %q the log ended with %s", command, ended)
		}
		await(s, func(m *wire.ShellLeaseReleased) bool { return m.RequestID == id })
	}
}

// The shell comes at the moment in which its borrower goes: either the command runs and its end is told, or it never runs
// and the borrower was told that.
func TestGoneBorrowerBeginsNothing(t *testing.T) {
	r := newRig(t)
	p := r.dial()
	s := r.dial(script)
	told := 0
	for range 20 {
		p.shell.userRuns()
		id := requestID()
		s.send(&wire.LeaseRunRequest{RequestID: id, Command: "ls"})
		await(s, func(m *wire.ShellLeaseQueued) bool { return m.RequestID == id })
		s.send(&wire.CancelRequest{RequestID: &id})
		p.shell.userDone() // at the same time
		await(s, func(m wire.Message) bool {
			switch m := m.(type) {
			case *wire.CommandCompleted:
				if m.RequestID == id {
					told++
				}
			case *wire.ShellLeaseReleased:
				return m.RequestID == id
			case *wire.Error:
				return m.RequestID == id
			}
			return false
		})
		nothingLent(t, p)
	}
	if ran := p.shell.ran(); len(ran) != told {
		t.Errorf("%d commands ran, the end of %d was told", len(ran), told)
	}
}

// Two commands of one answer are two leases: who waits has the shell in between. Where that moves it, the second is judged
// anew, by what the shell is then, and the agent is told where it ran.
func TestBetweenTwoCommandsOfOneAnswer(t *testing.T) {
	first, second := scripted.Call{Name: "bash", Arguments: []byte(`{"command":"block"}`)}, scripted.Call{Name: "bash", Arguments: []byte(`{"command":"ls"}`)}
	r := newRig(t)
	r.play(scripted.Script{Match: "both", Steps: []scripted.Step{{ToolCalls: []scripted.Call{first, second}}, {Text: "done"}}})
	p := r.dial(wantsQueue)
	s := r.dial(script)
	id := p.ask("both")
	executing(p, "block")
	between := requestID()
	s.send(&wire.LeaseRunRequest{RequestID: between, Command: "cd /elsewhere", ClientPID: p.pid})
	inLine(p, "cd /elsewhere")
	p.shell.finish()
	await(s, func(m *wire.CommandCompleted) bool { return m.RequestID == between })
	p.ended(id)
	if ran := p.shell.ran(); !slices.Equal(ran, []string{"block", "cd /elsewhere", "ls"}) {
		t.Errorf("ran %q", ran)
	}
	res := await(p, func(m *wire.CommandResult) bool { return m.Command == "ls" })
	if want := "[ran in /elsewhere, where the shell is by now, not in /w]"; res.Cwd != "/elsewhere" || !strings.Contains(string(res.Output), want) {
		t.Errorf("got %q in %s, want %q", res.Output, res.Cwd, want)
	}
	nothingLent(t, p)
}
