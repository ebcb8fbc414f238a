package server_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sublet/wire"
	"sublet/wire/jsonview"
	"sublet/wire/wiretest"
)

// transcript returns what section 15 of PROTOCOL.md says that both sides send.
func transcript(t *testing.T) (lines []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "wire", "PROTOCOL.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## 15. A minimal lender\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "→ ") || strings.HasPrefix(line, "← ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// A client that sends what section 15 of PROTOCOL.md has it send, and nothing else, lends its shell: the daemon sends what the page
// says. Only ids and fences are other ones, and times.
func TestMinimalLender(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	p.send(&wire.EnvSnapshot{
		ProtocolMin: 1, ProtocolMax: 1, Client: wire.ClientInfo{Name: "minimal", PID: 7}, Capabilities: []string{wire.CapShell}, Cwd: "/home/u", AfterSeq: -1,
	})
	await(p, func(*wire.Ready) bool { return true })
	s := r.dial(script)
	var request wire.RequestID
	seen := 0 // of the lease messages that came
	next := func() wire.LeaseMessage {
		t.Helper()
		n := 0
		m := await(p, func(wire.LeaseMessage) bool { n++; return n > seen })
		seen++
		return m
	}
	lent := map[wire.LeaseID]wire.LeaseRef{} // by the page's ids
	ran := map[wire.ExecutionID]wire.ExecutionID{}
	lines := transcript(t)
	if len(lines) < 13 {
		t.Fatalf("the page has %d lines", len(lines))
	}
	borrow := func(command wire.OSString) {
		request = requestID()
		s.send(&wire.LeaseRunRequest{RequestID: request, Command: command, ClientPID: 7})
	}
	for i, line := range lines {
		m, err := wiretest.FromJSON([]byte(line[len("→ "):]))
		if err != nil {
			t.Fatalf("line %d: %v: %s", i+1, err, line)
		}
		if again := jsonview.Of(m); string(again) != line[len("→ "):] {
			t.Errorf("line %d: every field in its order is %s, the page has %s", i+1, again, line)
		}
		if strings.HasPrefix(line, "→ ") {
			switch m := m.(type) {
			case *wire.CommandStarted:
				m.LeaseRef, m.ExecutionID = lent[m.LeaseID], ran[m.ExecutionID]
			case *wire.CommandOutput:
				m.LeaseRef, m.ExecutionID = lent[m.LeaseID], ran[m.ExecutionID]
			case *wire.CommandCompleted:
				m.LeaseRef, m.ExecutionID = lent[m.LeaseID], ran[m.ExecutionID]
			case wire.LeaseMessage:
				*m.Ref() = lent[m.Ref().LeaseID]
			}
			p.send(m)
			if wire.KindOf(m) == "ShellState" {
				borrow("ls -l")
			}
			continue
		}
		if cancel, ok := m.(*wire.CancelLeasedCommand); ok { // the page begins here: a command runs
			borrow("sleep 100")
			offer := next()
			lent[cancel.LeaseID] = *offer.Ref()
			p.send(&wire.ShellLeaseAcquired{LeaseRef: *offer.Ref(), Cwd: "/home/u", State: "d1"})
			exec := next().(*wire.ExecuteLeasedCommand)
			ran[cancel.ExecutionID] = exec.ExecutionID
			p.send(&wire.CommandStarted{LeaseRef: exec.LeaseRef, ExecutionID: exec.ExecutionID})
			await(s, func(m *wire.CommandStarted) bool { return m.RequestID == request })
			s.send(&wire.CancelRequest{RequestID: &request})
		}
		got := next()
		switch want := m.(type) {
		case *wire.AcquireShellLease:
			lent[want.LeaseID] = *got.Ref()
			if a, ok := got.(*wire.AcquireShellLease); ok && a.WaitMS <= want.WaitMS && a.WaitMS > want.WaitMS-5000 {
				want.WaitMS = a.WaitMS
			}
			want.LeaseRef = *got.Ref()
		case *wire.ExecuteLeasedCommand:
			if x, ok := got.(*wire.ExecuteLeasedCommand); ok {
				ran[want.ExecutionID] = x.ExecutionID
			}
			want.LeaseRef, want.ExecutionID = lent[want.LeaseID], ran[want.ExecutionID]
		case *wire.CancelLeasedCommand:
			want.LeaseRef, want.ExecutionID = lent[want.LeaseID], ran[want.ExecutionID]
		case wire.LeaseMessage:
			*want.Ref() = lent[want.Ref().LeaseID]
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("line %d: got %+v, the page has %+v", i+1, got, m)
		}
	}
	for _, status := range []string{wire.StatusOK, wire.StatusCancelled} {
		await(s, func(m *wire.CommandCompleted) bool { return m.Status == status })
	}
	if has(p, func(*wire.Error) bool { return true }) {
		t.Errorf("it is refused something:\n%s", p.story())
	}
	nothingLent(t, s)
}
