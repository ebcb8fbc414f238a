package server_test

import (
	"slices"
	"strings"
	"testing"

	"sublet/wire"
)

// The user begins a command of theirs between a grant and the start of its command, before or after that was asked for: the
// borrower goes back to the head of the line, under a new fence, and its command runs in its turn, once, where the shell
// is then.
func TestUserComesBeforeTheCommand(t *testing.T) {
	for name, late := range map[string]bool{"not asked for yet": false, "asked for": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p, s := r.dial(), r.dial(script)
			p.shell.userRuns()
			p.shell.userFirst(late)
			id, behind := requestID(), requestID()
			s.send(&wire.LeaseRunRequest{RequestID: id, Command: "first"})
			await(s, func(m *wire.ShellLeaseQueued) bool { return m.RequestID == id })
			s.send(&wire.LeaseRunRequest{RequestID: behind, Command: "second"})
			await(s, func(m *wire.ShellLeaseQueued) bool { return m.RequestID == behind })
			p.shell.userDone()
			old := await(s, func(m *wire.ShellLeaseAcquired) bool { return m.RequestID == id })
			again := await(p, func(m *wire.AcquireShellLease) bool { return m.LeaseID == old.LeaseID && m.Fence > old.Fence })
			q := await(s, func(m *wire.ShellLeaseQueued) bool { return m.RequestID == id && has(s, acquiredBy(id)) })
			if q.Holder != "user" || q.Position != 0 || q.Fence != 0 {
				t.Errorf("got %+v, want it first in line, behind the user", q)
			}
			// What was sent under the old fence changes nothing.
			p.send(&wire.CommandCompleted{LeaseRef: old.LeaseRef, ExecutionID: "x", Status: wire.StatusRefused})
			p.send(&wire.ShellLeaseReleased{LeaseRef: old.LeaseRef, Reason: wire.ReleasedUserFirst})
			p.shell.move("/elsewhere")
			p.shell.userDone()
			done := await(s, func(m *wire.CommandCompleted) bool { return m.RequestID == id })
			if done.Status != wire.StatusOK || done.Cwd != "/elsewhere" || done.Fence != again.Fence {
				t.Errorf("got %+v, want it run in /elsewhere under fence %d", done, again.Fence)
			}
			await(s, func(m *wire.CommandCompleted) bool { return m.RequestID == behind })
			if got := p.shell.ran(); !slices.Equal(got, []string{"first", "second"}) {
				t.Errorf("ran %q", got)
			}
			nothingLent(t, p)
		})
	}
}

func acquiredBy(id wire.RequestID) func(*wire.ShellLeaseAcquired) bool {
	return func(m *wire.ShellLeaseAcquired) bool { return m.RequestID == id }
}

// An agent's command, too, has its turn after the user's, judged again where that moved the shell.
func TestUserComesBeforeAnAgentsCommand(t *testing.T) {
	r := newRig(t, bash("list", "ls"))
	p := r.dial()
	p.shell.userFirst(true)
	id := p.ask("list")
	first := await(p, func(m *wire.AcquireShellLease) bool { return true })
	await(p, func(m *wire.AcquireShellLease) bool { return m.LeaseID == first.LeaseID && m.Fence > first.Fence })
	p.shell.move("/elsewhere")
	p.shell.userDone()
	if end := p.ended(id); end.Status != wire.StatusSuccess {
		t.Errorf("end: %s", end.Status)
	}
	res := await(p, func(*wire.CommandResult) bool { return true })
	if res.Status != wire.StatusSuccess || !strings.Contains(string(res.Output), "ran: ls\n[ran in /elsewhere") {
		t.Errorf("got %s %q, want it run", res.Status, res.Output)
	}
	if got := p.shell.ran(); !slices.Equal(got, []string{"ls"}) {
		t.Errorf("ran %q", got)
	}
	nothingLent(t, p)
}

// A shell that says so of a command that runs does not have it run again.
func TestUserFirstWhileTheCommandRuns(t *testing.T) {
	r := newRig(t)
	p, s := r.dial(), r.dial(script)
	id := requestID()
	s.send(&wire.LeaseRunRequest{RequestID: id, Command: "block"})
	exec := executing(p, "block")
	await(s, func(m *wire.CommandStarted) bool { return m.RequestID == id })
	p.shell.mu.Lock()
	p.shell.held, p.shell.running = nil, nil
	p.shell.mu.Unlock()
	p.send(&wire.ShellLeaseReleased{LeaseRef: exec.LeaseRef, Reason: wire.ReleasedUserFirst})
	done := await(s, func(m *wire.CommandCompleted) bool { return m.RequestID == id })
	if done.Status != wire.StatusCancelled {
		t.Errorf("got %+v, want it cut off", done)
	}
	nothingLent(t, p)
	if got := p.shell.ran(); !slices.Equal(got, []string{"block"}) {
		t.Errorf("ran %q", got)
	}
}
