package remote

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sublet/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// daemon is the other end, with a script instead of a hub: it accepts connections by open, and a test reads and writes
// messages of its own.
type daemon struct {
	mu     sync.Mutex
	refuse error
	opened []time.Time
	snaps  []wire.EnvSnapshot
	conns  chan *wire.Conn // each link's server end
	ready  wire.Ready
}

func newDaemon() *daemon {
	return &daemon{conns: make(chan *wire.Conn, 16), ready: wire.Ready{Protocol: 1, Session: wire.SessionInfo{ID: "s1"}}}
}

func (d *daemon) open(ctx context.Context, s *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = append(d.opened, time.Now())
	d.snaps = append(d.snaps, *s)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if d.refuse != nil {
		return nil, nil, d.refuse
	}
	a, b := net.Pipe()
	d.conns <- wire.NewConn(b)
	ready := d.ready
	if s.SessionID != nil {
		ready.Session.ID = *s.SessionID
	}
	return wire.NewConn(a), &ready, nil
}

func (d *daemon) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = err
}

func (d *daemon) attempts() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.opened)
}

// screen records what a client is told.
type screen struct {
	mu   sync.Mutex
	got  []wire.Message
	told []string
}

func (s *screen) handle(m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, m)
}

func (s *screen) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, text)
}

func (s *screen) messages() []wire.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *screen) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

func options(d *daemon, s *screen) Options {
	return Options{
		Open: d.open, Snapshot: func() *wire.EnvSnapshot { return &wire.EnvSnapshot{} },
		Handle: s.handle,
		Up:     func(r *wire.Ready) { s.say("up " + string(r.Session.ID)) },
		Down:   func(err error) { s.say("down " + err.Error()) },
	}
}

func dial(t *testing.T, d *daemon, s *screen) (*Conn, *wire.Conn) {
	t.Helper()
	c, err := Dial(t.Context(), options(d, s))
	if err != nil {
		t.Fatal(err)
	}
	return c, <-d.conns
}

func event(seq int64) wire.Event {
	return wire.Event{SessionID: "s1", TurnID: "t1", Seq: seq}
}

func text(seq, first int64, s string) *wire.AgentStreamChunk {
	return &wire.AgentStreamChunk{Event: event(seq), SeqFirst: first, Chunk: wire.Chunk{Type: wire.ChunkText, Text: s}}
}

func mustSend(t *testing.T, wc *wire.Conn, ms ...wire.Message) {
	t.Helper()
	for _, m := range ms {
		if err := wc.Send(m); err != nil {
			t.Fatalf("send %s: %v", wire.KindOf(m), err)
		}
	}
}

func mustReceive[M wire.Message](t *testing.T, wc *wire.Conn) M {
	t.Helper()
	m, err := wc.Receive()
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	got, ok := m.(M)
	if !ok {
		t.Fatalf("got %s, want %T", wire.KindOf(m), got)
	}
	return got
}

func TestBackOffIsOneSecondDoublingToThirty(t *testing.T) { // N8
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		d.fail(errors.New("nobody there"))
		began := time.Now()
		c := Keep(t.Context(), options(d, s))
		time.Sleep(100 * time.Second)
		c.Close()
		var at []time.Duration
		for _, when := range d.attempts() {
			at = append(at, when.Sub(began))
		}
		want := []time.Duration{0, 1e9, 3e9, 7e9, 15e9, 31e9, 61e9, 91e9}
		if !slices.Equal(at, want) {
			t.Errorf("got attempts at %v, want %v", at, want)
		}
		if got := s.lines(); !slices.Equal(got, []string{"down nobody there"}) {
			t.Errorf("got %q, want the failure told once", got)
		}
	})
}

// A link that came up starts the back-off anew, however long it had grown; a daemon that dies as soon as it was reached
// does not, or it would be started once a second for ever.
func TestBackOffStartsAnewAfterASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		d.fail(errors.New("nobody there"))
		c := Keep(t.Context(), options(d, s))
		time.Sleep(20 * time.Second) // attempts at 0, 1, 3, 7 and 15 s; the next is at 31 s
		d.fail(nil)
		wc := <-d.conns
		var waits []time.Duration
		for _, lived := range []time.Duration{time.Second, 5 * time.Second, 0, 0, 0, 2 * time.Second} {
			time.Sleep(lived)
			wc.Close()
			lost := time.Now()
			wc = <-d.conns
			waits = append(waits, time.Since(lost))
		}
		if want := []time.Duration{1e9, 1e9, 2e9, 4e9, 8e9, 1e9}; !slices.Equal(waits, want) {
			t.Errorf("got waits of %v, want %v", waits, want)
		}
		c.Close()
		wc.Close()
	})
}

func TestARequestEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		d.fail(errors.New("nobody there"))
		c := Keep(t.Context(), options(d, s))
		defer c.Close()
		time.Sleep(32 * time.Second)
		d.fail(nil)
		if err := c.Post(t.Context(), &wire.AgentRequest{}); !errors.Is(err, ErrDisconnected) {
			t.Errorf("got %v, want ErrDisconnected at once", err)
		}
		synctest.Wait()
		if !c.Connected() {
			t.Error("got no connection after a request, want one at once")
		}
		(<-d.conns).Close()
	})
}

// A message of a kind that this build does not know, or that cannot be read, is answered, and the user is shown that something is
// missing: once, however often it comes.
func TestWhatCannotBeReadIsShown(t *testing.T) {
	theirs, ours := net.Pipe()
	s := &screen{}
	o := options(newDaemon(), s)
	o.Open = func(context.Context, *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
		return wire.NewConn(ours), &wire.Ready{}, nil
	}
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d := wire.NewConn(theirs)
	defer d.Close()
	unknown := []byte{0, 0, 0, 7, 0x92, 0xa4, 'N', 'o', 'p', 'e', 0x80}
	broken := []byte{0, 0, 0, 3, 0xc1, 0xc1, 0xc1}
	for _, c := range []struct {
		frame []byte
		code  string
	}{{unknown, wire.CodeUnknownKind}, {unknown, wire.CodeUnknownKind}, {broken, wire.CodeInvalidMessage}} {
		if _, err := theirs.Write(c.frame); err != nil {
			t.Fatal(err)
		}
		if e := mustReceive[*wire.Error](t, d); e.Code != c.code {
			t.Errorf("answered with %s, want %s", e.Code, c.code)
		}
	}
	mustSend(t, d, &wire.Notice{Text: "last"})
	var notices []*wire.Notice
	for end := time.Now().Add(5 * time.Second); len(notices) == 0 || notices[len(notices)-1].Text != "last"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %v", notices)
		}
		notices = nil
		for _, m := range s.messages() {
			notices = append(notices, m.(*wire.Notice))
		}
	}
	if len(notices) != 3 || notices[0].Level != "warning" || !strings.Contains(notices[0].Text, `unknown kind "Nope"`) || notices[0].Hint == "" || !strings.Contains(notices[1].Text, "payload") {
		t.Errorf("the user is shown %+v", notices)
	}
}

// A question that was open when the client attached is handed on, although its number is not new.
func TestAnOpenQuestionIsHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		d.ready.Session.LastSeq = 5
		o := options(d, s)
		o.Session, o.AfterSeq = "s1", -1
		c := Keep(t.Context(), o)
		wc := <-d.conns
		mustSend(t, wc, text(4, 4, "old"), &wire.ConfirmationRequest{Event: event(3), ConfirmationID: "q"}, text(6, 6, "new"))
		synctest.Wait()
		if got := s.messages(); len(got) != 2 || wire.KindOf(got[0]) != "ConfirmationRequest" || got[1].(wire.EventMessage).Meta().Seq != 6 {
			t.Errorf("got %v, want the question and event 6", got)
		}
		c.Close()
		wc.Close()
	})
}

