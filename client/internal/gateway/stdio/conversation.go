package stdio

import (
	"errors"
	"fmt"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// conversation is one session of the daemon: the one that a conversationId names, or the default one.
type conversation struct {
	s       *server
	name    wire.SessionID // "" = the default one
	session *gateway.Session
}

// conversation returns a conversation, or creates it: conversations are stored under their names (D11). Only read's goroutine calls
// it; it takes mu because of Serve, which closes the sessions.
func (s *server) conversation(name string) (*conversation, error) {
	s.mu.Lock()
	t := s.talks[name]
	s.mu.Unlock()
	if t != nil {
		return t, t.ensure()
	}
	session, err := s.o.Daemon.ConnectOrCreate(s.ctx, gateway.Options{Name: "sublet serve stdio", Session: wire.SessionID(name), AfterSeq: -1})
	if err != nil {
		return nil, fmt.Errorf("metadata.conversationId: %w", err)
	}
	t = &conversation{s: s, name: wire.SessionID(name), session: session}
	s.mu.Lock()
	s.talks[name] = t
	s.mu.Unlock()
	s.work.Go(func() { s.turns.Deliver(s.ctx, session) }) // Serve waits for it
	return t, nil
}

// ensure returns to the conversation's own session. After a restart of the daemon it has another one, if nothing was stored.
func (t *conversation) ensure() error {
	if t.name == "" || t.session.ID() == t.name {
		return nil
	}
	err := t.session.Attach(t.s.ctx, t.name, -1)
	if errors.Is(err, wire.ErrNotFoundSession) {
		err = t.session.Create(t.s.ctx, t.name)
	}
	return err
}

func (t *conversation) clear() error {
	if running := len(t.s.turns.Running(t.session)); running > 0 {
		return fmt.Errorf("the conversation is not cleared while %d requests run in it", running)
	}
	_, err := t.session.Request(t.s.ctx, &wire.SessionRequest{Op: "clear"})
	return err
}

type status struct {
	State  string `json:"state"`              // idle, processing
	Length int    `json:"conversationLength"` // messages, the user's and the agent's
	Uptime int64  `json:"uptime"`             // of this runtime, in milliseconds
}

func (t *conversation) status() (*status, error) {
	reply, err := wire.Call(t.s.ctx, t.session, &wire.SessionRequest{Op: "get"})
	if err != nil {
		return nil, err
	}
	st := &status{State: "idle", Length: 2 * reply.Session.Turns, Uptime: time.Since(t.s.begun).Milliseconds()}
	if len(t.s.turns.Running(t.session)) > 0 {
		st.State = "processing"
		st.Length = max(st.Length-1, 0) // the running one has no answer yet
	}
	return st, nil
}

// event translates one event of a request (E18, E21, F10, G1 to G4).
func (s *server) event(j *job, m wire.Message) {
	if text := gateway.Answer(m); text != "" {
		_ = s.send(message{Type: "token", ID: &j.ID, Token: &text}) // the reader notices that the parent has ended
		return
	}
	switch m := m.(type) {
	case *wire.AgentStreamChunk:
		if m.Chunk.Type == wire.ChunkToolCall {
			j.tools[m.Chunk.ExecutionID] = m.Chunk.Tool
			_ = s.send(message{Type: "tool_use", ID: &j.ID, Data: toolData{
				ID: string(m.Chunk.ExecutionID), Name: m.Chunk.Tool, Input: gateway.Arguments(m.Chunk.Arguments),
			}})
		}
	case *wire.CommandResult:
		if j.tools[m.ExecutionID] == "" {
			return // a command that a person ran in a session that is shared
		}
		delete(j.tools, m.ExecutionID)
		_ = s.send(message{Type: "tool_result", ID: &j.ID, Data: toolData{
			ID: string(m.ExecutionID), Name: m.Tool, Result: resultOf(m),
		}})
	}
}

// ended sends the one end of a request (E20).
func (s *server) ended(j *job, status string, why *wire.Error) {
	switch status {
	case wire.StatusSuccess:
		_ = s.send(message{Type: "done", ID: &j.ID})
	case wire.StatusCancelled, wire.StatusTimeout:
		_ = s.fail(j.ID, status+": "+wire.Explain(why))
	default:
		_ = s.fail(j.ID, wire.Explain(why))
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
