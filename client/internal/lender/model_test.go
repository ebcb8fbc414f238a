package lender

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"sublet/lease"
	"sublet/lease/shell"
	"sublet/wire"
)

// TestBothSides drives the two sides of the lease at once, the daemon's Manager and the client's Lender themselves, over
// a link that delays, loses, repeats and reorders messages, drops, and comes back, also to another daemon, and a shell that
// the user types into. It holds what docs/conformance.md promises: one holder at most; every waiter ends; nobody waits past
// their bound; first come, first served; no command runs under a stale fence, or twice; the user is first, and keeps every
// key; nothing is left when all is over (rows I4 and I10). `make fuzz` runs it 100,000 times.
func TestBothSides(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var failed any // rapid tells by a panic, which must not end in the bubble's own goroutine
		synctest.Test(t, func(*testing.T) {
			defer func() { failed = recover() }()
			s := newSides(rt)
			defer s.shut()
			for range 5 { // rapid.steps each
				rt.Repeat(s.actions())
			}
			s.settle()
		})
		switch { // apart, since rapid takes what comes from one place for one failure while it looks for the shortest run
		case failed == nil:
		case fmt.Sprintf("%T", failed) == "rapid.invalidData":
			panic(failed)
		default:
			panic(failed)
		}
	})
}

// actions are what may happen next. What shall happen more often has several names.
func (s *sides) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":                s.check,
		"request":         s.request,
		"execute":         s.execute,
		"execute 2":       s.execute,
		"release":         seldom(1, func(t *rapid.T) { s.apply(s.m.Release(time.Now(), s.one(t))) }),
		"revoke":          seldom(3, func(t *rapid.T) { s.apply(s.m.Revoke(time.Now(), s.one(t))) }),
		"cancel":          seldom(1, func(t *rapid.T) { s.apply(s.m.CancelCommand(time.Now(), s.one(t), lease.CancelUser)) }),
		"to client":       s.toClient,
		"to daemon":       s.toDaemon,
		"flow":            s.flow,
		"flow 2":          s.flow,
		"flow 3":          s.flow,
		"late or twice":   s.again,
		"user types":      seldom(1, s.userTypes),
		"user runs":       seldom(2, s.userRuns),
		"user takes back": seldom(3, func(*rapid.T) { s.l.TakeBack() }),
		"user undoes":     seldom(3, s.undoes),
		"mode changes":    seldom(3, s.mode),
		"editor breaks":   seldom(4, s.breaks),
		"command prints":  s.prints,
		"command ends":    s.ends,
		"command ends 2":  s.ends,
		"link drops":      seldom(3, s.drops),
		"daemon notices":  func(*rapid.T) { s.notices() },
		"client comes":    func(t *rapid.T) { s.comes(t); s.answeredSoon(t) },
		"daemon answers":  func(*rapid.T) { s.answered() },
		"another daemon":  seldom(6, s.restart),
		"time":            func(t *rapid.T) { s.pass(time.Duration(rapid.IntRange(1, 40_000).Draw(t, "ms")) * time.Millisecond) },
	}
}

// seldom is one time in 2 to the power of n.
func seldom(n int, f func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		for range n {
			if rapid.Bool().Draw(t, "not now") {
				t.Skip("not now")
			}
		}
		f(t)
	}
}

// sides is the daemon's side as package hub drives it, without its goroutines, and the link.
type sides struct {
	*record
	t      *rapid.T
	l      *Lender
	sh     *fake
	fences *lease.Fences
	m      *lease.Manager

	all       []*lease.Lease
	outcome   map[*lease.Lease]int     // how often it ended
	granted   map[*lease.Lease]int     // how often it was granted
	preempted map[*lease.Lease]int     // how often it went back because the user came before its command
	running   map[string]time.Duration // executions that their borrower waits for, with the time they may take
	commands  map[string]*lease.Lease  // every execution there was
	knows     bool                     // the daemon believes in a link
	ready     *wire.Ready              // on its way to a client that has just come
	down, up  []wire.LeaseMessage      // on their way to the client, and to the daemon
	was       [2][]wire.LeaseMessage   // all that were sent on this link, to the client and to the daemon
	n         int
}

