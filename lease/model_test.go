package lease

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestModel drives both sides at once, over a link that delays, drops, repeats and reorders, and holds what design.md
// section 6 promises: one holder at most, every waiter ends, nobody waits past their bound, first come first served, no
// command under a stale fence, nothing left at the end (I3, I4, I10).
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"":            w.check,
			"request":     w.request,
			"execute":     w.execute,
			"release":     w.release,
			"cancel":      w.cancel,
			"to client":   w.toClient,
			"to daemon":   w.toDaemon,
			"again":       w.again,
			"user begins": w.userBegins,
			"user ends":   w.userEnds,
			"take back":   w.takeBack,
			"completes":   w.completes,
			"keyboard":    w.keyboard,
			"drop link":   w.dropLink,
			"link back":   w.linkBack,
			"time":        func(t *rapid.T) { w.pass(time.Duration(rapid.IntRange(1, 40_000).Draw(t, "ms")) * time.Millisecond) },
		})
		w.finish()
	})
}

type message struct {
	kind string // to the client: offer, execute, cancel, release; to the daemon: wait, acquired, refused, started, completed, gone
	ref  Ref
	exec string
}

type world struct {
	t         *rapid.T
	now       time.Time
	m         *Manager
	all       []*Lease
	ends      map[*Lease]int
	grants    map[*Lease]int
	preempted map[*Lease]int
	execs     int

	down, up []message // on the link, towards the client and towards the daemon
	history  []message // what ever went up
	link     bool

	// The client.
	user     bool // the user's own command runs
	pending  []Ref
	held     Ref
	newest   uint64
	running  string
	asked    bool // for a command under held
	lostAt   time.Time
	answered map[string]bool
}

func newWorld(t *rapid.T) *world {
	f := &Fences{}
	f.Above(uint64(rapid.IntRange(0, 1000).Draw(t, "seed")))
	return &world{
		t: t, now: time.UnixMilli(1_000_000), m: NewManager(f), link: true,
		ends: map[*Lease]int{}, grants: map[*Lease]int{}, preempted: map[*Lease]int{}, answered: map[string]bool{},
	}
}

func (w *world) apply(effects []Effect) {
	for _, e := range effects {
		switch e.Do {
		case Offer:
			if !w.link {
				w.t.Fatalf("offer without a link")
			}
			w.down = append(w.down, message{"offer", e.Ref, ""})
		case Grant:
			w.grants[e.Lease]++
			for _, l := range w.all { // first come, first served
				if l == e.Lease {
					break
				}
				if l.State == Queued || l.State == Offered {
					w.t.Fatalf("%s granted before %s, which came first", e.Lease.ID, l.ID)
				}
			}
		case Cancel:
			w.send(message{"cancel", e.Ref, e.Execution})
		case Release:
			w.send(message{"release", e.Ref, ""})
		case End:
			w.ends[e.Lease]++
			if e.Lease.State != Ended || e.Reason == "" {
				w.t.Fatalf("end of %s: state %v, reason %q", e.Lease.ID, e.Lease.State, e.Reason)
			}
		}
	}
}

func (w *world) send(m message) {
	if w.link {
		w.down = append(w.down, m)
	}
}

func (w *world) answer(m message) {
	w.history = append(w.history, m)
	if w.link {
		w.up = append(w.up, m)
	}
}

func (w *world) request(t *rapid.T) {
	if len(w.all) > 40 {
		return
	}
	l := new(Lease)
	effects := w.m.Request(w.now, l, Request{
		ID:   fmt.Sprint("l", len(w.all)),
		Wait: time.Duration(rapid.IntRange(1, 90_000).Draw(t, "wait")) * time.Millisecond,
	})
	w.all = append(w.all, l)
	w.apply(effects)
}

func (w *world) one(t *rapid.T) *Lease {
	if len(w.all) == 0 {
		t.Skip("no lease")
	}
	return rapid.SampledFrom(w.all).Draw(t, "lease")
}

func (w *world) execute(t *rapid.T) {
	l := w.m.Current()
	if rapid.Bool().Draw(t, "any") {
		l = w.one(t)
	}
	if l == nil {
		t.Skip("nobody holds")
	}
	w.execs++
	exec := fmt.Sprint("x", w.execs)
	before, ran := l.State, l.Running()
	err := w.m.Execute(w.now, l, exec, time.Duration(rapid.IntRange(0, 200_000).Draw(t, "timeout"))*time.Millisecond)
	if err == nil {
		if before != Held || ran != "" {
			t.Fatalf("execute under a lease that is %v and runs %q", before, ran)
		}
		w.send(message{"execute", l.Ref(), exec})
	}
}

func (w *world) release(t *rapid.T) { w.apply(w.m.Release(w.now, w.one(t))) }

func (w *world) cancel(t *rapid.T) { w.apply(w.m.CancelCommand(w.now, w.one(t), CancelUser)) }

