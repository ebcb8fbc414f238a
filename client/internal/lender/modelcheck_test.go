package lender

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"sublet/lease"
	"sublet/lease/shell"
	"sublet/wire"
)

// diesMost is how long a cancelled command may take to end.
const diesMost = 5 * time.Second

// record is what can be seen from outside of the client: what it says and what its shell runs. Its methods are called
// by the lender's goroutines.
type record struct {
	ctx  context.Context // of what the user asks for
	stop context.CancelFunc
	work sync.WaitGroup // what the user asks for

	mu sync.Mutex
	// below: guarded by mu
	talks, up bool // messages pass; the daemon has answered
	sent      []wire.LeaseMessage
	allowed   map[string]wire.LeaseRef // executions, by whose lease
	judged    map[string]string        // and the state that they were judged in
	began     map[string]bool
	ended     map[string]bool // whose end was told, be it that they were refused
	lent      wire.LeaseRef   // the last lease that was said to be acquired
	over      map[wire.LeaseRef]bool
	bad       []string
}

func newRecord() *record {
	r := &record{
		allowed: map[string]wire.LeaseRef{}, judged: map[string]string{}, began: map[string]bool{}, ended: map[string]bool{}, over: map[wire.LeaseRef]bool{},
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

func (r *record) Observe(any) {}
func (r *record) AwaitDrawn() {}

func (r *record) wrongLocked(format string, args ...any) {
	r.bad = append(r.bad, fmt.Sprintf(format, args...))
}

// send is the client's way to the daemon.
func (r *record) send(m wire.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m := m.(type) {
	case *wire.ShellLeaseAcquired:
		if m.LeaseRef != r.lent && m.Fence <= r.lent.Fence {
			r.wrongLocked("lent under fence %d after %d", m.Fence, r.lent.Fence)
		}
		if r.over[m.LeaseRef] {
			r.wrongLocked("lent %s once more after it was over", m.LeaseID)
		}
		r.lent = m.LeaseRef
	case *wire.ShellLeaseReleased:
		r.over[m.LeaseRef] = true
	case *wire.CommandCompleted:
		r.ended[string(m.ExecutionID)] = true
	}
	if !r.talks {
		return errors.New("no link")
	}
	if m, ok := m.(wire.LeaseMessage); ok {
		r.sent = append(r.sent, m)
	}
	return nil
}

// begins is told by the shell of each command that it begins.
func (r *record) begins(c shell.Command, digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ref, known := r.allowed[c.Text]
	switch {
	case !known:
		r.wrongLocked("%s runs, which nobody asked for", c.Text)
	case r.ended[c.Text]:
		r.wrongLocked("%s runs, whose end was told", c.Text)
	case r.began[c.Text]:
		r.wrongLocked("%s runs twice", c.Text)
	case ref != r.lent:
		r.wrongLocked("%s runs under fence %d while %d is lent", c.Text, ref.Fence, r.lent.Fence)
	case digest != r.judged[c.Text]:
		r.wrongLocked("%s runs in state %s, judged in %s", c.Text, digest, r.judged[c.Text])
	case r.over[ref]:
		r.wrongLocked("%s runs under a lease that was said to be over", c.Text)
	}
	r.began[c.Text] = true
}

func (r *record) allow(id string, ref wire.LeaseRef, digest string) {
	r.set(func() { r.allowed[id], r.judged[id] = ref, digest })
}

// take returns what was sent since the last call.
func (r *record) take() []wire.LeaseMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.sent
	r.sent = nil
	return sent
}

func (r *record) open()  { r.set(func() { r.talks = true }) }
func (r *record) serve() { r.set(func() { r.up = true }) }
func (r *record) cut()   { r.set(func() { r.talks, r.up, r.sent = false, false, nil }) }

func (r *record) set(f func()) {
	r.mu.Lock()
	f()
	r.mu.Unlock()
}

func (r *record) served() (up bool) {
	r.set(func() { up = r.up })
	return up
}

// check looks at everything that must hold at any moment.
func (s *sides) check(t *rapid.T) {
	synctest.Wait()
	var bad []string
	s.set(func() { bad = s.bad })
	s.sh.set(func() { bad = append(bad, s.sh.bad...) })
	if len(bad) > 0 {
		t.Fatal(strings.Join(bad, "; "))
	}
	held, now := 0, time.Now()
	for _, l := range s.all {
		switch l.State {
		case lease.Held:
			held++
			most := max(l.Term, lease.Grace, lease.CancelBound, l.Timeout()+lease.TimeoutSlack)
			if at, ok := s.m.NextDeadline(); !ok || at.Sub(now) > most {
				t.Fatalf("%s is held with no end in sight: %v", l.ID, at)
			}
		case lease.Ended:
			if s.outcome[l] != 1 {
				t.Fatalf("%s ended %d times", l.ID, s.outcome[l])
			}
		default:
			if now.Sub(l.Asked) > l.Wait {
				t.Fatalf("%s waits past its bound", l.ID)
			}
		}
		if s.granted[l] > 1+s.preempted[l] {
			t.Fatalf("%s granted %d times", l.ID, s.granted[l])
		}
	}
	if held > 1 {
		t.Fatalf("%d hold at once", held)
	}
	for id := range s.running {
		if l := s.commands[id]; l.State != lease.Held || l.Running() != id {
			t.Fatalf("the borrower of %s waits for a command that nobody runs", id)
		}
	}
}

// settle lets everybody go, over a link that works again, and looks that nothing is left on either side and that the
// next one is served.
func (s *sides) settle() {
	if s.linked() {
		s.cut()
		s.l.Down()
		s.ready = nil
		s.notices()
	}
	s.comes(s.t)
	s.answered()
	s.drain()
	s.l.mu.Lock()
	g := s.l.grant
	inForce := g != nil && g.ending == ""
	s.l.mu.Unlock()
	if l := s.m.Current(); inForce && (l == nil || wireRef(l.Ref()) != g.ref()) || g == nil && l != nil {
		s.t.Fatalf("after the reconnect the client lends %+v, the daemon has lent %+v", g, l)
	}
	s.pass(time.Second)
	for _, l := range s.all {
		s.apply(s.m.Release(time.Now(), l))
	}
	s.rest()
	if s.sh.users() != "" {
		s.sh.ends(shell.State{})
	}
	s.sh.set(func() { s.sh.line, s.sh.broken, s.sh.looks = 0, nil, 0 })
	s.stop() // what the user asked for
	s.work.Wait()
	s.rest()
	s.check(s.t)
	if at, ok := s.m.NextDeadline(); ok || s.m.Len() != 0 {
		s.t.Fatalf("the daemon has %d leases left, and a deadline: %v at %v", s.m.Len(), ok, at)
	}
	for _, l := range s.all {
		if l.State != lease.Ended {
			s.t.Fatalf("%s is %v at the end", l.ID, l.State)
		}
	}
	if len(s.running) > 0 {
		s.t.Fatalf("borrowers still wait for %v", s.running)
	}
	s.l.mu.Lock()
	left := s.l.grant != nil || s.l.waiting != nil || !s.l.user.IsZero() || s.l.grace != nil || s.l.holding.stop != nil || s.l.holding.late != nil || s.sh.isHeld()
	s.l.mu.Unlock()
	if left {
		s.t.Fatalf("the client has something left: %+v", s.l.Lending())
	}
	l := new(lease.Lease)
	effects := s.m.Request(time.Now(), l, lease.Request{ID: "last"})
	s.all = append(s.all, l)
	s.apply(effects)
	s.rest()
	if l.State != lease.Held {
		s.t.Fatalf("the next one is %v, want held", l.State)
	}
}

// rest lets everything come to its end that does: commands that were cancelled may take a while, and looks at the shell.
func (s *sides) rest() {
	for range 3 {
		s.drain()
		s.pass(diesMost)
	}
	s.drain()
}

// drain delivers everything, in order, until nothing is said any more.
func (s *sides) drain() {
	for {
		synctest.Wait()
		s.collect()
		if !s.deliver() {
			return
		}
	}
}
