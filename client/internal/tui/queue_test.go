package tui

import (
	"strings"
	"testing"
	"time"

	"sublet/client/internal/lender"
	"sublet/lease/shell"
	"sublet/wire"
)

// Who has the shell, since when, and who waits for it and for what, as long as somebody waits (design.md 6).
func TestWhoWaits(t *testing.T) {
	w := open(t, 80, 24)
	hold := func(held time.Duration) {
		w.p.Observe(lender.LeaseChanged{Lending: lender.Lending{Holder: "orchestrator", Purpose: "make", Command: "make", Since: time.Now().Add(-held)}})
	}
	hold(75 * time.Second)
	w.p.Observe(leasedStart("x1", "make"))
	w.see("in your shell")
	queue := &wire.ShellQueueChanged{Waiting: []wire.LeaseWaiter{{Agent: "lease run", Purpose: "npm test\nrm x"}, {Agent: "engineer-2", Purpose: "go vet ./..."}}}
	w.p.Send(queue)
	w.see("orchestrator has your shell, 1m15s · waiting: lease run (npm test)")
	w.see("and 1 more")
	w.p.Send(&wire.ShellQueueChanged{Waiting: queue.Waiting[1:]})
	w.see("waiting: engineer-2 (go vet ./...)")
	w.seeNot("more")
	w.p.Send(&wire.ShellQueueChanged{Waiting: []wire.LeaseWaiter{}})
	w.seeNot("waiting:")
	w.p.Send(queue)
	w.see("waiting: lease run")
	w.p.Send(LinkChanged{}) // the queue is the daemon's
	w.see("the daemon is gone")
	w.seeNot("waiting:")
}

// However long the queue and its purposes, they take one line.
func TestTheQueueFitsItsLine(t *testing.T) {
	for _, width := range []int{120, 80, 60, 40, 20} {
		m := &model{w: width, th: *testTheme(), now: time.Now, lending: lender.Lending{Holder: "orchestrator", Since: time.Now()}}
		for range wire.ShellQueueNamed {
			m.queue.Waiting = append(m.queue.Waiting, wire.LeaseWaiter{Agent: "engineer", Purpose: strings.Repeat("go test ./... && ", 20)})
		}
		m.queue.More = 984
		line := m.shellLine()
		fits(t, "queue", []string{line}, width, 1)
		if width >= 80 && !(strings.Contains(line, " more") && strings.Contains(line, "engineer")) || width == 60 && !strings.Contains(line, "waiting: 1000") {
			t.Errorf("%d cells: %q names nobody, or not how many wait", width, line)
		}
	}
}

// The end of a turn ends its own cards. What a script borrowed the shell for goes on, and is told when it ends.
func TestTurnEndsLeaveOthersAlone(t *testing.T) {
	w := open(t, 80, 24)
	event := func(seq int64) wire.Event { return wire.Event{SessionID: "s1", TurnID: "t1", Seq: seq} }
	w.p.Send(&wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "go"})
	w.see("> go")
	w.p.Observe(lender.LeasedStarted{ExecutionID: "x9", Agent: "lease run", Command: "make all"})
	w.see("make all")
	w.p.Send(&wire.AgentComplete{Event: event(2), Status: wire.StatusCancelled, DurationMS: 1000})
	w.see("stopped")
	w.p.Observe(lender.LeasedOutput{ExecutionID: "x9", Data: []byte("building\r\n")})
	w.see("│ building")
	w.see("in your shell")
	w.keys("/new\r") // nor does another conversation end it
	w.see("a new conversation")
	w.p.Observe(lender.LeasedOutput{ExecutionID: "x9", Data: []byte("linking\r\n")})
	w.see("│ linking")
	w.p.Observe(lender.LeasedEnded{ExecutionID: "x9", Status: "ok", Result: shell.Result{Status: "ok", ExitCode: ptr(3), Output: []byte("building\nfailed\n")}})
	w.see("│ failed")
	w.see("exit 3")
	if text := w.screen.all(); strings.Count(text, "make all") != 1 {
		t.Errorf("told more than once:\n%s", text)
	}
}
