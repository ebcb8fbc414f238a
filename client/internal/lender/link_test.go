package lender

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

func TestLinkDropsInMidCommand(t *testing.T) {
	held := wire.HeldLease{LeaseID: "lease-1", Fence: 1, ExecutionID: "x1"}
	drop := func(d *desk) {
		d.begin(1, "x1", "make")
		d.drop()
	}
	t.Run("the command ends meanwhile and its end is told", func(t *testing.T) {
		atDesk(t, func(t *testing.T, d *desk) {
			drop(d)
			time.Sleep(10 * time.Second)
			d.sh.finish(4, shell.State{})
			synctest.Wait()
			var s wire.EnvSnapshot
			d.l.Snapshot(&s)
			if !slices.Equal(s.Leases, []wire.HeldLease{held}) {
				t.Errorf("got leases %+v, want %+v", s.Leases, held)
			}
			d.up(held)
			sent := d.take("CommandCompleted")
			if c := sent[0].(*wire.CommandCompleted); *c.ExitCode != 4 {
				t.Errorf("got exit %d, want 4", *c.ExitCode)
			}
			d.release(1, "completed")
			d.take("ShellLeaseReleased")
		})
	})
	t.Run("the command goes on under its fence", func(t *testing.T) {
		atDesk(t, func(t *testing.T, d *desk) {
			drop(d)
			time.Sleep(wire.LeaseGrace - time.Second)
			d.up(held)
			time.Sleep(wire.LeaseGrace)
			d.take()
			d.sh.finish(0, shell.State{Dir: "/home/u", Digest: "d1"})
			d.take("CommandCompleted", "ShellState")
		})
	})
	t.Run("a refusal that was lost is told again", func(t *testing.T) {
		atDesk(t, func(t *testing.T, d *desk) {
			d.acquire(1)
			d.take("ShellLeaseAcquired")
			d.sh.set(func() { d.sh.looks, d.sh.stale = time.Second, true })
			m := d.execute(1, "x1", "make")
			d.sh.set(func() { d.sh.state.Digest = "d1" })
			synctest.Wait()
			d.drop()
			time.Sleep(d.sh.looks)
			synctest.Wait()
			d.up(held)
			sent := d.take("CommandCompleted")
			if c := sent[0].(*wire.CommandCompleted); c.Status != wire.StatusRefused || c.ExecutionID != m.ExecutionID {
				t.Errorf("got %+v, want x1 refused", c)
			}
		})
	})
	t.Run("the link does not come back", func(t *testing.T) {
		atDesk(t, func(t *testing.T, d *desk) {
			drop(d)
			time.Sleep(wire.LeaseGrace - time.Nanosecond)
			synctest.Wait()
			if n := d.l.Lending(); n.Command != "make" {
				t.Errorf("got %+v before the grace is over, want make running", n)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if n := d.l.Lending(); n.Holder != "" {
				t.Errorf("got %+v after the grace, want nobody", n)
			}
			d.up(held) // the daemon still waits: it gets the end
			sent := d.take("CommandCompleted", "ShellLeaseReleased")
			if c := sent[0].(*wire.CommandCompleted); c.Status != wire.StatusCancelled {
				t.Errorf("got %s, want cancelled", c.Status)
			}
		})
	})
	t.Run("a new daemon adopts nothing", func(t *testing.T) {
		atDesk(t, func(t *testing.T, d *desk) {
			drop(d)
			d.up()
			d.take("CommandCompleted", "ShellLeaseReleased")
			d.acquire(1) // its fences begin anew
			d.take("ShellState", "ShellLeaseAcquired")
		})
	})
}

func TestSecretsStayHere(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		var s wire.EnvSnapshot
		d.l.Snapshot(&s)
		if v, listed := s.Env["API_TOKEN"]; !listed || v != "" {
			t.Errorf("got API_TOKEN %q, listed %v; want its name without its value", v, listed)
		}
		d.runs("export", shell.State{Digest: "d1", Vars: map[string]string{"DB": "postgres://u:hush@h/db", "MY_SECRET": "hush"}})
		state := d.told("ShellState")[0].(*wire.ShellState)
		if text := fmt.Sprint(state); strings.Contains(text, "hush") {
			t.Errorf("got %s, want no secret", text)
		}
		if !slices.Contains(state.Env.Unset, "API_TOKEN") {
			t.Errorf("got unset %v, want API_TOKEN", state.Env.Unset)
		}
	})
}

func TestFunctionBodiesTravelOnce(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		look := func(s shell.State) *wire.ShellState {
			d.runs("x", s)
			return d.told("ShellState")[0].(*wire.ShellState)
		}
		first := look(shell.State{Digest: "d1", Functions: map[string]string{"f": "f () { ls; }"}})
		second := look(shell.State{Digest: "d2", Functions: map[string]string{"f": "f () { ls; }", "g": "g () { rm; }"}})
		if first.Functions[0].Body == "" || second.Functions[0].Body != "" || second.Functions[1].Body == "" {
			t.Errorf("got %+v then %+v, want each body once", first.Functions, second.Functions)
		}
		// What is gone is forgotten on both sides, or they would keep every body there ever was.
		look(shell.State{Digest: "d3", Functions: map[string]string{"g": "g () { rm; }"}})
		if back := look(shell.State{Digest: "d2", Functions: map[string]string{"f": "f () { ls; }", "g": "g () { rm; }"}}); back.Functions[0].Body == "" || back.Functions[1].Body != "" {
			t.Errorf("got %+v, want the body of f again and not that of g", back.Functions)
		}
		for n := range 100 {
			look(shell.State{Digest: fmt.Sprint("n", n), Functions: map[string]string{"f": fmt.Sprint("f () { ", n, "; }")}})
		}
		d.l.mu.Lock()
		if n := len(d.l.bodies); n != 1 {
			t.Errorf("got %d bodies remembered, want 1", n)
		}
		d.l.mu.Unlock()
		d.drop()
		d.up()
		again := d.told("ShellState")[0].(*wire.ShellState)
		if again.Functions[0].Body == "" {
			t.Error("got no body on a new connection, want all of them again")
		}
	})
}

func TestTheUsersExitEndsLending(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.sh.types("exit 3\n")
		d.queued(1)
		close(d.sh.gone)
		if m := d.take("ShellLeaseDenied")[0].(*wire.ShellLeaseDenied); m.Reason != wire.DeniedNoShell {
			t.Errorf("got %s, want no_shell", m.Reason)
		}
		d.acquire(2)
		d.take("ShellLeaseDenied")
	})
}
