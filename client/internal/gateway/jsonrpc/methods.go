package jsonrpc

import (
	"crypto/subtle"
	"math"
	"slices"
	"strings"
	"time"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

type terminalSize struct {
	Cols        int `json:"cols"`
	Rows        int `json:"rows"`
	PixelWidth  int `json:"pixel_width"`
	PixelHeight int `json:"pixel_height"`
}

func (t *terminalSize) term() (wire.TermInfo, *failure) {
	if t == nil {
		return wire.TermInfo{}, nil
	}
	for _, n := range []int{t.Cols, t.Rows, t.PixelWidth, t.PixelHeight} {
		if n < 0 || n > math.MaxUint16 { // struct winsize has 16 bits for each
			return wire.TermInfo{}, failed(codeParams, "terminal_size: %d is outside 0 to %d", n, math.MaxUint16)
		}
	}
	return wire.TermInfo{Cols: t.Cols, Rows: t.Rows, PixelWidth: t.PixelWidth, PixelHeight: t.PixelHeight}, nil
}

type initializeParams struct {
	Version string `json:"protocol_version"`
	Client  struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"client_info"`
	Terminal     *terminalSize       `json:"terminal_size"`
	Capabilities gateway.Few[string] `json:"capabilities"`
	Config       map[string]any      `json:"config"` // theme, font_size: not used
	Token        string              `json:"token"`
}

// Capabilities that a client may declare (B7). A client that declares none is assumed to have all.
var clientCapabilities = []string{"streaming", "blocks", "syntax_highlighting", "tool_approval", "session_persistence"}

// initialize negotiates version and capabilities, and opens the client's session (B1 to B13). dispatch calls it only until it succeeds.
func (c *conn) initialize(r *request) (any, *failure) {
	var p initializeParams
	if f := r.decode(&p); f != nil {
		return nil, f
	}
	if f := negotiate(p.Version); f != nil {
		return nil, f
	}
	term, f := p.Terminal.term()
	if f != nil {
		return nil, f
	}
	if token := c.s.o.Token; token != "" && subtle.ConstantTimeCompare([]byte(p.Token), []byte(token)) != 1 {
		return nil, failed(codePermission, "token: missing or wrong").with("hint", "the server was started with --token-file; params.token must hold that file's text")
	}
	can := map[string]bool{}
	if p.Capabilities == nil {
		p.Capabilities = clientCapabilities
	}
	for _, name := range p.Capabilities {
		can[name] = true
	}
	session, err := c.s.o.Daemon.Connect(c.ctx, gateway.Options{
		Name: "sublet serve jsonrpc", Confirm: can["tool_approval"], Place: gateway.Place{Term: term},
	})
	if err != nil {
		return nil, failureOf(err)
	}
	c.session, c.can = session, can
	ready := session.Ready()
	models := []map[string]any{}
	for _, m := range ready.Models {
		kind := "chat" // the document has chat and code; the daemon has no such types, so the name decides
		if strings.Contains(strings.ToLower(m.Name), "code") {
			kind = "code"
		}
		models = append(models, map[string]any{"name": m.Name, "type": kind, "loaded": m.Loaded})
	}
	result := map[string]any{
		"status": "ready", "protocol_version": protocolVersion, "server_info": map[string]any{"name": "sublet", "version": ready.Daemon.Version},
		"capabilities": []string{"streaming", "blocks", "tool_execution", "context_aware"}, "models": models,
	}
	c.log.Info("client ready", "client", gateway.Clip(p.Client.Name), "version", gateway.Clip(p.Client.Version), "session", session.ID())
	c.afterAnswer = append(c.afterAnswer, func() {
		c.work.Go(func() { c.turns.Deliver(c.ctx, session) }) // serve waits for it
	})
	return result, nil
}

var semantic = gateway.Pattern(`^([0-9]{1,9})\.[0-9]{1,9}(\.[0-9]{1,9})?(?:[-+][0-9A-Za-z.+-]{1,64})?$`)

// negotiate accepts every version of the same major number, also without a patch number.
func negotiate(version string) *failure {
	m := semantic().FindStringSubmatch(version)
	switch {
	case version == "":
		return failed(codeParams, "protocol_version: is missing").with("supported", protocolVersion)
	case m == nil:
		return failed(codeParams, "protocol_version: %q is not MAJOR.MINOR.PATCH", gateway.Clip(version)).with("supported", protocolVersion)
	case m[1] != protocolMajor:
		return failed(codeParams, "protocol_version: %s is another major version than %s", gateway.Clip(version), protocolVersion).
			with("supported", protocolVersion).with("requested", gateway.Clip(version))
	}
	return nil
}

// cancel ends a query; its stream.complete follows (E14).
func (c *conn) cancel(r *request) (any, *failure) {
	var p struct {
		Query string `json:"query_id"`
	}
	if f := r.decode(&p, "query_id"); f != nil {
		return nil, f
	}
	runs := slices.ContainsFunc(c.turns.Running(nil), func(t *gateway.Turn) bool { return t.ID == p.Query })
	if !runs && !c.turns.Ended(p.Query) {
		return nil, failed(codeParams, "query_id: there is no query %q on this connection", gateway.Clip(p.Query))
	}
	c.afterAnswer = append(c.afterAnswer, func() { c.turns.Cancel(nil, p.Query, "", "cancelled by the client") })
	return map[string]any{"cancelled": runs, "query_id": p.Query}, nil
}

// update records the client's folder, environment and terminal (D2), and its recent commands, for suggestions.
func (c *conn) update(r *request) (any, *failure) {
	var p struct {
		Cwd      string            `json:"cwd"`
		Env      map[string]string `json:"env"`
		Terminal *terminalSize     `json:"terminal_size"`
		Recent   recentCommands    `json:"recent_commands"`
	}
	if f := r.decode(&p); f != nil {
		return nil, f
	}
	term, f := p.Terminal.term()
	if f != nil {
		return nil, f
	}
	place, err := c.session.Place().With(c.s.o.Daemon.Env, p.Cwd, p.Env)
	if err != nil {
		return nil, failed(codeParams, "%s", err)
	}
	if p.Terminal != nil {
		place.Term = term
	}
	if err := c.session.Move(c.ctx, place); err != nil {
		return nil, failureOf(err)
	}
	c.afterAnswer = append(c.afterAnswer, func() { c.suggest(p.Recent) })
	return map[string]any{"status": "updated"}, nil
}

// save writes the session to a file (K1).
func (c *conn) save(r *request) (any, *failure) {
	p := struct {
		Path    string `json:"path"`
		History *bool  `json:"include_history"`
		Blocks  *bool  `json:"include_blocks"`
	}{}
	if f := r.decode(&p, "path"); f != nil {
		return nil, f
	}
	reply, err := wire.Call(c.ctx, c.session, &wire.SessionRequest{
		Op: "save", Path: wire.OSString(p.Path),
		IncludeHistory: p.History == nil || *p.History, IncludeBlocks: p.Blocks == nil || *p.Blocks,
	})
	if err != nil {
		return nil, failureOf(err)
	}
	return map[string]any{"saved": true, "path": string(reply.Path), "size": reply.Size}, nil
}

// load loads a saved session and attaches the connection to it (K2).
func (c *conn) load(r *request) (any, *failure) {
	var p struct {
		Path string `json:"path"`
	}
	if f := r.decode(&p, "path"); f != nil {
		return nil, f
	}
	if running := len(c.turns.Running(nil)); running > 0 {
		return nil, failed(codeAgent, "%d queries run in the session that would be left; cancel them or wait for their end", running)
	}
	reply, err := wire.Call(c.ctx, c.session, &wire.SessionRequest{Op: "load", Path: wire.OSString(p.Path)})
	if err != nil {
		return nil, failureOf(err)
	}
	id := reply.Session.ID
	if err := c.session.Attach(c.ctx, id); err != nil {
		return nil, failureOf(err)
	}
	blocks, messages, err := c.count(id)
	if err != nil {
		return nil, failureOf(err)
	}
	return map[string]any{"loaded": true, "session": map[string]any{
		"id": id, "created": reply.Session.CreatedAtMS / time.Second.Milliseconds(), "blocks_count": blocks, "messages_count": messages,
	}}, nil
}

// count returns the numbers of messages (the user's and the agent's own) and of blocks, other than questions, in a session's history.
func (c *conn) count(id wire.SessionID) (blocks, messages int, err error) {
	var text wire.StreamedText // of the agent's current message
	end := func() {
		if text.Len() == 0 {
			return
		}
		messages++
		var split gateway.Fences
		for _, p := range append(split.Add(text.String()), split.End()...) {
			if p.Code {
				blocks++
			}
		}
		text.Reset()
	}
	_, err = c.session.History(c.ctx, id, 0, func(e wire.EventMessage) {
		if chunk, ok := answerText(e); ok && chunk.Chunk.Type == wire.ChunkVoid {
			text.Void(chunk.Chunk.FromSeq)
		} else if ok {
			text.Add(chunk.First(), chunk.Chunk.Text)
		}
		switch m := e.(type) {
		case *wire.TurnStarted:
			end()
			messages++
		case *wire.CommandResult:
			if end(); isBlock(m) {
				blocks++
			}
		case *wire.AgentComplete:
			end()
		case *wire.AgentStreamChunk:
			if m.Chunk.Type == wire.ChunkBlock { // of an archive: today's models send none
				blocks++
			}
		}
	})
	end()
	return blocks, messages, err
}