func (w *world) toClient(t *rapid.T) {
	if len(w.down) == 0 {
		t.Skip("nothing on the way")
	}
	msg := w.down[0]
	w.down = w.down[1:]
	switch msg.kind {
	case "offer":
		w.pending = append(w.pending, msg.ref)
		if w.user || w.running != "" || w.held != (Ref{}) {
			w.answer(message{"wait", msg.ref, ""})
		}
		if rapid.IntRange(0, 9).Draw(t, "refuse") == 0 {
			w.pending = w.pending[:len(w.pending)-1]
			w.answer(message{"refused", msg.ref, ""})
		}
		w.lend()
	case "execute":
		w.asked = w.asked || msg.ref == w.held
		if msg.ref != w.held || msg.ref.Fence < w.newest || w.running != "" {
			w.answer(message{"completed", msg.ref, msg.exec}) // status refused
			return
		}
		w.running = msg.exec
		w.answer(message{"started", msg.ref, msg.exec})
	case "cancel":
		if msg.ref == w.held && msg.exec == w.running {
			w.completes(t)
		}
	case "release":
		w.forget(msg.ref)
		w.answer(message{"gone", msg.ref, ""})
	}
}

// forget is the client's side of a release: idempotent, also for an offer that still waits; a command is cancelled.
func (w *world) forget(ref Ref) {
	for i, r := range w.pending {
		if r == ref {
			w.pending = append(w.pending[:i:i], w.pending[i+1:]...)
			break
		}
	}
	if w.held == ref {
		w.running, w.held = "", Ref{}
	}
	w.lend()
}

func (w *world) lend() {
	if w.user || w.held != (Ref{}) || len(w.pending) == 0 || !w.link {
		return
	}
	ref := w.pending[0]
	w.pending = w.pending[1:]
	if ref.Fence <= w.newest {
		w.t.Fatalf("fence %d granted after %d", ref.Fence, w.newest)
	}
	w.held, w.newest, w.asked = ref, ref.Fence, false
	w.answer(message{"acquired", ref, ""})
}

// userBegins comes before a holder that has not asked for a command.
func (w *world) userBegins(*rapid.T) {
	w.user = true
	if w.held != (Ref{}) && !w.asked {
		w.answer(message{"gone", w.held, preempted})
		w.held = Ref{}
	}
}

// preempted is how the client's message is told from the ends of a lease.
const preempted = "user first"

func (w *world) userEnds(*rapid.T) {
	w.user = false
	w.lend()
}

func (w *world) takeBack(*rapid.T) {
	if w.held == (Ref{}) {
		return
	}
	ref := w.held
	if w.running != "" {
		w.answer(message{"completed", ref, w.running})
	}
	w.running, w.held, w.user = "", Ref{}, true
	w.answer(message{"gone", ref, Revoked})
}

func (w *world) completes(*rapid.T) {
	if w.running == "" {
		return
	}
	exec := w.running
	w.running = ""
	w.answer(message{"completed", w.held, exec})
}

// keyboard is given to the command that runs, or taken from it.
func (w *world) keyboard(t *rapid.T) {
	if w.running != "" {
		w.answer(message{rapid.SampledFrom([]string{"keyboard", "no keyboard"}).Draw(t, "kind"), w.held, w.running})
	}
}

func (w *world) toDaemon(t *rapid.T) {
	if len(w.up) == 0 {
		t.Skip("nothing on the way")
	}
	msg := w.up[0]
	w.up = w.up[1:]
	w.receive(msg)
}

// again repeats any message there ever was: duplicates, and such as come much too late.
func (w *world) again(t *rapid.T) {
	if len(w.history) == 0 || !w.link {
		t.Skip("no message")
	}
	w.receive(rapid.SampledFrom(w.history).Draw(t, "message"))
}

func (w *world) receive(msg message) {
	switch msg.kind {
	case "wait":
		w.m.Wait(w.now, msg.ref, "user", 0)
	case "acquired":
		w.apply(w.m.Acquired(w.now, msg.ref))
	case "refused":
		w.apply(w.m.Refused(w.now, msg.ref, Denied))
	case "started":
		w.m.Started(w.now, msg.ref, msg.exec)
	case "keyboard":
		w.m.Keyboard(w.now, msg.ref, msg.exec, true)
	case "no keyboard":
		w.m.Keyboard(w.now, msg.ref, msg.exec, false)
	case "completed":
		before := w.m.Current()
		ok, effects := w.m.Completed(w.now, msg.ref, msg.exec)
		if ok && (before == nil || before.Ref() != msg.ref || w.answered[msg.exec]) {
			w.t.Fatalf("completion of %s under %v taken for another's or twice", msg.exec, msg.ref)
		}
		if ok {
			w.answered[msg.exec] = true
		}
		w.apply(effects)
	case "gone":
		outcome := msg.exec
		switch outcome {
		case "":
			outcome = Released
		case preempted:
			l := w.m.Current()
			w.apply(w.m.Preempted(w.now, msg.ref, "user"))
			if l != nil && l.Ref() != msg.ref && l.State != Ended {
				w.preempted[l]++
			}
			return
		}
		w.apply(w.m.Gone(w.now, msg.ref, outcome))
	}
}

