// Package mcp serves the user's live shell to agents of other programs, by the Model Context Protocol: a call of its tool is a
// command that the daemon judges, asks about in the user's window and runs there, as it does with a command of an agent of its
// own. Nothing that a client sends can approve anything. Servers whose tools our agents use are daemon/internal/mcp's.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

const (
	// progressEvery is how often a call reports that it goes on. opencode gives a call up after 60 s without such a report.
	progressEvery = 2 * time.Second
	// answerBound is how long a question waits for the user. Clients whose limit is shorter cancel the call by themselves.
	answerBound = 5 * time.Minute
	// maxWaiting bounds the calls of one client that wait for those before them.
	maxWaiting = 32
)

// Options for Serve and ServeHTTP. Daemon is required.
type Options struct {
	Daemon   *gateway.Daemon
	In       io.Reader     // Serve only
	Out      io.Writer     // Serve only
	Client   wire.Borrower // Serve only: the process that started this one; the client gives the name in clientInfo
	Hosted   string        // Serve only: the value of wire.HostedVariable; "" = the client is not hosted by the daemon
	Token    string        // ServeHTTP only: what each request must bear
	Answer   time.Duration // how long a question waits for the user; 0 = 5 min
	Progress time.Duration // how often a call reports that it goes on; 0 = 2 s
}

// instructions is the text that the protocol passes to the model: when to use which tool.
const instructions = `sublet lends you the user's own live shell, in front of their eyes.
Use the tool shell for every command: directory, exports, aliases, functions and an activated environment are the user's, and stay between calls.
What only reads runs at once; what changes something may wait for the user's answer in their sublet window. A refusal is final: do not try the same in another way.
A password prompt, or a program that takes the whole screen, gets the user's keyboard.
Where no window is open, the call says so; with where "private" the command runs in a shell of the daemon's, held to the project.`

// server is one gateway process.
type server struct {
	o     Options
	log   *slog.Logger
	ctx   context.Context // ends with the server
	posts posts           // ServeHTTP only

	mu sync.Mutex
	// below: guarded by mu
	links map[string]*link // by the id of the client's session; "" = the client of Serve
	work  sync.WaitGroup
}

// link is one client's connection to the daemon.
type link struct {
	gs      *gateway.Session
	turn    chan struct{} // holds one: whoever took it may run a command
	waiting chan struct{} // a place for each call that runs or waits
}

func newServer(ctx context.Context, o Options) *server {
	o.Answer, o.Progress = cmp.Or(o.Answer, answerBound), cmp.Or(o.Progress, progressEvery)
	return &server{o: o, log: o.Daemon.Logger(), ctx: ctx, links: map[string]*link{}}
}

// sdkServer returns the SDK's server, which serves any number of clients.
func (s *server) sdkServer() *sdk.Server {
	o := &sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{}}
	if s.log.Enabled(s.ctx, slog.LevelDebug) { // only then, since the SDK logs also the regular end of a client as an error
		o.Logger = s.log
	}
	m := sdk.NewServer(&sdk.Implementation{Name: "sublet", Title: "sublet", Version: s.o.Daemon.Version}, o)
	s.addShell(m)
	s.addJob(m)
	s.addAsk(m)
	if s.o.Hosted != "" {
		m.AddReceivingMiddleware(s.listed)
	} else { // a hosted agent's shell is its turn's, and may be another than that of the window last typed in
		s.addState(m)
	}
	return m
}

// about describes a tool to clients.
func about(name, title, description string, hints *sdk.ToolAnnotations) *sdk.Tool {
	hints.Title = title
	return &sdk.Tool{
		Name: name, Title: title, Description: description, Annotations: hints,
		Meta: sdk.Meta{"anthropic/alwaysLoad": true}, // else Claude Code hides it behind its search for tools
	}
}

