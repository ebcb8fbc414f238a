package e2e

import (
	"encoding/xml"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sublet/wire/citest"

	"sublet/wire/socket"
)

// A service manager listens and starts the daemon with its socket as descriptor 3 (sd_listen_fds): the first client
// waits in the socket's queue, `daemon stop` leaves the socket, and the next daemon takes it up again.
func TestSocketActivation(t *testing.T) {
	w := newWorld(t, "", nil, "[daemon]", `idle_exit = "1ms"`)
	ln, err := socket.Listen(w.path("run/daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(w.path("run/daemon.sock")) // the manager's to do
	defer ln.Close()
	for range 2 {
		daemon := w.activate(ln, "--stay")
		out, errs, status := w.sublet("daemon", "status", "--json")
		if status != 0 || !strings.Contains(out, `"state":"idle"`) {
			t.Fatalf("status: exit %d, %s%s", status, out, errs)
		}
		if _, err := socket.TryLock(w.path("run/daemon.lock")); err == nil {
			t.Error("the daemon holds no lock")
		}
		if w.daemonPID() != daemon.Process.Pid { // it was not idle for a moment only, and is still there
			t.Errorf("got daemon %d, want %d", w.daemonPID(), daemon.Process.Pid)
		}
		if _, errs, status := w.sublet("daemon", "stop"); status != 0 {
			t.Fatalf("stop: exit %d, %s", status, errs)
		}
		if err := daemon.Wait(); err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
		if _, err := os.Lstat(w.path("run/daemon.sock")); err != nil {
			t.Errorf("the manager's socket: %v", err)
		}
	}

	// A socket where no client looks is refused, with what mends it.
	other, err := socket.Listen(w.path("other.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	cmd := w.activation(other)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "clients look for "+w.path("run/daemon.sock")) || !strings.Contains(string(out), "hint: set ListenStream") {
		t.Errorf("another socket: %v, %s", err, out)
	}
}

// activation is the daemon's command as a service manager runs it.
func (w *world) activation(ln net.Listener, args ...string) *exec.Cmd {
	w.t.Helper()
	file, err := ln.(*net.UnixListener).File()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { file.Close() })
	run := []string{"-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" daemon run "$@"`, binary}
	cmd := exec.CommandContext(w.t.Context(), "/bin/sh", append(run, args...)...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = w.env, "/", []*os.File{file}
	return cmd
}

func (w *world) activate(ln net.Listener, args ...string) *exec.Cmd {
	w.t.Helper()
	cmd := w.activation(ln, args...)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd
}

// systemd finds one of its programs.
func systemd(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		citest.Skip(t, name, "is needed for the tests of the service: apt-get install systemd")
	}
	return path
}

// The same by systemd's own program, where it is installed; it starts the daemon when the first client connects.
func TestSystemdSocketActivate(t *testing.T) {
	path := systemd(t, "systemd-socket-activate")
	w := newWorld(t, "", nil)
	cmd := exec.CommandContext(t.Context(), path, append(setenv(w.env), "--listen", w.path("run/daemon.sock"), binary, "daemon", "run", "--stay")...)
	cmd.Env, cmd.Dir = w.env, "/"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.await("systemd to listen", func() bool { _, err := os.Lstat(w.path("run/daemon.sock")); return err == nil })
	if pid := w.daemonPID(); pid != cmd.Process.Pid { // it execs what it starts
		t.Errorf("got daemon %d, want %d", pid, cmd.Process.Pid)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
	if err := os.Remove(w.path("run/daemon.sock")); err != nil {
		t.Errorf("the socket was systemd's to remove: %v", err)
	}
}

// setenv passes the environment on: systemd-socket-activate keeps only what it is told to.
func setenv(env []string) (flags []string) {
	for _, kv := range env {
		flags = append(flags, "--setenv="+kv)
	}
	return flags
}

// The units name the folder that the program looks in, and systemd has nothing against them.
func TestUnits(t *testing.T) {
	path := systemd(t, "systemd-analyze")
	dir := t.TempDir()
	for _, name := range []string{"sublet.service", "sublet.socket"} {
		text, err := os.ReadFile("../../sublet/service/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name, []byte(strings.ReplaceAll(string(text), "@BIN@", binary)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), path, "--user", "verify", dir+"/sublet.service", dir+"/sublet.socket")
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "HOME="+dir, "SYSTEMD_LOG_LEVEL=warning")
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// launchd is on no machine here: the property list is held to being one, and to starting the daemon as the unit does.
func TestPropertyList(t *testing.T) {
	file, err := os.Open("../../sublet/service/sublet.daemon.plist")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list struct {
		XMLName xml.Name `xml:"plist"`
		Keys    []string `xml:"dict>key"`
		Strings []string `xml:"dict>string"`
		Args    []string `xml:"dict>array>string"`
	}
	if err := xml.NewDecoder(file).Decode(&list); err != nil {
		t.Fatal(err)
	}
	unit, err := os.ReadFile("../../sublet/service/sublet.service")
	if err != nil {
		t.Fatal(err)
	}
	if want := "ExecStart=" + strings.Join(list.Args, " ") + "\n"; !strings.Contains(string(unit), want) {
		t.Errorf("the unit does not say %q", want)
	}
	for _, key := range []string{"Label", "ProgramArguments", "RunAtLoad", "KeepAlive", "ExitTimeOut"} {
		if !slices.Contains(list.Keys, key) {
			t.Errorf("no %s among %q", key, list.Keys)
		}
	}
	if !slices.Contains(list.Strings, "sublet.daemon") { // what install-service and uninstall call it
		t.Errorf("label: %q", list.Strings)
	}
}
