package daemon

import (
	"path/filepath"
	"testing"
	"time"

	"sublet/daemon/config"
)

// Where nothing can be started, each agent of the settings says why, under its name.
func TestCheckAgentsWithoutTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
	c := config.Config{Agents: map[string]config.Agent{"b": {Command: []string{"two"}}, "a": {Command: []string{"one"}}, "role": {Prompt: "x"}}}
	list := CheckAgents(t.Context(), c, "", "/", "", time.Minute)
	if len(list) != 2 {
		t.Fatalf("got %+v, want a and b", list)
	}
	for i, name := range []string{"a", "b"} {
		if one := list[i]; one.Name != name || !one.Configured || one.Err == nil || len(one.Command) != 1 {
			t.Errorf("got %+v, want %s with its command and an error", one, name)
		}
	}
}
