package acp

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/client/internal/gateway"
	"sublet/wire"
	"sublet/wire/visible"
)

// session is one conversation of the editor.
type session struct {
	a  *agent
	gs *gateway.Session
	id sdk.SessionId

	past  bool                           // for a replay: nothing runs, and files may have changed since
	calls map[wire.ExecutionID]*toolCall // running tools; used only by the goroutine that translates events

	mu sync.Mutex
	// guarded by mu
	notice string // for the user; sent with the next prompt; "" = none
}

func newSession(a *agent, gs *gateway.Session) *session {
	return &session{a: a, gs: gs, id: sdk.SessionId(gs.ID()), calls: map[wire.ExecutionID]*toolCall{}}
}

// modeNames are the policy modes that an editor may choose; full needs a flag on the command line.
var modeNames = map[sdk.SessionModeId]sdk.SessionMode{
	"plan": mode("plan", "Plan", "what only reads runs; the rest is refused"),
	"ask":  mode("ask", "Ask", "what only reads runs; the rest is asked for"),
	"auto": mode("auto", "Auto", "everyday changes inside the project run too; the rest is asked for"),
}

func mode(id, name, description string) sdk.SessionMode {
	return sdk.SessionMode{Id: sdk.SessionModeId(id), Name: name, Description: &description}
}

func (s *session) modes() *sdk.SessionModeState {
	current := sdk.SessionModeId(s.gs.Ready().Mode)
	if modeNames[current].Id == "" {
		return nil
	}
	return &sdk.SessionModeState{
		CurrentModeId: current, AvailableModes: []sdk.SessionMode{modeNames["plan"], modeNames["ask"], modeNames["auto"]},
	}
}

// servers converts the editor's MCP servers for the daemon, which uses them for this session's prompts; never nil. Invalid ones
// are reported with the next prompt.
func (s *session) servers(list []sdk.McpServer) []wire.MCPServer {
	out, unused := []wire.MCPServer{}, []string{}
	for _, m := range list {
		server := wire.MCPServer{Args: []wire.OSString{}, Env: map[string]wire.OSString{}, Headers: map[string]string{}}
		switch {
		case m.Stdio != nil:
			server.Name, server.Command = m.Stdio.Name, wire.OSString(m.Stdio.Command)
			for _, arg := range m.Stdio.Args {
				server.Args = append(server.Args, wire.OSString(arg))
			}
			for _, v := range m.Stdio.Env {
				server.Env[v.Name] = wire.OSString(v.Value)
			}
		case m.Http != nil:
			server.Name, server.URL = m.Http.Name, m.Http.Url
			for _, h := range m.Http.Headers {
				server.Headers[h.Name] = h.Value
			}
		case m.Sse != nil:
			unused = append(unused, gateway.OneLine(m.Sse.Name)+": server-sent events alone are not spoken here")
			continue
		}
		out = append(out, server)
	}
	if len(unused) > 0 {
		text := strings.Join(unused, "; ")
		s.a.log.Warn("MCP servers of the editor's that are not used", "servers", text)
		s.mu.Lock()
		s.notice = fmt.Sprintf("MCP servers of the editor's that are not used (%s).\n\n", text)
		s.mu.Unlock()
	}
	return out
}

// Prompt runs one turn: it sends updates, and returns the stop reason.
func (a *agent) Prompt(ctx context.Context, p sdk.PromptRequest) (sdk.PromptResponse, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	r, images, err := request(p.Prompt)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	t := &gateway.Turn{Handle: s.show, Asked: s.ask}
	if err := a.turns.Begin(t, 0); err != nil {
		return sdk.PromptResponse{}, requestError(err)
	}
	if r.Attachments, err = t.Attach(r.Attachments, images); err != nil {
		t.Abandon()
		return sdk.PromptResponse{}, requestError(err)
	}
	s.mu.Lock()
	notice := s.notice
	s.notice = ""
	s.mu.Unlock()
	if notice != "" {
		s.update(sdk.UpdateAgentMessageText(notice))
	}
	if err := t.Ask(ctx, s.gs, r); err != nil {
		if ctx.Err() != nil {
			return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
		}
		return sdk.PromptResponse{}, requestError(err)
	}
	stop := ctx.Done()
	for {
		select {
		case <-t.Done():
			return response(t)
		case <-stop:
			stop = nil
			t.Cancel("cancelled by the editor") // its end follows
		case <-a.ctx.Done():
			return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
		}
	}
}

// response returns the answer to the prompt of a turn that has ended.
func response(t *gateway.Turn) (sdk.PromptResponse, error) {
	switch status, why := t.Outcome(); status {
	case wire.StatusCancelled:
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	case wire.StatusSuccess:
		reason := sdk.StopReasonEndTurn
		switch t.End.StopReason {
		case "max_tokens":
			reason = sdk.StopReasonMaxTokens
		case "tool_use": // the limit of steps
			reason = sdk.StopReasonMaxTurnRequests
		case "refusal":
			reason = sdk.StopReasonRefusal
		}
		return sdk.PromptResponse{StopReason: reason}, nil
	default:
		data := map[string]any{"details": why.Message, "code": why.Code}
		if why.Hint != "" {
			data["hint"] = why.Hint
		}
		return sdk.PromptResponse{}, &sdk.RequestError{Code: -32603, Message: why.Message, Data: data}
	}
}

