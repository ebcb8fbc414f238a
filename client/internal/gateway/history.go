package gateway

import (
	"context"

	"sublet/wire"
)

// History calls each, in order, for every stored event of any session whose number is above after. Errors are those of Request.
func (s *Session) History(ctx context.Context, id wire.SessionID, after int64, each func(wire.EventMessage)) (wire.SessionInfo, error) {
	for {
		reply, err := wire.Call(ctx, s, &wire.SessionRequest{
			Op: "get", SessionID: &id, IncludeHistory: true, IncludeBlocks: true, AfterSeq: after,
			Limit: 1000, // the most that the daemon returns at once
		})
		if err != nil {
			return wire.SessionInfo{}, err
		}
		last := after
		for _, e := range reply.Events {
			if m, ok := e.Message.(wire.EventMessage); ok { // nil for a kind that this build does not know
				last = max(last, m.Meta().Seq)
				each(m)
			}
		}
		if !reply.More || last == after { // a page without numbered events would repeat for ever
			return reply.Session, nil
		}
		after = last
	}
}