func newSides(t *rapid.T) *sides {
	s := &sides{
		record: newRecord(), t: t, sh: newFake(), fences: &lease.Fences{},
		outcome: map[*lease.Lease]int{}, granted: map[*lease.Lease]int{}, preempted: map[*lease.Lease]int{}, running: map[string]time.Duration{}, commands: map[string]*lease.Lease{},
	}
	s.sh.began = func(c shell.Command) { s.begins(c, s.sh.digest()) }
	s.sh.looks = rapid.SampledFrom([]time.Duration{0, time.Millisecond, 2 * stateBound}).Draw(t, "looks")
	s.m = lease.NewManager(s.fences)
	s.l = New(Options{Shell: s.sh, Send: s.send, Observer: s.record})
	s.sh.l = s.l
	s.comes(t)
	s.answered()
	return s
}

// shut ends what a run, also a failed one, left going.
func (s *sides) shut() {
	s.stop()
	s.work.Wait()
	s.l.Close()
}

func (s *sides) id(kind string) string {
	s.n++
	return fmt.Sprint(kind, s.n)
}

// The borrowers.

func (s *sides) request(t *rapid.T) {
	if len(s.all) >= 30 {
		t.Skip("enough")
	}
	l := new(lease.Lease)
	effects := s.m.Request(time.Now(), l, lease.Request{
		ID: s.id("l"), Holder: "agent", Wait: rapid.SampledFrom([]time.Duration{time.Minute, 90 * time.Second, 10 * time.Second, 10 * time.Millisecond}).Draw(t, "wait"),
	})
	s.all = append(s.all, l)
	s.apply(effects)
}

func (s *sides) one(t *rapid.T) *lease.Lease {
	if len(s.all) == 0 {
		t.Skip("no lease")
	}
	if l := s.m.Current(); l != nil && rapid.Bool().Draw(t, "the holder") {
		return l
	}
	return s.all[len(s.all)-1-rapid.IntRange(0, len(s.all)-1).Draw(t, "lease")]
}

// execute is mostly the holder's next command, and now and then that of one who does not hold.
func (s *sides) execute(t *rapid.T) {
	l := s.m.Current()
	if l == nil && rapid.Bool().Draw(t, "first come") {
		s.request(t)
		s.flow(t)
		l = s.m.Current()
	}
	if l == nil || rapid.IntRange(0, 9).Draw(t, "whose") == 0 {
		l = s.one(t)
	}
	id := s.id("x")
	held := l.State == lease.Held && l.Running() == ""
	timeout := rapid.SampledFrom([]time.Duration{2 * time.Minute, 10 * time.Second, time.Millisecond}).Draw(t, "timeout")
	if err := s.m.Execute(time.Now(), l, id, timeout); err != nil {
		return
	}
	if !held {
		t.Fatalf("a command was taken for %s, which is %v", l.ID, l.State)
	}
	ref := wireRef(l.Ref())
	s.commands[id], s.running[id] = l, timeout
	digest := s.sh.digest()
	s.allow(id, ref, digest)
	s.tell(&wire.ExecuteLeasedCommand{
		LeaseRef: ref, ExecutionID: wire.ExecutionID(id), Command: wire.OSString(id), TimeoutMS: timeout.Milliseconds(),
		Fingerprint: wire.Fingerprint(wire.OSString(id), "", digest),
	})
}

func wireRef(r lease.Ref) wire.LeaseRef {
	return wire.LeaseRef{LeaseID: wire.LeaseID(r.ID), Fence: r.Fence}
}

