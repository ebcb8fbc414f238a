package tui

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sublet/client/internal/lender"
	"sublet/lease/shell"
	"sublet/wire"
)

// fakeShell behaves like the user's shell with its line editor: it echoes what is typed, runs a line at Enter (run decides what
// that does), and gives its editor and its screen away.
type fakeShell struct {
	output func([]byte)
	event  func(any)
	queue  chan any // output and events, in order
	flush  sync.WaitGroup
	user   sync.Mutex // held by who takes or gives the editor

	mu sync.Mutex
	// Guarded by mu.
	line    []byte
	kept    []byte // typed while the editor is held
	running bool
	held    bool // for a borrower
	taken   bool // the screen is
	changed chan struct{}
	ran     []string
	typed   []byte // all that came by Keys
	answer  []byte // all that came by Answer
	input   []byte // of that, what came while a command of the user's ran
	steps   []string
	sizes   []shell.Size
	lending lender.Lending
	back    int
	undone  []string
	broken  *shell.BrokenError
	boom    atomic.Bool
	exited  chan struct{}
	status  int
	busy    bool // a half-typed line is not left alone
	run     func(text string) (output string, code int)
}

const fakePrompt = "u@box:~$ "

func newFakeShell() *fakeShell {
	return &fakeShell{queue: make(chan any, 10_000), changed: make(chan struct{}), exited: make(chan struct{})}
}

// start delivers output and events until the test ends, and shows the first prompt.
func (s *fakeShell) start(t *testing.T, p *Program) {
	s.output, s.event = p.ShellOutput, p.Send
	var delivering sync.WaitGroup
	delivering.Go(func() {
		for one := range s.queue {
			if b, ok := one.([]byte); ok {
				s.output(b)
			} else {
				s.event(one)
			}
			s.flush.Done()
		}
	})
	t.Cleanup(func() { close(s.queue); delivering.Wait() })
	s.with(func() { s.put([]byte(fakePrompt), shell.PromptShown{Dir: "/home/u"}) })
}

func (s *fakeShell) with(f func()) {
	s.mu.Lock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
}

func (s *fakeShell) put(what ...any) {
	for _, one := range what {
		s.flush.Add(1)
		s.queue <- one
	}
}

func ptr[T any](v T) *T { return &v }

func (s *fakeShell) Keys(p []byte) error {
	s.with(func() {
		s.typed = append(s.typed, p...)
		s.keys(p)
	})
	return nil
}

func (s *fakeShell) keys(p []byte) {
	for i, c := range p {
		switch {
		case s.held || s.taken:
			s.kept = append(s.kept, p[i:]...)
			return
		case s.running:
			s.input = append(s.input, c)
		case c == '\r':
			s.enter()
		case c == 0x7f:
			if n := len(s.line); n > 0 {
				s.line = s.line[:n-1]
				s.put([]byte("\b \b"))
			}
		case c == 0x03:
			s.line = nil
			s.put([]byte("^C\r\n" + fakePrompt))
		default:
			s.line = append(s.line, c)
			s.put([]byte{c})
		}
	}
}

func (s *fakeShell) enter() {
	text := string(s.line)
	s.line = nil
	s.put([]byte("\r\n"))
	if text == "" {
		s.put([]byte(fakePrompt))
		return
	}
	s.ran = append(s.ran, text)
	s.put(shell.UserBegan{})
	if text == "exit" && s.run == nil {
		close(s.exited)
		return
	}
	if s.running = strings.HasPrefix(text, "vim"); s.running {
		s.put([]byte("\x1b[?1049h\x1b[H~ vim ~"))
		return
	}
	s.endLocked(text)
}

// endLocked ends a command of the user's.
func (s *fakeShell) endLocked(text string) {
	out, code := "ran "+text+"\r\n", 0
	if s.running {
		out, s.running = "\x1b[?1049l", false
	}
	if s.run != nil {
		out, code = s.run(text)
	}
	s.put([]byte(out), shell.UserEnded{Text: text, ExitCode: code, Dir: "/home/u", Output: []byte(strings.TrimSpace(out)), Started: time.UnixMilli(5), Duration: time.Millisecond},
		[]byte(fakePrompt), shell.PromptShown{Dir: "/home/u"})
}

