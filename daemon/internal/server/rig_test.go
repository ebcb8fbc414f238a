package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sublet/daemon/config"
	"sublet/daemon/internal/hosted"
	"sublet/daemon/internal/hub"
	"sublet/daemon/internal/mcp"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/open"
	"sublet/daemon/internal/provider/scripted"
	"sublet/daemon/internal/server"
	"sublet/daemon/internal/store"
	"sublet/wire"
	"sublet/wire/jsonview"
	"sublet/wire/wiretest"
)

func TestMain(m *testing.M) {
	if os.Getenv("SUBLET_TEST_MCP") != "" { // this program is the MCP servers as well
		serveMCP()
		return
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of a test for something that must happen.
const patience = 30 * time.Second

// rig is a real hub and server over a real store in a temporary folder, with the scripted model.
type rig struct {
	t      testing.TB
	dir    string
	script string
	conf   atomic.Pointer[config.Config]
	store  *store.Store
	audit  *store.Audit
	mcp    *mcp.Servers
	hosted *hosted.Agents
	hub    *hub.Hub
	server *server.Server
	ctx    context.Context
	cancel context.CancelFunc
	conns  sync.WaitGroup
	stops  chan time.Duration
	log    *slog.Logger
	closed bool
	spy    atomic.Pointer[spy]
	faulty atomic.Bool // errors in the log are what the test wants
}

func newRig(t testing.TB, scripts ...scripted.Script) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	r.log = slog.New(faults{r})
	if testing.Verbose() && os.Getenv("SUBLET_TEST_LOG") != "" {
		r.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	r.script = filepath.Join(r.dir, "script.json")
	r.play(scripts...)
	c := config.Default()
	c.Model = "test/model"
	c.Policy.Mode = "full" // what is about questions says so
	c.Providers["test"] = config.Provider{Kind: "scripted", Script: r.script}
	r.conf.Store(&c)
	r.start()
	t.Cleanup(r.close)
	return r
}

// faults is a log in which nothing may be that somebody must act on: a panic in the work for a message is answered with an
// error, which few tests look for.
type faults struct{ r *rig }

func (faults) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (f faults) WithAttrs([]slog.Attr) slog.Handler             { return f }
func (f faults) WithGroup(string) slog.Handler                  { return f }

func (f faults) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	if !f.r.faulty.Load() {
		f.r.t.Errorf("logged as an error: %s", text)
	}
	return nil
}

// play replaces the model's script.
func (r *rig) play(scripts ...scripted.Script) {
	r.t.Helper()
	text, err := json.Marshal(scripts)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.script, text, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// set changes the settings.
func (r *rig) set(change func(*config.Config)) {
	c := *r.conf.Load()
	change(&c)
	r.conf.Store(&c)
	r.mcp.Set(mcp.FromConfig(c))
}

func (r *rig) start() {
	r.t.Helper()
	var err error
	if r.store, err = store.Open(context.Background(), filepath.Join(r.dir, "sublet.db"), r.log); err != nil {
		r.t.Fatal(err)
	}
	if r.audit, err = store.OpenAudit(filepath.Join(r.dir, "audit.log")); err != nil {
		r.t.Fatal(err)
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.stops = make(chan time.Duration, 1)
	config := func() config.Config { return *r.conf.Load() }
	runtime := filepath.Join(r.dir, "run")
	if err := os.MkdirAll(runtime, 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.hosted = hosted.New(hosted.Options{Log: r.log})
	r.mcp = mcp.New(mcp.Options{Patience: time.Minute, Log: r.log})
	r.mcp.Set(mcp.FromConfig(*r.conf.Load()))
	r.hub, err = hub.New(r.ctx, hub.Options{
		Store: r.store, Audit: r.audit, Config: config, Runtime: runtime, Spool: r.dir, Jobs: filepath.Join(r.dir, "jobs"), Version: "test", Log: r.log,
		MCP: r.mcp, Hosted: r.hosted,
		OpenModel: func(_ context.Context, name string, _ map[string]string) (provider.Model, error) {
			m, err := open.Open(provider.Config{Name: "test", Model: "model", Kind: "scripted", Script: r.script, Log: r.log})
			if spy := r.spy.Load(); spy != nil && err == nil {
				return &spied{m, spy}, nil
			}
			return m, err
		},
		Models: func(map[string]string) []wire.ModelInfo { return []wire.ModelInfo{} },
		FindModels: func(context.Context, string, map[string]string) (*wire.ModelsReply, error) {
			return &wire.ModelsReply{Models: []wire.Model{}, Faults: []wire.ModelFault{}}, nil
		},
		Stop: func(drain time.Duration) { r.stops <- drain },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.server = server.New(server.Options{Hub: r.hub, Config: config, Log: r.log})
	r.closed = false
}

// close stops everything in order, as daemon.Run does.
func (r *rig) close() {
	if r.closed {
		return
	}
	r.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.hub.Close(ctx); err != nil {
		r.t.Errorf("close: %v", err)
	}
	r.mcp.Close()
	r.hosted.Close()
	r.cancel()
	r.conns.Wait()
	if err := r.store.Close(); err != nil {
		r.t.Errorf("close store: %v", err)
	}
}

// connect opens a connection without a handshake.
func (r *rig) connect() *peer {
	return r.connectOver(func(daemon io.ReadWriteCloser) io.ReadWriteCloser { return daemon })
}

// connectOver is connect with the daemon's end as wrap returns it.
func (r *rig) connectOver(wrap func(io.ReadWriteCloser) io.ReadWriteCloser) *peer {
	client, daemon := wiretest.Pipe()
	daemon = wrap(daemon)
	r.conns.Go(func() { r.server.ServeConn(r.ctx, daemon, 0) })
	p := &peer{t: r.t, rig: r, conn: wire.NewConn(client), changed: make(chan struct{})}
	p.done.Go(p.read)
	r.t.Cleanup(p.close)
	return p
}

var pids atomic.Int64

// dial opens a connection and shakes hands. Without options it is a window: it lends a shell and can confirm.
func (r *rig) dial(options ...func(*wire.EnvSnapshot)) *peer {
	r.t.Helper()
	p := r.connect()
	env := hello(options...)
	if len(env.Capabilities) > 0 && env.Capabilities[0] == wire.CapShell {
		p.shell = newFakeShell(p)
		p.shell.cwd = string(env.Cwd)
	}
	p.send(env)
	ready := await(p, func(*wire.Ready) bool { return true })
	p.ready, p.session, p.pid = ready, ready.Session.ID, env.Client.PID
	if p.shell != nil {
		p.shell.announce()
	}
	p.reached()
	return p
}

// reached waits until the daemon has served all that was sent before. Ready alone does not mean that a client is attached:
// what it missed follows, and only what is sent to everybody after that reaches it.
func (p *peer) reached() {
	p.t.Helper()
	status := &wire.StatusRequest{RequestID: requestID()}
	p.send(status)
	await(p, func(m *wire.StatusReply) bool { return m.RequestID == status.RequestID })
}

func hello(options ...func(*wire.EnvSnapshot)) *wire.EnvSnapshot {
	env := &wire.EnvSnapshot{
		ProtocolMin: 1, ProtocolMax: 1, Client: wire.ClientInfo{Name: "test", Version: "test", PID: int(1_000_000 + pids.Add(1))},
		Capabilities: []string{wire.CapShell, wire.CapConfirm}, Env: map[string]wire.OSString{"HOME": "/home/u", "PATH": "/usr/bin:/bin"},
		Cwd: "/w", AfterSeq: 0,
	}
	for _, o := range options {
		o(env)
	}
	return env
}

func withoutShell(env *wire.EnvSnapshot) { env.Capabilities = []string{wire.CapConfirm} }

// script is a client that lends nothing and cannot be asked.
func script(env *wire.EnvSnapshot) { env.Capabilities = []string{} }

func inSession(id wire.SessionID, after int64) func(*wire.EnvSnapshot) {
	return func(env *wire.EnvSnapshot) { env.SessionID, env.AfterSeq = &id, after }
}

func asPID(pid int) func(*wire.EnvSnapshot) {
	return func(env *wire.EnvSnapshot) { env.Client.PID = pid }
}

// peer is a client by the protocol: it keeps what it received, and plays a shell if it has one.
type peer struct {
	t       testing.TB
	rig     *rig
	conn    *wire.Conn
	ready   *wire.Ready
	session wire.SessionID
	pid     int
	shell   *fakeShell
	mute    bool // answers no heartbeat
	done    sync.WaitGroup

	mu       sync.Mutex
	received []wire.Message
	changed  chan struct{}
	err      error
}

func (p *peer) read() {
	for {
		m, err := p.conn.Receive()
		if wire.Recoverable(err) != nil {
			continue
		}
		if err == nil {
			if h, ok := m.(*wire.Heartbeat); ok && !h.Reply && !p.mute {
				_ = p.conn.Send(&wire.Heartbeat{Nonce: h.Nonce, Reply: true})
			}
			if p.shell != nil {
				p.shell.receive(m)
			}
		}
		p.mu.Lock()
		if err == nil {
			p.received = append(p.received, m)
		} else {
			p.err = err
		}
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *peer) close() {
	p.conn.Close()
	p.done.Wait()
}

func (p *peer) send(m wire.Message) {
	p.t.Helper()
	if err := p.conn.Send(m); err != nil {
		p.t.Fatalf("send %s: %v", wire.KindOf(m), err)
	}
}

// all returns what was received so far.
func (p *peer) all() []wire.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]wire.Message(nil), p.received...)
}

// await returns the first message of its type that matches, waiting for it.
func await[T wire.Message](p *peer, match func(T) bool) T {
	p.t.Helper()
	bound := time.NewTimer(patience)
	defer bound.Stop()
	for seen := 0; ; {
		p.mu.Lock()
		fresh, changed, err := p.received[seen:], p.changed, p.err
		p.mu.Unlock()
		for _, m := range fresh {
			if wanted, ok := m.(T); ok && match(wanted) {
				return wanted
			}
		}
		seen += len(fresh)
		var none T
		if err != nil {
			p.t.Fatalf("waiting for %T: connection over: %v\n%s", none, err, p.story())
		}
		select {
		case <-changed:
		case <-bound.C:
			p.t.Fatalf("waiting for %T: nothing came\n%s", none, p.story())
		}
	}
}

// over waits for the connection's end.
func (p *peer) over() error {
	p.t.Helper()
	bound := time.After(2 * time.Minute) // dead peers take that long, in a bubble
	for {
		p.mu.Lock()
		changed, err := p.changed, p.err
		p.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-bound:
			p.t.Fatal("the connection did not end")
		}
	}
}

// story is what was received, in short.
func (p *peer) story() string {
	text := ""
	for _, m := range p.all() {
		line := jsonview.Of(m)
		if len(line) > 400 {
			line = line[:400]
		}
		text += string(line) + "\n"
	}
	return text
}

var requests atomic.Int64

func requestID() wire.RequestID { return wire.RequestID(fmt.Sprint("r", requests.Add(1))) }

// ask sends a prompt and returns its request.
func (p *peer) ask(prompt string, options ...func(*wire.AgentRequest)) wire.RequestID {
	p.t.Helper()
	r := &wire.AgentRequest{RequestID: requestID(), Prompt: prompt}
	for _, o := range options {
		o(r)
	}
	p.send(r)
	return r.RequestID
}

// ended waits for the end of a request's turn.
func (p *peer) ended(id wire.RequestID) *wire.AgentComplete {
	p.t.Helper()
	return await(p, func(m *wire.AgentComplete) bool { return m.RequestID == id })
}

func (p *peer) began(id wire.RequestID) *wire.TurnStarted {
	p.t.Helper()
	return await(p, func(m *wire.TurnStarted) bool { return m.RequestID == id })
}

func (p *peer) refused(id wire.RequestID) *wire.Error {
	p.t.Helper()
	return await(p, func(m *wire.Error) bool { return m.RequestID == id })
}

// has reports whether a message of that type was received that matches.
func has[T wire.Message](p *peer, match func(T) bool) bool {
	for _, m := range p.all() {
		if wanted, ok := m.(T); ok && match(wanted) {
			return true
		}
	}
	return false
}

func count[T wire.Message](p *peer) int {
	n := 0
	for _, m := range p.all() {
		if _, ok := m.(T); ok {
			n++
		}
	}
	return n
}

// say is a script that answers with text; bash one that runs commands, then says done.
func say(match, text string) scripted.Script {
	return scripted.Script{Match: match, Steps: []scripted.Step{{Text: text}}}
}

func bash(match string, commands ...string) scripted.Script {
	s := scripted.Script{Match: match}
	for _, c := range commands {
		args, _ := json.Marshal(map[string]string{"command": c})
		s.Steps = append(s.Steps, scripted.Step{ToolCalls: []scripted.Call{{Name: "bash", Arguments: args}}})
	}
	s.Steps = append(s.Steps, scripted.Step{Text: "done with " + match})
	return s
}
