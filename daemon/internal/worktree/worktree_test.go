package worktree

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// repository makes a real one, with a file, a folder and a commit.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git(t, root, "init", "-q", "-b", "main")
	write(t, filepath.Join(root, "main.go"), "package main\n")
	write(t, filepath.Join(root, "dir", "odd\nname.txt"), "x\n")
	write(t, filepath.Join(root, "loose.txt"), "never added\n")
	git(t, root, "add", "main.go", "dir")
	git(t, root, "commit", "-qm", "first")
	return root
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A file that git holds as it lies on disk is tracked; what changed, is new or lies elsewhere is not.
func TestTracked(t *testing.T) {
	root := repository(t)
	check := func(when, rel string, want bool) {
		t.Helper()
		if got := Tracked(t.Context(), root, filepath.Join(root, rel)); got != want {
			t.Errorf("%s: %q tracked: got %v, want %v", when, rel, got, want)
		}
	}
	check("committed", "main.go", true)
	check("committed", "dir/odd\nname.txt", true)
	check("never added", "loose.txt", false)
	check("a folder", "dir", false)
	check("not there", "gone.go", false)
	check("elsewhere", "../main.go", false)
	if Tracked(t.Context(), root+"x", filepath.Join(root, "main.go")) {
		t.Error("a file is tracked in a tree that does not hold it")
	}

	// Changed since: what git has is another text, so it could not be had back.
	write(t, filepath.Join(root, "main.go"), "package main // longer\n")
	check("changed", "main.go", false)
	git(t, root, "checkout", "main.go")
	git(t, root, "add", "loose.txt")
	check("put back", "main.go", true)
	check("added", "loose.txt", true)
	git(t, root, "rm", "-q", "--cached", "loose.txt")
	check("taken out", "loose.txt", false)

	// The same size at another time is a change too.
	write(t, filepath.Join(root, "main.go"), "package niam\n")
	if err := os.Chtimes(filepath.Join(root, "main.go"), time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	check("changed within its size", "main.go", false)

	write(t, filepath.Join(root, "later.txt"), "x")
	git(t, root, "add", "--intent-to-add", "later.txt")
	check("meant to be added", "later.txt", false)
	if err := os.Symlink("main.go", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	git(t, root, "add", "link")
	check("a link", "link", false)
}

// A second working tree has its index elsewhere.
func TestLinkedWorktree(t *testing.T) {
	root := repository(t)
	other := filepath.Join(t.TempDir(), "other")
	git(t, root, "worktree", "add", "-q", other)
	if !Tracked(t.Context(), other, filepath.Join(other, "main.go")) {
		t.Error("main.go of a linked working tree is not tracked")
	}
}

// a repository's settings name programs that git starts. None may run because somebody was judged.
func TestRunsNothingOfTheRepository(t *testing.T) {
	root := repository(t)
	marker := filepath.Join(t.TempDir(), "marker")
	program := filepath.Join(t.TempDir(), "evil")
	write(t, program, "#!/bin/sh\necho ran \"$0\" \"$@\" >>'"+marker+"'\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	hooks := filepath.Join(root, ".git", "hooks")
	for _, name := range []string{"post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"} {
		if err := os.MkdirAll(hooks, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(hooks, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, ".gitattributes"), "* filter=evil diff=evil\n")
	for key, value := range map[string]string{
		"core.fsmonitor": program, "core.hooksPath": hooks, "core.pager": program, "pager.ls-files": program, "core.editor": program,
		"core.sshCommand": program, "core.askPass": program, "credential.helper": program, "diff.external": program,
		"filter.evil.clean": program, "filter.evil.smudge": program, "filter.evil.process": program, "diff.evil.textconv": program,
		"alias.ls-files": "!" + program, "core.alternateRefsCommand": program, "uploadpack.packObjectsHook": program,
	} {
		git(t, root, "config", key, value)
	}
	// That the trap works at all: git itself, asked carelessly, starts the monitor.
	if err := exec.Command("git", "-C", root, "status").Run(); err != nil {
		t.Logf("git status: %v", err)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Fatalf("the trap does not snap, so this test shows nothing: %v", err)
	}
	if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	if !Tracked(t.Context(), root, filepath.Join(root, "main.go")) {
		t.Error("main.go is not tracked")
	}
	if text, err := os.ReadFile(marker); err == nil {
		t.Errorf("a program of the repository ran:\n%s", text)
	}
}

// What cannot be told is false, at once: no repository, a .git that leads nowhere, an index that is a pipe, a context
// that is over.
func TestUnknownIsNotTracked(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x"), "x")
	if Tracked(t.Context(), dir, filepath.Join(dir, "x")) {
		t.Error("a file outside any repository is tracked")
	}
	write(t, filepath.Join(dir, ".git"), "gitdir: nowhere\n")
	if Tracked(t.Context(), dir, filepath.Join(dir, "x")) {
		t.Error("a file beside a .git that leads nowhere is tracked")
	}
	root := repository(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if Tracked(over, root, filepath.Join(root, "main.go")) {
		t.Error("tracked, although nobody could be asked")
	}
	if err := os.WriteFile(filepath.Join(root, ".git", "index"), []byte("broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	if Tracked(t.Context(), root, filepath.Join(root, "main.go")) {
		t.Error("tracked by a broken index")
	}
}

func TestParse(t *testing.T) {
	entry := "\x00  ctime: 1:2\n  mtime: 3:4\n  dev: 5\tino: 6\n  uid: 0\tgid: 0\n  size: 7\tflags: "
	got, err := parse([]byte("a" + entry + "0\nb" + entry + "2000\nc" + entry + "20004000\n"))
	if err != nil || len(got) != 1 || got["a"] != (stamp{sec: 3, nsec: 4, size: 7}) {
		t.Errorf("got %v, %v; want a alone", got, err)
	}
	for _, bad := range []string{"a", "a\x00", "a" + entry, "a" + strings.Replace(entry, "mtime", "m", 1) + "0\n", "a" + entry + "z\n"} {
		if _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
