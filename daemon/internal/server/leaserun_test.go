package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/daemon/config"
	"sublet/wire"
)

// borrow sends a LeaseRunRequest from a connection of its own, which ends with the test.
func borrow(r *rig, m *wire.LeaseRunRequest) *peer {
	r.t.Helper()
	s := r.dial(script)
	m.RequestID = requestID()
	s.send(m)
	return s
}

// lastExecution is what the audit log says of the last command that was borrowed for.
func lastExecution(r *rig) (e struct {
	Event, Command, Status string
	ExitCode               *int `json:"exit_code"`
},
) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "audit.log"))
	if err != nil {
		r.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil {
		r.t.Fatal(err)
	}
	if e.Event != "execution" {
		r.t.Errorf("the log ends with %s", lines[len(lines)-1])
	}
	return e
}

// However a borrowed command ends, its borrower is told how it ended, why the lease is over, and nothing twice; the log has
// the same. Whose window was lost, or whose command did not end in time, was told that the user had taken the shell back.
func TestHowALeaseRunEnds(t *testing.T) {
	type ends struct {
		p, s *peer
		exec *wire.ExecuteLeasedCommand
	}
	gone := func(e ends) { // the client forgets the command
		e.p.shell.mu.Lock()
		e.p.shell.running, e.p.shell.held, e.p.shell.deaf = nil, nil, true
		e.p.shell.mu.Unlock()
	}
	for _, c := range []struct {
		name                 string
		end                  func(ends)
		status, note, reason string
		after                time.Duration
	}{
		{"by itself", func(e ends) { e.p.shell.finish() }, wire.StatusOK, "", wire.ReleasedReleased, 0},
		{"Ctrl-C in the window", func(e ends) { e.p.shell.interrupt() }, wire.StatusCancelled, "", wire.ReleasedReleased, 0},
		{"cancelled by its borrower", func(e ends) {
			id := requestOf(e.s)
			e.s.send(&wire.CancelRequest{RequestID: &id})
		}, wire.StatusCancelled, "", wire.ReleasedReleased, 0},
		{"taken back", func(e ends) { e.p.shell.takeBack() }, wire.StatusCancelled, "the user took the shell back while it ran", wire.ReleasedByUser, 0},
		{"revoked", func(e ends) {
			e.s.send(&wire.LeaseRevokeRequest{RequestID: requestID(), LeaseID: e.exec.LeaseID})
		}, wire.StatusCancelled, "its lease was revoked", wire.ReleasedByUser, 0},
		{"the shell exits", func(e ends) {
			gone(e)
			e.p.send(&wire.ShellLeaseReleased{LeaseRef: e.exec.LeaseRef, Reason: wire.ReleasedShellExited})
		}, wire.StatusShellExited, "the user's shell ended while it ran", wire.ReleasedShellExited, 0},
		{"the window gives it up", func(e ends) {
			gone(e)
			e.p.send(&wire.ShellLeaseReleased{LeaseRef: e.exec.LeaseRef, Reason: wire.ReleasedDisconnected})
		}, wire.StatusCancelled, "the user's window was lost while it ran; whether it came to its end is not known", wire.ReleasedDisconnected, 0},
		{"the window ends its lease", func(e ends) {
			gone(e)
			e.p.send(&wire.ShellLeaseReleased{LeaseRef: e.exec.LeaseRef, Reason: wire.ReleasedExpired})
		}, wire.StatusCancelled, "the shell did not report its end in time; it may still run", wire.ReleasedExpired, 0},
		{"revoked as it ends by itself", func(e ends) {
			gone(e)
			e.s.send(&wire.LeaseRevokeRequest{RequestID: requestID(), LeaseID: e.exec.LeaseID})
			await(e.p, func(*wire.CancelLeasedCommand) bool { return true })
			code := 0
			e.p.send(&wire.CommandCompleted{LeaseRef: e.exec.LeaseRef, ExecutionID: e.exec.ExecutionID, Status: wire.StatusOK, ExitCode: &code, Notes: []string{"all done"}})
		}, wire.StatusOK, "all done", wire.ReleasedByUser, 0},
		{
			"the window is lost", func(e ends) { e.p.close() }, wire.StatusCancelled,
			"the user's window was lost while it ran; whether it came to its end is not known", wire.ReleasedDisconnected, wire.LeaseGrace,
		},
		{
			"the window does not tell its end", gone, wire.StatusTimeout,
			"the shell did not report its end in time; it may still run", wire.ReleasedExpired, 3*time.Second + 2*time.Second + 5*time.Second,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				p := r.dial()
				s := borrow(r, &wire.LeaseRunRequest{Command: "block", TimeoutMS: 3000})
				exec := executing(p, "block")
				acquired := await(s, func(*wire.ShellLeaseAcquired) bool { return true })
				await(s, func(*wire.CommandStarted) bool { return true })
				begun := time.Now()
				c.end(ends{p, s, exec})
				if c.after > 0 {
					time.Sleep(c.after - time.Millisecond)
					if count[*wire.CommandCompleted](s) > 0 {
						t.Errorf("told before %v", c.after)
					}
				}
				done := await(s, func(*wire.CommandCompleted) bool { return true })
				released := await(s, func(*wire.ShellLeaseReleased) bool { return true })
				var notes []string
				if c.note != "" {
					notes = []string{c.note}
				}
				if done.Status != c.status || !slices.Equal(done.Notes, notes) || released.Reason != c.reason || time.Since(begun) != c.after {
					t.Errorf("got %s %q, %s after %v, want %s %q, %s after %v", done.Status, done.Notes, released.Reason, time.Since(begun), c.status, notes, c.reason, c.after)
				}
				for _, m := range s.all() { // each event is of the one lease
					if m, ok := m.(wire.LeaseMessage); ok && *m.Ref() != acquired.LeaseRef {
						t.Errorf("%s of %+v, want %+v", wire.KindOf(m.(wire.Message)), *m.Ref(), acquired.LeaseRef)
					}
				}
				if acquired.LeaseID != exec.LeaseID || acquired.Fence != exec.Fence {
					t.Errorf("acquired %+v, want %+v", acquired.LeaseRef, exec.LeaseRef)
				}
				if e := lastExecution(r); e.Status != c.status || (e.ExitCode == nil) != (done.ExitCode == nil) {
					t.Errorf("the log has %s %v", e.Status, e.ExitCode)
				}
				r.close()
				p.close()
				s.close()
			})
		})
	}
}

