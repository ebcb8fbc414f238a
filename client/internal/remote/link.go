package remote

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sublet/wire"
)

// link is one connection, from Ready to its end.
type link struct {
	wc       *wire.Conn
	born     time.Time
	last     atomic.Int64  // when the last message came, in nanoseconds since born
	activity chan struct{} // capacity 1: something runs, and pulse must start
	over     chan struct{} // closed by end
	stopped  bool          // the daemon sent a farewell; used by the reader only

	mu sync.Mutex
	// guarded by mu
	calls   map[wire.RequestID]chan wire.Message // waiting for one reply each; capacity 1
	streams map[wire.RequestID]*stream
	turns   map[wire.TurnID]struct{}    // running, as far as this client knows
	asks    map[wire.RequestID]struct{} // sent, and neither begun nor refused yet
	leases  map[wire.LeaseID]struct{}   // lent by this client
	beating bool                        // pulse is sending heartbeats
	why     error
	ended   bool
}

func newLink(wc *wire.Conn) *link {
	return &link{
		wc: wc, born: time.Now(), activity: make(chan struct{}, 1), over: make(chan struct{}),
		calls: map[wire.RequestID]chan wire.Message{}, streams: map[wire.RequestID]*stream{},
		turns: map[wire.TurnID]struct{}{}, asks: map[wire.RequestID]struct{}{}, leases: map[wire.LeaseID]struct{}{},
	}
}

func (l *link) heard() { l.last.Store(int64(time.Since(l.born))) }

// end fails every call that waits, and closes the wire.Conn if that is still open.
func (l *link) end() {
	l.wc.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.over)
	for _, s := range l.streams {
		s.close()
	}
}

func (l *link) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// pulse sends heartbeats while a turn or a lease runs, and ends the link if nothing comes for DeadAfter. When nothing has run
// for one interval it waits without a timer, since a Unix socket reports a dead peer by itself. It returns when the link ends.
func (l *link) pulse() {
	var timer *time.Timer
	var tick <-chan time.Time
	nonce := uint64(0)
	for {
		select {
		case <-l.over:
			if timer != nil {
				timer.Stop()
			}
			return
		case <-l.activity:
			if tick == nil {
				l.heard() // silence while idle does not count
				timer = time.NewTimer(wire.HeartbeatEvery)
				tick = timer.C
			}
		case <-tick:
			if l.rests() {
				tick = nil
				continue
			}
			silent := time.Since(l.born) - time.Duration(l.last.Load())
			if silent >= wire.DeadAfter {
				l.mu.Lock()
				l.why = fmt.Errorf("the daemon was silent for %v", silent.Round(time.Second))
				l.mu.Unlock()
				// The close unblocks the reader, which ends the link; nothing is flushed to a dead peer.
				l.wc.Close()
				tick = nil
				continue
			}
			nonce++
			_ = l.wc.Send(&wire.Heartbeat{Nonce: nonce, AtMS: time.Now().UnixMilli()}) // the reader notices a lost link
			timer.Reset(wire.HeartbeatEvery)
		}
	}
}

// rests reports whether nothing runs; pulse then waits until note signals.
func (l *link) rests() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beating = l.busyLocked()
	return !l.beating
}

// leave forgets the turns of the session that the connection has left: their ends are not received.
func (l *link) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.turns)
}

func (l *link) busyLocked() bool { return len(l.turns)+len(l.asks)+len(l.leases) > 0 }

// note records what runs, by a message that this client sends (outgoing) or receives; pulse sends heartbeats meanwhile.
func (l *link) note(m wire.Message, outgoing bool) {
	l.mu.Lock()
	switch m := m.(type) {
	case *wire.AgentRequest:
		l.asks[m.RequestID] = struct{}{}
	case *wire.ToolRequest:
		l.asks[m.RequestID] = struct{}{}
	case *wire.LeaseRunRequest:
		l.asks[m.RequestID] = struct{}{}
	case *wire.CompactRequest:
		l.asks[m.RequestID] = struct{}{}
	case *wire.UndoRequest:
		l.asks[m.RequestID] = struct{}{}
	case *wire.TurnStarted:
		l.turns[m.TurnID] = struct{}{}
		delete(l.asks, m.RequestID)
	case *wire.TurnSteered:
		delete(l.asks, m.RequestID)
	case *wire.AgentComplete:
		delete(l.turns, m.TurnID)
		delete(l.asks, m.RequestID)
	case *wire.CompactionComplete:
		delete(l.asks, m.RequestID)
	case *wire.Error:
		if m.TurnID == "" {
			delete(l.asks, m.RequestID)
		}
	case *wire.ShellLeaseAcquired:
		if outgoing {
			l.leases[m.LeaseID] = struct{}{}
		}
	case *wire.ShellLeaseReleased:
		if outgoing {
			delete(l.leases, m.LeaseID)
		} else {
			delete(l.asks, m.RequestID)
		}
	case *wire.ShellLeaseDenied:
		if !outgoing {
			delete(l.asks, m.RequestID)
		}
	default:
		l.mu.Unlock()
		return
	}
	wake := !l.beating && l.busyLocked()
	l.beating = l.beating || wake
	l.mu.Unlock()
	if wake {
		l.activity <- struct{}{} // does not block: pulse has taken the signal before
	}
}
