package remote

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sublet/wire"
)

// stoppable is a daemon that can be started by open and merely looked for by find.
type stoppable struct {
	*daemon
	runs  bool // as if somebody had started it; guarded by daemon.mu
	finds int  // guarded by daemon.mu
}

var errNone = errors.New("no daemon is running")

func (d *stoppable) open(ctx context.Context, s *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
	d.set(true)
	return d.daemon.open(ctx, s)
}

func (d *stoppable) find(ctx context.Context, s *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
	d.mu.Lock()
	runs := d.runs
	d.finds++
	d.mu.Unlock()
	if !runs {
		return nil, nil, errNone
	}
	return d.daemon.open(ctx, s)
}

func (d *stoppable) set(runs bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs = runs
}

// keepStopped is a client whose daemon has just been told to stop.
func keepStopped(t *testing.T) (*stoppable, *screen, *Conn) {
	t.Helper()
	d, s := &stoppable{daemon: newDaemon()}, &screen{}
	o := options(d.daemon, s)
	o.Open, o.Find = d.open, d.find
	c := Keep(t.Context(), o)
	wc := <-d.conns
	synctest.Wait()
	mustSend(t, wc, &wire.Error{Code: wire.CodeShuttingDown, Message: "the daemon stops"})
	d.set(false)
	wc.Close()
	synctest.Wait()
	return d, s, c
}

// `sublet daemon stop` with windows open had a new daemon after a second, started by the windows.
func TestAStoppedDaemonStaysStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s, c := keepStopped(t)
		defer c.Close()
		time.Sleep(time.Hour)
		if got := len(d.attempts()); got != 1 {
			t.Errorf("got %d starts, want the first only", got)
		}
		if want := []string{"up s1", "down " + ErrDisconnected.Error() + ": " + ErrStopped.Error()}; !slices.Equal(s.lines(), want) {
			t.Errorf("got %q, want %q", s.lines(), want)
		}
		if got := s.messages(); len(got) != 0 {
			t.Errorf("got %d messages, want the farewell kept back", len(got))
		}
		if d.finds < 100 || d.finds > 150 {
			t.Errorf("looked for one %d times in an hour, want once in 30 s", d.finds)
		}
		// What the user's own commands make the screen say does not bring it back.
		if err := c.Send(&wire.CommandResult{}); !errors.Is(err, ErrDisconnected) || !c.Connected() {
			t.Errorf("got %v, want ErrDisconnected; connected %v, want true: a question can be asked", err, c.Connected())
		}
		if got := len(d.attempts()); got != 1 {
			t.Errorf("got %d starts after a command of the user's, want 1", got)
		}
		// One that somebody else starts is found.
		d.set(true)
		time.Sleep(lastRetry)
		wc := <-d.conns
		synctest.Wait()
		if err := c.Post(t.Context(), &wire.AgentRequest{Prompt: "p"}); err != nil {
			t.Errorf("ask: %v", err)
		}
		mustReceive[*wire.AgentRequest](t, wc)
		// Killed, it is started again as ever: only its farewell keeps it stopped.
		wc.Close()
		wc = <-d.conns
		synctest.Wait()
		if got := len(d.attempts()); got != 3 {
			t.Errorf("got %d connections, want 3", got)
		}
		wc.Close()
	})
}

func TestARequestStartsAStoppedDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, c := keepStopped(t)
		defer c.Close()
		for _, after := range []time.Duration{0, 10 * time.Minute} { // before the first look, and between two
			time.Sleep(after)
			began := time.Now()
			if err := c.Post(t.Context(), &wire.AgentRequest{Prompt: "p"}); err != nil {
				t.Errorf("ask: %v", err)
			}
			if waited := time.Since(began); waited != 0 {
				t.Errorf("waited %v for the start, want no wait", waited)
			}
			wc := <-d.conns
			mustReceive[*wire.AgentRequest](t, wc)
			mustSend(t, wc, &wire.Error{Code: wire.CodeShuttingDown, Message: "the daemon stops"})
			d.set(false)
			wc.Close()
			synctest.Wait()
		}
	})
	t.Run("and tells why it could not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s, c := keepStopped(t)
			defer c.Close()
			bad := errors.New("disk full")
			d.fail(bad)
			if err := c.Post(t.Context(), &wire.AgentRequest{Prompt: "p"}); !errors.Is(err, bad) || !errors.Is(err, ErrDisconnected) {
				t.Errorf("ask: got %v, want %v", err, bad)
			}
			if got := s.lines(); got[len(got)-1] != "down disk full" {
				t.Errorf("got %q, want the failure told", got)
			}
		})
	})
	t.Run("an error that answers something is no farewell", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			c, wc := dial(t, d, s)
			mustSend(t, wc, &wire.Error{Event: wire.Event{RequestID: "x"}, Code: wire.CodeShuttingDown})
			synctest.Wait()
			if len(s.messages()) != 1 {
				t.Error("the error was kept back")
			}
			c.Close()
			wc.Close()
		})
	})
}
