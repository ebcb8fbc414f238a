package shell

import (
	"os/exec"
	"strings"
	"testing"
)

// The package is a leaf but for what Linux tells of processes: it imports nothing else of ours.
func TestImportsNothingElseOfOurs(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		if strings.HasPrefix(p, "sublet/") && p != "sublet/lease/shell" && p != "sublet/lease/procstat" {
			t.Errorf("imports %s", p)
		}
	}
}
