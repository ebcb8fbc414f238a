package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sublet/daemon/config"
	"sublet/lease/confine/confinetest"
	"sublet/wire"
	"sublet/wire/jsonview"
	"sublet/wire/socket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// home is a folder with everything a daemon has, and its settings.
func home(t testing.TB, settings string) socket.Paths {
	t.Helper()
	dir, err := os.MkdirTemp("", "sublet") // t.TempDir may be too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := socket.Paths{
		Runtime: filepath.Join(dir, "run"), State: filepath.Join(dir, "state"), Config: filepath.Join(dir, "config.toml"),
		Socket: filepath.Join(dir, "run", "daemon.sock"), Lock: filepath.Join(dir, "run", "daemon.lock"),
	}
	if settings != "" {
		write(t, p.Config, settings)
	}
	return p
}

// listening takes the lock and the socket as the starter of a daemon does.
func listening(t testing.TB, p socket.Paths) (lock *os.File, ln net.Listener) {
	t.Helper()
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	lock, err := socket.TryLock(p.Lock)
	if err != nil {
		t.Fatal(err)
	}
	ln, err = socket.Listen(p.Socket)
	if err != nil {
		t.Fatal(err)
	}
	return lock, ln
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run starts a daemon; its end is in the channel.
func run(t *testing.T, o Options) (stop context.CancelFunc, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out := make(chan error, 1)
	go func() { out <- Run(ctx, o) }()
	t.Cleanup(cancel)
	deadline := time.Now().Add(patience)
	for {
		if c, err := net.Dial("unix", o.Paths.Socket); err == nil {
			c.Close()
			return cancel, out
		}
		select {
		case err := <-out:
			t.Fatalf("the daemon ended: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the daemon does not listen")
		}
		time.Sleep(time.Millisecond)
	}
}

func over(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		t.Fatal("the daemon did not end")
		return nil
	}
}

// client shakes hands with the daemon.
func client(t *testing.T, p socket.Paths, change ...func(*wire.EnvSnapshot)) *wire.Conn {
	t.Helper()
	nc, err := socket.Dial(t.Context(), p.Socket)
	if err != nil {
		t.Fatal(err)
	}
	c := wire.NewConn(nc)
	t.Cleanup(func() { c.Close() })
	env := &wire.EnvSnapshot{ProtocolMin: 1, ProtocolMax: 1, Cwd: wire.OSString(p.State), Capabilities: []string{wire.CapConfirm}}
	env.Env = map[string]wire.OSString{"HOME": wire.OSString(p.State), "PATH": wire.OSString(os.Getenv("PATH"))}
	for _, f := range change {
		f(env)
	}
	if err := c.Send(env); err != nil {
		t.Fatal(err)
	}
	receive(t, c, func(*wire.Ready) bool { return true })
	return c
}

func receive[T wire.Message](t *testing.T, c *wire.Conn, match func(T) bool) T {
	t.Helper()
	guard := time.AfterFunc(patience, func() { c.Close() })
	defer guard.Stop()
	var seen []string
	for {
		m, err := c.Receive()
		if err != nil {
			var none T
			t.Fatalf("waiting for %T: %v, after\n%s", none, err, strings.Join(seen, "\n"))
		}
		if wanted, ok := m.(T); ok && match(wanted) {
			return wanted
		}
		line := jsonview.Of(m)
		seen = append(seen, string(line))
	}
}

func status(t *testing.T, c *wire.Conn) *wire.StatusReply {
	t.Helper()
	id := wire.RequestID(wire.NewID())
	if err := c.Send(&wire.StatusRequest{RequestID: id}); err != nil {
		t.Fatal(err)
	}
	return receive(t, c, func(m *wire.StatusReply) bool { return m.RequestID == id })
}

// The daemon's life: it listens alone, keeps its files to itself, stops in order and leaves nothing behind (A3, A4).
func TestLife(t *testing.T) {
	p := home(t, "")
	stop, ended := run(t, Options{Paths: p, Version: "1"})
	client(t, p)
	for path, mode := range map[string]fs.FileMode{
		p.Socket: 0o600 | fs.ModeSocket, p.Lock: 0o600, p.Log(): 0o600, p.Database(): 0o600,
		p.Runtime: 0o700 | fs.ModeDir, p.State: 0o700 | fs.ModeDir, p.Spool(): 0o700 | fs.ModeDir,
		filepath.Join(p.State, "audit.log"): 0o600,
	} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: got %v, %v, want %v", path, info, err, mode)
		}
	}
	var running *RunningError
	if err := Run(t.Context(), Options{Paths: p}); !errors.As(err, &running) || running.Hint() == "" {
		t.Errorf("a second daemon: got %v", err)
	}
	stop()
	if err := over(t, ended); err != nil {
		t.Errorf("end: %v", err)
	}
	if _, err := os.Lstat(p.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	lock, err := socket.TryLock(p.Lock)
	if err != nil {
		t.Fatalf("the lock is left: %v", err)
	}
	lock.Close()
}

