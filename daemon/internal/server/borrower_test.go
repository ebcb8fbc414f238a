package server_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/daemon/config"
	"sublet/wire"
)

// foreign sends a command of an agent of another program, from a connection of its own.
func foreign(p *peer, command string, change ...func(*wire.ToolRequest)) wire.RequestID {
	p.t.Helper()
	m := &wire.ToolRequest{
		RequestID: requestID(), Tool: "bash", Arguments: fmt.Sprintf(`{"command":%q}`, command),
		Borrower: wire.Borrower{Name: "codex", Executable: "/opt/codex", PID: 4242},
	}
	for _, c := range change {
		c(m)
	}
	p.send(m)
	return m.RequestID
}

// A foreign agent's command runs in the user's window under its name, and the answer goes to the agent alone: the window's
// session has nothing of it.
func TestForeignCommandRunsInTheWindow(t *testing.T) {
	r := newRig(t)
	p, s := r.dial(), r.dial(script)
	id := foreign(s, "ls")
	if end := s.ended(id); end.Status != wire.StatusSuccess || end.Agent != "codex" {
		t.Fatalf("got %+v", end)
	}
	if res := resultOf(s, id); res.ExitCode == nil || *res.ExitCode != 0 || res.Cwd != "/w" {
		t.Errorf("got %+v", res)
	}
	if a := await(p, func(*wire.AcquireShellLease) bool { return true }); a.Agent != "codex" {
		t.Errorf("the window lends to %q", a.Agent)
	}
	if n := count[*wire.CommandResult](p); n != 0 {
		t.Errorf("the window's session has %d results of another's", n)
	}
	if e := lastExecution(r); e.Command != "ls" || e.Status != wire.StatusSuccess {
		t.Errorf("the log has %+v", e)
	}
}

// A risky command of a foreign agent is asked about in the window, which shows whose it is; only its answer decides.
func TestForeignCommandIsAskedAboutInTheWindow(t *testing.T) {
	r := newRig(t)
	asking(r)
	p, s := r.dial(), r.dial(script)
	id := foreign(s, "rm -rf build")
	q := question(p, anyQuestion)
	if q.Borrower != (wire.Borrower{Name: "codex", Executable: "/opt/codex", PID: 4242}) || q.Agent != "codex" || q.SessionID == p.session {
		t.Errorf("asked %+v", q)
	}
	s.answer(question(s, anyQuestion), wire.DecisionAllow) // it may not
	s.reached()
	other := r.dial() // a window that was not asked
	other.answer(q, wire.DecisionAllow)
	other.reached()
	if count[*wire.ConfirmationResolved](s) != 0 {
		t.Error("somebody else's answer counted")
	}
	other.close()
	p.answer(q, wire.DecisionDeny)
	if res := resultOf(s, id); res.Status != wire.StatusDenied || !strings.Contains(string(res.Output), "denied by the user") {
		t.Errorf("got %s: %s", res.Status, res.Output)
	}
	p.resolved(q)
	id = foreign(s, "rm -rf build")
	p.answer(question(p, func(m *wire.ConfirmationRequest) bool { return m.RequestID == id }), wire.DecisionAllow)
	if res := resultOf(s, id); res.Status != wire.StatusSuccess {
		t.Errorf("allowed: got %s: %s", res.Status, res.Output)
	}
	if n := count[*wire.ExecuteLeasedCommand](p); n != 1 {
		t.Errorf("%d commands ran, want 1", n)
	}
}

// A question that nobody answers is a no after its bound, also while the window is there.
func TestForeignQuestionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		asking(r)
		p, s := r.dial(), r.dial(script)
		begun := time.Now()
		id := foreign(s, "rm -rf build", func(m *wire.ToolRequest) { m.AnswerMS = 45_000 })
		q := question(p, anyQuestion)
		if q.ExpiresAtMS == nil || *q.ExpiresAtMS != begun.Add(45*time.Second).UnixMilli() {
			t.Errorf("expires at %v", q.ExpiresAtMS)
		}
		time.Sleep(45*time.Second + time.Millisecond)
		if res := resultOf(s, id); res.Status != wire.StatusDenied || !strings.Contains(string(res.Output), "nobody answered within 45s") {
			t.Errorf("got %s: %s", res.Status, res.Output)
		}
		if m := p.resolved(q); m.By != "expiry" {
			t.Errorf("resolved by %q", m.By)
		}
		if n := count[*wire.ExecuteLeasedCommand](p); n != 0 {
			t.Errorf("%d commands ran", n)
		}
	})
}

