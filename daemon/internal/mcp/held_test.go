package mcp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
)

// A held server reads no secret, writes where it may, has the network, and leaves no process; what it does here it can do free.
func TestHeldServer(t *testing.T) {
	launcher := confinetest.Need(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for reach, want := range map[string][]string{
		"free":          {"secret", "outside", "cache", "network"},
		confine.Project: {"cache", "network"},
		confine.Read:    {"network"},
	} {
		t.Run(reach, func(t *testing.T) {
			home, err := os.MkdirTemp("/var/tmp", "sublet-test") // no temporary folder to what is held
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(home) })
			in := func(name string) string { return filepath.Join(home, name) }
			if err := errors.Join(os.Mkdir(in(".cache"), 0o755), os.WriteFile(in("key"), []byte("secret\n"), 0o600), os.WriteFile(in("server"), self, 0o755)); err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			server := program("db", "plain")
			server.Command = in("server")
			w := newWorld(t, Options{Folder: folder, Hold: func(s Spec) (string, confine.Spec, error) {
				if reach == "free" {
					return "", confine.Spec{}, nil
				}
				return launcher, confine.Spec{Reach: reach, Network: true, Hidden: []string{in("key")}, Caches: []string{in(".cache")}}, nil
			}}, server)
			w.at.Home = home
			tools := w.up()
			text := fmt.Sprintf(`cat key; touch outside .cache/cache; exec 5<>/dev/tcp/127.0.0.1/%d && echo network; setsid sleep 1000 </dev/null >&0 2>&0 & echo pid $!`, listener.Addr().(*net.TCPAddr).Port)
			r, err := call(t.Context(), tools["mcp__db__sh"], fmt.Sprintf(`{"text":%q}`, text), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, word := range []string{"secret", "network"} {
				if slices.Contains(strings.Fields(r.Content), word) {
					got = append(got, word)
				}
			}
			for _, name := range []string{"outside", ".cache/cache"} {
				if _, err := os.Stat(in(name)); err == nil {
					got = append(got, filepath.Base(name))
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q; it said %s", got, want, r.Content)
			}
			var pid int
			if _, after, ok := strings.Cut(r.Content, "pid "); !ok {
				t.Fatalf("no process: %s", r.Content)
			} else if _, err := fmt.Sscan(after, &pid); err != nil {
				t.Fatal(err)
			}
			w.Close()
			alive := syscall.Kill(pid, 0) == nil
			if alive {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			if reach != "free" && alive {
				t.Error("a process that left the group outlives the server")
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("its folder is left: %v, %v", left, err)
			}
		})
	}
}
