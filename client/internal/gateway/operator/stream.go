package operator

import (
	"cmp"
	"context"
	"math"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// stream follows a session and sends results that grow, until the followed turn ends (E8, F11, F12, C6, C7): the running turn;
// if none runs, the last one after lastTurnID, which is sent at once; if there is none, the next.
func (c *conn) stream(r *request) *problem {
	sess, err := c.connect(r.Session) // without earlier events, which begin reads
	if err != nil {
		return problemFor(err)
	}
	c.work.Go(func() { // ends with its turn or the connection; serve waits for it
		defer sess.Close()
		if p := c.follow(r, sess); p != nil {
			c.refuse(r, p)
		}
	})
	return nil
}

// follower is the state of one stream.
type follower struct {
	c       *conn
	r       *request
	h       history
	seq     int64 // the number of the newest event that begin has read
	write   func([]byte)
	changed bool // since the last result was sent
}

// follow sends an empty result, with which the stream begins, and then those of the turn until its end. It returns a problem if begin
// does.
func (c *conn) follow(r *request, sess *gateway.Session) *problem {
	start := snapshot(r.ID, r.Session, cmp.Or(r.Agent, sess.Ready().Session.Agent), nil)
	start.StopReason = stopStart
	c.send(gateway.Line(start))
	f := &follower{c: c, r: r, write: c.send, changed: true}
	target, p := f.begin(sess)
	if p == nil {
		f.results(c.ctx, target, func(ctx context.Context) ([]wire.EventMessage, error) { return sess.Next(ctx, math.MaxInt) })
	}
	return p
}

// pollEvery is how often begin asks again about a session that runs but shows no running turn: a turn has just ended or is about to
// begin, or the session is being compacted.
const pollEvery = 50 * time.Millisecond

// begin reads the session's history and returns the turn to follow: the running one, else the newest, if it is later than lastTurnID; nil
// for the next one, and when the connection has ended. If it would return a turn that has ended, but the session is at work, it reads the
// history again every pollEvery, since the next turn may be about to begin. It refuses a lastTurnID that the session does not have.
func (f *follower) begin(sess *gateway.Session) (*turn, *problem) {
	for {
		info, err := sess.History(f.c.ctx, wire.SessionID(f.r.Session), f.seq, func(e wire.EventMessage) {
			f.seq = e.Meta().Seq
			f.h.apply(e)
		})
		if err != nil {
			return nil, problemFor(err)
		}
		turns, known := f.h.after(wire.TurnID(f.r.LastTurn))
		if !known {
			return nil, invalid("lastTurnID %q is not a turn of this session", f.r.LastTurn).with("field", "lastTurnID")
		}
		if len(f.h.turns) == 0 {
			return nil, nil
		}
		switch last := f.h.turns[len(f.h.turns)-1]; {
		case !last.ended():
			return last, nil
		case len(turns) == 0: // none is later than lastTurnID
			return nil, nil
		case !info.Running:
			return last, nil
		}
		select {
		case <-time.After(pollEvery):
		case <-f.c.ctx.Done():
			return nil, nil
		}
	}
}

// results sends the results of a turn, nil for the next one, until it or the connection ends. next returns all messages that are queued,
// so that the text among them makes one result.
func (f *follower) results(ctx context.Context, target *turn, next func(context.Context) ([]wire.EventMessage, error)) {
	for target == nil || !target.ended() {
		f.flush(target)
		list, err := next(ctx)
		if err != nil {
			return // the connection has ended
		}
		for _, e := range list {
			if e.Meta().Seq > 0 && e.Meta().Seq <= f.seq { // begin has read it
				continue
			}
			if endsText(e) {
				f.flush(target) // the document's order: content, tool, completion (F12)
			}
			t := f.h.apply(e)
			if target == nil {
				target = t
			}
			if t != nil && t == target {
				f.changed = f.changed || changesResult(e)
				if t.ended() {
					break
				}
			}
		}
	}
	f.send(target)
}

// flush sends the turn's state if it changed.
func (f *follower) flush(t *turn) {
	if t != nil && f.changed && len(t.items) > 0 {
		f.send(t)
	}
}

func (f *follower) send(t *turn) {
	f.changed = false
	turns, _ := f.h.after(wire.TurnID(f.r.LastTurn))
	if len(turns) == 0 { // lastTurnID names the turn that still runs
		turns = []*turn{t}
	}
	f.write(gateway.Line(snapshot(f.r.ID, f.r.Session, f.r.Agent, turns)))
}

// endsText reports whether an event ends a run of text.
func endsText(e wire.EventMessage) bool {
	switch e := e.(type) {
	case *wire.AgentStreamChunk:
		return e.Chunk.Type == wire.ChunkToolCall
	case *wire.CommandResult, *wire.AgentComplete:
		return true
	}
	return false
}

// changesResult reports whether an event changes a result.
func changesResult(e wire.EventMessage) bool {
	switch e := e.(type) {
	case *wire.AgentStreamChunk:
		switch e.Chunk.Type {
		case wire.ChunkText, wire.ChunkToolCall, wire.ChunkVoid:
			return true
		}
	case *wire.CommandResult, *wire.AgentComplete:
		return true
	}
	return false
}
