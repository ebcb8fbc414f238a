package confine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What a launcher says is what is missing, and what holds where it ends well; one that cannot be run is missing too.
func TestProbe(t *testing.T) {
	for script, want := range map[string]Support{
		"echo 'user namespaces, Landlock 7, seccomp'": {How: "user namespaces, Landlock 7, seccomp"},
		"echo 'sublet-confine: the command was not run: it needs Linux 6.12' >&2; echo 'sublet-confine: the command was not run: no Landlock' >&2; exit 126": {Missing: "no Landlock"},
		"exit 3":     {Missing: "exit status 3"},
		"kill -9 $$": {Missing: "signal: killed"},
	} {
		path := filepath.Join(t.TempDir(), Program)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		got := Probe(path)
		if got != want {
			t.Errorf("%s: got %+v, want %+v", script, got, want)
		}
	}
	if got := Probe(filepath.Join(t.TempDir(), "none")); got.Missing == "" || got.Holds() {
		t.Errorf("no launcher: got %+v", got)
	}
}

// A launcher that does not end delayed the start of the daemon for as long as that took.
func TestProbeIsBounded(t *testing.T) {
	path, begun := filepath.Join(t.TempDir(), Program), filepath.Join(t.TempDir(), "begun")
	if err := errors.Join(syscall.Mkfifo(begun, 0o600), os.WriteFile(path, []byte("#!/bin/sh\necho >"+begun+"\nexec sleep 1000\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		_, err := os.ReadFile(begun) // returns once the launcher has begun
		cancel(errors.Join(errors.New("too long"), err))
	}()
	if got := probe(ctx, path); got.Missing != "too long" {
		t.Errorf("got %+v", got)
	}
}