// requestOf is the request of the lease that s was told of.
func requestOf(s *peer) wire.RequestID {
	return await(s, func(*wire.ShellLeaseAcquired) bool { return true }).RequestID
}

// A borrower that does not get the shell is told why, and who has it; nothing of it is left in the line, and the log says
// that it did not run.
func TestWhyALeaseRunIsDenied(t *testing.T) {
	for _, c := range []struct {
		name   string
		wait   int64
		end    func(r *rig, p, s *peer)
		want   wire.ShellLeaseDenied
		within time.Duration
	}{
		{"its own patience", 2000, nil, wire.ShellLeaseDenied{Reason: wire.DeniedTimeout, Holder: "user", HeldMS: 1000 + 2000}, 2 * time.Second},
		{"that of the settings", 0, nil, wire.ShellLeaseDenied{Reason: wire.DeniedTimeout, Holder: "user", HeldMS: 1000 + 5000}, 5 * time.Second},
		{"revoked", 0, func(_ *rig, p, s *peer) {
			s.send(&wire.LeaseRevokeRequest{RequestID: requestID(), ClientPID: p.pid})
		}, wire.ShellLeaseDenied{Reason: wire.DeniedUser}, 0},
		{"the window is lost", 0, func(_ *rig, p, _ *peer) { p.close() }, wire.ShellLeaseDenied{Reason: wire.DeniedTimeout}, 5 * time.Second},
		{"the window is lost, and long waited for", 3_600_000, func(_ *rig, p, _ *peer) { p.close() }, wire.ShellLeaseDenied{Reason: wire.DeniedNoShell}, wire.LeaseGrace},
		{"the daemon stops", 0, func(r *rig, _, _ *peer) { r.close() }, wire.ShellLeaseDenied{Reason: wire.DeniedShuttingDown}, 0},
		{"the client refuses", 0, func(_ *rig, p, _ *peer) {
			p.send(&wire.ShellLeaseDenied{LeaseRef: await(p, func(*wire.AcquireShellLease) bool { return true }).LeaseRef, Reason: wire.DeniedUser})
		}, wire.ShellLeaseDenied{Reason: wire.DeniedUser}, 0},
		{"the client stops", 0, func(_ *rig, p, _ *peer) {
			p.send(&wire.ShellLeaseDenied{LeaseRef: await(p, func(*wire.AcquireShellLease) bool { return true }).LeaseRef, Reason: wire.DeniedShuttingDown})
		}, wire.ShellLeaseDenied{Reason: wire.DeniedShuttingDown}, 0},
		{"the client has waited enough", 0, func(_ *rig, p, _ *peer) {
			p.send(&wire.ShellLeaseDenied{LeaseRef: await(p, func(*wire.AcquireShellLease) bool { return true }).LeaseRef, Reason: wire.DeniedTimeout, Holder: "vim", HeldMS: 7000})
		}, wire.ShellLeaseDenied{Reason: wire.DeniedTimeout, Holder: "vim", HeldMS: 7000}, 0},
		{"the client's shell is gone", 0, func(_ *rig, p, _ *peer) {
			p.send(&wire.ShellLeaseDenied{LeaseRef: await(p, func(*wire.AcquireShellLease) bool { return true }).LeaseRef, Reason: wire.DeniedNoShell})
		}, wire.ShellLeaseDenied{Reason: wire.DeniedNoShell}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.set(func(c *config.Config) { c.Lease.Wait.Duration = 5 * time.Second })
				p := r.dial()
				p.shell.userRuns()
				s := borrow(r, &wire.LeaseRunRequest{Command: "ls", WaitMS: c.wait})
				c.want.RequestID = await(s, func(q *wire.ShellLeaseQueued) bool { return q.Holder == "user" }).RequestID
				begun := time.Now()
				if c.end != nil {
					c.end(r, p, s)
				}
				if c.within > 0 {
					time.Sleep(c.within)
				}
				d := await(s, func(*wire.ShellLeaseDenied) bool { return true })
				if *d != c.want || time.Since(begun) != c.within {
					t.Errorf("got %+v after %v, want %+v after %v", *d, time.Since(begun), c.want, c.within)
				}
				if e := lastExecution(r); e.Status != wire.StatusRefused || e.Command != "ls" {
					t.Errorf("the log has %+v", e)
				}
				if ran := p.shell.ran(); len(ran) > 0 {
					t.Errorf("ran %q", ran)
				}
				r.close()
				p.close()
				s.close()
			})
		})
	}
}

