package stdio

import (
	"fmt"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// conversation returns the session of a conversationId, "" for the default one; it is stored under that name (D11). Another one takes the
// place of a session that was lost: after a restart of the daemon nothing is left of one in which nothing was asked. Only read's
// goroutine calls it; it takes mu because of Serve, which closes the sessions.
func (s *server) conversation(name string) (*gateway.Session, error) {
	s.mu.Lock()
	t := s.talks[name]
	s.mu.Unlock()
	if t != nil {
		if name == "" || string(t.ID()) == name {
			return t, nil
		}
		lost := t
		s.work.Go(func() { // what was asked while the daemon was away runs in it; Serve waits for this
			s.turns.Wait(s.ctx, lost)
			lost.Close()
		})
	}
	t, err := s.o.Daemon.ConnectOrCreate(s.ctx, gateway.Options{Name: "sublet serve stdio", Session: wire.SessionID(name)})
	if err != nil {
		return nil, fmt.Errorf("metadata.conversationId: %w", err)
	}
	s.mu.Lock()
	s.talks[name] = t
	s.mu.Unlock()
	s.work.Go(func() { s.turns.Deliver(s.ctx, t) }) // Serve waits for it
	return t, nil
}

// clearHistory deletes a conversation (E11, K11). The daemon refuses that while a request runs in it.
func (s *server) clearHistory(r *request) error {
	t, err := s.conversation(r.Metadata.Conversation)
	if err != nil {
		return err
	}
	if _, err := t.Request(s.ctx, &wire.SessionRequest{Op: "clear"}); err != nil {
		return err
	}
	return s.send(message{Type: "done", ID: r.ID})
}

type status struct {
	State  string `json:"state"`              // idle, processing
	Length int    `json:"conversationLength"` // messages, the user's and the agent's
	Uptime int64  `json:"uptime"`             // of this runtime, in milliseconds
}

// status reports a conversation's state (E12, M6).
func (s *server) status(r *request) error {
	t, err := s.conversation(r.Metadata.Conversation)
	if err != nil {
		return err
	}
	reply, err := wire.Call(s.ctx, t, &wire.SessionRequest{Op: "get"})
	if err != nil {
		return err
	}
	st := &status{State: "idle", Length: 2 * reply.Session.Turns, Uptime: time.Since(s.begun).Milliseconds()}
	if len(s.turns.Running(t)) > 0 {
		st.State = "processing"
		st.Length = max(st.Length-1, 0) // the running one has no answer yet
	}
	return s.send(message{Type: "status", ID: r.ID, Data: st})
}

// event translates one event of a request (E18, E21, F10, G1 to G4).
func (s *server) event(id string, m wire.Message) {
	if text := gateway.Answer(m); text != "" {
		_ = s.send(message{Type: "token", ID: id, Token: text}) // the reader notices that the parent has ended
		return
	}
	switch m := m.(type) {
	case *wire.AgentStreamChunk:
		if m.Chunk.Type == wire.ChunkToolCall {
			_ = s.send(message{Type: "tool_use", ID: id, Data: toolData{
				ID: string(m.Chunk.ExecutionID), Name: m.Chunk.Tool, Input: gateway.Arguments(m.Chunk.Arguments),
			}})
		}
	case *wire.CommandResult:
		_ = s.send(message{Type: "tool_result", ID: id, Data: toolData{
			ID: string(m.ExecutionID), Name: m.Tool, Result: resultOf(m),
		}})
	}
}

// ended sends the one end of a request (E20).
func (s *server) ended(id, status string, why *wire.Error) {
	switch status {
	case wire.StatusSuccess:
		_ = s.send(message{Type: "done", ID: id})
	case wire.StatusCancelled, wire.StatusTimeout:
		_ = s.fail(id, status+": "+wire.Explain(why))
	default:
		_ = s.fail(id, wire.Explain(why))
	}
}

// resultOf is a tool's result; one that failed carries the error, and the request goes on (L33).
func resultOf(m *wire.CommandResult) map[string]any {
	r := map[string]any{"status": m.Status, "output": string(m.Output), "filesModified": append([]wire.OSString{}, m.FilesModified...), "durationMs": m.DurationMS}
	if m.ExitCode != nil {
		r["exitCode"] = *m.ExitCode
	}
	if m.Status != wire.StatusSuccess {
		r["error"] = string(m.Output)
	}
	return r
}
