package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/lease/confine/confinetest"
	"sublet/wire"
	"sublet/wire/socket"
)

// A daemon whose socket, lock or folder was removed ends in order, notifies whoever is attached, and leaves alone what is another's. It
// used to live on until it was idle, found by nobody, while its lock kept clients from starting another.
func TestRemovedUnderADaemon(t *testing.T) {
	for name, test := range map[string]struct {
		remove func(t *testing.T, p socket.Paths) error
		want   string
	}{
		"socket": {func(_ *testing.T, p socket.Paths) error { return os.Remove(p.Socket) }, "its socket was removed"},
		"lock":   {func(_ *testing.T, p socket.Paths) error { return os.Remove(p.Lock) }, "its lock was removed"},
		"folder": {func(_ *testing.T, p socket.Paths) error { return os.RemoveAll(p.Runtime) }, "its socket was removed"},
		"folder, taken by another": {func(t *testing.T, p socket.Paths) error {
			err := os.Rename(p.Runtime, p.Runtime+".old")
			lock, ln := listening(t, p)
			t.Cleanup(func() {
				ln.Close()
				lock.Close()
				if _, err := os.Lstat(p.Socket); err != nil {
					t.Errorf("the other daemon's socket is gone: %v", err)
				}
			})
			return err
		}, "its socket was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			p := home(t, "")
			_, ended := run(t, Options{Paths: p})
			c := client(t, p)
			if err := test.remove(t, p); err != nil {
				t.Fatal(err)
			}
			if n := receive(t, c, func(*wire.Notice) bool { return true }); !strings.Contains(n.Text, test.want) {
				t.Errorf("notice: %q, want %q", n.Text, test.want)
			}
			if err := over(t, ended); err != nil {
				t.Error(err)
			}
		})
	}
}

// Two daemons of different runtime folders on one store end each other's turns: the second does not start, and says
// where the first is.
func TestOneDaemonForAStore(t *testing.T) {
	p := home(t, "")
	stop, ended := run(t, Options{Paths: p})
	client(t, p)
	other := p
	other.Runtime = p.Runtime + "2"
	other.Socket, other.Lock = filepath.Join(other.Runtime, "daemon.sock"), filepath.Join(other.Runtime, "daemon.lock")
	err := Run(t.Context(), Options{Paths: other})
	used, ok := errors.AsType[*StoreInUseError](err)
	if !ok || used.State != p.State || used.Socket != p.Socket || !strings.Contains(used.Error(), "pid "+used.PID) {
		t.Fatalf("got %v, want that %s is used by a daemon on %s", err, p.State, p.Socket)
	}
	if want := "SUBLET_RUNTIME_DIR=" + p.Runtime + " for all"; !strings.Contains(used.Hint(), want) {
		t.Errorf("hint %q, want %q", used.Hint(), want)
	}
	if _, err := os.Lstat(other.Socket); err == nil {
		t.Error("the refused daemon left its socket")
	}
	elsewhere := StoreInUseError{State: p.State, PID: "7", Socket: other.Socket} // on a machine that shares the folder
	if want := "set SUBLET_STATE_DIR to a folder of this machine"; !strings.Contains(elsewhere.Hint(), want) {
		t.Errorf("hint %q, want %q", elsewhere.Hint(), want)
	}
	stop()
	if err := over(t, ended); err != nil {
		t.Error(err)
	}
	stop, ended = run(t, Options{Paths: other}) // the lock is let go of with its daemon
	client(t, other)
	stop()
	if err := over(t, ended); err != nil {
		t.Error(err)
	}
}

// Settings are read again however an editor, or whoever manages them, saves them.
func TestWaysOfSaving(t *testing.T) {
	confinetest.Beside(t) // auto is offered only with it
	p := home(t, "")
	dir := filepath.Dir(p.Config)
	dots := filepath.Join(dir, "dots")
	for _, at := range []string{dots, filepath.Join(dots, "1"), filepath.Join(dots, "2")} {
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	put := func(path, mode string) error {
		return os.WriteFile(path, []byte("[policy]\nmode = \""+mode+"\"\n"), 0o600)
	}
	link := func(to, at string) error { // as ln -sfn: the new link is renamed over the old one
		return errors.Join(os.Symlink(to, at+".new"), os.Rename(at+".new", at))
	}
	must(put(filepath.Join(dots, "1", "c"), "auto"), put(filepath.Join(dots, "2", "c"), "plan"))
	stop, ended := run(t, Options{Paths: p})
	c := client(t, p)
	for _, step := range []struct {
		how  string
		save func()
		mode string
	}{
		{"made", func() { must(put(p.Config, "plan")) }, "plan"},
		{"truncated and written", func() { must(os.Truncate(p.Config, 0), put(p.Config, "auto")) }, "auto"},
		{"renamed over", func() { must(put(p.Config+"~", "plan"), os.Rename(p.Config+"~", p.Config)) }, "plan"},
		{"moved away and made anew (vim)", func() { must(os.Rename(p.Config, p.Config+"~"), put(p.Config, "auto")) }, "auto"},
		{"removed", func() { must(os.Remove(p.Config)) }, "ask"},
		{"a link put there", func() { must(link("dots/now/c", p.Config), link("1", filepath.Join(dots, "now"))) }, "auto"},
		{"the link's target written", func() { must(put(filepath.Join(dots, "1", "c"), "plan")) }, "plan"},
		{"the link's target replaced", func() {
			must(put(filepath.Join(dots, "1", "x"), "auto"), os.Rename(filepath.Join(dots, "1", "x"), filepath.Join(dots, "1", "c")))
		}, "auto"},
		{"the link swapped", func() { must(link("dots/2/c", p.Config)) }, "plan"},
		{"the new target written", func() { must(put(filepath.Join(dots, "2", "c"), "auto")) }, "auto"},
		{"the link replaced by a file", func() { must(put(p.Config+"~", "plan"), os.Rename(p.Config+"~", p.Config)) }, "plan"},
	} {
		step.save()
		n := receive(t, c, func(*wire.Notice) bool { return true })
		if n.Level != "info" {
			t.Errorf("%s: %q", step.how, n.Text)
		}
		id := wire.RequestID(wire.NewID())
		if err := c.Send(&wire.PolicyRequest{RequestID: id, Op: "get"}); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, c, func(m *wire.PolicyReply) bool { return m.RequestID == id }).Mode; got != step.mode {
			t.Errorf("%s: mode %s, want %s", step.how, got, step.mode)
		}
	}
	stop()
	if err := over(t, ended); err != nil {
		t.Error(err)
	}
}

// What a killed daemon left in its folder goes when the next one starts.
func TestLeftOfAKilledDaemonIsSwept(t *testing.T) {
	p := home(t, "")
	for _, name := range []string{"sh-1", "child-2", "client-3"} { // the last one is a window's
		if err := os.MkdirAll(filepath.Join(p.Runtime, name, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(p.Runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	stop, ended := run(t, Options{Paths: p})
	client(t, p)
	stop()
	if err := over(t, ended); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(p.Runtime, "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[0]) != "client-3" { // and the lock's file
		t.Errorf("left: %v, %v", left, err)
	}
}
