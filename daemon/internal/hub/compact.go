package hub

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/store"
	"sublet/wire"
	"sublet/wire/visible"
)

// Compact compacts a session's conversation (op run), shows the summary without storing it (preview), or takes the last compaction back
// (undo). It is queued like a turn of the session. The answers are a CompactionStarted, if there is something to compact, and one
// CompactionComplete.
func (c *Client) Compact(ctx context.Context, r *wire.CompactRequest) error {
	switch r.Op {
	case "run", "preview", "undo", "":
	default:
		return invalid("op: %q is none of run, preview, undo", visible.Exact(visible.Cut(r.Op, 64)))
	}
	s, err := c.sessionOf(ctx, r.SessionID)
	if err != nil {
		return err
	}
	t := c.turn(s, r.RequestID)
	t.agent, t.model = agent.Orchestrator, cmp.Or(c.hub.opts.Config().Models.Compaction, c.hub.opts.Config().Model)
	t.serve = func(ctx context.Context) (wire.Message, error) { return t.compact(ctx, r), nil }
	return c.hub.enqueue(t)
}

// compact serves a CompactRequest when its turn in the session's queue has come. It returns the reply to a preview, which is not stored,
// and nil after any other request, whose reply it stores and sends. The reply to a request that failed has the reason as its Summary, and
// the client that asked is sent a Notice with it.
func (t *turn) compact(ctx context.Context, r *wire.CompactRequest) wire.Message {
	done, err := t.runCompaction(ctx, r)
	done.Event = wire.Event{RequestID: t.request}
	explain := func(err error) {
		failure := failed(ctx, err).Failure()
		if fault, ok := errors.AsType[*store.FaultError](err); ok {
			failure.Hint = fault.Hint()
		}
		t.origin.Send(&wire.Notice{Level: "error", Text: "not compacted: " + failure.Message, Hint: failure.Hint})
		done.Status, done.Summary = wire.StatusError, failure.Message
	}
	if err != nil && done.Status != wire.StatusCancelled {
		explain(err)
	}
	if r.Op == "preview" {
		return t.unnumbered(done)
	}
	if err := t.emitLast(done); err != nil {
		t.hub.log.Error("compaction could not be stored", "session", t.s.id, "err", err)
		explain(err)
		t.s.events.EmitUnstored(done, t.recorded) // a client that received CompactionStarted waits for the end
	}
	return nil
}

// runCompaction compacts the session, previews that, or undoes the last compaction, as r asks. Its result is never nil.
func (t *turn) runCompaction(ctx context.Context, r *wire.CompactRequest) (*wire.CompactionComplete, error) {
	none := &wire.CompactionComplete{Status: wire.StatusError, Ledger: wire.Ledger{}.WithLists()}
	events, err := t.hub.opts.Store.AllEvents(ctx, t.s.id)
	if err != nil {
		return none, err
	}
	if r.Op == "undo" {
		return agent.UndoCompaction(events), nil
	}
	model, err := t.hub.opts.OpenModel(ctx, t.model, t.origin.creds)
	if err != nil {
		return none, err
	}
	conversation, err := t.s.withImages(ctx, agent.History(events))
	if err != nil {
		return none, err
	}
	return agent.Compact(ctx, agent.Compaction{
		Conversation: conversation,
		Used: func(u provider.Usage) {
			if u.CostUSD != nil {
				_, _ = t.spend(*u.CostUSD) // spend logs its errors
			}
		},
		Waiting: func(text string) {
			if text != "" {
				t.origin.Send(&wire.Notice{Level: "info", Text: text})
			}
		},
		Model: model, Instructions: r.Instructions, Preview: r.Op == "preview", Log: t.hub.log,
		Started: func(m *wire.CompactionStarted) {
			m.RequestID = t.request
			if r.Op == "preview" {
				t.origin.Send(t.unnumbered(m))
				return
			}
			if err := t.s.events.Emit(m); err != nil {
				t.cancel(&stopped{wire.StatusError, "the session cannot be written: " + err.Error(), err})
				return
			}
			t.recorded = true
		},
	})
}

// unnumbered returns an event that is not stored, and so has no number, for the client that asked.
func (t *turn) unnumbered(m wire.EventMessage) wire.Message {
	store.Mask(m)
	e := m.Meta()
	e.SessionID, e.AtMS = t.s.id, time.Now().UnixMilli()
	return m
}
