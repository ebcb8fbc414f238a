package worktree

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestStatus(t *testing.T) {
	root := repository(t)
	check := func(when, want string) {
		t.Helper()
		got, err := StatusOf(t.Context(), root)
		if err != nil || got.String() != want {
			t.Errorf("%s: got %q, %v, want %q", when, got, err, want)
		}
	}
	check("after the first commit", "branch main, 1 untracked, no upstream")
	write(t, filepath.Join(root, ".gitignore"), "*.log\n")
	write(t, filepath.Join(root, "x.log"), "ignored\n")
	write(t, filepath.Join(root, "main.go"), "package other\n")
	check("a file was changed, one added", "branch main, 1 changed, 2 untracked, no upstream")
	git(t, root, "add", "main.go", ".gitignore")
	check("they were staged", "branch main, 2 changed, 1 untracked, no upstream")
	git(t, root, "commit", "-qm", "second")
	if err := os.Remove(filepath.Join(root, "loose.txt")); err != nil {
		t.Fatal(err)
	}
	check("they were committed", "branch main, clean, no upstream")
	git(t, root, "branch", "base", "HEAD~1")
	git(t, root, "branch", "-q", "--set-upstream-to", "base")
	check("a branch to push to", "branch main, clean, 1 not pushed")
	git(t, root, "checkout", "-q", "--detach")
	check("no branch", "no branch (detached), clean, no upstream")
	if _, err := StatusOf(t.Context(), t.TempDir()); err == nil {
		t.Error("a folder without a repository has a status")
	}
}

// A new repository was said to have no state before its first file was added, and to be clean before its first commit.
func TestStatusBeforeTheFirstCommit(t *testing.T) {
	root := t.TempDir()
	git(t, root, "init", "-q", "-b", "main")
	for _, want := range []string{"branch main, 1 untracked, no upstream", "branch main, 1 changed, no upstream"} {
		write(t, filepath.Join(root, "a.txt"), "a\n")
		if got, err := StatusOf(t.Context(), root); err != nil || got.String() != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		git(t, root, "add", "a.txt")
	}
}

// A tree whose index cannot be listed has no status, although git answers the rest.
func TestStatusWithoutIndex(t *testing.T) {
	root := repository(t)
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "#!/bin/sh\ncase \"$*\" in *--debug*) exit 1; esac\nexec " + program + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if s, err := StatusOf(t.Context(), root); err == nil {
		t.Errorf("got %q", s)
	}
}

// What a repository's own settings would run on a look at it is not run.
func TestStatusRunsNothing(t *testing.T) {
	root := repository(t)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, s := range [][2]string{
		{"core.fsmonitor", "touch " + ran}, {"filter.x.clean", "touch " + ran}, {"diff.external", "touch " + ran}, {"core.pager", "touch " + ran},
	} {
		git(t, root, "config", s[0], s[1])
	}
	write(t, filepath.Join(root, ".gitattributes"), "* filter=x diff=x\n")
	write(t, filepath.Join(root, "main.go"), "package maim\n") // as long as it was
	if s, err := StatusOf(t.Context(), root); err != nil || s.Changed != 1 {
		t.Errorf("got %+v, %v, want one changed file", s, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the repository's settings was run")
	}
	git(t, root, "status", "--porcelain")
	if _, err := os.Stat(ran); err != nil {
		t.Error("git status does not run it either: the test shows nothing")
	}
}

// A git that is too slow for its last answer is not an upstream that is missing.
func TestStatusOfASlowGit(t *testing.T) {
	root := repository(t)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := "#!/bin/sh\ncase \" $* \" in *' rev-list '*) exec sleep 60;; esac\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if got, err := StatusOf(ctx, root); err == nil {
		t.Errorf("got %q", got)
	}
}
