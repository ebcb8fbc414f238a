package confine

import (
	"os"
	"path/filepath"
	"testing"
)

// What a launcher says is what is missing, and what holds where it ends well; one that cannot be run is missing too.
func TestProbe(t *testing.T) {
	for script, want := range map[string]Support{
		"echo 'user namespaces, Landlock 7, seccomp'":                                                    {Reaches: []string{Read, Project}, How: "user namespaces, Landlock 7, seccomp"},
		"echo 'sublet-confine: the command was not run: user namespaces are switched off' >&2; exit 126": {Missing: "sublet-confine: the command was not run: user namespaces are switched off"},
		"exit 3":     {Missing: "exit status 3"},
		"kill -9 $$": {Missing: "signal: killed"},
	} {
		path := filepath.Join(t.TempDir(), Program)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		got := Probe(path)
		if got.Missing != want.Missing || got.How != want.How || got.Holds(Read) != want.Holds(Read) || got.Holds(Project) != want.Holds(Project) {
			t.Errorf("%s: got %+v, want %+v", script, got, want)
		}
	}
	if got := Probe(filepath.Join(t.TempDir(), "none")); got.Missing == "" || got.Holds(Read) {
		t.Errorf("no launcher: got %+v", got)
	}
}
