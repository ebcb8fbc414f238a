package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sublet/wire"
)

func TestRepliesFindTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		c, wc := dial(t, d, s)
		defer wc.Close()
		defer c.Close()
		const calls = 20
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				r, err := wire.Call(t.Context(), c, &wire.SessionRequest{Op: "get", Name: fmt.Sprint(i)})
				if err != nil || r.Text != fmt.Sprint(i) {
					t.Errorf("call %d: got %v, %v", i, r, err)
				}
			})
		}
		var asked []*wire.SessionRequest
		for range calls {
			asked = append(asked, mustReceive[*wire.SessionRequest](t, wc))
		}
		for _, r := range slices.Backward(asked) {
			mustSend(t, wc, &wire.SessionReply{RequestID: r.RequestID, Op: r.Op, Text: r.Name})
		}
		wg.Wait()
	})
}

func TestErrorsBecomeSentinels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		c, wc := dial(t, d, s)
		defer wc.Close()
		defer c.Close()
		for _, code := range wire.Codes() {
			done := make(chan error)
			go func() {
				_, err := wire.Call(t.Context(), c, &wire.StatusRequest{})
				done <- err
			}()
			r := mustReceive[*wire.StatusRequest](t, wc)
			mustSend(t, wc, &wire.Error{Event: wire.Event{RequestID: r.RequestID}, Code: code})
			err := <-done
			if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != code {
				t.Errorf("got %v, want %s", err, code)
			}
		}
		if got := len(s.messages()); got != 0 {
			t.Errorf("got %d messages besides, want 0", got)
		}
	})
	if !errors.Is(error(&wire.Error{Code: wire.CodeLeaseStale}), wire.ErrLeaseStale) {
		t.Error("lease_stale is not ErrLeaseStale")
	}
}

func TestCallsFailWhenTheLinkBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		c, wc := dial(t, d, s)
		done := make(chan error)
		go func() {
			_, err := wire.Call(t.Context(), c, &wire.StatusRequest{})
			done <- err
		}()
		mustReceive[*wire.StatusRequest](t, wc)
		wc.Close()
		if err := <-done; !errors.Is(err, ErrDisconnected) {
			t.Errorf("got %v, want ErrDisconnected", err)
		}
		<-c.Done()
		if _, err := wire.Call(t.Context(), c, &wire.StatusRequest{}); !errors.Is(err, ErrDisconnected) {
			t.Errorf("got %v, want ErrDisconnected", err)
		}
		c.Close()
		if _, err := wire.Call(t.Context(), c, &wire.StatusRequest{}); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

