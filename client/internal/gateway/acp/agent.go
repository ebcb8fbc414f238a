package acp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// agent implements the SDK's Agent and AgentLoader: the requests of an editor.
type agent struct {
	o    Options
	log  *slog.Logger
	ctx  context.Context // the connection's lifetime
	conn *sdk.AgentSideConnection
	work sync.WaitGroup

	terminals atomic.Bool // the editor has terminals
	handed    gateway.Handed
	turns     gateway.Turns

	mu sync.Mutex
	// guarded by mu
	sessions map[sdk.SessionId]*session
	closed   bool
}

var (
	_ sdk.Agent       = (*agent)(nil)
	_ sdk.AgentLoader = (*agent)(nil)
)

// Initialize answers with the protocol's version 1, whichever the editor asked for: an editor without it disconnects. It records
// whether the editor has terminals.
func (a *agent) Initialize(_ context.Context, p sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	if p.ClientInfo != nil {
		a.log.Info("editor", "name", gateway.Clip(p.ClientInfo.Name), "version", gateway.Clip(p.ClientInfo.Version))
	}
	a.terminals.Store(p.ClientCapabilities.Terminal)
	title := "sublet"
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "sublet", Title: &title, Version: a.o.Daemon.Version},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:        true,
			McpCapabilities:    sdk.McpCapabilities{Http: true},
			PromptCapabilities: sdk.PromptCapabilities{EmbeddedContext: true, Image: true},
			SessionCapabilities: sdk.SessionCapabilities{
				List: &sdk.SessionListCapabilities{}, Resume: &sdk.SessionResumeCapabilities{}, Close: &sdk.SessionCloseCapabilities{},
			},
		},
	}, nil
}

// Authenticate refuses every method, since there are none: only the user can start this process.
func (a *agent) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, invalid("methodId: there are no methods, and none is needed")
}

// SetSessionConfigOption has no option to set.
func (a *agent) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, invalid("configId: there are no options")
}

// NewSession begins a conversation in a folder.
func (a *agent) NewSession(ctx context.Context, p sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	s, err := a.connect(ctx, p.Cwd, "", p.McpServers)
	if err != nil {
		return sdk.NewSessionResponse{}, err
	}
	return sdk.NewSessionResponse{SessionId: s.id, Modes: s.modes()}, nil
}

// LoadSession attaches to a stored conversation and sends its history to the editor.
func (a *agent) LoadSession(ctx context.Context, p sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	s, err := a.connect(ctx, p.Cwd, p.SessionId, p.McpServers)
	if err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	if err := s.replay(ctx); err != nil {
		return sdk.LoadSessionResponse{}, requestError(err)
	}
	return sdk.LoadSessionResponse{Modes: s.modes()}, nil
}

// ResumeSession is LoadSession without the history.
func (a *agent) ResumeSession(ctx context.Context, p sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	s, err := a.connect(ctx, p.Cwd, p.SessionId, p.McpServers)
	if err != nil {
		return sdk.ResumeSessionResponse{}, err
	}
	return sdk.ResumeSessionResponse{Modes: s.modes()}, nil
}

// connect opens a session, "" for a new one; one that is open already is used again.
func (a *agent) connect(ctx context.Context, cwd string, id sdk.SessionId, servers []sdk.McpServer) (*session, error) {
	if !filepath.IsAbs(cwd) {
		return nil, invalid("cwd: %q is not an absolute path", gateway.Clip(cwd))
	}
	a.mu.Lock()
	open := a.sessions[id]
	a.mu.Unlock()
	if open != nil {
		open.gs.UseMCPServers(ctx, open.servers(servers))
		return open, nil
	}
	gs, err := a.o.Daemon.Connect(ctx, gateway.Options{
		Name: "sublet serve acp", Session: wire.SessionID(id), Confirm: true, Place: gateway.Place{Cwd: filepath.Clean(cwd)},
	})
	if errors.Is(err, wire.ErrNotFoundSession) {
		return nil, &sdk.RequestError{Code: -32002, Message: "Resource not found", Data: map[string]any{"details": "there is no session " + gateway.Clip(string(id))}}
	}
	if err != nil {
		return nil, requestError(err)
	}
	s, err := a.add(newSession(a, gs))
	if s == nil || s.gs != gs {
		gs.Close()
	}
	if err != nil {
		return nil, err
	}
	s.gs.UseMCPServers(ctx, s.servers(servers))
	return s, nil
}