// A window that comes back is asked again what is still open.
func TestForeignQuestionSurvivesTheWindow(t *testing.T) {
	r := newRig(t)
	asking(r)
	p, s := r.dial(), r.dial(script)
	id := foreign(s, "rm -rf build")
	q := question(p, anyQuestion)
	p.close()
	back := r.dial(asPID(p.pid))
	again := question(back, anyQuestion)
	if again.ConfirmationID != q.ConfirmationID {
		t.Errorf("asked %s, want %s", again.ConfirmationID, q.ConfirmationID)
	}
	back.answer(again, wire.DecisionAllow)
	if res := resultOf(s, id); res.Status != wire.StatusSuccess {
		t.Errorf("got %s: %s", res.Status, res.Output)
	}
}

// An agent that is gone leaves no command, no question and no lease.
func TestForeignAgentIsGone(t *testing.T) {
	r := newRig(t)
	p, s := r.dial(), r.dial(script)
	foreign(s, "block")
	exec := executing(p, "block")
	s.close()
	await(p, func(m *wire.CancelLeasedCommand) bool { return m.ExecutionID == exec.ExecutionID })
	await(p, func(m *wire.ReleaseShellLease) bool { return m.LeaseID == exec.LeaseID })

	asking(r)
	s = r.dial(script)
	foreign(s, "rm -rf build")
	q := question(p, anyQuestion)
	s.close()
	if m := p.resolved(q); m.By != "cancel" {
		t.Errorf("resolved by %q", m.By)
	}
}

// Without a window nothing of a foreign agent runs but in a private shell, and nobody is asked.
func TestForeignWithoutAWindow(t *testing.T) {
	r := newRig(t)
	asking(r)
	dir := wire.OSString(t.TempDir())
	s := r.dial(script, func(env *wire.EnvSnapshot) { env.Cwd, env.Env["HOME"] = dir, dir })
	id := foreign(s, "ls")
	if res := resultOf(s, id); res.Status != wire.StatusError || !strings.Contains(string(res.Output), "no sublet window is open") {
		t.Errorf("got %s: %s", res.Status, res.Output)
	}
	private := func(m *wire.ToolRequest) { m.Private = true }
	id = foreign(s, "cd /tmp", private)
	if res := resultOf(s, id); res.Status != wire.StatusSuccess || res.Cwd != "/tmp" {
		t.Errorf("got %s in %s: %s", res.Status, res.Cwd, res.Output)
	}
	id = foreign(s, "pwd", private)
	if res := resultOf(s, id); !strings.Contains(string(res.Output), "/tmp\n") {
		t.Errorf("the private shell forgot its folder: %s", res.Output)
	}
	id = foreign(s, "rm -rf ~/x", private)
	if res := resultOf(s, id); res.Status != wire.StatusDenied || !strings.Contains(string(res.Output), "no sublet window is open that could ask") {
		t.Errorf("got %s: %s", res.Status, res.Output)
	}
}

// A foreign agent bears no name of ours, and says nothing that hides.
func TestForeignNames(t *testing.T) {
	r := newRig(t)
	r.dial()
	s := r.dial(script)
	for _, c := range []struct{ name, want string }{
		{"codex", "codex"},
		{"Claude Code\x1b[31m", "Claude-Code--31m"},
		{"user", "mcp-user"},
		{"you", "mcp-you"},
		{"Orchestrator", "mcp-Orchestrator"},
		{"engineer-1", "mcp-engineer-1"},
		{strings.Repeat("x", 99), strings.Repeat("x", 32)},
	} {
		id := foreign(s, "ls", func(m *wire.ToolRequest) { m.Borrower.Name = c.name })
		if end := s.ended(id); end.Agent != c.want {
			t.Errorf("%q became %q, want %q", c.name, end.Agent, c.want)
		}
	}
}

// What a request says wrongly is refused before anything begins.
func TestForeignRefused(t *testing.T) {
	r := newRig(t)
	r.set(func(c *config.Config) { c.Limits.RunningTurns = 1 })
	p, s := r.dial(), r.dial(script)
	for _, change := range []func(*wire.ToolRequest){
		func(m *wire.ToolRequest) { m.Cwd = "relative" },
		func(m *wire.ToolRequest) { m.Cwd = "/not/there" },
		func(m *wire.ToolRequest) { m.AnswerMS = -1 },
		func(m *wire.ToolRequest) { m.AnswerMS = 3_600_001 },
	} {
		if e := s.refused(foreign(s, "ls", change)); e.Code != wire.CodeInvalidMessage {
			t.Errorf("got %+v", e)
		}
	}
	if n := count[*wire.AcquireShellLease](p); n != 0 {
		t.Errorf("%d leases", n)
	}
}

// A folder that the request names is where the command is judged and runs.
func TestForeignFolder(t *testing.T) {
	r := newRig(t)
	p, s := r.dial(), r.dial(script)
	id := foreign(s, "ls", func(m *wire.ToolRequest) { m.Cwd = "/tmp" })
	if exec := executing(p, "ls"); exec.Cwd != "/tmp" {
		t.Errorf("ran in %s", exec.Cwd)
	}
	s.ended(id)
}