// listed notifies the daemon when a hosted agent has listed the tools, on which the agent's first prompt waits.
func (s *server) listed(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		res, err := next(ctx, method, req)
		session, ok := req.GetSession().(*sdk.ServerSession)
		if method == "tools/list" && err == nil && ok {
			s.work.Go(func() { // ends with the daemon's answer, or the server
				l, _, err := s.client(s.ctx, nil, session)
				if err == nil {
					_, err = l.gs.Tool(s.ctx, &wire.ToolRequest{Hosted: s.o.Hosted}, nil)
				}
				if err != nil {
					s.log.Warn("the daemon was not notified that the tools were listed", "err", err)
				}
			})
		}
		return res, err
	}
}

// Serve serves one client on o.In and o.Out until its input ends or ctx does. What runs for it then is cancelled. Its errors are
// those of an input that is not the protocol, or an output that cannot be written to.
func Serve(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	s := newServer(ctx, o)
	defer s.close()
	defer cancel() // before close: what runs ends
	// The end of the input is the end of the client: what runs for it is cancelled at once.
	in := &watched{Reader: o.In, over: cancel}
	err := s.sdkServer().Run(ctx, &sdk.IOTransport{Reader: in, Writer: nopCloser{o.Out}, MaxLineLength: o.Daemon.Limited().MessageBytes})
	if errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) || errors.Is(in.err, io.EOF) {
		return nil
	}
	return err
}

// watched is a reader that reports its end.
type watched struct {
	io.Reader
	over func()
	err  error // why it ended; read after the SDK's Run, which waits for the last Read
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil {
		w.err = err
		w.over()
	}
	return n, err
}

// Close implements io.Closer.
func (w *watched) Close() error {
	if c, ok := w.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// close ends the connections to the daemon, which ends what runs.
func (s *server) close() {
	s.mu.Lock()
	links := s.links
	s.links = nil
	s.mu.Unlock()
	for _, l := range links {
		l.gs.Close()
	}
	s.work.Wait()
}

// link returns the connection of a client, which its first call makes. By HTTP it ends with the client's session.
func (s *server) link(ctx context.Context, session *sdk.ServerSession) (*link, error) {
	id := session.ID()
	s.mu.Lock()
	l, err := s.openLocked(id)
	s.mu.Unlock()
	if l != nil || err != nil {
		return l, err
	}
	gs, err := s.o.Daemon.Connect(ctx, gateway.Options{Name: "sublet serve mcp"})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if l, err = s.openLocked(id); l != nil || err != nil { // another call of the client, or the end of the server, was first
		s.mu.Unlock()
		gs.Close()
		return l, err
	}
	defer s.mu.Unlock()
	l = &link{gs: gs, turn: make(chan struct{}, 1), waiting: make(chan struct{}, maxWaiting)}
	s.links[id] = l
	s.work.Go(func() { new(gateway.Turns).Deliver(s.ctx, gs) }) // ends with the connection; what concerns a call goes to that call
	if id != "" {
		s.work.Go(func() {
			ended := make(chan struct{})
			go func() { defer close(ended); _ = session.Wait() }() // its error is the transport's own end; Close below ends it
			select {
			case <-ended:
			case <-s.ctx.Done():
				session.Close()
				<-ended
			}
			s.mu.Lock()
			delete(s.links, id)
			s.mu.Unlock()
			gs.Close()
		})
	}
	return l, nil
}

// openLocked returns the open connection of a client; nil where there is none yet.
func (s *server) openLocked(id string) (*link, error) {
	if s.links == nil {
		return nil, context.Canceled
	}
	return s.links[id], nil
}

// enter waits for the calls before this one; leave lets the next one in.
func (l *link) enter(ctx context.Context) (leave func(), err error) {
	select {
	case l.waiting <- struct{}{}:
	default:
		return nil, fmt.Errorf("too many at once: %d calls wait already; send them one after the other", maxWaiting)
	}
	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn; <-l.waiting }, nil
	case <-ctx.Done():
		<-l.waiting
		return nil, context.Cause(ctx)
	}
}
