package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/wire"
)

// end waits for the end of the one server's connection.
func (w *world) end() error {
	w.t.Helper()
	srv := w.list[0]
	srv.mu.Lock()
	c := srv.conn
	srv.mu.Unlock()
	if c == nil {
		w.t.Fatal("it is not up")
	}
	return c.wait()
}

// Cancelling reaches the server, and the call ends at once; the server goes on.
func TestCancel(t *testing.T) {
	w := newWorld(t, Options{}, program("db", "plain"))
	tools := w.up()
	fifo := mkfifo(t)
	said := make(chan string, 2)
	go func() {
		defer close(said)
		f, err := os.Open(fifo)
		if err != nil {
			return
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			said <- s.Text()
		}
	}()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	ended := make(chan error, 1)
	go func() {
		_, err := call(ctx, tools["mcp__db__wait"], fmt.Sprintf(`{"text":%q}`, fifo), nil)
		ended <- err
	}()
	if got := <-said; got != "called" {
		t.Fatalf("got %q", got)
	}
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if got := <-said; got != "cancelled" {
		t.Errorf("the server heard %q", got)
	}
	<-said
	if r, err := call(t.Context(), tools["mcp__db__echo"], `{"text":"still here"}`, nil); err != nil || r.Content != "still here" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A call without an answer ends after its time; one with signs of progress has longer.
func TestSilence(t *testing.T) {
	w := newWorld(t, Options{Silence: 100 * time.Millisecond}, program("db", "plain"))
	_, err := call(t.Context(), w.up()["mcp__db__wait"], `{"text":"/nowhere"}`, nil)
	if err == nil || !strings.Contains(err.Error(), "did not answer within 100ms; whether it did anything is not known") {
		t.Errorf("got %v", err)
	}
}

// A server that dies in a call is told with its last words, is not called again by itself, and is started anew.
func TestDeath(t *testing.T) {
	w := newWorld(t, Options{Retry: time.Nanosecond}, program("db", "plain"))
	want := func(state string, tools bool) {
		t.Helper()
		st := w.Report(false)
		if len(st) != 1 || st[0].State != state || slices.Contains(st[0].Tools, "mcp__db__echo") != tools || (st[0].Error != "") != (state == wire.MCPFailed) {
			t.Errorf("got %+v, want state %s and tools %v", st, state, tools)
		}
	}
	want(wire.MCPResting, false)
	tools := w.up()
	want(wire.MCPUp, true)
	_, err := call(t.Context(), tools["mcp__db__die"], `{"text":""}`, nil)
	if want := "the MCP server db was lost during the call (it ended: exit status 4; its last words: out of memory); whether it did anything is not known"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if r, err := call(t.Context(), tools["mcp__db__echo"], `{"text":"back"}`, nil); err != nil || r.Content != "back" {
		t.Errorf("got %+v, %v", r, err)
	}
	// Before its pause is over nobody waits for it.
	w = newWorld(t, Options{Retry: time.Hour}, program("db", "plain"))
	tools = w.up()
	if _, err := call(t.Context(), tools["mcp__db__die"], `{"text":""}`, nil); err == nil {
		t.Fatal("it lives")
	}
	want(wire.MCPFailed, true) // the tools are those it had
	_, err = call(t.Context(), tools["mcp__db__echo"], `{"text":"back"}`, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "not called: the MCP server db is not available: it ended: exit status 4") {
		t.Errorf("got %v", err)
	}
}

func mkfifo(t *testing.T) string {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	return fifo
}

// gone is closed when nobody has the FIFO open for writing any more.
func gone(t *testing.T, fifo string) <-chan struct{} {
	t.Helper()
	end := make(chan struct{})
	go func() {
		defer close(end)
		if f, err := os.Open(fifo); err == nil { // waits for the first writer
			_, _ = io.Copy(io.Discard, f)
			f.Close()
		}
	}()
	return end
}

func wait(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s: a process is left", what)
	}
}

