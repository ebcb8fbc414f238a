package hub

import (
	"context"
	"fmt"

	"sublet/wire"
)

// restarted is what an unfinished turn of an earlier daemon is ended with.
const restarted = "daemon restarted"

// endUnfinished gives every turn and compaction that nothing goes on with its end, in one session or, with "", in all: open
// questions are resolved, an Error and an AgentComplete, or a CompactionComplete, are stored. What had been shown is there;
// a command that ran is not adopted. why is for people.
func (h *Hub) endUnfinished(ctx context.Context, of wire.SessionID, why string) error {
	open, err := h.opts.Store.Unfinished(ctx)
	for _, u := range open {
		if of != "" && of != u.SessionID {
			continue
		}
		var s *session
		if s, err = h.session(ctx, u.SessionID); err != nil {
			break
		}
		err = s.events.EndUnfinished(ctx, u, why)
		h.release(s)
		if err != nil {
			break
		}
		h.log.Warn("unfinished work ended", "why", why, "turn", u.TurnID, "session", u.SessionID)
	}
	if err != nil {
		return fmt.Errorf("end unfinished turns: %w", err)
	}
	return nil
}
