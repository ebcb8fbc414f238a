package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sublet/lease/caller"
	"sublet/wire"
	"sublet/wire/wiretest"
)

// A `sublet lease run` that an agent of another program started is that agent's command, and not the user's own act: it is asked
// about, and its borrower hears how it ended as ever.
func TestLeaseRunOfAForeignAgent(t *testing.T) {
	r := newRig(t)
	asking(r)
	p := r.dial()
	file := filepath.Join(t.TempDir(), "codex")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nread never < \"$0.fifo\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file+".fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	// Its parent ends at once: what descends from this process, which is the daemon, could do less.
	out, err := exec.Command("/bin/sh", "-c", `"$0" >/dev/null 2>&1 & echo $!`, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	for caller.Program(pid) != file { // it has not become the script yet
		runtime.Gosched()
	}
	t.Cleanup(func() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})

	client, daemon := wiretest.Pipe()
	r.conns.Go(func() { r.server.ServeConn(r.ctx, daemon, pid) })
	s := &peer{t: t, rig: r, conn: wire.NewConn(client), changed: make(chan struct{})}
	s.done.Go(s.read)
	t.Cleanup(s.close)
	s.send(hello(script))
	await(s, func(*wire.Ready) bool { return true })
	s.reached()

	run := func(command string) wire.RequestID {
		m := &wire.LeaseRunRequest{RequestID: requestID(), Command: wire.OSString(command)}
		s.send(m)
		return m.RequestID
	}
	id := run("rm -rf build")
	q := question(p, anyQuestion)
	if q.Borrower.Name != "codex" || q.Borrower.PID != pid || string(q.Borrower.Executable) != file {
		t.Errorf("asked for %+v", q.Borrower)
	}
	p.answer(q, wire.DecisionDeny)
	s.refused(id)
	s.ended(id)
	if n := count[*wire.ExecuteLeasedCommand](p); n != 0 {
		t.Errorf("%d commands ran", n)
	}

	id = run("ls")
	await(s, func(m *wire.ShellLeaseAcquired) bool { return m.RequestID == id })
	done := await(s, func(m *wire.CommandCompleted) bool { return m.RequestID == id })
	if done.Status != wire.StatusOK || done.ExitCode == nil || *done.ExitCode != 0 {
		t.Errorf("got %+v", done)
	}
	await(s, func(m *wire.ShellLeaseReleased) bool { return m.RequestID == id })

	// It decides nothing: no rule, no wider mode, no word in a turn of the user's.
	for _, m := range []wire.Message{
		&wire.PolicyRequest{RequestID: "add", Op: "add", Rule: &wire.Rule{Decision: "allow", Pattern: "bash: make", Scope: "always"}},
		&wire.AgentRequest{RequestID: "full", Prompt: "go", Options: wire.RequestOptions{Mode: "full"}},
		&wire.AgentRequest{RequestID: "system", Prompt: "go", Options: wire.RequestOptions{System: "obey"}},
	} {
		s.send(m)
		if e := s.refused(wire.RequestOf(m)); e.Code != wire.CodePermissionDenied || !strings.Contains(e.Message, "by an agent of another program, codex") {
			t.Errorf("%s: got %+v", wire.RequestOf(m), e)
		}
	}
}

// A job is ended as a tool by a person or by the agent that began it: by no process in a shell that agents use, and by no other
// agent, whatever session they name.
func TestWhoEndsAJobByATool(t *testing.T) {
	r := newRig(t)
	p := r.dial(withoutShell, r.there)
	p.background("sleep 1000", false)

	inside := exec.Command("sleep", "1000") // descends from the daemon, as a private shell does
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = inside.Process.Kill()
		_ = inside.Wait() // it was killed
	})
	client, daemon := wiretest.Pipe()
	r.conns.Go(func() { r.server.ServeConn(r.ctx, daemon, inside.Process.Pid) })
	s := &peer{t: t, rig: r, conn: wire.NewConn(client), changed: make(chan struct{})}
	s.done.Go(s.read)
	t.Cleanup(s.close)
	s.send(hello(script))
	await(s, func(*wire.Ready) bool { return true })

	kill := func(by *peer, borrower, id string) string {
		m := &wire.ToolRequest{
			RequestID: requestID(), SessionID: &p.session, Tool: "jobs", Arguments: `{"id":"` + id + `","kill":true}`, Borrower: wire.Borrower{Name: borrower},
		}
		by.send(m)
		p.ended(m.RequestID) // the session's clients hear of it
		return string(resultOf(p, m.RequestID).Output)
	}
	if got := kill(s, "", "j1"); !strings.Contains(got, "called from inside a shell that agents use") {
		t.Errorf("from inside: %q", got)
	}
	if got := kill(s, "codex", "j1"); !strings.Contains(got, "j1 is a job of you: you end only your own") {
		t.Errorf("another agent: %q", got)
	}
	if j := p.jobs(&wire.JobRequest{Op: "list"}).Jobs[0]; j.State != "running" {
		t.Errorf("got %+v", j)
	}
	p.ended(foreign(p, "", func(m *wire.ToolRequest) {
		m.Private, m.Arguments = true, `{"command":"sleep 1000","background":true}`
	}))
	if got := kill(s, "codex", "j2"); !strings.Contains(got, "j2: ended") {
		t.Errorf("the agent that began it: %q", got)
	}
	if got := kill(p, "", "j1"); !strings.Contains(got, "j1: ended") {
		t.Errorf("a person: %q", got)
	}
}
