package reach

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"sublet/daemon/internal/child"
	"sublet/daemon/internal/mcp"
	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
)

// A held MCP server plants nothing that the user's git runs: neither in the repository that it is started in, nor in a folder of
// its setting write that is a repository.
func TestServerPlantsNoHook(t *testing.T) {
	launcher := confinetest.Need(t)
	home, err := os.MkdirTemp("/var/tmp", "sublet-test") // below /tmp all is temporary for what is held
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("HOME", home)
	project := filepath.Join(home, "project")
	if err := errors.Join(os.MkdirAll(filepath.Join(project, ".git/hooks"), 0o755), os.Mkdir(filepath.Join(home, "notes"), 0o755)); err != nil {
		t.Fatal(err)
	}
	const plant = `touch .git/hooks/post-commit .git/config .git/HEAD .envrc; mv .git git; touch ~/.gitconfig ~/notes/note; echo done`
	for _, says := range []string{"free", confine.Project, confine.Read} {
		can := Confiner{Launcher: launcher, Support: confine.Probe(launcher)}
		l, to, err := Hold(can, mcp.Spec{Command: "bash", Reach: says, Write: []string{"~/notes", "~/project"}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := child.Start(child.Spec{
			Name: "planter", Path: "/bin/bash", Args: []string{"-c", plant}, Env: os.Environ(), Dir: project,
			Launcher: l, Reach: to, Folder: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(p.Stdout)
		p.End()
		if err != nil || !bytes.Equal(out, []byte("done\n")) {
			t.Fatalf("%s: got %q, %v", says, out, err)
		}
		var planted []string
		for _, name := range []string{"project/git/hooks/post-commit", "project/.git/hooks/post-commit", "project/.git/config", "project/.git/HEAD", "project/.envrc", ".gitconfig"} {
			at := filepath.Join(home, name)
			if _, err := os.Lstat(at); err == nil {
				planted = append(planted, name)
			}
		}
		if (len(planted) > 0) != (says == "free") {
			t.Errorf("reach %s: planted %q", says, planted)
		}
		if _, err := os.Stat(filepath.Join(home, "notes/note")); (err == nil) != (says != confine.Read) {
			t.Errorf("reach %s: its folder of the settings: %v", says, err)
		}
		if err := errors.Join(os.RemoveAll(filepath.Join(home, "notes/note")), os.RemoveAll(project), os.RemoveAll(filepath.Join(home, ".gitconfig")), os.MkdirAll(filepath.Join(project, ".git/hooks"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
}
