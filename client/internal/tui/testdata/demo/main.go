// Demo is the terminal program with the real shell and lender and a daemon that plays a fixed scene, to look at.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"sublet/client/internal/lender"
	"sublet/client/internal/tui"
	"sublet/lease/shell"
	"sublet/wire"
)

type stage struct {
	tui.Daemon // nil: no method is called that stage does not have

	mu      sync.Mutex
	p       *tui.Program
	l       *lender.Lender
	seq     int64
	fence   uint64
	waits   map[string]chan wire.Message
	answers chan *wire.ConfirmationResponse
	cancel  context.CancelFunc
}

func (s *stage) ev(turn wire.TurnID, req wire.RequestID) wire.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	return wire.Event{SessionID: "s1", TurnID: turn, RequestID: req, Seq: s.seq, AtMS: time.Now().UnixMilli()}
}

func (s *stage) Connected() bool           { return true }
func (s *stage) Session() wire.SessionInfo { return wire.SessionInfo{ID: "s1"} }
func (s *stage) Cancel(context.Context, *wire.CancelRequest) error {
	if s.cancel != nil {
		s.cancel()
	}
	return nil
}
func (s *stage) Confirm(_ context.Context, r *wire.ConfirmationResponse) error {
	s.answers <- r
	return nil
}
func (s *stage) Compact(context.Context, *wire.CompactRequest) error { return nil }
func (s *stage) Undo(context.Context, *wire.UndoRequest) error       { return nil }
func (s *stage) Sessions(_ context.Context, r *wire.SessionRequest) (*wire.SessionReply, error) {
	now := time.Now().UnixMilli()
	return &wire.SessionReply{Op: r.Op, Sessions: []wire.SessionInfo{
		{ID: "0193aaaa-bbbb-7ccc-8ddd-eeeeffff0001", Title: "why does the build fail on arm?", Cwd: "/home/u/app", UpdatedAtMS: now - 300000, Turns: 4},
		{ID: "0193aaaa-bbbb-7ccc-8ddd-eeeeffff0002", Name: "release", Title: "write the changelog", Cwd: "/home/u/app", UpdatedAtMS: now - 90000000, Turns: 12},
	}}, nil
}
func (s *stage) Policy(_ context.Context, r *wire.PolicyRequest) (*wire.PolicyReply, error) {
	return &wire.PolicyReply{Op: r.Op, Mode: "ask"}, nil
}
func (s *stage) Models(context.Context, *wire.ModelsRequest) (*wire.ModelsReply, error) {
	return &wire.ModelsReply{}, nil
}
func (s *stage) Status(context.Context) (*wire.StatusReply, error) {
	return &wire.StatusReply{State: "idle", Version: "0.1", PID: 4242, UptimeMS: 65000, Clients: 1}, nil
}
func (s *stage) Resume(context.Context, wire.SessionID, int64) (*wire.Ready, error) {
	return &wire.Ready{Session: wire.SessionInfo{ID: "s1"}}, nil
}
func (s *stage) UserCommand(context.Context, *wire.CommandResult) error { return nil }
func (s *stage) EnvChanged(context.Context) error                       { return nil }

func (s *stage) Ask(_ context.Context, r *wire.AgentRequest) error {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.play(ctx, r)
	return nil
}

const answer1 = "I will look at what is here first, and then run the **tests**.\n\n"
const answer2 = `The tests pass, but one thing is worth mending:

1. ` + "`main.go`" + ` ignores an error
2. the *Makefile* has no ` + "`lint`" + ` target

` + "```go\nfunc main() {\n\tif err := run(); err != nil {\n\t\tfmt.Fprintln(os.Stderr, err) // say why\n\t\tos.Exit(1)\n\t}\n}\n```\n\n" + `| file | lines |
|---|---|
| main.go | 12 |
| run.go | 240 |

> Quoted wisdom goes here.

That is all. See https://example.org for more.
`

