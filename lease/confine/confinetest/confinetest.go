// Package confinetest builds the launcher of confined commands for tests.
package confinetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"sublet/wire/citest"

	"sublet/lease/confine"
)

// Build puts the launcher into dir, and returns its path.
func Build(dir string) (string, error) {
	path := filepath.Join(dir, confine.Program)
	cmd := exec.Command("go", "build", "-o", path, "sublet/cmd/sublet-confine")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the launcher: %w: %s", err, out)
	}
	return path, nil
}

// Need returns the path of a launcher, and skips the test where it can confine nothing; in CI the test fails there.
func Need(t *testing.T) string {
	t.Helper()
	return need(t, t.TempDir())
}

var beside struct {
	sync.Mutex
	path string // of the launcher that was built, "" = none was yet
}

// Beside is Need with the launcher beside the test binary, where confine.Find looks for it. It is built once, unless a test removes it.
func Beside(t *testing.T) string {
	t.Helper()
	beside.Lock()
	defer beside.Unlock()
	if _, err := os.Stat(beside.path); err == nil {
		return beside.path
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	beside.path = need(t, filepath.Dir(exe))
	return beside.path
}

func need(t *testing.T, dir string) string {
	t.Helper()
	path, err := Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s := confine.Probe(path); s.Missing != "" {
		citest.Skip(t, s.Missing)
	}
	return path
}
