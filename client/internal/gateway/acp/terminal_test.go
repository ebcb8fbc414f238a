package acp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/client/internal/gateway/gatewaytest"
)

// terminals are an editor's: each runs a process.
type terminals struct {
	mu sync.Mutex
	// guarded by mu
	all    map[string]*term
	broken error // why none can be made
}

// term is one terminal.
type term struct {
	cmd      *exec.Cmd
	out      bytes.Buffer // read after done
	done     chan struct{}
	released bool
}

func (e *editor) CreateTerminal(_ context.Context, p sdk.CreateTerminalRequest) (sdk.CreateTerminalResponse, error) {
	e.terms.mu.Lock()
	defer e.terms.mu.Unlock()
	if e.terms.broken != nil {
		return sdk.CreateTerminalResponse{}, e.terms.broken
	}
	t := &term{cmd: exec.Command(p.Command, p.Args...), done: make(chan struct{})}
	t.cmd.Dir = *p.Cwd
	t.cmd.Stdout, t.cmd.Stderr = &t.out, &t.out
	if err := t.cmd.Start(); err != nil {
		return sdk.CreateTerminalResponse{}, err
	}
	go func() { // ends with the process, which ends with the test
		defer close(t.done)
		_ = t.cmd.Wait() // its status is looked at
	}()
	if e.terms.all == nil {
		e.terms.all = map[string]*term{}
	}
	id := fmt.Sprint("term-", len(e.terms.all)+1)
	e.terms.all[id] = t
	return sdk.CreateTerminalResponse{TerminalId: id}, nil
}

func (e *editor) term(id string) *term {
	e.terms.mu.Lock()
	defer e.terms.mu.Unlock()
	return e.terms.all[id]
}

func (e *editor) WaitForTerminalExit(ctx context.Context, p sdk.WaitForTerminalExitRequest) (sdk.WaitForTerminalExitResponse, error) {
	t := e.term(p.TerminalId)
	select {
	case <-t.done:
		code := t.cmd.ProcessState.ExitCode()
		return sdk.WaitForTerminalExitResponse{ExitCode: &code}, nil
	case <-ctx.Done():
		return sdk.WaitForTerminalExitResponse{}, ctx.Err()
	}
}

func (e *editor) KillTerminal(_ context.Context, p sdk.KillTerminalRequest) (sdk.KillTerminalResponse, error) {
	_ = e.term(p.TerminalId).cmd.Process.Kill() // it may have ended
	return sdk.KillTerminalResponse{}, nil
}

func (e *editor) ReleaseTerminal(_ context.Context, p sdk.ReleaseTerminalRequest) (sdk.ReleaseTerminalResponse, error) {
	t := e.term(p.TerminalId)
	_ = t.cmd.Process.Kill() // it may have ended
	<-t.done
	e.terms.mu.Lock()
	defer e.terms.mu.Unlock()
	t.released = true
	return sdk.ReleaseTerminalResponse{}, nil
}

func (e *editor) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (sdk.TerminalOutputResponse, error) {
	return sdk.TerminalOutputResponse{}, errNotHere
}

func hasTerminals(e *editor) { e.can = true }

// embedded are the terminals that updates of tool calls show, in order, each once.
func embedded(updates []sdk.SessionUpdate) (ids []string, last *sdk.SessionToolCallUpdate) {
	for _, u := range updates {
		if u.ToolCallUpdate == nil {
			continue
		}
		last = u.ToolCallUpdate
		for _, c := range last.Content {
			if c.Terminal != nil && (len(ids) == 0 || ids[len(ids)-1] != c.Terminal.TerminalId) {
				ids = append(ids, c.Terminal.TerminalId)
			}
		}
	}
	return ids, last
}

