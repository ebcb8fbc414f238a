package question_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/eventlog"
	"sublet/daemon/internal/question"
	"sublet/daemon/internal/store"
	"sublet/wire"
)

// client keeps the kinds of the messages that it is sent.
type client struct {
	confirm bool
	got     []string
}

func (c *client) Send(m wire.Message)         { c.got = append(c.got, wire.KindOf(m)) }
func (c *client) Flush(context.Context) error { return nil }
func (c *client) CanConfirm() bool            { return c.confirm }

// rig is a session and its questions.
type rig struct {
	*question.Open[*client]
	t      *testing.T
	events *eventlog.Log[*client]
}

func test(t *testing.T, f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "db"), log)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		events := eventlog.New[*client](st, log, wire.SessionInfo{ID: "s", Cwd: "/w"})
		f(t, &rig{question.New(events, log, func() {}), t, events})
	})
}

func (r *rig) subscribe(c *client) {
	r.t.Helper()
	from, err := r.events.Missed(r.t.Context(), -1)
	if err == nil {
		err = r.events.Subscribe(r.t.Context(), c, from, r.events.Info())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.Watch()
}

// ask asks the question "q", and returns how it ended once done is closed.
func (r *rig) ask(ctx context.Context, q question.Question[*client]) (end func() (agent.Decision, error)) {
	q.Request = &wire.ConfirmationRequest{Event: wire.Event{TurnID: "t"}, ConfirmationID: "q", Command: "make"}
	var d agent.Decision
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		d, err = r.Ask(ctx, q)
	}()
	synctest.Wait()
	return func() (agent.Decision, error) { <-done; return d, err }
}

func (r *rig) answer(allowed bool, fault error) error {
	decision := map[bool]string{true: wire.DecisionAllow, false: wire.DecisionDeny}[allowed]
	return r.Answer("q", func(*question.Question[*client]) (string, agent.Decision, error) {
		return decision, agent.Decision{Allowed: allowed, By: "client"}, fault
	})
}

const asked, resolved = "ConfirmationRequest", "ConfirmationResolved"

// The first answer counts. One that is not valid leaves the question open.
func TestFirstAnswerCounts(t *testing.T) {
	test(t, func(t *testing.T, r *rig) {
		c := &client{confirm: true}
		r.subscribe(c)
		end := r.ask(t.Context(), question.Question[*client]{})
		if r.Turn() != "t" {
			t.Errorf("turn %q waits", r.Turn())
		}
		bad := errors.New("no such grant")
		if err := r.answer(true, bad); err != bad {
			t.Errorf("not valid: got %v", err)
		}
		if err := r.answer(true, nil); err != nil {
			t.Fatal(err)
		}
		if err := r.answer(false, nil); err != question.ErrNoQuestion {
			t.Errorf("the second: got %v", err)
		}
		if d, err := end(); err != nil || !d.Allowed || d.By != "client" {
			t.Errorf("got %+v, %v", d, err)
		}
		if want := []string{asked, resolved}; !slices.Equal(c.got, want) || r.Turn() != "" {
			t.Errorf("sent %v, want %v", c.got, want)
		}
	})
}

// A question waits for a day for a client that can answer, and without bound while one is there; one with a bound of its own expires
// all the same.
func TestExpiry(t *testing.T) {
	for _, c := range []struct {
		name    string
		bound   time.Duration
		clients []*client
		want    time.Duration // 0: it stays open
	}{
		{"nobody", 0, nil, 24 * time.Hour},
		{"nobody who can", 0, []*client{{}}, 24 * time.Hour},
		{"somebody who can", 0, []*client{{}, {confirm: true}}, 0},
		{"a bound", time.Minute, []*client{{confirm: true}}, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			test(t, func(t *testing.T, r *rig) {
				for _, s := range c.clients {
					r.subscribe(s)
				}
				ctx, cancel := context.WithCancel(t.Context())
				begun := time.Now()
				end := r.ask(ctx, question.Question[*client]{Bound: c.bound})
				if c.want == 0 {
					time.Sleep(1000 * time.Hour)
					if r.Turn() == "" {
						t.Error("it expired")
					}
					cancel()
				}
				d, err := end()
				cancel()
				if c.want > 0 && (err != nil || d.Allowed || d.By != "expiry" || !strings.Contains(d.Reason, c.want.String()) || time.Since(begun) != c.want) {
					t.Errorf("got %+v, %v after %v, want a no after %v", d, err, time.Since(begun), c.want)
				}
			})
		})
	}
}

// A client of another session that is asked as well, as the window is in which an agent in the background was started, may take its
// time, too: the question expired after a day beside the open window.
func TestExpiryWaitsForOthers(t *testing.T) {
	test(t, func(t *testing.T, r *rig) {
		window := &client{confirm: true}
		var there atomic.Bool
		there.Store(true)
		end := r.ask(t.Context(), question.Question[*client]{
			Others: []*client{window}, Concerns: func(c *client) bool { return c == window && there.Load() },
		})
		time.Sleep(100*time.Hour + time.Minute)
		if r.Turn() == "" {
			t.Error("it expired while the window was open")
		}
		there.Store(false)
		left := time.Now()
		if d, err := end(); err != nil || d.By != "expiry" || time.Since(left) > 24*time.Hour {
			t.Errorf("got %+v, %v after %v", d, err, time.Since(left))
		}
	})
}

// The time of a question stands still while somebody is there who can answer, and begins again when they leave.
func TestExpiryBeginsAgain(t *testing.T) {
	test(t, func(t *testing.T, r *rig) {
		end := r.ask(t.Context(), question.Question[*client]{})
		time.Sleep(23 * time.Hour)
		c := &client{confirm: true}
		r.subscribe(c)
		time.Sleep(23 * time.Hour)
		r.events.Unsubscribe(c)
		r.Watch()
		left := time.Now()
		if d, err := end(); err != nil || d.By != "expiry" || time.Since(left) != 24*time.Hour {
			t.Errorf("got %+v, %v after %v", d, err, time.Since(left))
		}
	})
}

// When the turn ends, its question is resolved as a no for everybody, also for those who were asked beside the session's clients;
// each receives it once, a client that comes later too.
func TestOthersAreAsked(t *testing.T) {
	test(t, func(t *testing.T, r *rig) {
		both, other, late, mute := &client{confirm: true}, &client{confirm: true}, &client{confirm: true}, &client{}
		r.subscribe(both)
		ctx, cancel := context.WithCancelCause(t.Context())
		end := r.ask(ctx, question.Question[*client]{
			Others: []*client{both, other, mute}, Concerns: func(c *client) bool { return c == late || c == other },
		})
		r.Show(late)
		r.Show(other)
		r.Show(both)
		if !r.Concerns("q", late) || r.Concerns("q", both) || r.Concerns("none", late) {
			t.Error("it concerns the wrong clients")
		}
		why := errors.New("cancelled")
		cancel(why)
		if _, err := end(); err != why {
			t.Errorf("got %v", err)
		}
		for i, c := range []*client{both, other, late} {
			if want := []string{asked, resolved}; !slices.Equal(c.got, want) {
				t.Errorf("client %d: sent %v, want %v", i, c.got, want)
			}
		}
		if len(mute.got) > 0 {
			t.Errorf("a client that cannot confirm was sent %v", mute.got)
		}
	})
}