func TestTurn(t *testing.T) {
	t.Run("to its end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			c, wc := dial(t, d, s)
			go func() {
				r := mustReceive[*wire.AgentRequest](t, wc)
				e := func(seq int64) wire.Event {
					return wire.Event{SessionID: "s1", TurnID: "t1", RequestID: r.RequestID, Seq: seq}
				}
				mustSend(t, wc, &wire.TurnStarted{Event: e(1)}, text(2, 2, "of another turn"),
					&wire.Error{Event: e(3), Code: wire.CodeProvider}, // stored in the turn, not its refusal
					&wire.AgentComplete{Event: e(4), Status: wire.StatusError})
			}()
			var kinds []string
			end, err := c.Turn(t.Context(), &wire.AgentRequest{Prompt: "hi"}, func(m wire.Message) { kinds = append(kinds, wire.KindOf(m)) })
			if err != nil || end.Status != wire.StatusError {
				t.Errorf("got %+v, %v, want status error", end, err)
			}
			if want := []string{"TurnStarted", "Error", "AgentComplete"}; !slices.Equal(kinds, want) {
				t.Errorf("got %v, want %v", kinds, want)
			}
			c.Close()
			wc.Close()
		})
	})
	t.Run("refused before it began", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			c, wc := dial(t, d, s)
			go func() {
				r := mustReceive[*wire.AgentRequest](t, wc)
				mustSend(t, wc, &wire.Error{Event: wire.Event{RequestID: r.RequestID}, Code: wire.CodeTooManyQueries})
			}()
			if _, err := c.Turn(t.Context(), &wire.AgentRequest{}, nil); !errors.Is(err, wire.ErrTooManyQueries) {
				t.Errorf("got %v, want ErrTooManyQueries", err)
			}
			c.Close()
			wc.Close()
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			c, wc := dial(t, d, s)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				r := mustReceive[*wire.AgentRequest](t, wc)
				cancel()
				stop := mustReceive[*wire.CancelRequest](t, wc)
				if *stop.RequestID != r.RequestID {
					t.Errorf("got cancel of %s, want %s", *stop.RequestID, r.RequestID)
				}
				mustSend(t, wc, &wire.AgentComplete{Event: wire.Event{RequestID: r.RequestID}, Status: wire.StatusCancelled})
			}()
			if end, err := c.Turn(ctx, &wire.AgentRequest{}, nil); err != nil || end.Status != wire.StatusCancelled {
				t.Errorf("got %+v, %v, want status cancelled", end, err)
			}
			c.Close()
			wc.Close()
		})
	})
	t.Run("cancelled while the caller does not read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			c, wc := dial(t, d, s)
			ctx, cancel := context.WithCancel(t.Context())
			reads := make(chan struct{})
			go func() {
				r := mustReceive[*wire.AgentRequest](t, wc)
				mustSend(t, wc, &wire.TurnStarted{Event: wire.Event{RequestID: r.RequestID}})
				synctest.Wait()
				cancel()
				mustReceive[*wire.CancelRequest](t, wc)
				close(reads)
				mustSend(t, wc, &wire.AgentComplete{Event: wire.Event{RequestID: r.RequestID}, Status: wire.StatusCancelled})
			}()
			if end, err := c.Turn(ctx, &wire.AgentRequest{}, func(wire.Message) { <-reads }); err != nil || end.Status != wire.StatusCancelled {
				t.Errorf("got %+v, %v, want status cancelled", end, err)
			}
			c.Close()
			wc.Close()
		})
	})
	t.Run("cancelled and never ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDaemon(), &screen{}
			c, wc := dial(t, d, s)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			go func() {
				mustReceive[*wire.AgentRequest](t, wc)
				mustReceive[*wire.CancelRequest](t, wc)
			}()
			began := time.Now()
			if _, err := c.Turn(ctx, &wire.AgentRequest{}, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second+cancelBound {
				t.Errorf("got %v after %v, want the deadline's error after %v", err, time.Since(began), time.Second+cancelBound)
			}
			c.Close()
			wc.Close()
		})
	})
}

func TestLeaseRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		c, wc := dial(t, d, s)
		defer wc.Close()
		defer c.Close()
		code := 3
		go func() {
			r := mustReceive[*wire.LeaseRunRequest](t, wc)
			ref := wire.LeaseRef{LeaseID: "l", RequestID: r.RequestID}
			mustSend(t, wc, &wire.ShellLeaseQueued{LeaseRef: ref}, &wire.ShellLeaseAcquired{LeaseRef: ref}, &wire.CommandOutput{LeaseRef: ref},
				&wire.CommandCompleted{LeaseRef: ref, ExitCode: &code, Status: wire.StatusOK}, &wire.ShellLeaseReleased{LeaseRef: ref})
			r = mustReceive[*wire.LeaseRunRequest](t, wc)
			mustSend(t, wc, &wire.ShellLeaseDenied{LeaseRef: wire.LeaseRef{RequestID: r.RequestID}, Reason: wire.DeniedNoShell})
			r = mustReceive[*wire.LeaseRunRequest](t, wc)
			mustSend(t, wc, &wire.ShellLeaseReleased{LeaseRef: wire.LeaseRef{RequestID: r.RequestID}, Reason: wire.ReleasedByUser})
		}()
		n := 0
		end, err := c.LeaseRun(t.Context(), &wire.LeaseRunRequest{Command: "x"}, func(wire.LeaseMessage) { n++ })
		if err != nil || *end.ExitCode != 3 || n != 5 {
			t.Errorf("got %+v, %v and %d messages, want exit 3 and 5", end, err, n)
		}
		if _, err := c.LeaseRun(t.Context(), &wire.LeaseRunRequest{Command: "x"}, nil); !errors.Is(err, wire.ErrLeaseDenied) {
			t.Errorf("got %v, want ErrLeaseDenied", err)
		} else if denied, ok := errors.AsType[*DeniedError](err); !ok || denied.Hint() == "" {
			t.Errorf("got %v, want a *DeniedError with a hint", err)
		}
		if _, err := c.LeaseRun(t.Context(), &wire.LeaseRunRequest{Command: "x"}, nil); !errors.Is(err, wire.ErrLeaseDenied) {
			t.Errorf("got %v, want revoked", err)
		}
		if got := len(s.messages()); got != 0 {
			t.Errorf("got %d lease messages at the lender, want 0", got)
		}
	})
}

func TestResumeReplaysWhatWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDaemon(), &screen{}
		c, wc := dial(t, d, s)
		defer wc.Close()
		defer c.Close()
		mustSend(t, wc, text(1, 1, "a"), text(2, 2, "b"))
		synctest.Wait()
		go func() {
			r := mustReceive[*wire.SessionRequest](t, wc)
			mustSend(t, wc, &wire.SessionReply{RequestID: r.RequestID, Op: r.Op, Session: wire.SessionInfo{ID: "s1", Name: "n"}}, text(1, 1, "a"), text(2, 2, "b"))
		}()
		_, err := wire.Call(t.Context(), c, &wire.SessionRequest{Op: "resume", SessionID: new(wire.SessionID("s1"))})
		if err != nil || c.Ready().Session.Name != "n" {
			t.Errorf("got %+v, %v, want session n", c.Ready(), err)
		}
		synctest.Wait()
		if got := len(s.messages()); got != 4 {
			t.Errorf("got %d events, want 4: two live, two replayed", got)
		}
	})
}

// A link that has broken is told as such also before its reader has said so: who repeats what was lost goes by that.
func TestABrokenLinkIsDisconnected(t *testing.T) {
	d := newDaemon()
	o := options(d, &screen{})
	entered, leave := make(chan struct{}), make(chan struct{})
	o.Handle = func(wire.Message) {
		close(entered)
		<-leave
	}
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer close(leave)
	theirs := <-d.conns
	defer theirs.Close()
	mustSend(t, theirs, &wire.Notice{})
	<-entered
	c.mu.Lock()
	c.link.wc.Close()
	c.mu.Unlock()
	if err := c.Send(&wire.Notice{}); !errors.Is(err, ErrDisconnected) || !errors.Is(err, wire.ErrClosed) {
		t.Errorf("send: %v", err)
	}
	if _, err := wire.Call(t.Context(), c, &wire.StatusRequest{}); !errors.Is(err, ErrDisconnected) {
		t.Errorf("status: %v", err)
	}
}

// A consumer that rests, such as a pager behind `lease run`, keeps nothing waiting and loses nothing up to a bound in bytes, however
// small the pieces are; beyond it live output is left out, and nothing else.
func TestStreamOfASlowConsumer(t *testing.T) {
	for _, size := range []int{1, 1 << 20} {
		s := newStream()
		room := liveBound / (size + 256)
		for i := range room + 2 {
			s.push(&wire.CommandOutput{Offset: int64(i * size), Data: make([]byte, size)})
		}
		s.push(&wire.CommandCompleted{})
		for i := range room {
			m, err := s.next(t.Context())
			if out, ok := m.(*wire.CommandOutput); err != nil || !ok || out.Offset != int64(i*size) {
				t.Fatalf("message %d: got %v, %v", i, m, err)
			}
		}
		if m, err := s.next(t.Context()); err != nil || wire.KindOf(m) != "CommandCompleted" {
			t.Errorf("at the end: got %v, %v", m, err)
		}
	}
	s := newStream() // the text of a call that the model writes was not counted
	for range 2 {
		s.push(&wire.AgentStreamChunk{Chunk: wire.Chunk{Type: wire.ChunkToolCallDelta, Text: strings.Repeat("x", liveBound-256)}})
	}
	if len(s.queue) != 1 {
		t.Errorf("%d pieces of a call wait, want the one within the bound", len(s.queue))
	}
}