// Cut at any event, the client gets each exactly once and in order: resume names the last it saw.
func TestReconnectMissesAndRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 12
		for cut := range events {
			d, s := newDaemon(), &screen{}
			c := Keep(t.Context(), options(d, s))
			wc := <-d.conns
			synctest.Wait()
			for i := 1; i <= cut; i++ {
				mustSend(t, wc, text(int64(i), int64(i), "x"))
			}
			synctest.Wait()
			wc.Close()
			wc = <-d.conns
			d.mu.Lock()
			snap := d.snaps[1]
			d.mu.Unlock()
			if *snap.SessionID != "s1" || snap.AfterSeq != int64(cut) {
				t.Errorf("cut at %d: got resume of %s after %d", cut, *snap.SessionID, snap.AfterSeq)
			}
			// A careless daemon sends one again; live output carries the number of the last stored event.
			for i := max(1, cut); i <= events; i++ {
				mustSend(t, wc, text(int64(i), int64(i), "x"))
				mustSend(t, wc, &wire.AgentStreamChunk{Event: event(int64(i)), Chunk: wire.Chunk{Type: wire.ChunkToolOutput}})
			}
			synctest.Wait()
			want := int64(0)
			live := 0
			for _, m := range s.messages() {
				e := m.(*wire.AgentStreamChunk)
				if e.Chunk.Type == wire.ChunkToolOutput {
					live++
					continue
				}
				if want++; e.Seq != want {
					t.Errorf("cut at %d: got event %d, want %d", cut, e.Seq, want)
				}
			}
			if want != events || live != events-max(1, cut)+1 {
				t.Errorf("cut at %d: got %d events and %d live, want %d and %d", cut, want, live, events, events-max(1, cut)+1)
			}
			if got, want := s.lines(), 3; len(got) != want {
				t.Errorf("cut at %d: got %q, want up, down, up", cut, got)
			}
			c.Close()
			wc.Close()
		}
	})
}

// A turn whose end could not be stored ends once: the end that the daemon stores later, with a number, is not handed on.
func TestEndStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		c, wc := dial(t, d, s)
		mustSend(t, wc,
			&wire.TurnStarted{Event: event(1)}, &wire.Error{Event: event(0)}, &wire.AgentComplete{Event: event(0)},
			&wire.Error{Event: event(2)}, &wire.AgentComplete{Event: event(3)},
			&wire.TurnStarted{Event: wire.Event{SessionID: "s1", TurnID: "t2", Seq: 4}},
			&wire.AgentComplete{}, &wire.CommandResult{}) // without a turn: of two tools of a hosted agent
		synctest.Wait()
		var kinds []string
		for _, m := range s.messages() {
			kinds = append(kinds, wire.KindOf(m))
		}
		if want := []string{"TurnStarted", "Error", "AgentComplete", "TurnStarted", "AgentComplete", "CommandResult"}; !slices.Equal(kinds, want) {
			t.Errorf("got %q, want %q", kinds, want)
		}
		if got := c.seen["s1"]; got != 4 {
			t.Errorf("got seen %d, want 4", got)
		}
		c.Close()
		wc.Close()
	})
}

func TestMergedChunksCountAsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		c, wc := dial(t, d, s)
		mustSend(t, wc, text(1, 1, "a"), text(5, 2, "bcde"), text(4, 4, "d"), text(6, 6, "f"))
		synctest.Wait()
		if got := len(s.messages()); got != 3 {
			t.Errorf("got %d messages, want 3: number 4 was in 2 to 5", got)
		}
		if got := c.seen["s1"]; got != 6 {
			t.Errorf("got seen %d, want 6", got)
		}
		c.Close()
		wc.Close()
	})
}

// A session in which nothing happened is not in a new daemon's store: the client goes on in a new one.
func TestSessionUnknownToANewDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		o := options(d, s)
		o.Open = func(ctx context.Context, snap *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
			if snap.SessionID != nil {
				return nil, nil, &wire.Error{Code: wire.CodeNotFoundSession}
			}
			return d.open(ctx, snap)
		}
		c := Keep(t.Context(), o)
		wc := <-d.conns
		synctest.Wait()
		wc.Close()
		d.mu.Lock()
		d.ready.Session.ID = "s2"
		d.mu.Unlock()
		wc = <-d.conns
		synctest.Wait()
		if got := c.Ready().Session.ID; got != "s2" {
			t.Errorf("got session %s, want s2", got)
		}
		c.Close()
		wc.Close()
	})
	t.Run("named by the user it is an error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			d.fail(&wire.Error{Code: wire.CodeNotFoundSession})
			o := options(d, s)
			o.Session = "s9"
			if _, err := Dial(t.Context(), o); !errors.Is(err, wire.ErrNotFoundSession) {
				t.Errorf("got %v, want ErrNotFoundSession", err)
			}
		})
	})
}

