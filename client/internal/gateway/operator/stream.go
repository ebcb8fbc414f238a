package operator

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// stream follows a session and sends results that grow, until the followed turn ends (E8, F11, F12, C6, C7): the running turn;
// if none runs, the last one after lastTurnID, which is sent at once; if there is none, the next.
func (c *conn) stream(r *request) *problem {
	release := func() { c.streams.Add(-1) }
	if c.streams.Add(1) > maxStreams {
		release()
		return busy(maxStreams, "at most %d streams on one connection")
	}
	sess, err := c.s.o.Daemon.Connect(c.ctx, gateway.Options{
		Name: "sublet serve operator", Session: wire.SessionID(r.Session), Place: gateway.Place{Cwd: c.s.o.Project},
	})
	if err != nil {
		release()
		return away(err)
	}
	c.work.Go(func() { // ends with its turn or the connection; serve waits for it
		defer release()
		defer sess.Close()
		if p := c.follow(r, sess); p != nil {
			c.refuse(r, p)
		}
	})
	return nil
}

// follower is the state of one stream.
type follower struct {
	c    *conn
	r    *request
	h    history
	put  func([]byte)
	news bool // something was not sent yet
}

func (c *conn) follow(r *request, sess *gateway.Session) *problem {
	start := snapshot(r.ID, r.Session, cmp.Or(r.Agent, sess.Ready().Session.Agent), nil)
	start.StopReason = stopStart
	c.send(line(start))
	f := &follower{c: c, r: r, put: c.send}
	target, p := f.begin(sess)
	if p != nil || c.ctx.Err() != nil {
		return p
	}
	f.news = target != nil && !target.over() && len(target.items) > 0
	f.results(c.ctx, target, sess.Next)
	return nil
}

// results sends the results of a turn, nil for the next one, until it or the connection ends.
func (f *follower) results(ctx context.Context, target *turn, next func(context.Context) (wire.Message, error)) {
	for {
		if target != nil && target.over() {
			f.send(target)
			return
		}
		f.flush(target)
		m, err := next(ctx)
		for ; err == nil; m, err = next(passed) { // messages that wait already go into the same result
			e, ok := m.(wire.EventMessage)
			if !ok {
				continue
			}
			if turning(e) {
				f.flush(target) // the document's order: content, tool, completion (F12)
			}
			t := f.h.apply(e)
			if target == nil {
				target = t
			}
			if t != nil && t == target {
				f.news = f.news || shows(e)
				if t.over() {
					break
				}
			}
		}
		if err != nil && !errors.Is(err, context.Canceled) || ctx.Err() != nil {
			return // the connection is over
		}
	}
}

// settleEvery is how often to ask again about a session that is reported as running but shows no running turn: a turn has just
// ended or is about to begin, or the session is being compacted.
const settleEvery = 50 * time.Millisecond

// begin finds the turn to follow; nil = the next one.
func (f *follower) begin(sess *gateway.Session) (*turn, *problem) {
	for {
		info, err := f.catchUp(sess)
		if err != nil {
			return nil, away(err)
		}
		target, p := f.target(info)
		if n := len(f.h.turns); p != nil || target != nil || n == 0 || !info.Running {
			return target, p
		}
		wait := time.NewTimer(settleEvery)
		select {
		case <-wait.C:
		case <-f.c.ctx.Done():
			wait.Stop()
			return nil, nil
		}
	}
}

// passed is a context that has ended: Next with it returns only what is there.
var passed = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// catchUp processes all events stored until now. The daemon sends them before its answer to a later request.
func (f *follower) catchUp(sess *gateway.Session) (info wire.SessionInfo, err error) {
	ctx, cancel := context.WithCancel(f.c.ctx)
	defer cancel()
	asked := make(chan struct{})
	go func() { // catchUp waits for it
		defer close(asked)
		defer cancel()
		var reply *wire.SessionReply
		if reply, err = wire.Call(ctx, sess, &wire.SessionRequest{Op: "get"}); err == nil {
			info = reply.Session
		}
	}()
	for {
		m, over := sess.Next(ctx)
		if over != nil {
			break
		}
		if e, ok := m.(wire.EventMessage); ok {
			f.h.apply(e)
		}
	}
	<-asked
	return info, err
}

// target is the turn to follow; nil = the next one.
func (f *follower) target(info wire.SessionInfo) (*turn, *problem) {
	turns, known := f.h.after(wire.TurnID(f.r.LastTurn))
	if !known {
		return nil, invalid("lastTurnID %q is no turn of this session", f.r.LastTurn).with("field", "lastTurnID")
	}
	all := f.h.turns
	switch last := len(all) - 1; {
	case last >= 0 && !all[last].over():
		return all[last], nil
	case len(turns) > 0 && !info.Running:
		return turns[len(turns)-1], nil
	}
	return nil, nil
}

// flush sends the turn's state if it changed.
func (f *follower) flush(t *turn) {
	if t != nil && f.news && len(t.items) > 0 {
		f.send(t)
	}
}

func (f *follower) send(t *turn) {
	f.news = false
	turns, _ := f.h.after(wire.TurnID(f.r.LastTurn))
	if len(turns) == 0 { // the client named the turn that still runs
		turns = []*turn{t}
	}
	f.put(line(snapshot(f.r.ID, f.r.Session, f.r.Agent, turns)))
}

// turning reports whether an event begins something other than more of the same text.
func turning(e wire.EventMessage) bool {
	switch e := e.(type) {
	case *wire.AgentStreamChunk:
		return e.Chunk.Type == wire.ChunkToolCall
	case *wire.CommandResult, *wire.AgentComplete:
		return true
	}
	return false
}

// shows reports whether an event changes a result.
func shows(e wire.EventMessage) bool {
	switch e := e.(type) {
	case *wire.AgentStreamChunk:
		switch e.Chunk.Type {
		case wire.ChunkText, wire.ChunkBlock, wire.ChunkToolCall, wire.ChunkVoid:
			return true
		}
	case *wire.CommandResult, *wire.AgentComplete:
		return true
	}
	return false
}
