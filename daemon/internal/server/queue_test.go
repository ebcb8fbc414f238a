package server_test

import (
	"slices"
	"testing"

	"sublet/wire"
)

func wantsQueue(env *wire.EnvSnapshot) { env.Capabilities = append(env.Capabilities, wire.CapQueue) }

// queues are what a client was told of who waits for its shell, in order.
func queues(p *peer) (all []wire.ShellQueueChanged) {
	for _, m := range p.all() {
		if q, ok := m.(*wire.ShellQueueChanged); ok {
			all = append(all, *q)
		}
	}
	return all
}

// "Who waits" is on the screen of whose shell it is (design.md 6): the client is told when the queue behind the holder
// changes, a client that is back too, and one without the capability never. A command that nobody queues behind costs no
// message.
func TestTheClientIsToldItsQueue(t *testing.T) {
	r := newRig(t, bash("list", "ls"))
	p, plain := r.dial(wantsQueue), r.dial()
	p.ended(p.ask("list"))
	if got := queues(p); len(got) != 0 {
		t.Errorf("nobody queued, and it was told %+v", got)
	}

	s := r.dial(script)
	borrow := func(command string, of *peer) wire.RequestID {
		id := requestID()
		s.send(&wire.LeaseRunRequest{RequestID: id, Command: wire.OSString(command), ClientPID: of.pid})
		return id
	}
	borrow("block", plain)
	executing(plain, "block")
	borrow("ls", plain)

	borrow("block", p)
	exec := executing(p, "block")
	others := r.dial(script)
	s = others
	second := borrow("echo second", p)
	await(p, func(q *wire.ShellQueueChanged) bool { return len(q.Waiting) == 1 })
	third := borrow("echo third", p)
	q := await(p, func(q *wire.ShellQueueChanged) bool { return len(q.Waiting) == 2 })
	purposes := []string{q.Waiting[0].Purpose, q.Waiting[1].Purpose}
	if want := []string{"echo second", "echo third"}; !slices.Equal(purposes, want) || q.More != 0 || q.Waiting[0].Agent != "lease run" || q.Waiting[0].LeaseID == "" {
		t.Errorf("told %+v, want %q in order", q, want)
	}

	// A link that is back begins with the queue as it is.
	p.close()
	back := r.dial(wantsQueue, asPID(p.pid), inSession(p.session, -1), func(env *wire.EnvSnapshot) {
		env.Leases = []wire.HeldLease{{LeaseID: exec.LeaseID, Fence: exec.Fence, ExecutionID: exec.ExecutionID}}
	})
	q = await(back, func(*wire.ShellQueueChanged) bool { return true })
	if len(q.Waiting) != 2 || q.Waiting[0].Purpose != "echo second" {
		t.Errorf("told after coming back: %+v", q)
	}

	others.send(&wire.CancelRequest{RequestID: &second})
	await(back, func(q *wire.ShellQueueChanged) bool {
		return len(q.Waiting) == 1 && q.Waiting[0].Purpose == "echo third"
	})
	others.send(&wire.CancelRequest{RequestID: &third})
	await(back, func(q *wire.ShellQueueChanged) bool { return len(q.Waiting) == 0 && q.Waiting != nil })
	back.send(&wire.CommandCompleted{LeaseRef: exec.LeaseRef, ExecutionID: exec.ExecutionID, Status: wire.StatusOK})
	plain.shell.finish()
	nothingLent(t, back)
	if got := queues(plain); len(got) != 0 {
		t.Errorf("a client without the capability was told %+v", got)
	}
}

// However many wait, the message stays small.
func TestTheQueueIsNamedInPart(t *testing.T) {
	r := newRig(t)
	p := r.dial(wantsQueue)
	const all = wire.ShellQueueNamed + 3
	var clients []*peer
	for i := range all + 1 {
		if i%3 == 0 { // three a connection
			clients = append(clients, r.dial(script))
		}
		clients[len(clients)-1].send(&wire.LeaseRunRequest{RequestID: requestID(), Command: "block", ClientPID: p.pid})
		if i == 0 {
			executing(p, "block")
		}
	}
	q := await(p, func(q *wire.ShellQueueChanged) bool { return len(q.Waiting)+q.More == all })
	for _, c := range clients {
		c.close()
	}
	nothingLent(t, p)
	if len(q.Waiting) != wire.ShellQueueNamed || q.More != all-wire.ShellQueueNamed {
		t.Errorf("named %d and %d more, want %d and %d", len(q.Waiting), q.More, wire.ShellQueueNamed, all-wire.ShellQueueNamed)
	}
}
