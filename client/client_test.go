package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"sublet/lease/procstat"
	"sublet/wire"
	"sublet/wire/socket"
)

// The test program is also the terminal program and its daemon: real processes on a real terminal. Of the daemon only
// the handshake and the status are there; the whole is tried by the end-to-end tests.
const asClient = "CLIENT_TEST_RUN"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "daemon" {
		os.Exit(serve())
	}
	if os.Getenv(asClient) != "" {
		os.Exit(runClient())
	}
	goleak.VerifyTestMain(m)
}

func runClient() int {
	paths, err := socket.FindPaths(os.Getenv, os.Getuid())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code, err := Run(context.Background(), Options{
		Paths: paths, Executable: exe, Version: "test", Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout,
		Credentials: []string{"TEST_KEY"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
	}
	return code
}

// serve is the daemon. It ends with the file stop in its state folder, or after a minute.
func serve() int {
	ln, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	time.AfterFunc(time.Minute, func() { os.Exit(1) })
	for {
		nc, err := ln.Accept()
		if err != nil {
			return 1
		}
		go func() {
			wc := wire.NewConn(nc)
			defer wc.Close()
			daemon := wire.DaemonInfo{PID: os.Getpid(), BuiltAtMS: socket.BuiltAt(os.Args[0])} // of this build: no client replaces it
			for {
				m, err := wc.Receive()
				if err != nil {
					return
				}
				switch m := m.(type) {
				case *wire.EnvSnapshot:
					if os.Getenv("TEST_DAEMON") == "wedged" {
						continue
					}
					daemon.Name = fmt.Sprintf("token=%q key=%q shell=%s caps=%v", m.Env["MY_TOKEN"], m.Credentials["TEST_KEY"], m.Shell.Name, m.Capabilities)
					_ = wc.Send(&wire.Ready{
						Protocol: wire.Version, Daemon: daemon, Session: wire.SessionInfo{ID: "s1"},
						Models: []wire.ModelInfo{{Name: "test/model"}},
					})
				case *wire.StatusRequest:
					_ = wc.Send(&wire.StatusReply{RequestID: m.RequestID, PID: os.Getpid(), State: "idle"})
				}
			}
		}()
	}
}

// world is a private home, runtime and state folder.
type world struct {
	t     *testing.T
	dir   string
	paths socket.Paths
	env   []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "client") // short: a socket's path holds 104 bytes
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"r", "s", "h"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, dir: dir, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir + "/h", "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash",
		"SUBLET_RUNTIME_DIR=" + dir + "/r", "SUBLET_STATE_DIR=" + dir + "/s", "SUBLET_CONFIG=" + dir + "/config.toml",
		"MY_TOKEN=hush", "TEST_KEY=for the model",
	}}
	getenv := func(name string) string { return lookup(w.env, name) }
	if w.paths, err = socket.FindPaths(getenv, os.Getuid()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid := w.daemon(); pid != 0 {
			kill(t, pid)
		}
		os.RemoveAll(dir)
	})
	return w
}

// daemon is the pid of the world's daemon, 0 if none runs.
func (w *world) daemon() int {
	o := w.options()
	o.NoStart = true
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := Dial(ctx, o)
	if err != nil {
		return 0
	}
	defer c.Close()
	return c.Ready().Daemon.PID
}

func (w *world) options() Options {
	exe, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	return Options{Paths: w.paths, Executable: exe, Version: "test", Env: w.env, Credentials: []string{"TEST_KEY"}}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Kill() // gone already is as good
	p.Wait()
	eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !alive(pid) })
}

// alive reports whether a process runs. It is false for a zombie.
func alive(pid int) bool {
	if err := unix.Kill(pid, 0); err != nil {
		return false
	}
	st, err := procstat.Read(pid)
	return err != nil || st.State != 'Z' && st.State != 'X'
}

// eventually waits for what only another process can tell.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 15 s: %s", what)
		}
	}
}

func TestDial(t *testing.T) {
	w := newWorld(t)
	o := w.options()
	o.NoStart = true
	if _, err := Dial(t.Context(), o); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("got %v, want ErrNoDaemon", err)
	}
	c, err := Dial(t.Context(), w.options())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := `token="" key="for the model" shell= caps=[]`
	if got := c.Ready().Daemon.Name; got != want {
		t.Errorf("got a snapshot with %s, want %s", got, want)
	}
	s, err := wire.Call(t.Context(), c, &wire.StatusRequest{})
	if err != nil || s.PID != c.Ready().Daemon.PID {
		t.Errorf("got %+v, %v, want the daemon's status", s, err)
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(s.PID) + "/environ")
	if err == nil && (containsEnv(env, "MY_TOKEN") || containsEnv(env, "TEST_KEY")) {
		t.Error("the daemon was started with a secret in its environment")
	}
}

func containsEnv(environ []byte, name string) bool {
	for v := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.HasPrefix(v, []byte(name+"=")) {
			return true
		}
	}
	return false
}
