package tool

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func git(t *testing.T, dir string, arg ...string) {
	t.Helper()
	cmd := exec.Command("git", arg...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", arg, err, out)
	}
}

// Matching one name against a pattern of many alternatives did not end, and nothing could stop it.
func TestPatternsWithTooManyAlternativesAreRefused(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, strings.Repeat("a", 30), "x\n")
	many := strings.Repeat("{a,?,*}", 20) + "b"
	_, err := do(t, Glob(), env, m{"pattern": many})
	wantErr(t, err, "pattern: more alternatives than 4 times {}")
	_, err = do(t, Grep(), env, m{"pattern": "x", "include": many})
	wantErr(t, err, "include: more alternatives than 4 times {}")
}

// A path with brackets, as frameworks for web pages have them, names itself too.
func TestGlobOfAPathWithBrackets(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, "app/[id]/page.tsx", "")
	if r := mustDo(t, Glob(), env, m{"pattern": "app/[id]/page.tsx"}); r.Content != "app/[id]/page.tsx" {
		t.Errorf("got %q", r.Content)
	}
}

func TestGlobSeesWhatGitSees(t *testing.T) {
	env := newEnv(t)
	git(t, env.Cwd, "init", "-q")
	put(t, env.Cwd, ".gitignore", "*.log\nbuild/\n")
	put(t, env.Cwd, "a.go", "")
	put(t, env.Cwd, "sub/b.go", "")
	put(t, env.Cwd, "sub/c d.go", "")
	put(t, env.Cwd, "x.log", "")
	put(t, env.Cwd, "build/out.go", "")
	put(t, env.Cwd, ".github/w.yml", "")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(env.Cwd, "a.go"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(env.Cwd, "link.go")); err != nil {
		t.Fatal(err)
	}
	r := mustDo(t, Glob(), env, m{"pattern": "*.go"})
	lines := strings.Split(r.Content, "\n")
	if len(lines) != 3 || lines[2] != "a.go" {
		t.Errorf("got %q, want three files, the oldest last, no ignored one and no link", r.Content)
	}
	if r := mustDo(t, Glob(), env, m{"pattern": "**/*.yml"}); r.Content != ".github/w.yml" {
		t.Errorf("got %q", r.Content)
	}
	if r := mustDo(t, Glob(), env, m{"pattern": "b.go", "path": "sub"}); r.Content != "sub/b.go" {
		t.Errorf("got %q", r.Content)
	}
	if r := mustDo(t, Glob(), env, m{"pattern": env.Cwd + "/sub/*.go"}); !strings.Contains(r.Content, "sub/c d.go") {
		t.Errorf("got %q", r.Content)
	}
	if r := mustDo(t, Glob(), env, m{"pattern": "*.log"}); !strings.Contains(r.Content, "no file matches") {
		t.Errorf("got %q", r.Content)
	}
	_, err := do(t, Glob(), env, m{"pattern": "[a"})
	wantErr(t, err, "not a valid glob")
}

// Git lists a repository inside of another as one entry, whether it is a submodule, a clone beside the files, or empty.
func TestFilesOfARepositoryInside(t *testing.T) {
	env := newEnv(t)
	git(t, env.Cwd, "init", "-q")
	put(t, env.Cwd, "a.go", "alpha\n")
	put(t, env.Cwd, ".gitignore", "ignored/\n")
	for _, name := range []string{"sub/module", "clone", "empty", "ignored"} {
		dir := filepath.Join(env.Cwd, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "init", "-q")
		if name == "empty" {
			continue
		}
		put(t, dir, "b.go", "alpha\n")
		put(t, dir, ".gitignore", "*.log\n")
		put(t, dir, "b.log", "alpha\n")
		git(t, dir, "add", ".")
		git(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
	}
	git(t, env.Cwd, "-c", "advice.addEmbeddedRepo=false", "add", "sub/module")
	if r := mustDo(t, Grep(), env, m{"pattern": "alpha", "mode": "files"}); r.Content != "a.go\nclone/b.go\nsub/module/b.go" {
		t.Errorf("got %q", r.Content)
	}
	if r := mustDo(t, Glob(), env, m{"pattern": "b.*"}); len(strings.Fields(r.Content)) != 2 {
		t.Errorf("got %q, want the two that no git ignores", r.Content)
	}
}

// a repository's own configuration runs nothing when its files are listed.
func TestListingFilesRunsNothingOfTheRepository(t *testing.T) {
	env := newEnv(t)
	git(t, env.Cwd, "init", "-q")
	put(t, env.Cwd, "a.go", "x")
	proof := filepath.Join(env.Cwd, "proof")
	hook := put(t, env.Cwd, "hook.sh", "#!/bin/sh\ntouch '"+proof+"'\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, env.Cwd, "config", "core.fsmonitor", hook)
	mustDo(t, Glob(), env, m{"pattern": "*.go"})
	if _, err := os.Stat(proof); !os.IsNotExist(err) {
		t.Errorf("got %v, want the repository's program not run", err)
	}
}
