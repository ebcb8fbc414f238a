package question_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
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
	t       *testing.T
	events  *eventlog.Log[*client]
	clients []*client
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
		r := &rig{t: t, events: events}
		r.Open = question.New(func() []*client { return r.clients }, log, func() {})
		f(t, r)
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
	r.clients = append(r.clients, c)
}

// ask asks the question "q", and returns how it ended once done is closed.
func (r *rig) ask(ctx context.Context, q question.Question[*client]) (end func() (agent.Decision, error)) {
	q.Request, q.Events = &wire.ConfirmationRequest{Event: wire.Event{TurnID: "t"}, ConfirmationID: "q", Command: "make"}, r.events
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

func (r *rig) answer(by *client, allowed bool, fault error) error {
	decision := map[bool]string{true: wire.DecisionAllow, false: wire.DecisionDeny}[allowed]
	return r.Answer("q", by, func(*question.Question[*client]) (string, agent.Decision, error) {
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
		if r.Waiting()["s"] != "t" {
			t.Errorf("these turns wait: %v", r.Waiting())
		}
		if err := r.answer(&client{confirm: true}, true, nil); err != question.ErrNoQuestion {
			t.Errorf("by a client that was not asked: got %v", err)
		}
		bad := errors.New("no such grant")
		if err := r.answer(c, true, bad); err != bad {
			t.Errorf("not valid: got %v", err)
		}
		if err := r.answer(c, true, nil); err != nil {
			t.Fatal(err)
		}
		if err := r.answer(c, false, nil); err != question.ErrNoQuestion {
			t.Errorf("the second: got %v", err)
		}
		if d, err := end(); err != nil || !d.Allowed || d.By != "client" {
			t.Errorf("got %+v, %v", d, err)
		}
		if want := []string{asked, resolved}; !slices.Equal(c.got, want) || len(r.Waiting()) > 0 {
			t.Errorf("sent %v, want %v", c.got, want)
		}
	})
}

// A question waits for a week, one with a bound of its own for that.
func TestExpiry(t *testing.T) {
	for bound, want := range map[time.Duration]time.Duration{0: 7 * 24 * time.Hour, time.Minute: time.Minute} {
		test(t, func(t *testing.T, r *rig) {
			c := &client{confirm: true}
			r.subscribe(c)
			begun := time.Now()
			d, err := r.ask(t.Context(), question.Question[*client]{Bound: bound})()
			if err != nil || d.Allowed || d.By != "expiry" || !strings.Contains(d.Reason, want.String()) || time.Since(begun) != want {
				t.Errorf("got %+v, %v after %v, want a no after %v", d, err, time.Since(begun), want)
			}
			if want := []string{asked, resolved}; !slices.Equal(c.got, want) {
				t.Errorf("sent %v, want %v", c.got, want)
			}
		})
	}
}

// When the turn ends, its question is resolved as a no for everybody, also for those who were asked beside the session's clients;
// each receives it once, a client that comes later too.
func TestOthersAreAsked(t *testing.T) {
	test(t, func(t *testing.T, r *rig) {
		both, other, late, mute := &client{confirm: true}, &client{confirm: true}, &client{confirm: true}, &client{}
		r.subscribe(both)
		ctx, cancel := context.WithCancelCause(t.Context())
		r.clients = append(r.clients, other, mute)
		end := r.ask(ctx, question.Question[*client]{Concerns: func(*client) bool { return true }})
		for _, c := range []*client{late, other, both, mute} {
			r.Show(c)
		}
		bad := errors.New("not valid")
		if err := r.answer(late, true, bad); err != bad {
			t.Errorf("answered by who came later: got %v", err)
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