// Descriptors from the environment are taken over, closed for children, and not told to them (design section 2).
func TestInherited(t *testing.T) {
	p := home(t, "")
	lock, ln := listening(t, p)
	file, err := ln.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	dup := func(f *os.File) string { // as in a child: its own copy, open across exec
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		text, _ := json.Marshal(fd)
		return string(text)
	}
	t.Setenv("SUBLET_LISTEN_FD", dup(file))
	t.Setenv("SUBLET_LOCK_FD", dup(lock))
	stop, ended := run(t, Options{Paths: p})
	client(t, p)
	if os.Getenv("SUBLET_LISTEN_FD")+os.Getenv("SUBLET_LOCK_FD") != "" {
		t.Error("children would see the descriptors' names")
	}
	if _, err := socket.TryLock(p.Lock); !errors.Is(err, socket.ErrLocked) {
		t.Errorf("lock: got %v, want held", err)
	}
	stop()
	if err := over(t, ended); err != nil {
		t.Error(err)
	}
}

// farewell waits for the last word of a daemon that was told to stop: without it clients start another one.
func farewell(t *testing.T, c *wire.Conn) {
	t.Helper()
	e := receive(t, c, func(*wire.Error) bool { return true })
	if e.Code != wire.CodeShuttingDown || e.RequestID != "" || e.TurnID != "" || e.Recoverable || !strings.Contains(e.Message, "stops") || e.Hint == "" {
		t.Errorf("farewell: got %+v", e)
	}
	if m, err := c.Receive(); err == nil {
		t.Errorf("after the farewell came %s, want the end", wire.KindOf(m))
	}
}

// SIGTERM, a client's ShutdownRequest and idleness all end it in order (C4).
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, p socket.Paths){
		"SIGTERM": func(t *testing.T, p socket.Paths) {
			c := client(t, p)
			status(t, c) // attached for good
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			farewell(t, c)
		},
		"ShutdownRequest": func(t *testing.T, p socket.Paths) {
			c := client(t, p)
			if err := c.Send(&wire.ShutdownRequest{RequestID: "x"}); err != nil {
				t.Fatal(err)
			}
			if st := receive(t, c, func(*wire.StatusReply) bool { return true }); st.State != "draining" {
				t.Errorf("reply: %+v", st)
			}
			farewell(t, c)
		},
		"idle": func(t *testing.T, p socket.Paths) {
			c := client(t, p)
			write(t, p.Config, "[daemon]\nidle_exit = \"50ms\"\n")
			receive(t, c, func(n *wire.Notice) bool { return strings.Contains(n.Text, "settings read again") })
			time.Sleep(100 * time.Millisecond) // somebody is there: it stays
			status(t, c)
			c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := home(t, "")
			_, ended := run(t, Options{Paths: p})
			end(t, p)
			if err := over(t, ended); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(p.Socket); err == nil {
				t.Error("the socket is left")
			}
		})
	}
}