// The time-out and the folder are the request's; where it names none, those of the settings and of the shell.
func TestWhatALeaseRunAsksFor(t *testing.T) {
	r := newRig(t)
	r.set(func(c *config.Config) { c.Shell.CommandTimeout.Duration = 7 * time.Second })
	p := r.dial()
	for _, c := range []struct {
		ask, want wire.ExecuteLeasedCommand
	}{
		{wire.ExecuteLeasedCommand{Command: "as it is"}, wire.ExecuteLeasedCommand{Cwd: "/w", TimeoutMS: 7000}},
		{wire.ExecuteLeasedCommand{Command: "elsewhere", Cwd: "/else", TimeoutMS: 1}, wire.ExecuteLeasedCommand{Cwd: "/else", TimeoutMS: 1}},
	} {
		s := borrow(r, &wire.LeaseRunRequest{Command: c.ask.Command, Cwd: c.ask.Cwd, TimeoutMS: c.ask.TimeoutMS})
		exec := executing(p, string(c.ask.Command))
		if exec.Cwd != c.want.Cwd || exec.TimeoutMS != c.want.TimeoutMS {
			t.Errorf("%s: got %s, %d ms, want %s, %d ms", c.ask.Command, exec.Cwd, exec.TimeoutMS, c.want.Cwd, c.want.TimeoutMS)
		}
		if done := await(s, func(*wire.CommandCompleted) bool { return true }); done.Status != wire.StatusOK {
			t.Errorf("%s: %s", c.ask.Command, done.Status)
		}
	}
}

