package mcp

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"sublet/client/internal/gateway/gatewaytest"
	"sublet/client/internal/lender"
	"sublet/client/internal/remote"
	"sublet/lease/confine/confinetest"
	"sublet/lease/shell"
	"sublet/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// window lends a real bash on a PTY, as the terminal program does, and has no screen: a test answers its questions.
type window struct {
	t         *testing.T
	sh        *shell.Shell
	lender    *lender.Lender
	conn      *remote.Conn
	questions chan *wire.ConfirmationRequest
	began     chan string // commands as they begin
	events    chan any    // of the shell
	work      sync.WaitGroup

	mu  sync.Mutex
	out strings.Builder // guarded by mu
}

// Observe implements lender.Observer.
func (w *window) Observe(event any) {
	if e, ok := event.(lender.LeasedStarted); ok {
		w.began <- e.Agent + ": " + e.Command
	}
}

func (w *window) AwaitDrawn() {}

const startFile = "alias hi='echo hello from an alias'\nmine() { echo \"mine $1\"; }\nexport FROM_RC=yes\n"

func openWindow(t *testing.T, w *gatewaytest.World) *window {
	t.Helper()
	home := w.Path("home")
	if err := os.WriteFile(filepath.Join(home, ".bashrc"), []byte(startFile), 0o600); err != nil {
		t.Fatal(err)
	}
	win := &window{t: t, questions: make(chan *wire.ConfirmationRequest, 8), began: make(chan string, 256)}
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "LANG=C.UTF-8"}
	launcher := confinetest.Beside(t)
	prompted := make(chan struct{}, 16)
	win.events = make(chan any, 4096) // the shell does not wait for who handles them
	sh, err := shell.Start(shell.Options{
		Path: "/bin/bash", Dir: w.Project, Env: env, Folder: t.TempDir(), Spool: t.TempDir(), Patience: 50 * time.Millisecond, Size: shell.Size{Cols: 80, Rows: 24},
		Event: func(e any) { win.events <- e },
		Output: func(p []byte) {
			win.mu.Lock()
			defer win.mu.Unlock()
			win.out.Write(p)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	win.sh = sh
	up := make(chan struct{}, 4)
	ready := make(chan struct{})
	win.lender = lender.New(lender.Options{
		Shell: sh, Observer: win, Env: env, Launcher: launcher,
		Send: func(m wire.Message) error { <-ready; return win.conn.Send(m) },
	})
	win.work.Go(func() { // ends with events
		for e := range win.events {
			if _, ok := e.(shell.PromptShown); ok {
				select {
				case prompted <- struct{}{}:
				default:
				}
			}
			win.lender.Event(e)
		}
	})
	<-prompted
	win.conn = remote.Keep(context.Background(), remote.Options{
		Open: w.Daemon().Open,
		Snapshot: func() *wire.EnvSnapshot {
			s := &wire.EnvSnapshot{
				Client:       wire.ClientInfo{Name: "sublet", Version: "test", PID: os.Getpid()},
				Capabilities: []string{wire.CapShell, wire.CapConfirm, wire.CapRestore, wire.CapQueue, wire.CapUse, wire.CapConfine, wire.CapJobs, wire.CapContinue},
				Shell:        wire.ShellInfo{Path: wire.OSString(sh.Path()), Version: sh.Version(), Name: sh.Name()},
			}
			win.lender.Snapshot(s)
			return s
		},
		Handle: func(m wire.Message) {
			switch m := m.(type) {
			case wire.LeaseMessage:
				win.lender.Handle(m)
			case *wire.ConfirmationRequest:
				win.questions <- m
			}
		},
		Up:   func(r *wire.Ready) { win.lender.Up(r); up <- struct{}{} },
		Down: func(error) { win.lender.Down() },
	})
	close(ready)
	<-up
	t.Cleanup(win.close)
	return win
}

func (w *window) close() {
	w.lender.Close()
	w.conn.Close()
	w.sh.Close()
	close(w.events)
	w.work.Wait()
}

// answer answers the next question and returns it.
func (w *window) answer(decision string) *wire.ConfirmationRequest {
	w.t.Helper()
	q := next(w.t, w.questions)
	if err := w.conn.Notify(&wire.ConfirmationResponse{ConfirmationID: q.ConfirmationID, Decision: decision}); err != nil {
		w.t.Error(err)
	}
	return q
}

// next waits for what a channel brings.
func next[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(gatewaytest.Patience):
		t.Fatalf("no %T came", v)
	}
	return v
}

// agent is an MCP client on the standard input and output of a gateway.
type agent struct {
	*sdk.ClientSession
	t        *testing.T
	progress chan string
	hangUp   func() // closes the gateway's input
	over     chan error
}

func connect(t *testing.T, w *gatewaytest.World, name string, change ...func(*Options)) *agent {
	t.Helper()
	return connectAs(t, w, name, "", &sdk.ClientOptions{}, change...)
}

// connectAs connects a client that speaks one revision of the protocol, "" = the newest.
func connectAs(t *testing.T, w *gatewaytest.World, name, version string, client *sdk.ClientOptions, change ...func(*Options)) *agent {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	o := Options{Daemon: w.Daemon(), In: inR, Out: outW, Client: wire.Borrower{Executable: "/opt/" + wire.OSString(name), PID: 4242}}
	for _, f := range change {
		f(&o)
	}
	a := &agent{t: t, progress: make(chan string, 1024), over: make(chan error, 1), hangUp: func() { inW.Close() }}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := Serve(ctx, o)
		outW.Close()
		a.over <- err
	}()
	client.ProgressNotificationHandler = func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		select {
		case a.progress <- r.Params.Message:
		default:
		}
	}
	c := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, client)
	session, err := c.Connect(t.Context(), &sdk.IOTransport{Reader: outR, Writer: inW}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	a.ClientSession = session
	t.Cleanup(func() {
		session.Close()
		inW.Close()
		if err := next(t, a.over); err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
		cancel()
		outR.Close()
	})
	return a
}

// result is what a call gave.
type result struct {
	shellOut
	text    string
	isError bool
}

// call calls a tool; an error is the protocol's.
func (a *agent) call(ctx context.Context, tool string, arguments map[string]any) (r result, err error) {
	p := &sdk.CallToolParams{Name: tool, Arguments: arguments}
	p.SetProgressToken("progress")
	res, err := a.CallTool(ctx, p)
	if err != nil {
		return r, err
	}
	r.isError = res.IsError
	for _, c := range res.Content {
		r.text += c.(*sdk.TextContent).Text
	}
	if res.StructuredContent != nil {
		raw, err := json.Marshal(res.StructuredContent)
		if err != nil {
			return r, err
		}
		return r, json.Unmarshal(raw, &r.shellOut)
	}
	return r, nil
}

// run runs a command in the shell.
func (a *agent) run(command string, more ...string) result {
	a.t.Helper()
	arguments := map[string]any{"command": command}
	for i := 0; i < len(more); i += 2 {
		arguments[more[i]] = more[i+1]
	}
	ctx, cancel := context.WithTimeout(a.t.Context(), gatewaytest.Patience)
	defer cancel()
	r, err := a.call(ctx, "shell", arguments)
	if err != nil {
		a.t.Fatalf("%s: %v", command, err)
	}
	return r
}

// ioPipe is io.Pipe, closed with the test.
func ioPipe(t *testing.T) (*io.PipeReader, *io.PipeWriter) {
	r, w := io.Pipe()
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}
