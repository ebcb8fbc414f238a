package hosted

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"golang.org/x/time/rate"

	"sublet/daemon/internal/child"
	"sublet/daemon/internal/mask"
	"sublet/wire"
	"sublet/wire/visible"
)

// start starts the agent and its session. Each step but a sign-in may take Options.Start.
func (a *Agents) start(r *run, k key) (_ *host, err error) {
	conf := *r.t.Of.Role.Hosted
	h := &host{
		agents: a, key: k, conf: conf, known: knownOf(conf.Command), token: rand.Text(), lists: make(chan struct{}),
		session: session{cwd: r.t.Of.Env.Cwd},
	}
	last := a.remembered(r, k)
	if info, err := os.Stat(last.Cwd); err == nil && info.IsDir() {
		h.session.cwd = last.Cwd
	}
	if err := h.launch(r); err != nil {
		return nil, &FaultError{r.name, "it cannot be started: " + err.Error(), "look at `command` below [agents." + r.name + "] in the settings"}
	}
	a.add(k, h)
	a.work.Go(func() { // ends with the process
		<-h.conn.Done()
		h.end()
	})
	signedIn, begins := true, r.name+" begins a new session: it does not know what was said here before"
	begin := func(ctx context.Context) error {
		if last.ID != "" {
			err := h.resume(ctx, last)
			if err == nil || needsSignIn(err) {
				return err
			}
			begins += "; its earlier one is not taken up: " + visible.Exact(shown(message(err), 200))
			last.ID = ""
		}
		h.newSessionNotice = begins
		return h.open(ctx)
	}
	defer func() {
		if err != nil {
			h.end()
		}
	}()
	err = h.within(r.ctx, a.o.Start, func(ctx context.Context) error {
		if err := h.initialize(ctx); err != nil {
			return err
		}
		err := begin(ctx)
		if signedIn = !needsSignIn(err); !signedIn {
			return nil
		}
		return err
	})
	if err == nil && !signedIn {
		err = h.within(r.ctx, signInBound, func(ctx context.Context) error { // it waits for the user and a browser
			if err := h.signIn(ctx, r); err != nil {
				return err
			}
			return begin(ctx)
		})
	}
	if err != nil {
		return nil, err
	}
	mode := "ask"
	h.mu.Lock()
	if slices.Contains(h.session.mode.Offers, last.Mode) {
		mode, h.chosen = last.Mode, last.Mode
	}
	h.session.firstModel = cmp.Or(h.session.model.Current, last.Began)
	h.mu.Unlock()
	a.remember(h)
	return h, h.within(r.ctx, a.o.Start, func(ctx context.Context) error { return h.setMode(ctx, mode) })
}

// within calls requests with a context that ends after d at most. The end of the context closes the agent's input, because nothing else
// ends a write to an agent that does not read. It ends the process if the context ended or the connection is lost. The error is from fault.
func (h *host) within(ctx context.Context, d time.Duration, requests func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	defer context.AfterFunc(ctx, h.proc.HangUp)()
	err := requests(ctx)
	if err == nil {
		return nil
	}
	lost := h.lost() // asked first, because end closes the connection too
	if lost || ctx.Err() != nil {
		h.end()
	}
	return h.fault(ctx, h.key.agent, err, lost)
}

// initialize negotiates the protocol and stores what the agent can do in h.about. If the agent speaks another version, it gives the agent
// up.
func (h *host) initialize(ctx context.Context) (err error) {
	h.about, err = h.conn.Initialize(ctx, sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		ClientInfo:      &sdk.Implementation{Name: "sublet", Version: h.agents.o.Version},
		ClientCapabilities: sdk.ClientCapabilities{
			Fs: sdk.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}, Terminal: true, Auth: sdk.AuthCapabilities{Terminal: true},
			Meta: map[string]any{terminalAuth: true},
		},
	})
	if err == nil && h.about.ProtocolVersion != sdk.ProtocolVersionNumber {
		err = fmt.Errorf("it speaks version %d of the protocol, and sublet version %d", h.about.ProtocolVersion, sdk.ProtocolVersionNumber)
		h.giveUp(err) // the reason must be stored before the process ends
	}
	return err
}

