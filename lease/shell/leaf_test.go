package shell

import (
	"os/exec"
	"strings"
	"testing"
)

// The package is a leaf: it imports nothing of ours.
func TestImportsNothingOfOurs(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		if strings.HasPrefix(p, "sublet/") && p != "sublet/lease/shell" {
			t.Errorf("imports %s", p)
		}
	}
}
