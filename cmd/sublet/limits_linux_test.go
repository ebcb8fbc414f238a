//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Under limits that the Go runtime cannot start with, the program as `make build` makes it says which limit is too low. It used
// to print a stack trace.
func TestLimits(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "sublet-limits-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // another user runs it below
		t.Fatal(err)
	}
	program := filepath.Join(dir, "sublet")
	if out, err := exec.Command("make", "-C", "../..", "build", "OUT="+program).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	run := func(limit string) (stdout, stderr string, status int) {
		t.Helper()
		cmd := exec.Command("bash", "-c", "ulimit "+limit+" && exec "+program+" version")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
		if os.Geteuid() == 0 { // whose processes are not counted
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // the status tells
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	for limit, want := range map[string]string{
		"-u 4": "(ulimit -u)", "-u 8": "(ulimit -u)", "-u 16": "(ulimit -u)", "-v 409600": "(ulimit -v)", "-v 1000000": "(ulimit -v)",
	} {
		out, errs, status := run(limit)
		if status != 1 || out != "" || !strings.HasPrefix(errs, "sublet: error: this shell limits ") || !strings.Contains(errs, want) ||
			strings.Count(errs, "\n") != 2 {
			t.Errorf("ulimit %s: exit %d, %q, %q", limit, status, out, errs)
		}
	}
	for _, limit := range []string{"-v 1100000", "-n 256"} {
		if out, errs, status := run(limit); status != 0 || !strings.HasPrefix(out, "sublet ") {
			t.Errorf("ulimit %s: exit %d, %q, %q", limit, status, out, errs)
		}
	}
}
