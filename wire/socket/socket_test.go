package socket_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"sublet/wire/socket"
	"sublet/wire/wiretest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("SUBLET_TEST_TRY_LOCK"); path != "" { // the child of TestLockIsHandedOn
		if _, err := socket.TryLock(path); errors.Is(err, socket.ErrLocked) {
			os.Exit(7)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestFindPaths(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want socket.Paths
		err  string
	}{
		{
			"nothing set",
			map[string]string{"HOME": "/home/ada"},
			socket.Paths{
				Runtime: "/tmp/sublet-1000", Socket: "/tmp/sublet-1000/daemon.sock", Lock: "/tmp/sublet-1000/daemon.lock",
				State: "/home/ada/.local/state/sublet", Config: "/home/ada/.config/sublet/config.toml",
			},
			"",
		},
		{
			"XDG",
			map[string]string{"HOME": "/home/ada", "XDG_RUNTIME_DIR": "/run/user/1000", "XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"},
			socket.Paths{
				Runtime: "/run/user/1000/sublet", Socket: "/run/user/1000/sublet/daemon.sock", Lock: "/run/user/1000/sublet/daemon.lock",
				State: "/s/sublet", Config: "/c/sublet/config.toml",
			},
			"",
		},
		{
			"own win, no HOME needed",
			map[string]string{"XDG_RUNTIME_DIR": "/x", "SUBLET_RUNTIME_DIR": "/r/", "SUBLET_STATE_DIR": "/s", "SUBLET_CONFIG": "/c.toml"},
			socket.Paths{Runtime: "/r", Socket: "/r/daemon.sock", Lock: "/r/daemon.lock", State: "/s", Config: "/c.toml"},
			"",
		},
		{
			"relative XDG is ignored",
			map[string]string{"HOME": "/h", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "."},
			socket.Paths{
				Runtime: "/tmp/sublet-1000", Socket: "/tmp/sublet-1000/daemon.sock", Lock: "/tmp/sublet-1000/daemon.lock",
				State: "/h/.local/state/sublet", Config: "/h/.config/sublet/config.toml",
			},
			"",
		},
		{"relative own", map[string]string{"HOME": "/h", "SUBLET_STATE_DIR": "state"}, socket.Paths{}, "not an absolute path"},
		{"no HOME", map[string]string{}, socket.Paths{}, "HOME is not set"},
		{"too long", map[string]string{"HOME": "/h", "SUBLET_RUNTIME_DIR": "/" + strings.Repeat("x", 91)}, socket.Paths{}, "104 bytes long; a socket's path may have 103"},
	} {
		got, err := socket.FindPaths(func(k string) string { return c.env[k] }, 1000)
		if c.err != "" {
			if hinted, ok := errors.AsType[interface {
				error
				Hint() string
			}](err); !ok || hinted.Hint() == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %v, want %q with a hint", c.name, err, c.err)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.name, got, err, c.want)
		}
	}
}

func TestPrepare(t *testing.T) {
	paths := func(dir string) socket.Paths {
		return socket.Paths{Runtime: filepath.Join(dir, "run", "sublet"), State: filepath.Join(dir, "state", "sublet")}
	}
	p := paths(t.TempDir())
	for range 2 { // the second time they are there
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{p.Runtime, p.State} {
		if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s: got %v, %v, want drwx------", dir, info.Mode(), err)
		}
	}
	// what somebody else could have put there first.
	for _, c := range []struct {
		want string
		make func(path string) error
	}{
		{"symbolic link", func(path string) error { return os.Symlink(t.TempDir(), path) }},
		{"open to others", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o755)) }},
		{"not a folder", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"belongs to user 4711", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 4711, 4711)) }},
	} {
		p := paths(t.TempDir())
		if err := os.MkdirAll(filepath.Dir(p.Runtime), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.make(p.Runtime); err != nil {
			if errors.Is(err, fs.ErrPermission) {
				continue // only root can give a folder away
			}
			t.Fatal(err)
		}
		err := p.Prepare()
		if pe, ok := errors.AsType[*socket.PathError](err); !ok || !strings.Contains(err.Error(), c.want) || pe.Hint() == "" {
			t.Errorf("got %v, want %q with a hint", err, c.want)
		}
	}
}

// socketPath is short: a socket's path may have 103 bytes, and t.TempDir is below $TMPDIR and has the name of the test.
func socketPath(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "so")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "daemon.sock")
}