// apply is what the hub does with effects.
func (s *sides) apply(effects []lease.Effect) {
	for _, e := range effects {
		ref := wireRef(e.Ref)
		switch e.Do {
		case lease.Offer:
			if !s.knows {
				s.t.Fatalf("%s offered without a link", e.Ref.ID)
			}
			s.tell(&wire.AcquireShellLease{LeaseRef: ref, Agent: e.Lease.Holder})
		case lease.Grant:
			s.granted[e.Lease]++
			for _, l := range s.all {
				if l == e.Lease {
					break
				}
				if l.State != lease.Ended {
					s.t.Fatalf("%s granted before %s, which came first and is %v", e.Lease.ID, l.ID, l.State)
				}
			}
		case lease.Cancel:
			s.tell(&wire.CancelLeasedCommand{LeaseRef: ref, ExecutionID: wire.ExecutionID(e.Execution), Reason: e.Reason})
		case lease.Release:
			s.tell(&wire.ReleaseShellLease{LeaseRef: ref, Reason: e.Reason})
		case lease.End:
			s.outcome[e.Lease]++
			if e.Execution != "" {
				s.over(e.Execution)
			}
		}
	}
}

// over is the one end of an execution that its borrower hears of.
func (s *sides) over(id string) {
	if _, waits := s.running[id]; !waits {
		s.t.Fatalf("%s ended twice", id)
	}
	delete(s.running, id)
}

func (s *sides) tell(m wire.LeaseMessage) {
	if s.knows {
		s.was[0] = append(s.was[0], m)
		s.down = append(s.down, m)
	}
}

// The link.

// fate takes a message off the link, most often the first: now and then a later one, and now and then it is lost, or is
// there for once more.
func (s *sides) fate(t *rapid.T, queue *[]wire.LeaseMessage) wire.LeaseMessage {
	if len(*queue) == 0 {
		t.Skip("nothing on the way")
	}
	i, fate := 0, rapid.IntRange(0, 31).Draw(t, "fate")
	if fate < 4 {
		i = rapid.IntRange(0, len(*queue)-1).Draw(t, "which")
	}
	m := (*queue)[i]
	if fate != 4 {
		*queue = append((*queue)[:i:i], (*queue)[i+1:]...)
	}
	if fate == 5 {
		return nil
	}
	return m
}

func (s *sides) toClient(t *rapid.T) {
	if !s.served() {
		t.Skip("no link")
	}
	if m := s.fate(t, &s.down); m != nil {
		s.l.Handle(m)
	}
}

func (s *sides) toDaemon(t *rapid.T) {
	s.collect()
	if m := s.fate(t, &s.up); m != nil {
		s.receive(m)
	}
}

// flow lets messages arrive as they should, for a while.
func (s *sides) flow(t *rapid.T) {
	s.answered()
	for range rapid.SampledFrom([]int{1, 2, 5, 20}).Draw(t, "messages") {
		synctest.Wait()
		s.collect()
		s.deliver()
	}
}

// deliver delivers one message, and reports false where there is none.
func (s *sides) deliver() bool {
	switch {
	case len(s.down) > 0 && s.served():
		m := s.down[0]
		s.down = s.down[1:]
		s.l.Handle(m)
	case len(s.up) > 0:
		m := s.up[0]
		s.up = s.up[1:]
		s.receive(m)
	default:
		return false
	}
	return true
}

// collect takes what the client has sent.
func (s *sides) collect() {
	sent := s.take()
	s.was[1] = append(s.was[1], sent...)
	s.up = append(s.up, sent...)
}

// again delivers any message of this link once more, however late.
func (s *sides) again(t *rapid.T) {
	if to := rapid.IntRange(0, 1).Draw(t, "to"); len(s.was[to]) > 0 {
		m := s.was[to][rapid.IntRange(0, len(s.was[to])-1).Draw(t, "message")]
		switch {
		case to == 1:
			s.receive(m)
		case s.served():
			s.l.Handle(m)
		}
	}
}