func (s *stage) play(ctx context.Context, r *wire.AgentRequest) {
	turn := wire.TurnID(wire.NewID())
	ev := func() wire.Event { return s.ev(turn, r.RequestID) }
	text := func(t string) {
		rs := []rune(t)
		for i := 0; i < len(rs); i += 6 {
			e := ev()
			s.p.Send(&wire.AgentStreamChunk{Event: e, SeqFirst: e.Seq, Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: string(rs[i:min(len(rs), i+6)])}})
			time.Sleep(25 * time.Millisecond)
		}
	}
	think := func(phase, msg string) {
		s.p.Send(&wire.AgentThinking{Event: ev(), Agent: "orchestrator", Phase: phase, Message: msg})
	}
	status := wire.StatusSuccess
	time.Sleep(300 * time.Millisecond)
	s.p.Send(&wire.TurnStarted{Event: ev(), Agent: "orchestrator", Prompt: r.Prompt, Model: "demo"})
	think(wire.PhaseGenerating, "")
	time.Sleep(time.Second)
	text(answer1)
	s.tool(ev, "read", `{"path":"main.go"}`, "package main\n\nfunc main() {}\n", nil)
	cmd := "for i in 1 2 3 4 5 6 7 8; do echo line $i of the test; sleep 0.3; done; cd /tmp; export DEMO=1"
	if len(r.Prompt) > 4 && r.Prompt[:4] == "run " {
		cmd = r.Prompt[4:]
	}
	think(wire.PhaseExecuting, "")
	if s.ask(ev, cmd) {
		s.bash(ctx, ev, cmd)
	} else {
		e := ev()
		s.p.Send(&wire.CommandResult{Event: e, Agent: "orchestrator", ExecutionID: "x" + wire.ExecutionID(turn), Tool: "bash", Command: wire.OSString(cmd), Status: wire.StatusDenied})
	}
	if ctx.Err() != nil {
		status = wire.StatusCancelled
	} else {
		s.tool(ev, "edit", `{"path":"main.go"}`, "--- a/main.go\n+++ b/main.go\n@@ -1,3 +1,5 @@\n package main\n \n-func main() {}\n+func main() {\n+\trun()\n+}\n", []wire.OSString{"main.go"})
		think(wire.PhaseGenerating, "")
		text(answer2)
	}
	cost := 0.0123
	s.p.Send(&wire.AgentComplete{Event: ev(), Agent: "orchestrator", Status: status, StopReason: "end_turn", Usage: wire.Usage{Input: 5120, Output: 642, CacheRead: 1024, Total: 6000, CostUSD: &cost}, Context: wire.ContextUse{Used: 6100, Window: 200000}, DurationMS: 8200})
}

func (s *stage) tool(ev func() wire.Event, tool, args, out string, files []wire.OSString) {
	id := wire.ExecutionID(wire.NewID())
	s.p.Send(&wire.AgentStreamChunk{Event: ev(), Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: id, Tool: tool, Arguments: args}})
	time.Sleep(400 * time.Millisecond)
	s.p.Send(&wire.CommandResult{Event: ev(), Agent: "orchestrator", ExecutionID: id, Tool: tool, Status: wire.StatusSuccess, Output: []byte(out), FilesModified: files, DurationMS: 12})
}

func (s *stage) ask(ev func() wire.Event, cmd string) bool {
	id := wire.ConfirmationID(wire.NewID())
	s.p.Send(&wire.ConfirmationRequest{Event: ev(), ConfirmationID: id, Agent: "orchestrator", Tool: "bash", Command: wire.OSString(cmd), Cwd: "/home/u/app",
		Verdict: wire.Verdict{Level: "high", Reversible: true, UndoHint: "cd back, unset DEMO", Reasons: []wire.Reason{
			{Text: "changes where your shell is", Effect: "shell-state", Span: &wire.Span{Start: max(0, len(cmd)-24), End: max(0, len(cmd)-16)}},
			{Text: "sets a variable in your shell", Effect: "shell-state"}}},
		Grants: []wire.Grant{{Scope: "session", Rule: "for * done", Covers: "this loop, until this conversation ends"}, {Scope: "project", Rule: "echo *", Covers: "echo with any arguments, in /home/u/app"}}})
	a := <-s.answers
	s.p.Send(&wire.ConfirmationResolved{Event: ev(), ConfirmationID: id, Decision: a.Decision, By: "client sublet 1", Comment: a.Comment})
	return a.Decision == wire.DecisionAllow || a.Decision == wire.DecisionAllowAlways
}

