package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
)

// Each of these has its effect in a command that nothing holds, and none in one that is held.
func TestWhatAHeldCommandCannotDo(t *testing.T) {
	launcher := confinetest.Need(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := filepath.Join(t.TempDir(), "spec")
	if err := os.WriteFile(spec, confine.Spec{Reach: confine.Read}.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"read what the shell had open":           "read -u 3 line && [ \"$line\" = x ]",
		"change the priority of a process group": "renice -n 19 -g 0",
		"send datagrams from a pair of sockets":  "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) or exit 1'",
		"open a raw pair of sockets":             "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_RAW, 0) or exit 1'",
	} {
		t.Run(what, func(t *testing.T) {
			run := func(argv ...string) error {
				f, err := os.Open(secret)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.ExtraFiles, cmd.SysProcAttr = []*os.File{f}, &syscall.SysProcAttr{Setpgid: true}
				return cmd.Run()
			}
			if err := run("bash", "-c", text); err != nil {
				t.Fatalf("it has no effect unheld: %v", err)
			}
			if err := run(launcher, spec, "bash", "-c", text); err == nil {
				t.Error("it has its effect")
			}
			if err := run(launcher, spec, "bash", "-c", "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or exit 1' && nice -n 1 true"); err != nil {
				t.Errorf("what is harmless fails: %v", err)
			}
		})
	}
}

// The hard limit of processes is bounded too, even if the soft one is lower already.
func TestProcessLimit(t *testing.T) {
	launcher := confinetest.Need(t)
	spec := filepath.Join(t.TempDir(), "spec")
	if err := os.WriteFile(spec, confine.Spec{Reach: confine.Read}.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", `ulimit -Su 1000 && exec "$@"`, "bash", launcher, spec, "bash", "-c", "ulimit -Su; ulimit -Hu")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.Output()
	var soft, hard int
	if _, scan := fmt.Sscan(string(out), &soft, &hard); err != nil || scan != nil || soft != 1000 || hard > maxProcesses {
		t.Errorf("got %q, %v", out, err)
	}
}
