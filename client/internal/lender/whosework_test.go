package lender

import (
	"slices"
	"testing"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// Whose work a state may be is sent with it: also where the state could not be read behind the borrowed command, and where
// the link was lost that it was sent on. What was sent as the user's was trusted, and was the agent's.
func TestWhoseWorkAStateIs(t *testing.T) {
	state := func(digest string) shell.State { return shell.State{Dir: "/tmp", Digest: digest} }
	told := func(d *desk, kinds []string, want ...wire.ExecutionID) {
		d.t.Helper()
		for _, m := range d.told(kinds...) {
			if s, ok := m.(*wire.ShellState); ok && (s.Executions == nil || !slices.Equal(s.Executions, want)) {
				d.t.Errorf("%s is told as the work of %q, want %q", s.Digest, s.Executions, want)
			}
		}
	}
	lent := func(d *desk, n int, id string, to shell.State) {
		d.t.Helper()
		d.begin(n, id, "make")
		d.sh.finish(0, to)
		told(d, []string{"CommandCompleted", "ShellState"}, wire.ExecutionID(id))
		d.release(n, "completed")
		d.take("ShellLeaseReleased")
	}
	for _, c := range []struct {
		name string
		do   func(d *desk)
	}{
		{"each its own", func(d *desk) {
			lent(d, 1, "x1", state("d1"))
			d.runs("cd", state("d2"))
			told(d, []string{"ShellState"})
			lent(d, 2, "x2", state("d3"))
		}},
		{"one that changed nothing", func(d *desk) {
			d.begin(1, "x1", "true")
			d.sh.finish(0, shell.State{})
			d.take("CommandCompleted")
			d.release(1, "completed")
			d.take("ShellLeaseReleased")
			d.runs("cd", state("d1"))
			told(d, []string{"ShellState"})
		}},
		{"a state that could not be had", func(d *desk) {
			d.begin(1, "x1", "true")
			d.sh.looks = time.Hour
			d.sh.finish(0, state("d1"))
			time.Sleep(stateBound)
			d.take("CommandCompleted")
			d.release(1, "completed")
			d.take("ShellLeaseReleased")
			d.sh.looks = 0
			told(d, []string{"ShellState"}, "x1")
			d.runs("cd", state("d2"))
			told(d, []string{"ShellState"})
		}},
		{"put back by the user", func(d *desk) {
			lent(d, 1, "x1", state("d1"))
			if _, _, err := d.l.UndoShell(d.t.Context(), false); err != nil {
				d.t.Error(err)
			}
			told(d, []string{"ShellState"}, "x1")
		}},
		{"told on a link that was lost", func(d *desk) {
			lent(d, 1, "x1", state("d1"))
			d.drop()
			d.up()
			told(d, []string{"ShellState"}, "x1") // it may not have come
			d.runs("cd", state("d2"))
			told(d, []string{"ShellState"})
			d.drop()
			d.up()
			told(d, []string{"ShellState"})
		}},
		{"while there is no link", func(d *desk) {
			d.begin(1, "x1", "cd")
			d.drop()
			d.sh.finish(0, state("d1"))
			d.take()
			d.runs("cd", state("d2"))
			d.up(wire.HeldLease{LeaseID: ref(1).LeaseID, Fence: 1, ExecutionID: "x1"})
			d.release(1, "completed")
			told(d, []string{"CommandCompleted", "ShellLeaseReleased", "ShellState"}, "x1")
		}},
		{"a refused one", func(d *desk) {
			d.acquire(1)
			d.l.Handle(&wire.ExecuteLeasedCommand{LeaseRef: ref(1), ExecutionID: "x1", Command: "ls", Fingerprint: "another"})
			d.take("ShellLeaseAcquired", "CommandCompleted")
			d.release(1, "completed")
			d.take("ShellLeaseReleased")
			d.runs("cd", state("d1"))
			told(d, []string{"ShellState"})
		}},
	} {
		t.Run(c.name, func(t *testing.T) { atDesk(t, func(_ *testing.T, d *desk) { c.do(d) }) })
	}
}
