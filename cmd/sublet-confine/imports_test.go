package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImports keeps the launcher small: it is started for nearly every command, and each package costs time at its start.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for pkg := range strings.Lines(string(out)) {
		switch pkg = strings.TrimSpace(pkg); {
		case pkg == "sublet/lease/confine", pkg == "sublet/lease/procstat", pkg == "sublet/cmd/sublet-confine":
		case strings.HasPrefix(pkg, "sublet/"), pkg == "net/http", pkg == "encoding/json", pkg == "regexp", pkg == "log/slog", pkg == "crypto/tls":
			t.Errorf("imports %s", pkg)
		}
	}
}
