package reach

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
)

// What looks at a changed file reads, and writes nowhere that is kept; it ends with its time, and so does what it started.
func TestCheckersAreHeld(t *testing.T) {
	launcher := confinetest.Need(t)
	dir, err := os.MkdirTemp("/var/tmp", "sublet-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	checker := Checker{
		Confiner: Confiner{Launcher: launcher, Support: confine.Probe(launcher)}, Env: os.Environ(), Home: Home(), Runtime: t.TempDir(),
		Spec: func(dir string) confine.Spec { return Confinement(config.Default().Policy, "", confine.Read, dir) },
	}
	held := checker.Run
	out, err := held(t.Context(), dir, []string{"bash", "-c", "cat; touch made; echo $GOTOOLCHAIN; exit 3"}, []byte("text\n"))
	if err == nil || !strings.HasPrefix(string(out), "text\ntouch: ") || !strings.HasSuffix(string(out), "\nlocal\n") {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); !os.IsNotExist(err) {
		t.Errorf("got %v, want nothing written", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := held(ctx, dir, []string{"bash", "-c", "sleep 1000 & wait"}, nil); err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
	if _, err := held(t.Context(), dir, []string{"no-such-checker"}, nil); err == nil {
		t.Error("got no error for a program that is not there")
	}
	if left, err := os.ReadDir(checker.Runtime); err != nil || len(left) != 0 {
		t.Errorf("got %v left behind, %v", left, err)
	}
	// The tool, with all of it: Go's own checker finds its cache.
	env := tool.Env{Cwd: dir, Held: held, CheckTime: time.Minute, Files: &tool.FileLog{}}
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26\n", "bad.go": "package x\n\nvar A = missing\n"} {
		args := []byte(`{"path":"` + name + `","content":"` + strings.ReplaceAll(text, "\n", `\n`) + `"}`)
		action, err := tool.Write().Plan(t.Context(), env, args)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tool.Write().Run(t.Context(), env, args, action, nil); err != nil {
			t.Fatal(err)
		}
	}
	args := []byte(`{"path":"bad.go","content":"package x\n\nvar A = gone\n"}`)
	action, err := tool.Write().Plan(t.Context(), env, args)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.Write().Run(t.Context(), env, args, action, nil)
	if err != nil || !strings.HasSuffix(r.Content, "[go vet reports of bad.go:\nbad.go:3:9: undefined: gone]") {
		t.Errorf("got %q, %v", r.Content, err)
	}
}
