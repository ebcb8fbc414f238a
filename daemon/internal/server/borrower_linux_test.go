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
	s := &peer{t: t, rig: r, conn: wire.NewConn(client, wire.Options{}), changed: make(chan struct{})}
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
