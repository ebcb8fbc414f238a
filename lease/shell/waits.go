package shell

import (
	"context"
	"time"
)

// Where a signal strikes an idle shell, what was typed may be lost, and whoever waits for its effect must know that
// before typing it again or calling it over. That the shell is blocked in the read of a line proves nothing by itself:
// on a busy machine what was typed takes its time through the kernel, and the shell is seen in that read meanwhile.

// sighting is how often who waits for the shell looks at it: often at first, for mostly it is there already.
const (
	sightFirst = time.Millisecond
	sightMax   = 50 * time.Millisecond
	unseenWait = time.Second // where the system does not show what the shell does: until it counts as waiting
)

// waits tells whether the shell waits for a line and has taken in all that was typed before the call. seen is false
// where the system does not show what the shell does, and then waits only tells that nothing typed is left.
func (p *process) waits() (waits, seen bool) {
	// In this order: what is typed has gone to the shell first, and only then is it seen waiting for more.
	buf := p.lineBuf.Load()
	if !inputEmpty(p.tty) {
		return false, buf != 0
	}
	return buf == 0 || p.readsLine(), buf != 0
}

// readsLine tells whether the shell is seen in the read of a line.
func (p *process) readsLine() bool {
	buf := p.lineBuf.Load()
	return buf != 0 && lineBuffer(p.pid) == buf
}

// shake notes that a signal is sent which may strike the idle shell.
func (s *Shell) shake() {
	now := time.Now()
	s.struck.Store(&now)
	s.shaky.Store(true)
}

// struckWithin tells whether one was sent in the last d.
func (s *Shell) struckWithin(d time.Duration) bool {
	at := s.struck.Load()
	return at != nil && time.Since(*at) <= d
}

// unheard tells whether the shell waits for a line although it was typed one, and has told nothing of it: told is asked
// when all that the shell wrote down is taken in. waited is how long ago the shell should have got it.
func (s *Shell) unheard(p *process, waited time.Duration, told func() bool) bool {
	waits, seen := p.waits()
	if !waits || !seen && waited < unseenWait {
		return false
	}
	return s.takeRecords(p) && !told()
}

// takeRecords returns when every record that was written before the call has been taken in; false if the shell ended.
func (s *Shell) takeRecords(p *process) bool {
	done := make(chan struct{})
	id := newNonce()[:8]
	s.mu.Lock()
	s.taken[id] = done
	s.mu.Unlock()
	if _, err := s.fifo.Load().Write([]byte("B " + id + "\x00")); err == nil {
		select {
		case <-done:
			return true
		case <-p.exited:
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, id)
	return false
}

// awaitRead waits, for at most d, until the shell has taken in what was typed and is blocked in the read of a line, where
// that can be seen.
func (p *process) awaitRead(d time.Duration) {
	limit, stop := Patiently(context.Background(), d)
	defer stop()
	look := newSight()
	defer look.stop()
	for {
		select {
		case <-p.exited:
			return
		case <-limit.Done():
			return
		case <-look.tick():
			if waits, seen := p.waits(); waits && seen {
				return
			}
			look.again()
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *Shell) onBarrier(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done := s.taken[id]; done != nil {
		close(done)
		delete(s.taken, id)
	}
}

// sight is a timer for looking at the shell again and again, less often each time. A nil one never ticks.
type sight struct {
	t      *time.Timer
	wait   time.Duration
	clock  elapsed
	waited time.Duration // until the last look
}

func newSight() *sight {
	return &sight{t: time.NewTimer(0), wait: sightFirst}
}

func (g *sight) tick() <-chan time.Time {
	if g == nil {
		return nil
	}
	return g.t.C
}

func (g *sight) again() {
	g.waited = g.clock.add(2 * sightMax)
	g.t.Reset(g.wait)
	g.wait = min(2*g.wait, sightMax)
}

func (g *sight) stop() {
	if g != nil {
		g.t.Stop()
	}
}
