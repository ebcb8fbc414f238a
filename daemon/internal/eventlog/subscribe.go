package eventlog

import (
	"context"

	"sublet/wire"
)

// Page is how many stored events are read at once.
const Page = 500

// A CutOffError reports that a client received a session but not all the events that it had missed, because they could not be
// read. The connection must end, so that the client resumes from what it has.
type CutOffError struct{ Err error }

func (e *CutOffError) Error() string { return "the session cannot be read: " + e.Err.Error() }
func (e *CutOffError) Unwrap() error { return e.Err }
func (e *CutOffError) Hint() string {
	return "connect again and resume; `sublet doctor` looks at the store"
}

// Missed is the first page of what a client missed.
type Missed struct {
	after  int64 // -1: the client wants only what comes after the session's description
	events []wire.EventMessage
	more   bool
}

// Missed reads the first page of the events that follow number after, the last one that a client has received. It is called before the
// client is sent the session's description, so that the client gets only the error if the store cannot be read.
func (l *Log[S]) Missed(ctx context.Context, after int64) (m Missed, err error) {
	if err := l.StoreEnds(ctx); err != nil {
		l.log.Error("a turn's end could not be stored", "session", l.id, "err", err)
	}
	m.after = after
	if after >= 0 {
		m.events, m.more, err = l.store.Events(ctx, l.id, after, Page)
	}
	return m, err
}

// Subscribe sends s what it missed, and from then on each event as it is stored. A client that wants no old events receives those
// stored after info, the description that it was sent. Questions that are still open are sent again to every client. No event is left out
// and no other event is sent twice, also while turns run; the unstored ends of turns follow the stored events. The error is a *CutOffError,
// and s is then not subscribed.
func (l *Log[S]) Subscribe(ctx context.Context, s S, from Missed, info wire.SessionInfo) error {
	after := from.after
	// Long histories are read without the lock, so that a running turn does not wait for them; only the last page is read
	// under it.
	for events, more := from.events, from.more; more; {
		for _, m := range events {
			s.Send(m)
			after = m.Meta().Seq
		}
		err := s.Flush(ctx)
		if err == nil {
			events, more, err = l.store.Events(ctx, l.id, after, Page)
		}
		if err != nil {
			return &CutOffError{err}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deleted.Load() {
		return &CutOffError{ErrNoSession}
	}
	if after < 0 {
		after = info.LastSeq
	}
	open := map[int64]*wire.ConfirmationRequest{}
	for _, q := range l.open {
		if open[q.Seq] = q; q.Seq <= after { // those after it come below, in their order
			s.Send(q)
		}
	}
	for more := after < l.info.LastSeq; more; {
		var events []wire.EventMessage
		var err error
		if events, more, err = l.store.Events(ctx, l.id, after, Page); err != nil {
			return &CutOffError{err}
		}
		for _, m := range events {
			after = m.Meta().Seq
			if q := open[after]; q != nil {
				m = q
			}
			s.Send(m)
		}
	}
	for _, m := range l.unended {
		s.Send(m)
	}
	l.subscribers[s] = struct{}{}
	return nil
}

// Unsubscribe ends what Subscribe began.
func (l *Log[S]) Unsubscribe(s S) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subscribers, s)
}
