package eventlog_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"sublet/daemon/internal/eventlog"
	"sublet/daemon/internal/store"
	"sublet/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reader is a subscriber that keeps what it is sent; flushed, if set, is called between the pages of a long history.
type reader struct {
	got     []wire.EventMessage
	flushed func()
}

func (r *reader) Send(m wire.Message) {
	if e, ok := m.(wire.EventMessage); ok {
		r.got = append(r.got, e)
	}
}

func (r *reader) Flush(context.Context) error {
	r.flushed()
	return nil
}

func (r *reader) seqs() (list []int64) {
	for _, m := range r.got {
		list = append(list, m.Meta().Seq)
	}
	return list
}

func newLog(t *testing.T) (*eventlog.Log[*reader], *store.Store) {
	t.Helper()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return eventlog.New[*reader](st, slog.New(slog.DiscardHandler), wire.SessionInfo{ID: "s", Cwd: "/w"}), st
}

func command(t *testing.T, l *eventlog.Log[*reader]) {
	t.Helper()
	if err := l.Emit(&wire.CommandResult{Command: "make"}); err != nil {
		t.Fatal(err)
	}
}

// A session whose first event cannot be stored is not listed: it stayed in the list, empty, until it was deleted.
func TestFirstEventThatIsNotStored(t *testing.T) {
	other, st := newLog(t)
	if err := other.Emit(&wire.TurnStarted{Event: wire.Event{TurnID: "t"}}); err != nil {
		t.Fatal(err)
	}
	l := eventlog.New[*reader](st, slog.New(slog.DiscardHandler), wire.SessionInfo{ID: "new", Cwd: "/w"})
	if err := l.Emit(&wire.TurnStarted{Event: wire.Event{TurnID: "t"}}); err == nil {
		t.Error("the same turn began twice")
	}
	if list, _, err := st.Sessions(t.Context(), "", 10); err != nil || len(list) != 1 || l.Info().Stored {
		t.Errorf("listed are %+v, %v, want the other session alone", list, err)
	}
	if command(t, l); !l.Info().Stored {
		t.Error("the next event does not store the session")
	}
}

// Numbers have no gap when an event cannot be stored.
func TestNumbers(t *testing.T) {
	l, st := newLog(t)
	for want := int64(1); want <= 3; want++ {
		m := &wire.CommandResult{Command: "ls"}
		if err := l.Emit(m); err != nil || m.Seq != want {
			t.Fatalf("got number %d, %v, want %d", m.Seq, err, want)
		}
		// An event whose turn began already is refused by the store.
		bad := &wire.TurnStarted{Event: wire.Event{TurnID: "t"}}
		if err := l.Emit(bad); want > 1 && err == nil {
			t.Error("the same turn began twice")
		} else if err == nil {
			want++
		}
	}
	events, _, err := st.Events(t.Context(), "s", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range events {
		if m.Meta().Seq != int64(i+1) {
			t.Errorf("event %d has number %d", i+1, m.Meta().Seq)
		}
	}
}

// A subscriber receives each event once and in order, whatever is stored after its first page was read, after it was sent the
// session's description, between the pages, and once it is subscribed.
func TestSubscribersMissNothing(t *testing.T) {
	const stored = eventlog.Page + 5
	for _, c := range []struct{ after, first, last int64 }{
		{0, 1, stored + 4},
		{stored, stored + 1, stored + 3},
		{-1, stored + 2, stored + 3}, // what comes after the description
	} {
		l, _ := newLog(t)
		for range stored {
			command(t, l)
		}
		r := &reader{flushed: func() { command(t, l) }}
		from, err := l.Missed(t.Context(), c.after)
		if err != nil {
			t.Fatal(err)
		}
		command(t, l)
		info := l.Info()
		command(t, l)
		if err := l.Subscribe(t.Context(), r, from, info); err != nil {
			t.Fatal(err)
		}
		command(t, l)
		var want []int64
		for n := c.first; n <= c.last; n++ {
			want = append(want, n)
		}
		if got := r.seqs(); !slices.Equal(got, want) {
			t.Errorf("after %d: got %v, want %d to %d", c.after, got, c.first, c.last)
		}
	}
}

// An open question comes again to whoever subscribes, with its number, as it was
// asked and not as it is stored; a resolved one does not.
func TestOpenQuestionsComeAgain(t *testing.T) {
	l, _ := newLog(t)
	ask := &wire.ConfirmationRequest{ConfirmationID: "q", Command: "make"}
	if err := l.Ask(ask); err != nil {
		t.Fatal(err)
	}
	command(t, l)
	subscribe := func(after int64) *reader {
		t.Helper()
		r := &reader{}
		from, err := l.Missed(t.Context(), after)
		if err == nil {
			err = l.Subscribe(t.Context(), r, from, l.Info())
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for after, want := range map[int64][]int64{-1: {1}, 0: {1, 2}, 1: {1, 2}, 2: {1}} {
		r := subscribe(after)
		if got := r.seqs(); !slices.Equal(got, want) || r.got[0] != wire.EventMessage(ask) {
			t.Errorf("after %d: got %v, want %v with the question as it was asked", after, got, want)
		}
	}
	if err := l.Resolve(ask, &wire.ConfirmationResolved{ConfirmationID: "q", Decision: wire.DecisionDeny}); err != nil {
		t.Fatal(err)
	}
	if got := subscribe(1).seqs(); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("resolved: got %v, want only what follows", got)
	}
}

// What ended while the store could not be written is sent without a number, also to who comes later, until its end is stored.
func TestUnstoredEndsAreKept(t *testing.T) {
	l, _ := newLog(t)
	begun := &wire.TurnStarted{Event: wire.Event{TurnID: "t"}, Agent: "orchestrator"}
	if err := l.Emit(begun); err != nil {
		t.Fatal(err)
	}
	l.EmitUnstored(&wire.AgentComplete{Event: wire.Event{TurnID: "t"}, Agent: "orchestrator", Status: wire.StatusError}, true)
	r := &reader{}
	if err := l.Subscribe(t.Context(), r, eventlog.Missed{}, l.Info()); err != nil {
		t.Fatal(err)
	}
	if got := r.seqs(); !slices.Equal(got, []int64{1, 0}) {
		t.Errorf("before the end is stored: got %v", got)
	}
	l.Unsubscribe(r)
	if _, err := l.Missed(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	late := &reader{}
	if err := l.Subscribe(t.Context(), late, eventlog.Missed{}, l.Info()); err != nil {
		t.Fatal(err)
	}
	if got := late.seqs(); !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("afterwards: got %v, want an Error and an AgentComplete that are stored", got)
	}
	if len(r.got) != 2 {
		t.Error("who is not subscribed any more was sent something")
	}
}

// A deleted session takes nothing more, and nobody subscribes to it.
func TestDeleted(t *testing.T) {
	l, _ := newLog(t)
	command(t, l)
	if err := l.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Emit(&wire.CommandResult{Command: "make"}); err != eventlog.ErrNoSession {
		t.Errorf("emit: got %v", err)
	}
	if err := l.Subscribe(t.Context(), &reader{}, eventlog.Missed{}, l.Info()); err == nil || len(l.Subscribers()) > 0 {
		t.Errorf("subscribe: got %v", err)
	}
}
