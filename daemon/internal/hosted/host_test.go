package hosted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// The link to an attached file was its path behind "file://": an agent read a # or % in it as part of the URL.
func TestAttachmentLink(t *testing.T) {
	r := &run{t: Turn{Of: agent.Turn{Prompt: "look", Attachments: []wire.Attachment{{Path: "/tmp/a #1 50%.txt"}}}}}
	if got, want := r.blocks(&host{})[1].ResourceLink.Uri, "file:///tmp/a%20%231%2050%25.txt"; got != want {
		t.Errorf("the link is %q, want %q", got, want)
	}
}

// An agent whose process has ended, also with its daemon, is started again and takes up its session. What it sends of the past is
// not shown again. If it cannot take the session up it begins a new one, and a notice says so.
func TestResume(t *testing.T) {
	st := openStore(t)
	for _, step := range []struct{ mode, want, notice string }{
		{"loads", "loads", "loads begins a new session: it does not know what was said here before \n"},
		{"loads", "loads it", ""},
		{"resumes", "resumes", "before \n"},
		{"resumes", "resumes s", ""},
		{"forgets", "forgets", "before \n"},
		{"forgets", "forgets", "before; its earlier one is not taken up: the agent cannot do that \n"},
		{"gone", "loads", "before; its earlier one is not taken up: Internal error: no such session \n"},
	} {
		w := newWorld(t, Options{Store: st}) // a daemon
		if step.mode == "gone" {
			t.Setenv("HOSTED_TEST_GONE", "yes")
			step.mode = "loads"
		}
		if o := w.play(t.Context(), step.mode, "x"); o.Err != nil || o.Summary != step.want {
			t.Errorf("%s: got %q, %v, want %q", step.mode, o.Summary, o.Err, step.want)
		}
		w.wants(step.notice)
		if text := w.text(); strings.Contains(text, "what was said before") || step.notice == "" && strings.Contains(text, "begins") {
			t.Errorf("%s: got\n%s", step.mode, text)
		}
		w.Close()
	}
}

// A conversation that begins, or that was cleared, is that of a new session, of which nothing is said.
func TestClearedConversation(t *testing.T) {
	w := newWorld(t, Options{Store: openStore(t)})
	turn := turnOf("loads", "x", w.dir, w.emit)
	turn.Of.History = agent.Conversation{}
	for range 2 {
		if o := w.Run(t.Context(), turn); o.Err != nil || o.Summary != "loads" {
			t.Errorf("got %q, %v", o.Summary, o.Err)
		}
	}
	if text := w.text(); strings.Contains(text, "begins") || strings.Count(text, "player 1.2") != 2 {
		t.Errorf("got\n%s", text)
	}
}

// The user signs in by the way that they choose: the agent's, or a command in their shell, which they see first, with the settings' own
// variables but no secret. A session from before the user was signed out is taken up.
func TestSignIn(t *testing.T) {
	for way, command := range map[string]string{"Sign in on the web": "", "Terminal": "A='b c' $ENV '" + os.Args[0] + "' 'login'", "Older": "$ENV '" + os.Args[0] + "' 'auth' 'login'"} {
		st := openStore(t)
		for _, want := range []string{"unsigned", "unsigned s"} {
			w := newWorld(t, Options{Store: st}) // a daemon
			turn := turnOf("unsigned", "x", w.dir, w.emit)
			file := filepath.Join(w.dir, "signed")
			turn.Of.Role.Hosted.Env = map[string]string{"HOSTED_TEST_MODE": "unsigned", "HOSTED_TEST_SIGNED": file, "PLAYER_TOKEN": "none of the terminal's"}
			asked := 0
			turn.Ask = func(_ context.Context, arguments string) (*wire.CommandResult, error) {
				asked++
				q, err := wire.ParseUserQuestion(arguments)
				if err != nil || strings.Join(q.Choices, ", ") != "Sign in on the web, Terminal, Older" {
					t.Errorf("got %+v, %v", q, err)
				}
				return &wire.CommandResult{Status: wire.StatusSuccess, Output: []byte(way)}, nil
			}
			seen := ""
			turn.Of.Approver = asker(func(q agent.Question) agent.Decision {
				seen = q.Action.Command
				if q.Action.Reach != "free" {
					t.Errorf("%s: its reach is %q", way, q.Action.Reach)
				}
				return agent.Decision{Allowed: true}
			})
			turn.Shell = func(string, func([]byte)) tool.Shell {
				return shell{began: func() {
					if err := os.WriteFile(file, nil, 0o600); err != nil {
						t.Error(err)
					}
				}}
			}
			if o := w.Run(t.Context(), turn); o.Err != nil || o.Summary != want || asked != 1 {
				t.Errorf("%s: got %q, %v, asked %d times", way, o.Summary, o.Err, asked)
			}
			runs := strings.Replace(command, "$ENV", "HOSTED_TEST_MODE='unsigned' HOSTED_TEST_SIGNED='"+file+"'", 1)
			if seen != runs {
				t.Errorf("%s: the user saw %q, want %q", way, seen, runs)
			}
		}
	}
}

