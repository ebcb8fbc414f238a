package server_test

import (
	"fmt"
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
	term := config.Default().Lease.Term.Duration
	limit := config.Default().Shell.CommandTimeout.Duration
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
		c := wire.NewConn(client)
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
	s.send(&wire.LeaseRunRequest{RequestID: id, Command: "exit 3"})
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