func (s *fakeShell) Answer(p []byte) error {
	s.with(func() { s.answer = append(s.answer, p...) })
	return nil
}

func (s *fakeShell) erase() { s.put([]byte("\r\x1b[K")) }

// HoldIfEmpty gives up at once while somebody else is about to take the editor, as the shell does.
func (s *fakeShell) HoldIfEmpty(context.Context) (ok bool, err error) {
	if !s.user.TryLock() {
		return false, nil
	}
	defer s.user.Unlock()
	s.with(func() {
		if s.broken != nil {
			err = s.broken
			return
		}
		if ok = len(s.line) == 0 && !s.running && !s.held && !s.taken; ok {
			s.taken = true
			s.steps = append(s.steps, "hold")
			s.erase()
		}
	})
	s.flush.Wait()
	return ok, err
}

func (s *fakeShell) TakeScreen(ctx context.Context) (err error) {
	s.user.Lock()
	defer s.user.Unlock()
	defer s.flush.Wait()
	for {
		var wait chan struct{}
		s.mu.Lock()
		switch {
		case s.broken != nil:
			err = s.broken
		case s.taken:
		case s.held:
			s.taken = true
		case s.running || s.busy && len(s.line) > 0:
			wait = s.changed
		default:
			s.taken = true
			s.steps = append(s.steps, "take")
			s.erase()
		}
		s.mu.Unlock()
		if wait == nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// freeLocked paints what the editor shows once nobody has it, and reads what was typed meanwhile.
func (s *fakeShell) freeLocked() {
	if s.held || s.taken {
		return
	}
	s.put([]byte(fakePrompt+string(s.line)), shell.PromptShown{Dir: "/home/u"})
	kept := s.kept
	s.kept = nil
	s.keys(kept)
}

func (s *fakeShell) GiveScreen(context.Context) error {
	s.user.Lock()
	defer s.user.Unlock()
	s.with(func() {
		if !s.taken {
			return
		}
		s.taken = false
		s.steps = append(s.steps, "give")
		s.freeLocked()
	})
	return nil
}

func (s *fakeShell) RunLine(_ context.Context, line string) error {
	s.with(func() {
		s.taken = false
		s.steps = append(s.steps, "insert "+line)
		s.line = []byte(line)
		s.kept = append([]byte{'\r'}, s.kept...)
		s.freeLocked()
	})
	return nil
}

func (s *fakeShell) Resize(z shell.Size) error {
	s.with(func() { s.sizes = append(s.sizes, z) })
	return nil
}

func (s *fakeShell) Dir() string {
	if s.boom.Load() {
		panic("boom in Update")
	}
	return "/home/u"
}

func (s *fakeShell) Lending() lender.Lending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lending
}

func (s *fakeShell) SetScreenTaken(bool) {}
func (s *fakeShell) Typed([]byte)        {}
func (s *fakeShell) TakeBack()           { s.with(func() { s.back++ }) }

func (s *fakeShell) UndoShell(_ context.Context, all bool) (changed, left string, err error) {
	s.with(func() {
		if n := len(s.undone); n > 0 {
			changed, s.undone = s.undone[n-1], s.undone[:n-1]
			if all {
				changed, s.undone = "all", nil
				left = "alias ll"
			}
		}
	})
	return changed, left, nil
}
func (s *fakeShell) Exited() <-chan struct{} { return s.exited }
func (s *fakeShell) ExitStatus() int         { return s.status }

// get reads what with guards.
func get[T any](s *fakeShell, v *T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *v
}

func (s *fakeShell) commands() []string { return slices.Clone(get(s, &s.ran)) }

// fakeDaemon records what it is asked.
type fakeDaemon struct {
	Daemon // nil: no method is called that fakeDaemon does not have

	mu           sync.Mutex
	down         bool
	asked        []*wire.AgentRequest
	cancelled    []*wire.CancelRequest
	confirmed    []*wire.ConfirmationResponse
	commands     []*wire.CommandResult
	export       string
	turns        int
	sessions     []wire.SessionInfo
	resumed      func(id wire.SessionID)
	moved        func(*wire.SessionReply) // as remote.Options.Moved
	onAsk        func(*wire.AgentRequest)
	suspects     []string
	accepted     []string
	secrets      string
	mode         string
	servers      []wire.MCPServerStatus
	environments int
}

var errDown = errors.New("not connected")

func (d *fakeDaemon) with(f func()) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return errDown
	}
	f()
	return nil
}
func (d *fakeDaemon) Connected() bool { return d.with(func() {}) == nil }
func (d *fakeDaemon) Post(_ context.Context, r wire.OfRequest) error {
	asked, ok := r.(*wire.AgentRequest)
	if !ok {
		return nil
	}
	err := d.with(func() { d.asked = append(d.asked, asked) })
	if err == nil && d.onAsk != nil {
		d.onAsk(asked)
	}
	return err
}