// The address of a sign-in on the web, which the agent writes for its own terminal, is shown to the user.
func TestSignInShowsTheAddress(t *testing.T) {
	w := newWorld(t, Options{})
	turn := turnOf("unsigned", "x", w.dir, nil)
	seen := filepath.Join(w.dir, "seen")
	turn.Of.Role.Hosted.Env = map[string]string{"HOSTED_TEST_MODE": "unsigned", "HOSTED_TEST_SIGNED": filepath.Join(w.dir, "signed"), "HOSTED_TEST_SEEN": seen}
	turn.Ask = func(context.Context, string) (*wire.CommandResult, error) {
		return &wire.CommandResult{Status: wire.StatusSuccess, Output: []byte("Sign in on the web")}, nil
	}
	turn.Of.Emit = func(m wire.EventMessage) {
		c, ok := m.(*wire.AgentStreamChunk)
		if ok && c.Chunk.Type == wire.ChunkNotice && strings.Contains(c.Chunk.Text, "https://sign.in/auth?state=4f0c2d1e9b8a7c6d5e4f30211a2b3c4d&scope=a%20b") {
			if err := os.WriteFile(seen, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	if o := w.Run(t.Context(), turn); o.Err != nil {
		t.Error(o.Err)
	}
	if _, err := os.Stat(seen); err != nil {
		t.Error("the address was not shown")
	}
}

// An agent that asks for a sign-in only when it is prompted gets the prompt again after it, in its session; one that still asks fails.
func TestSignInAtThePrompt(t *testing.T) {
	for _, c := range []struct{ way, want string }{{"Sign in on the web", "late s"}, {"Terminal", ""}} {
		w := newWorld(t, Options{Store: openStore(t)})
		turn := turnOf("late", "x", w.dir, w.emit)
		turn.Of.Role.Hosted.Env = map[string]string{"HOSTED_TEST_MODE": "late", "HOSTED_TEST_SIGNED": filepath.Join(w.dir, "signed")}
		asked := 0
		turn.Ask = func(context.Context, string) (*wire.CommandResult, error) {
			asked++
			return &wire.CommandResult{Status: wire.StatusSuccess, Output: []byte(c.way)}, nil
		}
		turn.Shell = func(string, func([]byte)) tool.Shell { return shell{began: func() {}} } // the command changes nothing
		o := w.Run(t.Context(), turn)
		if c.want != "" && (o.Err != nil || o.Summary != c.want) || c.want == "" && o.Err == nil || asked != 1 {
			t.Errorf("%s: got %q, %v, asked %d times", c.way, o.Summary, o.Err, asked)
		}
		if c.want == "" && o.Err.Error() != "late: it asks for a sign-in again" {
			t.Errorf("got %v", o.Err)
		}
	}
}

// A turn that is cancelled while the user signs in is cancelled, and has not failed.
func TestCancelledSignIn(t *testing.T) {
	for _, mode := range []string{"unsigned", "late"} {
		w := newWorld(t, Options{})
		turn := turnOf(mode, "x", w.dir, w.emit)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("stopped by the user")
		turn.Ask = func(ctx context.Context, _ string) (*wire.CommandResult, error) {
			cancel(why)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		if o := w.Run(ctx, turn); o.Status != wire.StatusCancelled || !errors.Is(o.Err, why) {
			t.Errorf("%s: got %s, %v", mode, o.Status, o.Err)
		}
	}
}

// An agent and what it started end with the daemon, however that ends.
func TestNothingIsLeft(t *testing.T) {
	sleep := fmt.Sprint("sleep 3001.", os.Getpid()) // no other process's arguments
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HOSTED_TEST_MODE=owner", "HOSTED_TEST_DIR="+t.TempDir(), "HOSTED_TEST_CHILD="+sleep)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(t, out)(); got != "started" {
		t.Fatalf("got %q", got)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	for end := time.Now().Add(10 * time.Second); ; {
		left, err := exec.Command("pgrep", "-f", sleep).Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 { // it found none
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			for pid := range strings.FieldsSeq(string(left)) {
				t.Errorf("left: %s", pid)
			}
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A sign-in may take longer than the other steps of the start.
func TestSlowSignIn(t *testing.T) {
	w := newWorld(t, Options{})
	turn := turnOf("unsigned", "x", w.dir, w.emit)
	turn.Of.Role.Hosted.Env["HOSTED_TEST_SIGNED"] = filepath.Join(w.dir, "signed")
	turn.Ask = func(ctx context.Context, _ string) (*wire.CommandResult, error) {
		at, ok := ctx.Deadline()
		if left := time.Until(at); !ok || left < signInBound/2 {
			t.Errorf("the user has %v", left)
		}
		return &wire.CommandResult{Status: wire.StatusSuccess, Output: []byte("Sign in on the web")}, nil
	}
	if o := w.Run(t.Context(), turn); o.Err != nil {
		t.Errorf("got %v", o.Err)
	}
}

// Of many agents that wait for another turn the newest few are kept, and none of a session that is deleted.
func TestIdleProcessesAreBounded(t *testing.T) {
	w := newWorld(t, Options{})
	kept := func() (names []string) {
		w.Agents.mu.Lock()
		defer w.Agents.mu.Unlock()
		for k, h := range w.hosts {
			if _, idle := h.idleSince(); idle {
				names = append(names, k.agent)
			}
		}
		slices.Sort(names)
		return names
	}
	for i := range maxIdle + 2 {
		turn := turnOf("reports", "x", w.dir, w.emit)
		turn.Of.Name = fmt.Sprint("a-", i)
		if o := w.Run(t.Context(), turn); o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	if got := strings.Join(kept(), " "); got != "a-2 a-3 a-4 a-5" {
		t.Errorf("kept: %s", got)
	}
	w.EndSession("another")
	if !w.Runs("s", "a-5") {
		t.Error("ended with another session")
	}
	w.EndSession("s")
	w.work.Wait()
	if got := kept(); len(got) > 0 {
		t.Errorf("kept of a session that is gone: %s", got)
	}
}

// A process that ends because it was idle takes no turn: the next one has a new process.
func TestNoTurnForAProcessThatEnds(t *testing.T) {
	w := newWorld(t, Options{})
	for range 2 {
		if o := w.play(t.Context(), "loads", "x"); o.Err != nil {
			t.Error(o.Err)
		}
		w.Agents.mu.Lock()
		h := w.hosts[key{"s", "loads"}]
		w.Agents.mu.Unlock()
		if !h.retire() || h.retire() {
			t.Error("an idle process is retired once")
		}
	}
}

// What an agent starts is known as its own, and nothing else is.
func TestStarted(t *testing.T) {
	w := newWorld(t, Options{})
	if name, ok := w.Started(os.Getpid()); ok {
		t.Errorf("without agents: got %q", name)
	}
	if o := w.play(t.Context(), "reports", "x"); o.Err != nil {
		t.Fatal(o.Err)
	}
	w.Agents.mu.Lock()
	pid := w.hosts[key{"s", "reports"}].proc.PID()
	w.Agents.mu.Unlock()
	if name, ok := w.Started(pid); name != "reports" || !ok {
		t.Errorf("got %q, %v", name, ok)
	}
	if name, ok := w.Started(os.Getpid()); ok {
		t.Errorf("its parent: got %q", name)
	}
}

// The first prompt is held until our server has listed its tools, or for as long as that may take.
func TestFirstPromptWaitsForTheServer(t *testing.T) {
	w := newWorld(t, Options{Server: []string{"/nowhere/sublet"}, Connect: 100 * time.Millisecond})
	if o := w.play(t.Context(), "reports", "x"); o.Err != nil {
		t.Fatal(o.Err)
	}
	w.wants("reports has not connected sublet's tools within 100ms")
	if _, err := w.Call(t.Context(), &wire.ToolRequest{Hosted: "guess"}); err == nil {
		t.Error("a server that no agent was given is heard")
	}
}

// A turn that is cancelled while it waits for the server is not begun.
func TestNoPromptAfterACancel(t *testing.T) {
	w := newWorld(t, Options{Server: []string{"/nowhere/sublet"}, Connect: time.Hour})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user said so")
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		for {
			w.Agents.mu.Lock()
			h := w.hosts[key{"s", "reports"}]
			w.Agents.mu.Unlock()
			if h != nil && h.running() != nil {
				cancel(why)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	turn := turnOf("reports", "x", w.dir, w.emit)
	turn.Of.History = agent.Conversation{}
	o := w.Run(ctx, turn)
	<-listed
	if o.Status != wire.StatusCancelled || !errors.Is(o.Err, why) || w.text() != "" {
		t.Errorf("got %+v and\n%s", o, w.text())
	}
}