// A stop gives running turns half a minute, but does not wait for a person (patience is less than drainBound): whoever is
// there is told, and the turn has its end in the store.
func TestStopWhileAQuestionIsOpen(t *testing.T) {
	p := home(t, "")
	script := filepath.Join(filepath.Dir(p.Config), "script.json")
	write(t, p.Config, "model = \"test/m\"\n[provider.test]\nkind = \"scripted\"\nscript = \""+script+"\"\n")
	write(t, script, `[{"match": "go", "steps": [{"tool_calls": [{"name": "bash", "arguments": {"command": "git push"}}]}, {"text": "done"}]}]`)
	_, ended := run(t, Options{Paths: p})
	c := client(t, p)
	if err := c.Send(&wire.AgentRequest{RequestID: "r", Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	receive(t, c, func(*wire.ConfirmationRequest) bool { return true })
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	e := receive(t, c, func(m *wire.Error) bool { return true })
	if e.Code != wire.CodeShuttingDown || e.RequestID != "r" || e.Seq == 0 || !strings.Contains(e.Message, "waited for an answer") {
		t.Errorf("error: %+v", e)
	}
	if end := receive(t, c, func(m *wire.AgentComplete) bool { return true }); end.Status != wire.StatusError {
		t.Errorf("end: %s", end.Status)
	}
	farewell(t, c)
	if err := over(t, ended); err != nil {
		t.Error(err)
	}
}

// A second signal ends the wait for running turns.
func TestStopTwice(t *testing.T) {
	p := home(t, "")
	script := filepath.Join(filepath.Dir(p.Config), "script.json")
	write(t, p.Config, "model = \"test/m\"\n[provider.test]\nkind = \"scripted\"\nscript = \""+script+"\"\n")
	write(t, script, `[{"match": "go", "steps": [{"wait_file": "/nowhere/at all", "text": "done"}]}]`)
	_, ended := run(t, Options{Paths: p})
	c := client(t, p)
	if err := c.Send(&wire.AgentRequest{RequestID: "r", Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	receive(t, c, func(*wire.TurnStarted) bool { return true })
	signal := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	signal()
	receive(t, c, func(n *wire.Notice) bool { return strings.Contains(n.Text, "running turns have 30s to finish") })
	signal()
	receive(t, c, func(*wire.AgentComplete) bool { return true }) // patience is less than drainBound
	farewell(t, c)
	if err := over(t, ended); err != nil {
		t.Error(err)
	}
}

// Settings that cannot be read change nothing; the error names file, line and column. Both a SIGHUP and a changed file lead to it.
func TestSettings(t *testing.T) {
	confinetest.Beside(t) // auto is offered only with it
	p := home(t, "[policy]\nmode = \"auto\"\n")
	_, ended := run(t, Options{Paths: p})
	c := client(t, p)
	write(t, p.Config, "[policy]\nmode = \"nonsense\"\n")
	n := receive(t, c, func(n *wire.Notice) bool { return n.Level == "error" })
	if !strings.Contains(n.Text, "config.toml:2:") {
		t.Errorf("notice: %q", n.Text)
	}
	mode := func() string {
		id := wire.RequestID(wire.NewID())
		if err := c.Send(&wire.PolicyRequest{RequestID: id, Op: "get"}); err != nil {
			t.Fatal(err)
		}
		return receive(t, c, func(m *wire.PolicyReply) bool { return m.RequestID == id }).Mode
	}
	if got := mode(); got != "auto" {
		t.Errorf("mode with bad settings: %s, want the old one", got)
	}
	text, err := os.ReadFile(p.Config)
	if err != nil || !strings.Contains(string(text), "nonsense") {
		t.Errorf("the file was changed: %q, %v", text, err)
	}
	write(t, p.Config, "[policy]\nmode = \"plan\"\nallow = [\"bash: make *\"]\n")
	// Windows showed neither what had changed nor, in the footer, the mode that holds now.
	n = receive(t, c, func(n *wire.Notice) bool { return n.Level == "info" })
	if want := `policy: mode = "plan", allow = ["bash: make *"]`; !strings.HasSuffix(n.Text, want) || n.SessionID == "" {
		t.Errorf("got notice %q of session %q, want %q of the client's", n.Text, n.SessionID, want)
	}
	if got := mode(); got != "plan" {
		t.Errorf("mode: %s", got)
	}
	// A file that others may write to is not used, and is once that is mended.
	if err := os.Chmod(p.Config, 0o666); err != nil {
		t.Fatal(err)
	}
	write(t, p.Config, "[policy]\nmode = \"auto\"\n")
	n = receive(t, c, func(n *wire.Notice) bool { return n.Level == "error" && !strings.Contains(n.Text, ":2:") })
	if !strings.Contains(n.Text, "others may write to it") {
		t.Errorf("notice: %q", n.Text)
	}
	if got := mode(); got != "plan" {
		t.Errorf("mode with settings of others: %s, want the old one", got)
	}
	if err := os.Chmod(p.Config, 0o600); err != nil {
		t.Fatal(err)
	}
	receive(t, c, func(n *wire.Notice) bool { return n.Level == "info" })
	if got := mode(); got != "auto" {
		t.Errorf("mode: %s", got)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil { // nothing changed: nothing to tell
		t.Fatal(err)
	}
	if got := mode(); got != "auto" {
		t.Errorf("mode: %s", got)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := over(t, ended); err != nil {
		t.Error(err)
	}
}

// Profiles are served on a socket of their own, for the user alone, and only while the settings ask for it.
func TestDebug(t *testing.T) {
	p := home(t, "")
	stop, ended := run(t, Options{Paths: p})
	c := client(t, p)
	path := filepath.Join(p.Runtime, "debug.sock")
	if _, err := os.Lstat(path); err == nil {
		t.Error("profiles are served unasked")
	}
	write(t, p.Config, "[daemon]\ndebug = true\n")
	receive(t, c, func(n *wire.Notice) bool { return n.Level == "info" })
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600|fs.ModeSocket {
		t.Errorf("socket: %v, %v", info, err)
	}
	get := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return socket.Dial(ctx, path)
	}}}
	resp, err := get.Get("http://sublet/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), "goroutine profile") {
		t.Errorf("profile: %s, %v", resp.Status, err)
	}
	write(t, p.Config, "[daemon]\ndebug = false\n")
	receive(t, c, func(n *wire.Notice) bool { return n.Level == "info" })
	if _, err := os.Lstat(path); err == nil {
		t.Error("profiles are still served")
	}
	stop()
	if err := over(t, ended); err != nil {
		t.Error(err)
	}
}

// Settings that cannot be read at the start are an error that names their place; nothing is left behind.
func TestBadSettingsAtStart(t *testing.T) {
	p := home(t, "model = 3\n")
	var bad *config.Error
	if err := Run(t.Context(), Options{Paths: p}); !errors.As(err, &bad) || bad.Row != 1 {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(p.Socket); err == nil {
		t.Error("the socket is left")
	}
}

// A client that lends no shell gets a private one, a real bash, for its commands; it keeps its folder between them, and
// is gone with the client.
func TestPrivateShell(t *testing.T) {
	p := home(t, "")
	script := filepath.Join(filepath.Dir(p.Config), "script.json")
	write(t, p.Config, "model = \"test/m\"\n[provider.test]\nkind = \"scripted\"\nscript = \""+script+"\"\n")
	write(t, script, `[{"match": "go", "steps": [
		{"tool_calls": [{"name": "bash", "arguments": {"command": "cd /usr"}}]},
		{"tool_calls": [{"name": "bash", "arguments": {"command": "pwd"}}]},
		{"text": "done"}]}, {"match": "where", "steps": [{"tool_calls": [{"name": "bash", "arguments": {"command": "echo at $PWD"}}]}, {"text": "there"}]}]`)
	stop, ended := run(t, Options{Paths: p})
	c := client(t, p)
	if err := c.Send(&wire.AgentRequest{RequestID: "r", Prompt: "go", Options: wire.RequestOptions{Mode: "full"}}); err != nil {
		t.Fatal(err)
	}
	res := receive(t, c, func(m *wire.CommandResult) bool { return m.Command == "pwd" })
	if !strings.HasPrefix(string(res.Output), "/usr\n") {
		t.Errorf("pwd: got %q (%s)", res.Output, res.Status)
	}
	receive(t, c, func(m *wire.AgentComplete) bool { return m.Status == "success" })
	for i, want := range []string{"success", "error"} { // once is all there is
		if err := c.Send(&wire.UndoRequest{RequestID: wire.RequestID(strconv.Itoa(i)), What: "shell"}); err != nil {
			t.Fatal(err)
		}
		undone := receive(t, c, func(m *wire.AgentComplete) bool { return m.RequestID == wire.RequestID(strconv.Itoa(i)) })
		if undone.Status != want || want == "success" && !strings.HasPrefix(undone.Summary, "put back in the shell: moved to ") {
			t.Errorf("undo: got %s %q, want %s", undone.Status, undone.Summary, want)
		}
	}
	if err := c.Send(&wire.AgentRequest{RequestID: "s", Prompt: "where", Options: wire.RequestOptions{Mode: "full"}}); err != nil {
		t.Fatal(err)
	}
	if res = receive(t, c, func(m *wire.CommandResult) bool { return m.Tool == "bash" }); string(res.Output) != "at "+p.State+"\n" {
		t.Errorf("after undo: got %q, want %s", res.Output, p.State)
	}
	stop()
	if err := over(t, ended); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(p.Runtime, "*"))
	if err != nil || len(left) != 1 { // the lock's file stays
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Settings whose folder is made later are found all the same.
func TestSettingsFolderMadeLater(t *testing.T) {
	p := home(t, "")
	p.Config = filepath.Join(filepath.Dir(p.Config), "a", "b", "config.toml")
	stop, ended := run(t, Options{Paths: p})
	c := client(t, p)
	status(t, c)
	if err := os.MkdirAll(filepath.Dir(p.Config), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, p.Config, "[policy]\nmode = \"plan\"\n")
	receive(t, c, func(n *wire.Notice) bool { return n.Level == "info" })
	write(t, p.Config, "[policy]\nmode = \"auto\"\n")
	receive(t, c, func(n *wire.Notice) bool { return n.Level == "info" })
	stop()
	if err := over(t, ended); err != nil {
		t.Error(err)
	}
}
