package tui

import (
	"strings"
	"testing"
	"time"

	"sublet/client/internal/lender"
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
	for _, width := range []int{120, 80, 40, 20} {
		m := &model{w: width, th: *testTheme(), now: time.Now, lending: lender.Lending{Holder: "orchestrator", Since: time.Now()}}
		for range wire.ShellQueueNamed {
			m.queue.Waiting = append(m.queue.Waiting, wire.LeaseWaiter{Agent: "engineer", Purpose: strings.Repeat("go test ./... && ", 20)})
		}
		m.queue.More = 984
		line := m.shellLine()
		fits(t, "queue", []string{line}, width, 1)
		if width >= 80 && !(strings.Contains(line, " more") && strings.Contains(line, "engineer")) {
			t.Errorf("%d cells: %q names nobody, or not how many wait", width, line)
		}
	}
}