// A request that came twice runs once. None is taken where there is no shell, or once the daemon is told to stop.
func TestALeaseRunIsTakenOnce(t *testing.T) {
	r := newRig(t)
	s := r.dial(script)
	early := requestID()
	s.send(&wire.LeaseRunRequest{RequestID: early, Command: "ls"})
	if e := s.refused(early); e.Message != "nobody lends a shell" {
		t.Errorf("before there is a shell: %q", e.Message)
	}
	p := r.dial()
	m := &wire.LeaseRunRequest{RequestID: requestID(), Command: "ls"}
	s.send(m)
	s.send(m)
	if e := s.refused(m.RequestID); e.Code != wire.CodeDuplicateID {
		t.Errorf("the second: %s", e.Code)
	}
	await(s, func(*wire.ShellLeaseReleased) bool { return true })
	if ran := p.shell.ran(); !slices.Equal(ran, []string{"ls"}) {
		t.Errorf("ran %q", ran)
	}
	id := requestID()
	s.send(&wire.LeaseRunRequest{RequestID: id, Command: "ls", ClientPID: 3})
	if e := s.refused(id); e.Message != "client 3 lends no shell" {
		t.Errorf("of a client that is not there: %q", e.Message)
	}
	r.hub.Refuse()
	late := requestID()
	s.send(&wire.LeaseRunRequest{RequestID: late, Command: "ls", ClientPID: p.pid})
	if e := s.refused(late); e.Code != wire.CodeShuttingDown {
		t.Errorf("after the stop: %s", e.Code)
	}
}

// A lease whose command never starts ends with its term, and its borrower learns why. The cancel's bound came on top of it.
func TestALeaseRunThatNeverStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.dial()
		p.shell.deaf = true
		s := borrow(r, &wire.LeaseRunRequest{Command: "ls"})
		offer := await(p, func(*wire.AcquireShellLease) bool { return true })
		p.send(&wire.ShellLeaseAcquired{LeaseRef: offer.LeaseRef, Cwd: "/w", State: "#"})
		exec := executing(p, "ls")
		time.Sleep(30*time.Second - time.Millisecond)
		if has(p, func(*wire.CancelLeasedCommand) bool { return true }) {
			t.Error("cancelled before its term")
		}
		time.Sleep(time.Millisecond)
		await(p, func(m *wire.CancelLeasedCommand) bool { return m.Reason == "stale" })
		await(p, func(m *wire.ReleaseShellLease) bool { return m.Reason == "expired" })
		p.send(&wire.CommandCompleted{LeaseRef: exec.LeaseRef, ExecutionID: exec.ExecutionID, Status: wire.StatusOK}) // too late
		done := await(s, func(*wire.CommandCompleted) bool { return true })
		released := await(s, func(*wire.ShellLeaseReleased) bool { return true })
		if want := []string{"the shell did not start it within 30s"}; done.Status != wire.StatusRefused || !slices.Equal(done.Notes, want) || released.Reason != wire.ReleasedExpired {
			t.Errorf("got %s %q, %s, want %s %q, %s", done.Status, done.Notes, released.Reason, wire.StatusRefused, want, wire.ReleasedExpired)
		}
		r.close()
		p.close()
		s.close()
	})
}

// Who gives up while waiting has one answer: an error, and nothing else.
func TestAnErrorIsTheOnlyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.dial()
		p.shell.userRuns()
		m := &wire.LeaseRunRequest{Command: "ls"}
		s := borrow(r, m)
		await(s, func(*wire.ShellLeaseQueued) bool { return true })
		s.send(&wire.CancelRequest{RequestID: &m.RequestID})
		if e := s.refused(m.RequestID); e.Code != wire.CodeCancelled {
			t.Errorf("got %s, want %s", e.Code, wire.CodeCancelled)
		}
		synctest.Wait()
		if count[*wire.ShellLeaseDenied](s) > 0 {
			t.Errorf("more than that: %s", s.story())
		}
		r.close()
		p.close()
		s.close()
	})
}

// What one connection borrows the shell for runs in the order in which it asked.
func TestLeaseRunsInOrder(t *testing.T) {
	r := newRig(t)
	p, s := r.dial(), r.dial(script)
	for range 5 {
		p.shell.userRuns()
		var asked []wire.RequestID
		for range 3 {
			id := requestID()
			s.send(&wire.LeaseRunRequest{RequestID: id, Command: "ls", ClientPID: p.pid})
			asked = append(asked, id)
		}
		for _, id := range asked {
			await(s, func(m *wire.ShellLeaseQueued) bool { return m.RequestID == id })
		}
		p.shell.userDone()
		var ran []wire.RequestID
		for range asked {
			acquired := await(s, func(m *wire.ShellLeaseAcquired) bool {
				return slices.Contains(asked, m.RequestID) && !slices.Contains(ran, m.RequestID)
			})
			ran = append(ran, acquired.RequestID)
		}
		for _, id := range asked {
			await(s, func(m *wire.ShellLeaseReleased) bool { return m.RequestID == id })
		}
		if !slices.Equal(ran, asked) {
			t.Fatalf("asked as %v, ran as %v", asked, ran)
		}
	}
}