// receive is what the hub does with the client's messages.
func (s *sides) receive(m wire.LeaseMessage) {
	now, ref := time.Now(), lease.Ref{ID: string(m.Ref().LeaseID), Fence: m.Ref().Fence}
	switch m := m.(type) {
	case *wire.ShellLeaseQueued:
		s.m.Wait(now, ref, m.Holder, time.Duration(m.HeldMS)*time.Millisecond)
	case *wire.ShellLeaseAcquired:
		s.apply(s.m.Acquired(now, ref))
	case *wire.ShellLeaseDenied:
		s.apply(s.m.Refused(now, ref, lease.Denied))
	case *wire.CommandStarted:
		s.m.Started(now, ref, string(m.ExecutionID))
	case *wire.CommandOutput:
		if l := s.m.Current(); s.m.Output(ref, string(m.ExecutionID)) && (l.Ref() != ref || l.Running() != string(m.ExecutionID)) {
			s.t.Fatalf("output of %s taken for that of %s", m.ExecutionID, l.Running())
		}
	case *wire.CommandCompleted:
		ok, effects := s.m.Completed(now, ref, string(m.ExecutionID))
		if ok {
			s.over(string(m.ExecutionID))
		}
		s.apply(effects)
	case *wire.ShellLeaseReleased:
		if m.Reason != wire.ReleasedUserFirst {
			s.apply(s.m.Gone(now, ref, lease.Released))
			return
		}
		l := s.m.Current()
		if l == nil || l.Ref() != ref {
			s.apply(s.m.Preempted(now, ref, "user"))
			return
		}
		x := l.Running()
		s.apply(s.m.Preempted(now, ref, "user"))
		if l.State != lease.Ended {
			s.preempted[l]++
			delete(s.running, x) // its borrower waits for another turn
		}
	}
}

// linked reports whether there is a connection, as the client sees it; served, whether the daemon has answered on it.
func (s *sides) linked() bool { return s.ready != nil || s.served() }

func (s *sides) drops(t *rapid.T) {
	if !s.linked() {
		t.Skip("no link")
	}
	if s.served() {
		s.cut()
		s.l.Down()
	}
	s.cut()
	s.ready, s.down, s.up, s.was = nil, nil, nil, [2][]wire.LeaseMessage{}
	if rapid.Bool().Draw(t, "noticed") {
		s.notices()
	}
}

// notices is the daemon's end of a drop, which may come late, or not before the client is back.
func (s *sides) notices() {
	if s.knows && !s.linked() {
		s.knows = false
		s.apply(s.m.Disconnect(time.Now()))
	}
}

// comes connects the client: the daemon compares leases and answers. What either side does before the answer has
// arrived is for the client to square.
func (s *sides) comes(t *rapid.T) {
	if s.linked() {
		return
	}
	var asked wire.EnvSnapshot
	s.l.Snapshot(&asked)
	var refs []lease.Ref
	var executions []string
	for _, h := range asked.Leases {
		refs = append(refs, lease.Ref{ID: string(h.LeaseID), Fence: h.Fence})
		executions = append(executions, string(h.ExecutionID))
	}
	s.knows, s.ready = true, &wire.Ready{}
	s.down, s.up, s.was = nil, nil, [2][]wire.LeaseMessage{}
	adopted, effects := s.m.Reconnect(time.Now(), refs, executions)
	if adopted != nil {
		s.ready.Leases = []wire.HeldLease{{LeaseID: wire.LeaseID(adopted.ID), Fence: adopted.Fence, ExecutionID: wire.ExecutionID(adopted.Running())}}
	}
	s.apply(effects)
	if rapid.Bool().Draw(t, "talks at once") {
		s.open()
	}
}

func (s *sides) answeredSoon(t *rapid.T) {
	if rapid.Bool().Draw(t, "answered") {
		s.answered()
	}
}

