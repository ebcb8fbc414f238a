package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sublet/wire"
)

// inLine waits until exactly those wait for p's shell, in that order, by the commands they wait with.
func inLine(p *peer, commands ...string) {
	p.t.Helper()
	await(p, func(m *wire.ShellQueueChanged) bool {
		var waiting []string
		for _, w := range m.Waiting {
			waiting = append(waiting, w.Purpose)
		}
		return slices.Equal(waiting, commands)
	})
}

// I3: fairness between sessions: the agents of two sessions and a script of a third want one shell, again and again. First
// come, first served, whichever session they are of: nobody has it twice while another waits, and nobody starves.
func TestSessionsTakeTurns(t *testing.T) {
	const rounds = 4
	names := []string{"a", "b", "r"} // two agents, and `lease run`
	command := func(name string, round int) string { return fmt.Sprint("block ", name, round) }
	list := func(name string) (commands []string) {
		for round := range rounds {
			commands = append(commands, command(name, round))
		}
		return commands
	}
	r := newRig(t, bash("agent a", list("a")...), bash("agent b", list("b")...))
	p := r.dial(wantsQueue)
	script := r.dial(script)
	if script.session == p.session {
		t.Fatal("one session, want two")
	}
	other := r.dial(withoutShell)
	run := func(round int) wire.RequestID {
		id := requestID()
		script.send(&wire.LeaseRunRequest{RequestID: id, Command: wire.OSString(command("r", round)), ClientPID: p.pid})
		return id
	}

	p.shell.userRuns() // all of them wait for the user first
	a := p.ask("agent a")
	await(p, func(*wire.AcquireShellLease) bool { return true })
	b := p.ask("agent b", func(q *wire.AgentRequest) { q.SessionID = &other.session })
	inLine(p, command("b", 0))
	run(0)
	inLine(p, command("b", 0), command("r", 0))
	if ran := p.shell.ran(); len(ran) > 0 {
		t.Fatalf("ran %q while the user had the shell", ran)
	}
	p.shell.userDone()

	var want []string
	for round := range rounds {
		for i, name := range names {
			executing(p, command(name, round))
			want = append(want, command(name, round))
			var line []string // behind it: who has not had this round, then who waits with the next
			for j := range len(names) - 1 {
				k := i + 1 + j
				if next := round + k/len(names); next < rounds {
					line = append(line, command(names[k%len(names)], next))
				}
			}
			if len(line) > 0 {
				inLine(p, line...)
			}
			p.shell.finish()
			if name == "r" && round+1 < rounds {
				run(round + 1)
			}
		}
	}
	for _, id := range []wire.RequestID{a, b} {
		from := p
		if id == b {
			from = other
		}
		if end := from.ended(id); end.Status != wire.StatusSuccess {
			t.Errorf("%s: got %s %s, want success", id, end.Status, end.Summary)
		}
	}
	if ran := p.shell.ran(); !slices.Equal(ran, want) {
		t.Errorf("ran %s, want %s", strings.Join(ran, ", "), strings.Join(want, ", "))
	}
	nothingLent(t, p)
}