// C1: both ways, and sixty seconds of silence.
func TestHeartbeats(t *testing.T) {
	t.Run("answered with their nonce", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			c, wc := dial(t, d, s)
			mustSend(t, wc, &wire.Heartbeat{Nonce: 7})
			if got := mustReceive[*wire.Heartbeat](t, wc); got.Nonce != 7 || !got.Reply {
				t.Errorf("got %+v, want a reply with nonce 7", got)
			}
			c.Close()
			wc.Close()
		})
	})
	t.Run("none while idle, and no end of an idle link", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			c, wc := dial(t, d, s)
			got := make(chan error, 1)
			go func() {
				m, err := wc.Receive()
				if err == nil {
					err = errors.New(wire.KindOf(m))
				}
				got <- err
			}()
			time.Sleep(time.Hour)
			if !c.Connected() {
				t.Error("an idle link ended")
			}
			c.Close()
			wc.Close()
			if err := <-got; err.Error() == "Heartbeat" {
				t.Error("got a heartbeat on an idle link")
			}
		})
	})
	t.Run("a daemon that is silent for 60 s after a message is dead", func(t *testing.T) {
		for _, begin := range []func(c *Conn, wc *wire.Conn){
			func(_ *Conn, wc *wire.Conn) { mustSend(t, wc, &wire.TurnStarted{Event: event(1)}) },
			func(c *Conn, _ *wire.Conn) { _ = c.Post(t.Context(), &wire.AgentRequest{}) },
		} {
			synctest.Test(t, func(t *testing.T) {
				d, s := newDaemon(), &screen{}
				c, wc := dial(t, d, s)
				time.Sleep(time.Hour)
				began := time.Now()
				begin(c, wc)
				if beats := count[*wire.Heartbeat](wc, nil); beats != 1 || time.Since(began) != wire.DeadAfter {
					t.Errorf("got %d heartbeats and the end after %v, want 1 and %v", beats, time.Since(began), wire.DeadAfter)
				}
				<-c.Done()
				c.Close()
				wc.Close()
			})
		}
	})
	t.Run("typing does not keep a dead daemon alive", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			c, wc := dial(t, d, s)
			go count[*wire.Heartbeat](wc, nil)
			for range 7 {
				_ = c.Send(&wire.CommandResult{})
				time.Sleep(10 * time.Second)
			}
			<-c.Done()
			c.Close()
			wc.Close()
		})
	})
	t.Run("a daemon with nothing to say is asked once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			c, wc := dial(t, d, s)
			beats := make(chan int, 1)
			go func() {
				beats <- count[*wire.Heartbeat](wc, func(h *wire.Heartbeat) { mustSend(t, wc, &wire.Heartbeat{Nonce: h.Nonce, Reply: true}) })
			}()
			mustSend(t, wc, &wire.TurnStarted{Event: event(1)}, &wire.AgentComplete{Event: event(2)})
			time.Sleep(time.Hour)
			if !c.Connected() {
				t.Error("the link ended after the turn")
			}
			c.Close()
			if got := <-beats; got != 1 {
				t.Errorf("got %d heartbeats, want 1", got)
			}
			wc.Close()
		})
	})
	t.Run("while the daemon sends them, none is sent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			c, wc := dial(t, d, s)
			asked := make(chan int, 1)
			go func() {
				n := 0
				count(wc, func(h *wire.Heartbeat) {
					if !h.Reply {
						n++
					}
				})
				asked <- n
			}()
			for range 100 {
				mustSend(t, wc, &wire.Heartbeat{Nonce: 1})
				time.Sleep(wire.HeartbeatEvery)
			}
			c.Close()
			if n := <-asked; n != 0 {
				t.Errorf("got %d heartbeats, want none", n)
			}
			wc.Close()
		})
	})
}

// count receives until the connection ends, calls each (nil = none) for every message of type M, and returns how many there were.
func count[M wire.Message](wc *wire.Conn, each func(M)) (n int) {
	for {
		m, err := wc.Receive()
		if err != nil {
			return n
		}
		if m, ok := m.(M); ok {
			n++
			if each != nil {
				each(m)
			}
		}
	}
}

func TestCloseEndsEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		d.fail(errors.New("nobody there"))
		c := Keep(t.Context(), options(d, s))
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		c.Close()
		c.Close()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("got a close of %v, want none", waited)
		}
		<-c.Done()
	})
}