// launch starts the process, without its own shell where sublet can switch that off, and the connection to it.
func (h *host) launch(r *run) error {
	o := h.agents.o
	own, err := mask.Expand(h.conf.Env, true)
	if err != nil {
		return err
	}
	args, extra, err := h.known.withoutShell(h.conf.Command[1:], o.Folder)
	if err != nil {
		return err
	}
	env := child.Env(child.Env(r.t.Env, extra), own)
	if h.path, err = child.Find(h.conf.Command[0], env, h.session.cwd, r.t.Home); err != nil {
		return err
	}
	launcher, to, err := o.Hold(h.conf, h.session.cwd)
	if err != nil {
		return err
	}
	h.proc, err = child.Start(child.Spec{
		Name: h.key.agent, Path: h.path, Args: args, Env: env, Dir: h.session.cwd, Launcher: launcher, Reach: to, Folder: o.Folder, Log: h.agents.log,
	})
	if err != nil {
		return err
	}
	h.in = newInput(h, child.NewMeter(h.proc.Stdout, maxMessage, rate.NewLimiter(linesPerSecond, linesAtOnce)))
	h.conn = sdk.NewClientSideConnection(h, h.proc.Stdin, h.in)
	return nil
}

// resume continues the session of an earlier process. The agent may then send the conversation again, which is ignored: it is stored.
func (h *host) resume(ctx context.Context, last storedSession) error {
	s, id, can := h.opening(), sdk.SessionId(last.ID), h.about.AgentCapabilities
	switch {
	case can.SessionCapabilities.Resume != nil:
		r, err := h.conn.ResumeSession(ctx, sdk.ResumeSessionRequest{SessionId: id, Cwd: s.Cwd, McpServers: s.McpServers, Meta: s.Meta})
		if err != nil {
			return err
		}
		h.setSession(id, r.Modes, r.Models, r.ConfigOptions)
	case can.LoadSession:
		r, err := h.conn.LoadSession(ctx, sdk.LoadSessionRequest{SessionId: id, Cwd: s.Cwd, McpServers: s.McpServers, Meta: s.Meta})
		if err != nil {
			return err
		}
		h.setSession(id, r.Modes, r.Models, r.ConfigOptions)
	default:
		return errors.New("the agent cannot do that")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session.cost = last.Cost
	for now, was := range map[*selector]selector{&h.session.model: last.Models, &h.session.mode: last.Modes} {
		if len(now.Offers) == 0 {
			was.Current = "" // not known, so that choose sends even the one that was in use
			*now = was
		}
	}
	return nil
}

// open opens the session.
func (h *host) open(ctx context.Context) error {
	made, err := h.conn.NewSession(ctx, h.opening())
	if err != nil {
		return err
	}
	h.setSession(made.SessionId, made.Modes, made.Models, made.ConfigOptions)
	return nil
}

// opening returns the request for a session: in the turn's folder, with sublet's MCP server.
func (h *host) opening() sdk.NewSessionRequest {
	s := sdk.NewSessionRequest{Cwd: h.session.cwd, McpServers: []sdk.McpServer{}, Meta: h.known.sessionMeta}
	if o := h.agents.o; len(o.Server) > 0 {
		env := []sdk.EnvVariable{{Name: wire.HostedVariable, Value: h.token}}
		for name, value := range o.ServerEnv {
			env = append(env, sdk.EnvVariable{Name: name, Value: value})
		}
		s.McpServers = append(s.McpServers, sdk.McpServer{Stdio: &sdk.McpServerStdio{Name: serverName, Command: o.Server[0], Args: o.Server[1:], Env: env}})
	}
	return s
}

// setSession stores the session's id, modes and models.
func (h *host) setSession(id sdk.SessionId, modes *sdk.SessionModeState, models *sdk.SessionModelState, options []sdk.SessionConfigOption) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.session
	s.id = id
	if modes != nil {
		s.mode.Current = string(modes.CurrentModeId)
		for _, m := range modes.AvailableModes[:min(len(modes.AvailableModes), maxOffers)] {
			s.mode.Offers = append(s.mode.Offers, string(m.Id))
		}
	}
	if models != nil {
		s.model.Current = string(models.CurrentModelId)
		for _, m := range models.AvailableModels[:min(len(models.AvailableModels), maxOffers)] {
			s.model.Offers = append(s.model.Offers, string(m.ModelId))
		}
	}
	s.configure(options)
}