// answered hands the client the daemon's answer.
func (s *sides) answered() {
	if ready := s.ready; ready != nil {
		s.ready = nil
		s.open()
		s.serve()
		s.l.Up(ready)
	}
}

// restart is a daemon that stopped without a word, and the next one, which knows nothing.
func (s *sides) restart(t *rapid.T) {
	if s.linked() {
		s.drops(t)
	}
	s.notices()
	s.apply(s.m.Close(time.Now(), lease.ShuttingDown))
	last := s.fences.Next()
	s.fences = &lease.Fences{}
	s.fences.Above(last)
	s.m = lease.NewManager(s.fences)
	s.m.Disconnect(time.Now())
}

// The user and the shell.

// userTypes is a key in the middle of a line.
func (s *sides) userTypes(*rapid.T) { s.key("k") }

// userRuns is a line that the user enters. It runs at once where nothing is lent.
func (s *sides) userRuns(t *rapid.T) {
	s.sh.set(func() { s.sh.dies = rapid.SampledFrom([]time.Duration{0, time.Second, diesMost}).Draw(t, "dies") })
	s.key(s.id("u") + "\n")
}

// key is a key of the user's. It reaches the line, or the user's program, at once, but for a borrowed command that runs.
func (s *sides) key(text string) {
	s.sh.types(text)
	synctest.Wait()
	if s.sh.waits() {
		// The shell is read once for the daemon; an undo of the user's reads it before, in between and behind, too.
		if s.pass(4 * min(s.sh.looks, stateBound)); s.sh.waits() {
			s.t.Fatalf("the user's key waits, and nothing runs (lent %+v)", s.l.Lending())
		}
	}
}

// undoes is the user who puts the state back, which may take as long as the editor is not free.
func (s *sides) undoes(t *rapid.T) {
	all := rapid.Bool().Draw(t, "all")
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
		defer cancel()
		_, _, _ = s.l.UndoShell(ctx, all) // whatever came of it
	})
	synctest.Wait()
}

// mode has the screen take the terminal, where it may, or give it back.
func (s *sides) mode(*rapid.T) {
	taken := false
	s.sh.set(func() {
		if s.sh.screen || s.sh.program == "" && s.sh.line == 0 && !s.sh.held {
			s.sh.screen = !s.sh.screen
		}
		taken = s.sh.screen
	})
	if taken {
		s.l.SetScreenTaken(true)
	} else {
		s.l.SetScreenTaken(false)
	}
}

func (s *sides) breaks(*rapid.T) {
	s.sh.set(func() {
		if s.sh.broken == nil {
			s.sh.broken = &shell.BrokenError{Why: "broken"}
		} else {
			s.sh.broken = nil
		}
	})
}

func (s *sides) prints(*rapid.T) {
	if s.sh.runs() {
		s.sh.print("some output\n")
	}
}

// ends ends the command that runs, the user's or a borrowed one, and sometimes leaves the shell changed.
func (s *sides) ends(t *rapid.T) {
	var st shell.State
	if rapid.IntRange(0, 3).Draw(t, "changes") == 0 {
		st = shell.State{Dir: "/home/u", Digest: s.id("d")}
	}
	switch {
	case s.sh.runs():
		s.sh.finish(0, st)
	case s.sh.users() != "":
		s.sh.ends(st)
	default:
		t.Skip("nothing runs")
	}
}

// pass lets time go by, with a Tick at each of the daemon's deadlines.
func (s *sides) pass(d time.Duration) {
	until := time.Now().Add(d)
	for n := 0; ; n++ {
		at, ok := s.m.NextDeadline()
		if !ok || at.After(until) {
			break
		}
		if n > 1000 {
			s.t.Fatalf("the deadline %v is due for ever", at)
		}
		time.Sleep(time.Until(at))
		synctest.Wait()
		s.apply(s.m.Tick(time.Now()))
	}
	time.Sleep(time.Until(until))
	synctest.Wait()
}