// add returns the session of that id: s, or the one that another request has opened meanwhile.
func (a *agent) add(s *session) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, requestError(gateway.ErrClosed)
	}
	if open := a.sessions[s.id]; open != nil {
		return open, nil
	}
	a.sessions[s.id] = s
	a.work.Go(func() { a.turns.Deliver(a.ctx, s.gs) }) // close waits for it
	return s, nil
}

func (a *agent) session(id sdk.SessionId) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil {
		return s, nil
	}
	return nil, invalid("sessionId: there is no open session %q; session/new and session/load open one", gateway.Clip(string(id)))
}

// ListSessions returns the stored sessions, or those of one folder.
func (a *agent) ListSessions(ctx context.Context, p sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	gs, err := a.o.Daemon.Connect(ctx, gateway.Options{Name: "sublet serve acp"})
	if err != nil {
		return sdk.ListSessionsResponse{}, requestError(err)
	}
	defer gs.Close()
	r := &wire.SessionRequest{Op: "list"}
	if p.Cursor != nil {
		r.Cursor = *p.Cursor
	}
	reply, err := wire.Call(ctx, gs, r)
	if err != nil {
		return sdk.ListSessionsResponse{}, requestError(err)
	}
	list := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	for _, info := range reply.Sessions {
		if p.Cwd != nil && string(info.Cwd) != filepath.Clean(*p.Cwd) {
			continue
		}
		title := cmp.Or(info.Name, info.Title)
		at := time.UnixMilli(info.UpdatedAtMS).UTC().Format(time.RFC3339)
		list.Sessions = append(list.Sessions, sdk.SessionInfo{SessionId: sdk.SessionId(info.ID), Cwd: string(info.Cwd), Title: &title, UpdatedAt: &at})
	}
	if reply.More {
		list.NextCursor = &reply.Cursor
	}
	return list, nil
}

// CloseSession cancels running prompts and detaches from the session, which stays in the store.
func (a *agent) CloseSession(_ context.Context, p sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return sdk.CloseSessionResponse{}, err
	}
	a.mu.Lock()
	delete(a.sessions, p.SessionId)
	a.mu.Unlock()
	a.turns.Cancel(s.gs, "", "", "the editor closed the session")
	ctx, cancel := context.WithTimeout(a.ctx, closeBound)
	defer cancel()
	a.turns.Wait(ctx, s.gs)
	s.gs.Close()
	return sdk.CloseSessionResponse{}, nil
}

// Cancel ends the session's prompts; each is answered with the stop reason cancelled.
func (a *agent) Cancel(_ context.Context, p sdk.CancelNotification) error {
	s, err := a.session(p.SessionId)
	if err != nil {
		return err
	}
	a.turns.Cancel(s.gs, "", "", "cancelled by the editor")
	return nil
}

// SetSessionMode changes the policy's mode for the session.
func (a *agent) SetSessionMode(ctx context.Context, p sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return sdk.SetSessionModeResponse{}, err
	}
	if modeNames[p.ModeId].Id == "" {
		return sdk.SetSessionModeResponse{}, invalid("modeId: %q is none of plan, ask, auto", gateway.Clip(string(p.ModeId)))
	}
	if _, err := s.gs.Request(ctx, &wire.PolicyRequest{Op: "set_mode", Mode: string(p.ModeId)}); err != nil {
		return sdk.SetSessionModeResponse{}, requestError(err)
	}
	return sdk.SetSessionModeResponse{}, nil
}

// close ends every session and waits for their goroutines.
func (a *agent) close() {
	a.mu.Lock()
	a.closed = true
	sessions := slices.Collect(maps.Values(a.sessions))
	a.mu.Unlock()
	for _, s := range sessions {
		s.gs.Close()
	}
	a.work.Wait()
	if err := a.handed.Close(); err != nil {
		a.log.Warn("files of the editor could not be removed", "err", err)
	}
}