// An editor that has terminals shows in one what a command prints, as it comes, and how it ended; the command itself keeps
// the session's shell.
func TestTerminals(t *testing.T) {
	w := gatewaytest.New(t, nil)
	gate := w.Path("gate")
	w.Script([]scene{
		{Match: "^print$", Steps: []step{{ToolCalls: []call{bash("cd /; KEPT=yes; printf 'one\\ntwo\\n'; false")}}, {ToolCalls: []call{bash("echo $PWD $KEPT")}}, {Text: "ok"}}},
		{Match: "^wait$", Steps: []step{{ToolCalls: []call{bash("echo begun; while ! [ -e " + gate + " ]; do sleep 0.02; done; echo ended")}}, {Text: "ok"}}},
	})
	// begun waits for the first terminal; without one the turn is cancelled. It is called beside the test.
	begun := func(e *editor, id sdk.SessionId) *term {
		for deadline := time.Now().Add(gatewaytest.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) { // a process's start has no event
			e.mu.Lock()
			ids, _ := embedded(e.updates)
			e.mu.Unlock()
			if len(ids) > 0 {
				return e.term(ids[0])
			}
		}
		e.t.Error("no terminal")
		_ = e.conn.Cancel(context.WithoutCancel(e.t.Context()), sdk.CancelNotification{SessionId: id})
		return nil
	}
	t.Run("its output and its status", func(t *testing.T) {
		e := start(t, w, hasTerminals)
		r, updates, err := e.prompt(e.open(w), sdk.TextBlock("print"))
		if err != nil || r.StopReason != sdk.StopReasonEndTurn || text(updates) != "ok" {
			t.Fatalf("got %+v %v", r, err)
		}
		ids, last := embedded(updates)
		if len(ids) != 2 || *last.Status != sdk.ToolCallStatusCompleted || last.Content[0].Terminal == nil {
			t.Fatalf("terminals %v, at the end %+v", ids, last)
		}
		for i, want := range []struct {
			out  string
			code int
		}{{"one\ntwo\n", 1}, {"/ yes\n", 0}} {
			tm := e.term(ids[i])
			if got := tm.out.String(); got != want.out || tm.cmd.ProcessState.ExitCode() != want.code || !tm.released {
				t.Errorf("%d: got %q, status %d, released %v; want %q, %d", i, got, tm.cmd.ProcessState.ExitCode(), tm.released, want.out, want.code)
			}
		}
	})
	t.Run("live, and ended by its user", func(t *testing.T) {
		e := start(t, w, hasTerminals)
		id := e.open(w)
		go func() {
			if tm := begun(e, id); tm != nil {
				_ = tm.cmd.Process.Kill()
			}
		}()
		r, _, err := e.prompt(id, sdk.TextBlock("wait")) // the gate is closed: it came while the command ran
		if err != nil || r.StopReason != sdk.StopReasonCancelled {
			t.Errorf("got %+v %v", r, err)
		}
	})
	t.Run("cancelled by the editor", func(t *testing.T) {
		e := start(t, w, hasTerminals)
		id := e.open(w)
		made := make(chan *term, 1)
		go func() {
			made <- begun(e, id)
			_ = e.conn.Cancel(context.WithoutCancel(t.Context()), sdk.CancelNotification{SessionId: id})
		}()
		r, _, err := e.prompt(id, sdk.TextBlock("wait"))
		if err != nil || r.StopReason != sdk.StopReasonCancelled {
			t.Errorf("got %+v %v", r, err)
		}
		if tm := <-made; tm == nil || !tm.released || tm.cmd.ProcessState.ExitCode() == 0 {
			t.Errorf("the terminal at the end: %+v", tm)
		}
	})
	for name, change := range map[string]func(*editor){
		"none":   func(*editor) {},
		"broken": func(e *editor) { e.can, e.terms.broken = true, errors.New("no terminals today") },
	} {
		t.Run(name+": output is in the tool call", func(t *testing.T) {
			e := start(t, w, change)
			_, updates, err := e.prompt(e.open(w), sdk.TextBlock("print"))
			ids, last := embedded(updates)
			if err != nil || len(ids) != 0 || !strings.Contains(last.Content[0].Content.Content.Text.Text, "/ yes") {
				t.Errorf("got %v, terminals %v, %+v", err, ids, last)
			}
			if len(e.terms.all) != 0 {
				t.Errorf("%d terminals were made", len(e.terms.all))
			}
		})
	}
}
