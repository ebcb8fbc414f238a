package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is changed in a copy is not in the user's tree until it is merged: all of it or nothing, and nothing of the repository
// runs, also not where the copy names another repository.
func TestCopy(t *testing.T) {
	ctx, repo := t.Context(), repository(t)
	write(t, filepath.Join(repo, "a"), "one\n")
	git(t, repo, "add", "a")
	git(t, repo, "commit", "-qm", "a")
	c, err := Add(ctx, repo, "engineer-1")
	if err != nil {
		t.Fatal(err)
	}
	if out := asked(t, repo, "status", "--porcelain"); out != "?? loose.txt\n" {
		t.Errorf("the user's tree shows %q", out)
	}
	if _, err := c.Diff(ctx); !errors.Is(err, ErrUnchanged) {
		t.Errorf("got %v", err)
	}
	write(t, filepath.Join(c.Path, "a"), "two\n")
	write(t, filepath.Join(c.Path, "new"), "\x00binary")
	evil, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	git(t, evil, "init", "-q")
	git(t, evil, "config", "filter.x.clean", "touch "+ran)
	write(t, filepath.Join(c.Path, ".git"), "gitdir: "+filepath.Join(evil, ".git")+"\n")
	write(t, filepath.Join(c.Path, ".gitattributes"), "* filter=x\n")
	diff, err := c.Diff(ctx)
	if text := string(diff); err != nil || !strings.Contains(text, "-one\n+two\n") || !strings.Contains(text, "b/new") {
		t.Errorf("got %s, %v", diff, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a filter ran")
	}
	write(t, filepath.Join(repo, "a"), "three\n")
	if err := c.Merge(ctx); err == nil || !strings.Contains(err.Error(), "a") {
		t.Errorf("what does not fit: %v", err)
	}
	if _, err := os.Stat(filepath.Join(repo, "new")); err == nil {
		t.Error("half of it was merged")
	}
	write(t, filepath.Join(repo, "a"), "one\n")
	if err := c.Merge(ctx); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "two\n", "new": "\x00binary"} {
		if got, err := os.ReadFile(filepath.Join(repo, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	if out := asked(t, repo, "worktree", "list"); strings.Contains(out, "engineer-1") {
		t.Errorf("git still knows it: %s", out)
	}
}

// Git runs nothing that a repository inside of a copy names, be it in the place of a submodule or a new one.
func TestRepositoryInCopy(t *testing.T) {
	for _, place := range []string{"lib", "new"} {
		t.Run(place, func(t *testing.T) {
			ctx, repo, lib := t.Context(), repository(t), repository(t)
			head := strings.TrimSpace(asked(t, lib, "rev-parse", "HEAD"))
			git(t, repo, "update-index", "--add", "--cacheinfo", "160000,"+head+",lib")
			git(t, repo, "commit", "-qm", "submodule")
			c, err := Add(ctx, repo, "engineer-1")
			if err != nil {
				t.Fatal(err)
			}
			inner, ran := filepath.Join(c.Path, place), filepath.Join(t.TempDir(), "ran")
			if err := os.CopyFS(inner, os.DirFS(lib)); err != nil {
				t.Fatal(err)
			}
			if place == "new" {
				git(t, repo, "-C", c.Path, "add", "new") // as a submodule
			}
			git(t, inner, "config", "filter.x.clean", "touch "+ran)
			write(t, filepath.Join(inner, ".gitattributes"), "* filter=x\n")
			for range 2 {
				if _, err := c.Diff(ctx); err == nil || !strings.Contains(err.Error(), `"`+place) {
					t.Errorf("got %v", err)
				}
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("a filter ran")
			}
		})
	}
}

func TestNoCopy(t *testing.T) {
	ctx, repo := t.Context(), repository(t)
	if _, err := Add(ctx, t.TempDir(), "x"); err == nil {
		t.Error("of a folder without git")
	}
	git(t, repo, "commit", "-q", "--allow-empty", "-m", "first")
	git(t, repo, "config", "filter.x.smudge", "cat")
	if _, err := Add(ctx, repo, "x"); err == nil || !strings.Contains(err.Error(), "filters") {
		t.Errorf("with filters: %v", err)
	}
	git(t, repo, "config", "--remove-section", "filter.x")
}

// Add follows no link of the repository, and changes nothing beyond one.
func TestNoCopyThroughLinks(t *testing.T) {
	for _, link := range []string{".sublet", ".sublet/worktrees", ".sublet/worktrees/.gitignore"} {
		ctx, repo, elsewhere := t.Context(), repository(t), t.TempDir()
		target := elsewhere
		if filepath.Base(link) == ".gitignore" {
			target = filepath.Join(elsewhere, "keys")
			write(t, target, "mine\n")
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(repo, link)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(repo, link)); err != nil {
			t.Fatal(err)
		}
		if _, err := Add(ctx, repo, "x"); err == nil || !strings.Contains(err.Error(), link+" is not a ") {
			t.Errorf("%s: got %v", link, err)
		}
		if in, err := os.ReadDir(elsewhere); err != nil || target == elsewhere && len(in) > 0 {
			t.Errorf("%s: there is %v, %v", link, in, err)
		}
		if text, err := os.ReadFile(target); target != elsewhere && (err != nil || string(text) != "mine\n") {
			t.Errorf("%s: overwritten with %q, %v", link, text, err)
		}
	}
}

// Filters are found wherever git would take them from, and whenever it would run them.
func TestFiltersOfCopy(t *testing.T) {
	ctx, repo, ran := t.Context(), repository(t), filepath.Join(t.TempDir(), "ran")
	write(t, filepath.Join(repo, ".gitattributes"), "* filter=x\n")
	git(t, repo, "add", ".gitattributes")
	git(t, repo, "commit", "-qm", "attributes")
	more := filepath.Join(t.TempDir(), "more")
	write(t, more, "[filter \"x\"]\n\tsmudge = touch "+ran+"\n\tclean = touch "+ran+"\n")
	refused := func(when string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "filters") {
			t.Errorf("%s: got %v", when, err)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Errorf("%s: a filter ran", when)
		}
	}
	only := "includeIf.gitdir:**/worktrees/**"
	git(t, repo, "config", only+".path", more)
	c, err := Add(ctx, repo, "x")
	refused("for working trees only", err)
	if out := asked(t, repo, "worktree", "list"); strings.Contains(out, c.Path) {
		t.Errorf("the refused one is left: %s", out)
	}
	git(t, repo, "config", "--remove-section", only)
	late, cancel := context.WithCancel(ctx)
	cancel()
	if err := noFilters(late, repo); !errors.Is(err, context.Canceled) {
		t.Errorf("git was not asked: got %v", err)
	}
	if c, err = Add(ctx, repo, "x"); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.Path, "main.go"), "package other\n")
	git(t, repo, "config", only+".path", more)
	_, err = c.Diff(ctx)
	refused("later", err)
	git(t, repo, "config", "--remove-section", only)
	git(t, repo, "config", "includeIf.gitdir:"+repo+"/.git.path", more)
	refused("for the user's tree only", c.Merge(ctx))
}

func asked(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := run(t.Context(), dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
