package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// compiled makes a program of C in a folder. In CI there is a compiler: the race detector needs it, too.
func compiled(t *testing.T, dir, text string, flags ...string) (file string) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil && os.Getenv("CI") == "" {
		t.Skip("no C compiler: install gcc or clang")
	}
	file = filepath.Join(dir, "compiled")
	source := file + ".c"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", append(flags, "-o", file, source)...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return file
}
