package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sublet/wire"
	"sublet/wire/jsonview"
	"sublet/wire/socket"
)

// A daemon that is killed with -9 right after it showed an event, whichever that is: the next one has that event and all
// before it, ends the turn as an error, and a client that comes back gets what follows, without gap or repeat (C6, C7).
func TestKillTheDaemonAtEveryEvent(t *testing.T) {
	w := newWorld(t, "", script{{Match: "go", Steps: []step{
		{Text: "one two three four", ChunkBytes: 5, ToolCalls: []call{bash("true")}},
		{Text: "five six", ToolCalls: []call{bash("pwd")}},
		{WaitFile: "/nonexistent/gate"}, // it does not end by itself
	}}})
	w.start()
	for kill, results := int64(1), 0; results < 2; kill++ {
		first := dial(t, w, nil, 0)
		id := first.ready.Session.ID
		if err := first.Send(&wire.AgentRequest{RequestID: "r", Prompt: "go"}); err != nil {
			t.Fatal(err)
		}
		shown := first.events(func(m wire.EventMessage) bool { return m.Meta().Seq == kill })
		if err := syscall.Kill(first.ready.Daemon.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		first.Close()
		if c, ok := shown[len(shown)-1].(*wire.AgentStreamChunk); ok && c.Chunk.Type == wire.ChunkToolResult {
			results++
		}

		w.start()
		late, whole := dial(t, w, &id, kill), dial(t, w, &id, 0)
		if late.ready.Daemon.PID == first.ready.Daemon.PID {
			t.Fatal("it was not killed")
		}
		got, all := append(shown, late.events(isEnd)...), whole.events(isEnd)
		if len(got) != len(all) {
			t.Fatalf("killed at %d: %d events shown and missed, %d stored", kill, len(got), len(all))
		}
		for i, m := range got {
			if a, b := jsonview.Of(m), jsonview.Of(all[i]); m.Meta().Seq != int64(i+1) || !bytes.Equal(a, b) {
				t.Errorf("killed at %d: event %d is %s, stored is %s", kill, i+1, a, b)
			}
		}
		end := all[len(all)-1].(*wire.AgentComplete)
		failure, ok := all[len(all)-2].(*wire.Error)
		if end.Status != wire.StatusError || !ok || failure.Message != "daemon restarted" {
			t.Errorf("killed at %d: ended with %s", kill, jsonview.Of(all[len(all)-2]))
		}
		late.Close()
		whole.Close()
	}
}

// A daemon that is killed with -9 leaves what undo needs to the next one; what somebody else changed since is left alone.
func TestUndoAfterTheDaemonWasKilled(t *testing.T) {
	write := func(name, text string) call { return call{"write", map[string]any{"path": name, "content": text}} }
	w := newWorld(t, "", script{{Match: "go", Steps: []step{{ToolCalls: []call{write("kept", "mine")}}, {ToolCalls: []call{write("theirs", "mine")}}, {Text: "done"}}}}, "[policy]\nmode = \"auto\"")
	w.write(filepath.Join(w.project, "kept"), "yours")
	w.write(filepath.Join(w.project, "theirs"), "yours")
	w.start()
	c := dial(t, w, nil, 0)
	id := c.ready.Session.ID
	send := func(m wire.Message) wire.EventMessage {
		t.Helper()
		if err := c.Send(m); err != nil {
			t.Fatal(err)
		}
		all := c.events(isEnd)
		return all[len(all)-2]
	}
	last := send(&wire.AgentRequest{RequestID: "r", Prompt: "go"}).Meta().Seq + 1
	if err := syscall.Kill(c.ready.Daemon.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.Close()
	w.write(filepath.Join(w.project, "theirs"), "yours again")
	w.start()
	c = dial(t, w, &id, last)
	undo := &wire.UndoRequest{What: "file"}
	for i, want := range []string{
		`theirs was changed since, and stays as it is; the next /undo takes the change before`, `put back .*/kept`, `nothing to put back`,
	} {
		undo.RequestID = wire.RequestID(strconv.Itoa(i))
		if got := jsonview.Of(send(undo)); !regexp.MustCompile(want).Match(got) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for name, want := range map[string]string{"kept": "yours", "theirs": "yours again"} {
		if got, err := os.ReadFile(filepath.Join(w.project, name)); string(got) != want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
		}
	}
}

func (w *world) start() {
	w.t.Helper()
	if _, errs, status := w.sublet("daemon", "start"); status != 0 {
		w.t.Fatalf("start: %s", errs)
	}
}

func isEnd(m wire.EventMessage) bool { _, ok := m.(*wire.AgentComplete); return ok }

// native is a connection of the native protocol, of a script without a shell.
type native struct {
	*wire.Conn
	t     *testing.T
	ready *wire.Ready
}

func dial(t *testing.T, w *world, id *wire.SessionID, after int64) *native {
	t.Helper()
	nc, err := socket.Dial(t.Context(), w.path("run/daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	c := &native{Conn: wire.NewConn(nc), t: t}
	t.Cleanup(func() { c.Close() })
	if err := c.Send(&wire.EnvSnapshot{
		ProtocolMin: 1, ProtocolMax: 1, Cwd: wire.OSString(w.project), SessionID: id, AfterSeq: after,
		Env: map[string]wire.OSString{"HOME": wire.OSString(w.home), "PATH": "/usr/bin:/bin"},
	}); err != nil {
		t.Fatal(err)
	}
	m, err := c.Receive()
	ready, ok := m.(*wire.Ready)
	if !ok {
		t.Fatalf("handshake: %v, %v", m, err)
	}
	c.ready = ready
	return c
}

// events returns the stored events that come, up to the first for which last holds.
func (c *native) events(last func(wire.EventMessage) bool) (list []wire.EventMessage) {
	c.t.Helper()
	guard := time.AfterFunc(patience, func() { c.Close() })
	defer guard.Stop()
	for {
		m, err := c.Receive()
		if err != nil {
			c.t.Fatalf("after %d events: %v", len(list), err)
		}
		c, chunk := m.(*wire.AgentStreamChunk)
		if chunk && (c.Chunk.Type == wire.ChunkToolOutput || c.Chunk.Type == wire.ChunkToolCallDelta) {
			continue // live: with the number of the stored event before it
		}
		if e, ok := m.(wire.EventMessage); ok && e.Meta().Seq > 0 {
			list = append(list, e)
			if last(e) {
				return list
			}
		}
	}
}
