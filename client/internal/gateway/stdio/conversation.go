package stdio

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// conversation is one session of the daemon: the one that a conversationId names, or the default one.
type conversation struct {
	s       *server
	name    wire.SessionID // "" = the default one
	session *gateway.Session

	mu sync.Mutex
	// guarded by mu
	jobs map[wire.RequestID]*job
}

// conversation returns a conversation, or creates it: conversations are stored under their names (D11).
func (s *server) conversation(name string) (*conversation, error) {
	s.mu.Lock()
	t := s.talks[name]
	s.mu.Unlock()
	if t != nil {
		return t, t.ensure()
	}
	ctx, cancel := s.o.Daemon.Bound(s.ctx)
	defer cancel()
	const client = "sublet serve stdio"
	session, err := s.o.Daemon.Connect(ctx, gateway.Options{Name: client, Session: wire.SessionID(name), AfterSeq: -1})
	if name != "" && errors.Is(err, wire.ErrNotFoundSession) {
		if session, err = s.o.Daemon.Connect(ctx, gateway.Options{Name: client}); err == nil {
			if err = session.Create(ctx, wire.SessionID(name)); err != nil {
				session.Close()
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("metadata.conversationId: %w", err)
	}
	if limits := session.Ready().Limits; limits[wire.LimitRequestsPerSecond] > 0 && limits[wire.LimitRunningTurns] > 0 {
		s.limit.rate, s.limit.running = int(limits[wire.LimitRequestsPerSecond]), int(limits[wire.LimitRunningTurns])
	}
	t = &conversation{s: s, name: wire.SessionID(name), session: session, jobs: map[wire.RequestID]*job{}}
	s.mu.Lock()
	s.talks[name] = t
	s.mu.Unlock()
	s.work.Go(t.translate) // Serve waits for it
	return t, nil
}

// ensure returns to the conversation's own session. After a restart of the daemon it has another one, if nothing was stored.
func (t *conversation) ensure() error {
	if t.name == "" || t.session.ID() == t.name {
		return nil
	}
	ctx, cancel := t.s.o.Daemon.Bound(t.s.ctx)
	defer cancel()
	err := t.session.Attach(ctx, t.name, -1)
	if errors.Is(err, wire.ErrNotFoundSession) {
		err = t.session.Create(ctx, t.name)
	}
	return err
}

func (t *conversation) ask(j *job, r *wire.AgentRequest) error {
	t.mu.Lock()
	t.jobs[j.request] = j // before sending: the answer may come before Ask returns
	t.mu.Unlock()
	err := t.session.Ask(t.s.ctx, r)
	if err != nil {
		t.mu.Lock()
		delete(t.jobs, j.request)
		t.mu.Unlock()
	}
	return err
}

func (t *conversation) cancelAll(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.jobs {
		t.session.Cancel(id, why)
	}
}

func (t *conversation) clear() error {
	t.mu.Lock()
	running := len(t.jobs)
	t.mu.Unlock()
	if running > 0 {
		return fmt.Errorf("the conversation is not cleared while %d requests run in it", running)
	}
	ctx, cancel := t.s.o.Daemon.Bound(t.s.ctx)
	defer cancel()
	_, err := t.session.Do(ctx, &wire.SessionRequest{Op: "clear"})
	return err
}

type status struct {
	State  string `json:"state"`              // idle, processing
	Length int    `json:"conversationLength"` // messages, the user's and the agent's
	Uptime int64  `json:"uptime"`             // of this runtime, in milliseconds
}

func (t *conversation) status() (*status, error) {
	ctx, cancel := t.s.o.Daemon.Bound(t.s.ctx)
	defer cancel()
	reply, err := t.session.Do(ctx, &wire.SessionRequest{Op: "get"})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	running := len(t.jobs) > 0
	t.mu.Unlock()
	st := &status{State: "idle", Length: 2 * reply.Session.Turns, Uptime: time.Since(t.s.begun).Milliseconds()}
	if running {
		st.State = "processing"
		st.Length = max(st.Length-1, 0) // the running one has no answer yet
	}
	return st, nil
}

// translate converts the session's events to responses until the server stops.
func (t *conversation) translate() {
	for {
		m, err := t.session.Next(t.s.ctx)
		if err != nil {
			return // the server stops
		}
		e, ok := m.(wire.EventMessage)
		if !ok {
			continue
		}
		t.mu.Lock()
		j := t.jobs[e.Meta().RequestID]
		t.mu.Unlock()
		if j != nil {
			t.event(j, m)
		}
	}
}

// event translates one event of a request (E18 to E21, F10, G1 to G4).
func (t *conversation) event(j *job, m wire.Message) {
	switch m := m.(type) {
	case *wire.AgentStreamChunk:
		switch {
		case m.Chunk.Type == wire.ChunkText && m.Chunk.Text != "" && !gateway.IsDelegate(m.Agent):
			_ = t.s.send(message{Type: "token", ID: &j.id, Token: &m.Chunk.Text}) // the reader notices that the parent has ended
		case m.Chunk.Type == wire.ChunkVoid && !gateway.IsDelegate(m.Agent):
			mark := gateway.Void(m.Chunk.Text)
			_ = t.s.send(message{Type: "token", ID: &j.id, Token: &mark})
		case m.Chunk.Type == wire.ChunkToolCall:
			j.tools[m.Chunk.ExecutionID] = m.Chunk.Tool
			_ = t.s.send(message{Type: "tool_use", ID: &j.id, Data: toolData{
				ID: string(m.Chunk.ExecutionID), Name: m.Chunk.Tool, Input: input(m.Chunk.Arguments),
			}})
		}
	case *wire.CommandResult:
		if j.tools[m.ExecutionID] == "" {
			return // a command that a person ran in a session that is shared
		}
		delete(j.tools, m.ExecutionID)
		_ = t.s.send(message{Type: "tool_result", ID: &j.id, Data: toolData{
			ID: string(m.ExecutionID), Name: m.Tool, Result: resultOf(m),
		}})
	case *wire.Error:
		j.problem = explain(m)
		if m.TurnID == "" { // it never began
			t.end(j, "error", j.problem)
		}
	case *wire.AgentComplete:
		switch m.Status {
		case wire.StatusSuccess:
			t.end(j, "done", "")
		case wire.StatusCancelled:
			t.end(j, "error", "cancelled: "+cmp.Or(j.problem, "the request was cancelled"))
		case wire.StatusTimeout:
			t.end(j, "error", "timeout: "+cmp.Or(j.problem, "the request took too long"))
		default:
			t.end(j, "error", cmp.Or(j.problem, "the request failed"))
		}
	}
}

// end sends the one end of a request (E20).
func (t *conversation) end(j *job, what, problem string) {
	t.mu.Lock()
	delete(t.jobs, j.request)
	t.mu.Unlock()
	if what == "done" {
		_ = t.s.send(message{Type: "done", ID: &j.id})
	} else {
		_ = t.s.fail(j.id, problem)
	}
	t.s.forget(j)
}

// resultOf is a tool's result; one that failed carries the error, and the request goes on (L33).
func resultOf(m *wire.CommandResult) map[string]any {
	files := make([]string, 0, len(m.FilesModified))
	for _, f := range m.FilesModified {
		files = append(files, string(f))
	}
	r := map[string]any{"status": m.Status, "output": string(m.Output), "filesModified": files, "durationMs": m.DurationMS}
	if m.ExitCode != nil {
		r["exitCode"] = *m.ExitCode
	}
	if m.Status != wire.StatusSuccess {
		r["error"] = string(m.Output)
	}
	return r
}

// input returns a call's arguments as an object; anything else as text.
func input(arguments string) any {
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &object); err != nil || object == nil {
		return map[string]string{"text": arguments}
	}
	return object
}
