// Package gatewaytest is what the tests of the gateways share: a user with a real daemon in this process, whose model is
// a script.
package gatewaytest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/client/internal/gateway"
	"sublet/client/internal/launch"
	"sublet/daemon"
	"sublet/wire"
	"sublet/wire/socket"
)

// Patience bounds every wait; nothing is ever slept for.
const Patience = 60 * time.Second

// A Scene answers the prompts that Match is found in; see provider/scripted.
type Scene struct {
	Match string `json:"match"`
	Steps []Step `json:"steps"`
}

// A Step is one answer of the model.
type Step struct {
	Text       string `json:"text,omitempty"`
	Reasoning  string `json:"reasoning,omitempty"`
	ToolCalls  []Call `json:"tool_calls,omitempty"`
	WaitFile   string `json:"wait_file,omitempty"`
	Waits      string `json:"waits,omitempty"`
	ChunkBytes int    `json:"chunk_bytes,omitempty"`
	ChunkMS    int    `json:"chunk_ms,omitempty"`
	Error      string `json:"error,omitempty"`
	ErrorOver  int    `json:"error_over_bytes,omitempty"` // Error only for a longer conversation
	StopReason string `json:"stop_reason,omitempty"`
	Usage      *Usage `json:"usage,omitempty"` // nil = estimated
}

// Usage is what a step costs, in tokens.
type Usage struct {
	Input     int
	CacheRead int
	Output    int
}

// A Call is a call of a tool.
type Call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// Bash is a call that runs a command.
func Bash(command string) Call { return Call{"bash", map[string]any{"command": command}} }

// World is one user: folders, settings, a daemon.
type World struct {
	T       testing.TB
	Root    string // short: a socket's path holds 104 bytes
	Project string
	Paths   socket.Paths
	Limits  gateway.Limits // of Daemon
	stop    func()
}

// New makes a user whose model plays scenes, and starts the daemon. settings are added to the settings file.
func New(t testing.TB, scenes []Scene, settings ...string) *World {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "sg")
	if err != nil {
		t.Fatal(err)
	}
	w := &World{T: t, Root: root, Project: filepath.Join(root, "project")}
	for _, d := range []string{"run", "state", "project", "home"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.Paths, err = socket.FindPaths(func(name string) string {
		return map[string]string{
			"SUBLET_RUNTIME_DIR": filepath.Join(root, "run"), "SUBLET_STATE_DIR": filepath.Join(root, "state"),
			"SUBLET_CONFIG": filepath.Join(root, "config.toml"),
		}[name]
	}, os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	w.Script(scenes)
	w.Write("config.toml", "model = \"test/m\"\n"+strings.Join(settings, "\n")+
		fmt.Sprintf("\n[provider.test]\nkind = \"scripted\"\nscript = %q\n", filepath.Join(root, "script.json")))
	w.Start()
	t.Cleanup(func() {
		w.Stop()
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	return w
}

// Script replaces what the model says.
func (w *World) Script(scenes []Scene) {
	w.T.Helper()
	raw, err := json.Marshal(scenes)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Write("script.json", string(raw))
}

// Write creates or replaces a file below Root, by a rename.
func (w *World) Write(name, text string) string {
	w.T.Helper()
	path := filepath.Join(w.Root, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		w.T.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		w.T.Fatal(err)
	}
	return path
}

// Path returns the path of a file below Root.
func (w *World) Path(name string) string { return filepath.Join(w.Root, name) }

// Start starts the daemon and waits until it listens.
func (w *World) Start() {
	w.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("GATEWAYTEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	go func() { over <- daemon.Run(ctx, daemon.Options{Paths: w.Paths, Version: "test", Log: log}) }()
	w.stop = func() {
		cancel()
		if err := <-over; err != nil {
			w.T.Errorf("daemon: %v", err)
		}
	}
	for deadline := time.Now().Add(Patience); ; time.Sleep(2 * time.Millisecond) {
		c, err := socket.Dial(ctx, w.Paths.Socket)
		if err == nil {
			c.Close()
			return
		}
		select {
		case err := <-over:
			over <- err
			w.T.Fatalf("daemon did not start: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			w.T.Fatalf("daemon did not listen: %v", err)
		}
	}
}

// Stop ends the daemon in order; a second call does nothing.
func (w *World) Stop() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// Daemon returns a gateway.Daemon that connects to the world's daemon as `sublet serve` does, but starts none.
func (w *World) Daemon() *gateway.Daemon {
	l := launch.New(launch.Options{Paths: w.Paths, NoStart: true, Answer: Patience})
	return &gateway.Daemon{
		Open: l.Open, Version: "test", Cwd: w.Project, Patience: Patience, Limits: w.Limits,
		Env: map[string]wire.OSString{"HOME": wire.OSString(w.Path("home")), "PATH": wire.OSString(os.Getenv("PATH")), "USER": "tester"},
	}
}