func (w *world) dropLink(*rapid.T) {
	if !w.link {
		return
	}
	w.link, w.down, w.up, w.lostAt = false, nil, nil, w.now
	w.pending = nil
	if w.running == "" {
		w.held = Ref{}
	}
	w.apply(w.m.Disconnect(w.now))
}

func (w *world) linkBack(*rapid.T) {
	if w.link {
		return
	}
	w.link = true
	var held []Ref
	var execs []string
	if w.held != (Ref{}) {
		held, execs = []Ref{w.held}, []string{w.running}
	}
	adopted, effects := w.m.Reconnect(w.now, held, execs)
	effects = append([]Effect(nil), effects...)
	if adopted == nil || adopted.Ref() != w.held { // Ready.leases: the client drops the rest
		w.held, w.running = Ref{}, ""
	}
	w.apply(effects)
}

// pass lets time go by, with a Tick at every deadline as one timer would give, and looks that none is left overdue.
func (w *world) pass(d time.Duration) {
	until := w.now.Add(d)
	for n := 0; ; n++ {
		at, ok := w.m.NextDeadline()
		if !ok || at.After(until) {
			break
		}
		if n > 1000 {
			w.t.Fatalf("the deadline %v is due for ever", at)
		}
		if at.After(w.now) {
			w.now = at
		}
		w.apply(w.m.Tick(w.now))
	}
	w.now = until
	if !w.link && w.running != "" && w.now.Sub(w.lostAt) > Grace { // the client's own grace
		w.running, w.held = "", Ref{}
	}
}

func (w *world) check(*rapid.T) {
	held := 0
	for _, l := range w.all {
		switch l.State {
		case Held:
			held++
		case Ended:
			if w.ends[l] != 1 {
				w.t.Fatalf("%s ended %d times", l.ID, w.ends[l])
			}
		default:
			if w.now.Sub(l.Asked) > l.Request.Wait {
				w.t.Fatalf("%s waits past its bound", l.ID)
			}
		}
		if w.grants[l] > 1+w.preempted[l] {
			w.t.Fatalf("%s granted %d times", l.ID, w.grants[l])
		}
	}
	if held > 1 {
		w.t.Fatalf("%d hold at once", held)
	}
	if w.running != "" && w.held == (Ref{}) {
		w.t.Fatalf("a command runs without a lease")
	}
}

// finish lets everybody go and looks that both sides are empty and that the next one is served.
func (w *world) finish() {
	w.linkBack(w.t)
	for _, l := range w.all {
		w.apply(w.m.Release(w.now, l))
	}
	w.drain()
	w.pass(2 * MaxTimeout)
	w.drain()
	w.check(w.t)
	if w.m.Len() != 0 {
		w.t.Fatalf("%d leases left", w.m.Len())
	}
	if at, ok := w.m.NextDeadline(); ok {
		w.t.Fatalf("a deadline left at %v", at)
	}
	if w.held != (Ref{}) || w.running != "" || len(w.pending) != 0 {
		w.t.Fatalf("the client still lends %v, runs %q, keeps %v", w.held, w.running, w.pending)
	}
	for _, l := range w.all {
		if l.State != Ended {
			w.t.Fatalf("%s is %v at the end", l.ID, l.State)
		}
	}
	w.user = false
	l := new(Lease)
	effects := w.m.Request(w.now, l, Request{ID: "last"})
	w.all = append(w.all, l)
	w.apply(effects)
	w.down = w.down[1:]
	w.pending = []Ref{l.Ref()}
	w.lend()
	w.drain()
	if l.State != Held {
		w.t.Fatalf("the next one is %v, want held", l.State)
	}
}

func (w *world) drain() {
	for len(w.down)+len(w.up) > 0 {
		for len(w.up) > 0 {
			msg := w.up[0]
			w.up = w.up[1:]
			w.receive(msg)
		}
		if len(w.down) > 0 {
			msg := w.down[0]
			w.down = w.down[1:]
			switch msg.kind {
			case "release":
				w.forget(msg.ref)
				w.answer(message{"gone", msg.ref, ""})
			case "cancel":
				if msg.ref == w.held && msg.exec == w.running {
					w.completes(w.t)
				}
			case "execute":
				w.answer(message{"completed", msg.ref, msg.exec})
			case "offer":
				w.pending = append(w.pending, msg.ref)
				w.lend()
			}
		}
	}
}
