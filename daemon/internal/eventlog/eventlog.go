// Package eventlog keeps the events of one session. It numbers, masks and stores them, and only then sends them to who subscribed,
// so that nobody sees an event that is not on disk and all see the same. What a turn is, and who may subscribe, it leaves to hub.
package eventlog

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sublet/daemon/internal/store"
	"sublet/wire"
)

// ErrNoSession reports that the session does not exist, or was deleted.
var ErrNoSession = errors.New("there is no such session")

// storeBound bounds one write to the store. It is far more than a healthy disk takes.
const storeBound = 10 * time.Second

// Subscriber is a client that receives a session's events.
type Subscriber interface {
	comparable
	// Send queues a message. It does not block.
	Send(m wire.Message)
	// Flush blocks until the client has taken what is queued, or ctx ends.
	Flush(ctx context.Context) error
}

// Log is one session's events. It is safe for concurrent use. Messages are sent under its lock, so that all subscribers receive them
// in one order; no method calls the caller back otherwise.
type Log[S Subscriber] struct {
	store   *store.Store
	log     *slog.Logger
	id      wire.SessionID
	deleted atomic.Bool

	mu sync.Mutex
	// below: guarded by mu
	info        wire.SessionInfo // LastSeq is the number of the last stored event; a session is stored with its first event
	subscribers map[S]struct{}
	open        []*wire.ConfirmationRequest // as sent, in their order; what is stored does not show a command as it would run
	unended     []wire.EventMessage         // Errors and ends, as they were sent, of stored turns whose end could not be stored
}

// New returns the log of a session, which is in the store if info.Stored is set.
func New[S Subscriber](st *store.Store, log *slog.Logger, info wire.SessionInfo) *Log[S] {
	return &Log[S]{store: st, log: log, id: info.ID, info: info, subscribers: map[S]struct{}{}}
}

// Info returns the session's description, in which Running is not set.
func (l *Log[S]) Info() wire.SessionInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.info
}

// Deleted reports whether Delete succeeded.
func (l *Log[S]) Deleted() bool { return l.deleted.Load() }

// Rename sets the session's name.
func (l *Log[S]) Rename(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.info.Stored {
		if err := l.store.Rename(ctx, l.id, name); err != nil {
			return err
		}
	}
	l.info.Name = name
	return nil
}

// Delete removes the session with its events, unless that was done already. Later writes fail with ErrNoSession.
func (l *Log[S]) Delete(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.info.Stored {
		if err := l.store.Delete(ctx, l.id); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	l.deleted.Store(true)
	l.info.Stored = false
	return nil
}

// Clear removes the events; their numbers are not used again.
func (l *Log[S]) Clear(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.info.Stored {
		if err := l.store.Clear(ctx, l.id); err != nil {
			return err
		}
	}
	l.info.Title, l.info.Turns, l.unended = "", 0, nil
	return nil
}

// Emit stores events in one transaction and sends them. The error is the store's, or ErrNoSession; nothing was sent then.
func (l *Log[S]) Emit(list ...wire.EventMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.emitLocked(list...)
}

func (l *Log[S]) emitLocked(list ...wire.EventMessage) error {
	if l.deleted.Load() {
		return ErrNoSession
	}
	// A turn's end must be stored also when its own context is over.
	ctx, cancel := context.WithTimeout(context.Background(), storeBound)
	defer cancel()
	now := time.Now().UnixMilli()
	for i, m := range list {
		store.Mask(m)
		l.address(m, l.info.LastSeq+1+int64(i), now)
	}
	if err := l.store.Append(ctx, &l.info, list...); err != nil {
		return err
	}
	for _, m := range list {
		l.sendLocked(m)
	}
	return nil
}

// address sets the session, number and time of an event.
func (l *Log[S]) address(m wire.EventMessage, seq, atMS int64) {
	e := m.Meta()
	e.SessionID, e.Seq, e.AtMS = l.id, seq, atMS
	if c, ok := m.(*wire.AgentStreamChunk); ok {
		c.SeqFirst = seq
	}
}

// Ask emits a question that new subscribers receive again, as it is here, until Resolve is called.
func (l *Log[S]) Ask(q *wire.ConfirmationRequest) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.emitLocked(q)
	if err == nil {
		l.open = append(l.open, q)
	}
	return err
}

// Resolve emits the end of the question q. The question is over also if that fails.
func (l *Log[S]) Resolve(q *wire.ConfirmationRequest, end *wire.ConfirmationResolved) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(o *wire.ConfirmationRequest) bool { return o == q })
	return l.emitLocked(end)
}

// EmitLive sends an event that is not stored, with the number of the last stored one. Subscribers for which except is true do not
// receive it; nil: all do.
func (l *Log[S]) EmitLive(m wire.EventMessage, except func(S) bool) {
	store.Mask(m)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.address(m, l.info.LastSeq, time.Now().UnixMilli())
	for s := range l.subscribers {
		if except == nil || !except(s) {
			s.Send(m)
		}
	}
}

// EmitUnstored sends an event that cannot be stored. It has no number, so that no client takes it for one seen before. If keep is
// set, who subscribes before the end of its turn is stored receives it too.
func (l *Log[S]) EmitUnstored(m wire.EventMessage, keep bool) {
	store.Mask(m)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.address(m, 0, time.Now().UnixMilli())
	if keep {
		l.unended = append(l.unended, m)
	}
	l.sendLocked(m)
}

// EndUnfinished emits the missing end of a turn or compaction; why is shown to the user.
func (l *Log[S]) EndUnfinished(ctx context.Context, u store.Unfinished, why string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endUnfinishedLocked(ctx, u, why)
}

func (l *Log[S]) endUnfinishedLocked(ctx context.Context, u store.Unfinished, why string) error {
	events, err := l.store.AllEvents(ctx, l.id)
	if err != nil {
		return err
	}
	for _, m := range u.Ends(events, why) {
		if err := l.emitLocked(m); err != nil {
			return err
		}
	}
	return nil
}

// StoreEnds stores an end for each turn and compaction that ended while the store could not be written. It is called before a turn
// begins; Missed calls it as well.
func (l *Log[S]) StoreEnds(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		// An end comes after its turn's Error; the turn of an Error without an end may still run.
		i := slices.IndexFunc(l.unended, func(m wire.EventMessage) bool { _, isError := m.(*wire.Error); return !isError })
		if i < 0 {
			return nil
		}
		u := store.Unfinished{SessionID: l.id}
		if end, ok := l.unended[i].(*wire.AgentComplete); ok {
			u.TurnID, u.RequestID, u.Agent = end.TurnID, end.RequestID, end.Agent
		}
		if err := l.endUnfinishedLocked(ctx, u, "the store could not be written when it ended"); err != nil {
			return err
		}
		l.unended = l.unended[i+1:]
	}
}

// Send sends a message that is not an event to all subscribers.
func (l *Log[S]) Send(m wire.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sendLocked(m)
}

func (l *Log[S]) sendLocked(m wire.Message) {
	for s := range l.subscribers {
		s.Send(m)
	}
}

// Subscribers returns who is subscribed, in no order.
func (l *Log[S]) Subscribers() []S {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.subscribers))
}