// Whatever way a server ends, nothing that it started is left, also of those that heed nothing.
func TestNothingIsLeft(t *testing.T) {
	spec := func(fifo string) Spec {
		return Spec{Name: "t", Command: "/bin/sh", Args: []string{"-c", family}, Env: map[string]string{"FIFO": fifo, "SERVER": os.Args[0], "MCP_TEST_MODE": "plain"}}
	}
	t.Run("close", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		w := newWorld(t, Options{}, spec(fifo))
		w.up()
		w.Close()
		wait(t, "Close", end)
	})
	t.Run("taken out of the settings", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		w := newWorld(t, Options{}, spec(fifo), program("other", "plain"))
		tools := w.up()
		before, err := call(t.Context(), tools["mcp__other__pid"], `{"text":""}`, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Set([]Spec{program("other", "plain")})
		wait(t, "Set", end)
		if after, err := call(t.Context(), w.up()["mcp__other__pid"], `{"text":""}`, nil); err != nil || after.Content != before.Content {
			t.Errorf("the other one: got %v, %v, want %v", after.Content, err, before.Content)
		}
		if _, err := call(t.Context(), tools["mcp__t__echo"], `{"text":""}`, nil); err == nil || !strings.Contains(err.Error(), "it was removed") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("it dies", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		w := newWorld(t, Options{}, spec(fifo))
		if _, err := call(t.Context(), w.up()["mcp__t__die"], `{"text":""}`, nil); err == nil {
			t.Fatal("it lives")
		}
		wait(t, "death", end)
	})
	t.Run("nobody uses it", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		w := newWorld(t, Options{Idle: 10 * time.Millisecond}, spec(fifo))
		release := w.Hold()
		for range 3 {
			if _, err := call(t.Context(), w.up()["mcp__t__echo"], `{"text":""}`, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, notes := w.ready(); notes[0].Start != 1 {
			t.Errorf("it was started %d times while it was held", notes[0].Start)
		}
		release()
		wait(t, "idle", end)
	})
	t.Run("its client leaves", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		w := newWorld(t, Options{}, spec(fifo))
		release := w.Hold()
		w.Retire()
		if _, err := call(t.Context(), w.up()["mcp__t__echo"], `{"text":""}`, nil); err != nil {
			t.Errorf("a turn that still runs: %v", err)
		}
		release()
		wait(t, "Retire", end)
	})
	t.Run("while it starts", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		s := spec(fifo)
		s.Env["MCP_TEST_MODE"] = "mute"
		w := newWorld(t, Options{Patience: 50 * time.Millisecond}, s)
		if _, notes := w.ready(); !errors.Is(notes[0].Err, errLate) {
			t.Fatal(notes[0].Err)
		}
		w.Close()
		wait(t, "start", end)
	})
	// The daemon is killed by force: the guard sees to it.
	t.Run("kill -9", func(t *testing.T) {
		fifo := mkfifo(t)
		end := gone(t, fifo)
		owner := exec.Command(os.Args[0])
		owner.Env = append(os.Environ(), "MCP_TEST_MODE=owner", "FIFO="+fifo)
		out, err := owner.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := owner.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		if err := owner.Process.Kill(); err != nil || line != "<nil>\n" {
			t.Errorf("got %q, %v", line, err)
		}
		_ = owner.Wait()
		wait(t, "kill -9", end)
	})
}

// A call that begins while its connection is being closed is refused or waited for: which of the two had been left to chance.
func TestCallsAtTheEnd(t *testing.T) {
	w := newWorld(t, Options{}, program("db", "plain"))
	silent := func(*sdk.ProgressNotificationParams) {}
	for range 10 {
		c, err := w.list[0].connect(t.Context(), w.at)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- c.wait() }()
		if _, err := c.call(t.Context(), "die", json.RawMessage(`{"text":""}`), silent); err == nil {
			t.Error("it lives")
		}
		if err := <-ended; !strings.Contains(err.Error(), "it ended") {
			t.Errorf("got %v", err)
		}
		if _, err := c.call(t.Context(), "echo", json.RawMessage(`{"text":""}`), silent); !errors.Is(err, sdk.ErrConnectionClosed) {
			t.Errorf("then got %v", err)
		}
	}
}