// request converts a prompt: texts and embedded files in order, links to files as attachments, and images that the caller must
// write to files.
func request(blocks []sdk.ContentBlock) (*wire.AgentRequest, []gateway.Image, error) {
	var text strings.Builder
	var images []gateway.Image
	r := &wire.AgentRequest{}
	add := func(part string) {
		if text.Len() > 0 && !strings.HasSuffix(text.String(), "\n") {
			text.WriteString("\n")
		}
		text.WriteString(part)
	}
	image := func(at, data, mime, uri string) error {
		content, err := gateway.Decode(data)
		if err != nil {
			return invalid("%s: %v", at, err)
		}
		images = append(images, gateway.Image{Content: content, MIME: mime})
		name := fmt.Sprintf("[image %d]", len(images))
		if uri != "" {
			name = fmt.Sprintf("[image %d: %s]", len(images), gateway.Clip(uri))
		}
		add(name)
		return nil
	}
	for i, b := range blocks {
		switch {
		case b.Text != nil:
			add(b.Text.Text)
		case b.Image != nil:
			uri := ""
			if b.Image.Uri != nil {
				uri = *b.Image.Uri
			}
			if err := image(fmt.Sprintf("prompt[%d].data", i), b.Image.Data, b.Image.MimeType, uri); err != nil {
				return nil, nil, err
			}
		case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil && isImage(b.Resource.Resource.BlobResourceContents.MimeType):
			c := b.Resource.Resource.BlobResourceContents
			if err := image(fmt.Sprintf("prompt[%d].resource.blob", i), c.Blob, *c.MimeType, c.Uri); err != nil {
				return nil, nil, err
			}
		case b.ResourceLink != nil:
			u, err := url.Parse(b.ResourceLink.Uri)
			if err != nil || u.Scheme != "file" || u.Path == "" {
				add(fmt.Sprintf("[%s](%s)", b.ResourceLink.Name, b.ResourceLink.Uri))
				continue
			}
			add("@" + u.Path)
			a := wire.Attachment{Path: wire.OSString(u.Path)}
			if b.ResourceLink.MimeType != nil {
				a.MIME = *b.ResourceLink.MimeType
			}
			r.Attachments = append(r.Attachments, a)
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			c := b.Resource.Resource.TextResourceContents
			add(c.Uri + ":\n" + visible.Fenced("", c.Text))
		default:
			return nil, nil, invalid("prompt[%d]: only text, images, links and embedded texts and images are taken", i)
		}
	}
	if r.Prompt = text.String(); strings.TrimSpace(r.Prompt) == "" {
		return nil, nil, invalid("prompt: is empty")
	}
	return r, images, nil
}

func isImage(mime *string) bool { return mime != nil && strings.HasPrefix(*mime, "image/") }

// update sends one update to the editor. The reader notices if the editor has ended.
func (s *session) update(u sdk.SessionUpdate) {
	_ = s.a.conn.SessionUpdate(s.a.ctx, sdk.SessionNotification{SessionId: s.id, Update: u})
}

// replay sends the session's history as updates. Its calls are tracked in a session value of their own, apart from those that run in s.
func (s *session) replay(ctx context.Context) error {
	past := &session{a: s.a, gs: s.gs, id: s.id, past: true, calls: map[wire.ExecutionID]*toolCall{}}
	_, err := s.gs.History(ctx, wire.SessionID(s.id), 0, func(m wire.EventMessage) {
		if t, ok := m.(*wire.TurnStarted); ok {
			s.update(sdk.UpdateUserMessageText(t.Prompt))
			return
		}
		past.show(m)
	})
	return err
}

// show converts an agent's texts and calls. The reasoning of agents that work for another one is shown, and not their text.
func (s *session) show(m wire.EventMessage) {
	if text := gateway.Answer(m); text != "" {
		s.update(sdk.UpdateAgentMessageText(text))
		return
	}
	switch m := m.(type) {
	case *wire.AgentStreamChunk:
		c := &m.Chunk
		switch {
		case c.Type == wire.ChunkReasoning && c.Text != "":
			s.update(sdk.UpdateAgentThoughtText(c.Text))
		case c.Type == wire.ChunkNotice && c.Text != "" && !wire.IsDelegate(m.Agent): // such as an image that is not shown, a server in use
			s.update(sdk.UpdateAgentMessageText(c.Text + "\n\n"))
		case c.Type == wire.ChunkToolCall:
			s.began(m)
		case c.Type == wire.ChunkToolOutput:
			s.output(m)
		}
	case *wire.AgentThinking:
		if m.Phase == wire.PhaseWaiting && !s.past {
			s.update(sdk.UpdateAgentThoughtText(m.Message + "\n\n"))
		}
	case *wire.CommandResult:
		s.ended(m)
	}
}