func (d *fakeDaemon) Notify(m wire.Message) error { return d.Send(m) }

func (d *fakeDaemon) Send(m wire.Message) error {
	return d.with(func() {
		switch m := m.(type) {
		case *wire.CancelRequest:
			d.cancelled = append(d.cancelled, m)
		case *wire.ConfirmationResponse:
			d.confirmed = append(d.confirmed, m)
		case *wire.CommandResult:
			d.commands = append(d.commands, m)
		}
	})
}

func (d *fakeDaemon) Request(_ context.Context, r wire.OfRequest) (wire.Message, error) {
	switch r := r.(type) {
	case *wire.SessionRequest:
		reply := &wire.SessionReply{Op: r.Op, Sessions: d.sessions, Text: d.export, Session: wire.SessionInfo{ID: "s-new", Turns: d.turns}}
		if r.Op == "resume" {
			reply.Session.ID = *r.SessionID
		}
		if r.Op == "resume" || r.Op == "new" {
			d.moved(reply)
		}
		if r.Op == "resume" && d.resumed != nil {
			d.resumed(*r.SessionID)
		}
		return reply, nil
	case *wire.PolicyRequest:
		return d.policy(r)
	case *wire.JobRequest:
		return &wire.JobReply{Jobs: []wire.Job{{JobID: "j3"}}}, nil
	case *wire.ModelsRequest:
		return models(r)
	case *wire.StatusRequest:
		reply := &wire.StatusReply{State: "idle", Version: "1", PID: 7, Connections: []wire.Connections{
			{Name: "sublet", Shell: true, Count: 2}, {Name: "sublet lease run", Count: 3}, {Name: "sublet serve acp", Count: 1},
		}}
		return reply, d.with(func() { reply.MCPServers = d.servers })
	}
	return nil, errors.New("the daemon of the tests does not know " + wire.KindOf(r))
}

func (d *fakeDaemon) policy(r *wire.PolicyRequest) (*wire.PolicyReply, error) {
	reply := &wire.PolicyReply{Op: r.Op, Mode: cmp.Or(r.Mode, d.mode, "ask")}
	return reply, d.with(func() {
		switch r.Op {
		case "accept": // an agent has changed something else meanwhile
			d.suspects = []string{"PATH", "ls", "PAGER"}
			d.accepted = append(d.accepted, r.Suspects...)
		case "set_secrets":
			d.secrets = r.Secrets
		}
		reply.Secrets = cmp.Or(d.secrets, "mask")
		reply.Suspects = slices.DeleteFunc(slices.Clone(d.suspects), func(s string) bool { return slices.Contains(d.accepted, s) })
	})
}

// models knows two models, and a provider that has no key.
func models(r *wire.ModelsRequest) (*wire.ModelsReply, error) {
	reply := &wire.ModelsReply{Models: []wire.Model{{Name: "offline"}, {Name: "ollama/x", ContextWindow: 8000}}}
	if r.Name != "" {
		reply.Models = slices.DeleteFunc(reply.Models, func(m wire.Model) bool { return m.Name != r.Name })
		if len(reply.Models) == 0 {
			return nil, &wire.Error{Code: wire.CodeModel, Message: "no such provider in the settings", Hint: "a model is named provider/name"}
		}
		return reply, nil
	}
	reply.Faults = []wire.ModelFault{{Provider: "openai", Message: "no API key"}}
	return reply, nil
}

func (d *fakeDaemon) EnvChanged() error { return d.with(func() { d.environments++ }) }

func (d *fakeDaemon) answers() []*wire.ConfirmationResponse {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]*wire.ConfirmationResponse(nil), d.confirmed...)
}

func (d *fakeDaemon) questions() []*wire.AgentRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]*wire.AgentRequest(nil), d.asked...)
}