// A1, A3, P1: a unix socket, mode 0600, and both ends tell whose the other is.
func TestListenAndDial(t *testing.T) {
	path := socketPath(t)
	if _, err := socket.Dial(t.Context(), path); !errors.Is(err, socket.ErrNoDaemon) {
		t.Errorf("nothing there: got %v, want ErrNoDaemon", err)
	}
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("got %v, %v, want mode 0600 (A3)", info.Mode(), err)
	}
	c, err := socket.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []net.Conn{c, s} {
		if err := socket.CheckPeer(end); err != nil {
			t.Error(err)
		}
		if pid, err := socket.PeerPID(end); err != nil || pid != os.Getpid() {
			t.Errorf("peer's pid: got %d, %v, want %d", pid, err, os.Getpid())
		}
		end.Close()
	}
	// a socket that somebody answers on is not taken away.
	if _, err := socket.Listen(path); !errors.Is(err, socket.ErrInUse) {
		t.Errorf("second Listen: got %v, want ErrInUse", err)
	}
	l.Close()
	// The launcher's copy of the listener is closed without taking the socket away; what is left is stale.
	if _, err := socket.Dial(t.Context(), path); !errors.Is(err, socket.ErrNoDaemon) {
		t.Errorf("stale socket: got %v, want ErrNoDaemon", err)
	}
	l, err = socket.Listen(path)
	if err != nil {
		t.Fatalf("Listen over a stale socket: %v", err)
	}
	l.Close()
}

func TestListenAndDialRefuse(t *testing.T) {
	file := socketPath(t)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Listen(file); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("Listen on a file: got %v", err)
	}
	target, link := socketPath(t), socketPath(t)
	l, err := socket.Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Dial(t.Context(), link); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("Dial of a symbolic link: got %v", err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(target, 4711, -1); err != nil {
			t.Fatal(err)
		}
		var foreign *socket.PeerError
		if _, err := socket.Dial(t.Context(), target); !errors.As(err, &foreign) || foreign.UID != 4711 {
			t.Errorf("Dial of another user's socket: got %v", err)
		}
	}
	if _, err := socket.Dial(t.Context(), "/"+strings.Repeat("x", 200)); err == nil || !strings.Contains(err.Error(), "bytes long") {
		t.Errorf("Dial of a long path: got %v", err)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.lock")
	f, err := socket.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := socket.TryLock(path); !errors.Is(err, socket.ErrLocked) {
		t.Errorf("second: got %v, want ErrLocked", err)
	}
	f.Close()
	f, err = socket.TryLock(path)
	if err != nil {
		t.Fatalf("after it was let go: %v", err)
	}
	f.Close()
	link := filepath.Join(t.TempDir(), "daemon.lock")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.TryLock(link); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a symbolic link: got %v", err)
	}
}

// a launcher hands the lock to the daemon by its descriptor; it is held until the daemon ends.
func TestLockIsHandedOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.lock")
	f, err := socket.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command("cat")
	daemon.ExtraFiles = []*os.File{f}
	in, err := daemon.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	try := func() int {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "SUBLET_TEST_TRY_LOCK="+path)
		c.Run()
		return c.ProcessState.ExitCode()
	}
	if got := try(); got != 7 {
		t.Errorf("while the daemon runs: exit status %d, want 7 (locked)", got)
	}
	in.Close()
	daemon.Wait()
	if got := try(); got != 0 {
		t.Errorf("after the daemon: exit status %d, want 0", got)
	}
}

func TestSuite(t *testing.T) {
	wiretest.Run(t, func(t *testing.T) (io.ReadWriteCloser, io.ReadWriteCloser) {
		path := socketPath(t)
		l, err := socket.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c, err := socket.Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c, s
	})
}

// a daemon in the folder of another environment is found; a socket that nobody serves is none.
func TestElsewhere(t *testing.T) {
	dir, err := os.MkdirTemp("", "else") // t.TempDir may be too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	getenv := func(name string) string {
		return map[string]string{"XDG_RUNTIME_DIR": dir, "HOME": dir, "SUBLET_RUNTIME_DIR": dir + "/own"}[name]
	}
	const nobody = 1 << 30 // no such user: /run/user and /tmp hold nothing of theirs
	p, err := socket.FindPaths(getenv, nobody)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "sublet", "daemon.sock")
	if err := os.Mkdir(filepath.Dir(other), 0o700); err != nil {
		t.Fatal(err)
	}
	ln, err := socket.Listen(other)
	if err != nil {
		t.Fatal(err)
	}
	if got := socket.Elsewhere(t.Context(), p, getenv, nobody); !slices.Equal(got, []string{other}) {
		t.Errorf("got %q, want %q", got, other)
	}
	p.Runtime, p.Socket = filepath.Dir(other), other
	if got := socket.Elsewhere(t.Context(), p, getenv, nobody); len(got) != 0 {
		t.Errorf("its own: got %q", got)
	}
	p.Runtime, p.Socket = dir+"/own", dir+"/own/daemon.sock"
	ln.Close()
	if got := socket.Elsewhere(t.Context(), p, getenv, nobody); len(got) != 0 {
		t.Errorf("nobody listens: got %q", got)
	}
}
