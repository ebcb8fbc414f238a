package lender

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The client's rule and the daemon's agree on which names are secret.
func TestSecretNames(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "wire", "testdata", "secret-names.txt"))
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for line := range strings.Lines(string(text)) {
		kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "#", "":
			continue
		case "secret", "plain":
		default:
			t.Fatalf("what is %q?", line)
		}
		names++
		if got, want := Secret(name, "x"), kind == "secret"; got != want {
			t.Errorf("%s: got secret %v, want %v", name, got, want)
		}
	}
	if names < 60 {
		t.Errorf("got %d names, want at least 60", names)
	}
}
