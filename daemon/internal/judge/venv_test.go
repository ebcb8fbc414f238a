package judge

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sublet/wire/citest"

	"sublet/daemon/internal/risk"
)

// TestStandardVenv keeps a script from being sourced unasked that is not what Python wrote.
func TestStandardVenv(t *testing.T) {
	project := filepath.Join(t.TempDir(), "project")
	venv := filepath.Join(project, ".venv")
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		citest.Skip(t, "python3 -m venv:", err, string(out))
	}
	activate := filepath.Join(venv, "bin", "activate")
	others := t.TempDir()
	if err := os.WriteFile(filepath.Join(others, "pipx"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH") + ":" + others
	if !standardVenv(activate, project, path) || standardVenv(activate+".csh", project, path) {
		t.Error("the script for bash and zsh is not taken for the standard one, or another is")
	}
	if other := t.TempDir(); standardVenv(activate, other, path) {
		t.Error("a virtual environment outside of the project is taken for its own")
	}
	scripts := []risk.Script{{Path: activate, Text: venvState(activate), Venv: true}}
	spoil := func(what, file, text string) {
		t.Helper()
		was, err := os.ReadFile(file)
		existed := err == nil
		if err := os.WriteFile(file, append(was, text...), 0o755); err != nil {
			t.Fatal(err)
		}
		if standardVenv(activate, project, path) {
			t.Errorf("taken for a standard one: %s", what)
		}
		if Unchanged(scripts, nil) {
			t.Errorf("not noticed when the command is handed over: %s", what)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if existed {
			if err := os.WriteFile(file, was, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !standardVenv(activate, project, path) {
			t.Fatalf("not taken for a standard one after that was undone: %s", what)
		}
		if !Unchanged(scripts, nil) {
			t.Errorf("refused although that was undone: %s", what)
		}
	}
	spoil("one with a line more", activate, "echo more\n")
	spoil("one that hides ls", filepath.Join(venv, "bin", "ls"), "#!/bin/sh\n")
	spoil("one that hides pipx", filepath.Join(venv, "bin", "pipx"), "#!/bin/sh\n")
	own := filepath.Join(project, "lib", "python3.99", "venv", "scripts", "common")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "activate"), []byte("evil\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(activate, []byte("evil\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(project, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(venv, "pyvenv.cfg"), []byte("home = "+project+"/bin\nversion = 3.99.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if standardVenv(activate, project, path) {
		t.Error("taken for a standard one: one whose Python lies in the project")
	}
}
