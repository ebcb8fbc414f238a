package secretname

import (
	"os"
	"strings"
	"testing"
)

func TestIsSecret(t *testing.T) {
	text, err := os.ReadFile("testdata/names.txt")
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
		if got, want := IsSecret(name), kind == "secret"; got != want {
			t.Errorf("%s: got secret %v, want %v", name, got, want)
		}
	}
	if names < 60 {
		t.Errorf("got %d names, want at least 60", names)
	}
	for _, long := range []string{strings.Repeat("A_", 16) + "PASSWORD", strings.Repeat("LONG", 32) + "_PASSWORD"} {
		if !IsSecret(long) {
			t.Errorf("%s is not secret", long)
		}
	}
	if IsSecret("") || IsSecret(strings.Repeat("_", 1000)) {
		t.Error("a name of nothing looks secret")
	}
}