func (s *stage) bash(ctx context.Context, ev func() wire.Event, cmd string) {
	s.mu.Lock()
	s.fence++
	ref := wire.LeaseRef{LeaseID: wire.LeaseID(wire.NewID()), Fence: s.fence}
	s.mu.Unlock()
	wait := func(kind string) wire.Message {
		s.mu.Lock()
		c := make(chan wire.Message, 4)
		s.waits[kind] = c
		s.mu.Unlock()
		return <-c
	}
	args := fmt.Sprintf(`{"command":%q}`, cmd)
	id := wire.ExecutionID(wire.NewID())
	s.p.Send(&wire.AgentStreamChunk{Event: ev(), Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: id, Tool: "bash", Arguments: args}})
	go s.l.Handle(&wire.AcquireShellLease{LeaseRef: ref, Agent: "orchestrator", Purpose: cmd, WaitMS: 60000, TermMS: 30000})
	got := wait("ShellLeaseAcquired").(*wire.ShellLeaseAcquired)
	go s.l.Handle(&wire.ExecuteLeasedCommand{LeaseRef: ref, ExecutionID: id, Command: wire.OSString(cmd), Cwd: got.Cwd, TimeoutMS: 60000, Fingerprint: wire.Fingerprint(wire.OSString(cmd), got.Cwd, got.State)})
	stop := context.AfterFunc(ctx, func() { s.l.Handle(&wire.CancelLeasedCommand{LeaseRef: ref, ExecutionID: id, Reason: "user_abort"}) })
	defer stop()
	c := wait("CommandCompleted").(*wire.CommandCompleted)
	s.p.Send(&wire.CommandResult{Event: ev(), Agent: "orchestrator", ExecutionID: id, Tool: "bash", Command: wire.OSString(cmd), Status: c.Status, Output: c.Output, ExitCode: c.ExitCode, Cwd: c.Cwd, DurationMS: c.DurationMS})
	s.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref, Reason: "completed"})
}

func (s *stage) Send(m wire.Message) error {
	s.mu.Lock()
	c := s.waits[m.Kind()]
	delete(s.waits, m.Kind())
	s.mu.Unlock()
	if c != nil {
		c <- m
	}
	return nil
}

// userShell is the shell as the screen knows it.
type userShell struct {
	*shell.Shell
	lent *lender.Lender
}

func (u userShell) Lending() lender.Lending { return u.lent.Lending() }
func (u userShell) TakeBack()               { u.lent.TakeBack() }
func (u userShell) UndoShell(ctx context.Context, all bool) (changed, left string, err error) {
	return u.lent.UndoShell(ctx, all)
}

func main() {
	dir, _ := os.MkdirTemp("", "demo")
	defer os.RemoveAll(dir)
	s := &stage{waits: map[string]chan wire.Message{}, answers: make(chan *wire.ConfirmationResponse, 4)}
	ready := make(chan struct{}) // what is below is there
	path, _, _, err := shell.Find(os.Environ())
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(slog.DiscardHandler)
	if f, err := os.OpenFile(os.Getenv("DEMO_LOG"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		defer f.Close()
		log = slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	sh, err := shell.Start(context.Background(), shell.Options{
		Path: path, Folder: dir, Spool: dir, Log: log,
		Output: func(p []byte) { <-ready; s.p.ShellOutput(p) },
		Event:  func(e any) { <-ready; s.l.Event(e) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s.l = lender.New(lender.Options{Shell: sh, Send: s.Send, Observer: observer{s}, Env: os.Environ(), Log: log})
	s.p = tui.New(tui.Options{
		Daemon: s, Shell: userShell{sh, s.l}, Stdin: os.Stdin, Stdout: os.Stdout, Env: os.Environ(),
		Notice: []string{"sublet demo · tab asks an agent · /help"}, SwitchKey: []byte("\x1b[24~"), Log: log,
	})
	close(ready)
	hello := &wire.Ready{Protocol: 1, Session: wire.SessionInfo{ID: "s1"}, Mode: "ask", Models: []wire.ModelInfo{{Name: "offline/rules", ProviderKind: "offline", Loaded: true, ContextWindow: 32000}}}
	s.l.Up(hello)
	s.p.Send(hello)
	s.p.Send(tui.LinkChanged{Connected: true})
	code, err := s.p.Run(context.Background())
	s.l.Close()
	_ = sh.Close()
	if err != nil {
		fmt.Println(err)
	}
	os.Exit(code)
}

// observer is the screen, once it is there.
type observer struct{ s *stage }

func (o observer) Observe(e any) { o.s.p.Observe(e) }
