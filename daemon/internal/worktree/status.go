package worktree

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Status summarises a working tree.
type Status struct {
	Branch    string // "" = detached
	Changed   int    // tracked files that differ in size or time from the index, or whose entry differs from HEAD
	Untracked int    // files and folders that are neither tracked nor ignored by the repository
	Unpushed  int    // commits that the upstream branch does not have; -1 = there is no upstream
}

// String returns "branch main, 3 changed, 1 untracked, 2 not pushed", without counts of zero.
func (s Status) String() string {
	text := "branch " + s.Branch
	if s.Branch == "" {
		text = "no branch (detached)"
	}
	if s.Changed > 0 {
		text += fmt.Sprintf(", %d changed", s.Changed)
	}
	if s.Untracked > 0 {
		text += fmt.Sprintf(", %d untracked", s.Untracked)
	}
	if s.Changed+s.Untracked == 0 {
		text += ", clean"
	}
	switch {
	case s.Unpushed < 0:
		text += ", no upstream"
	case s.Unpushed > 0:
		text += fmt.Sprintf(", %d not pushed", s.Unpushed)
	}
	return text
}

// StatusOf asks git about the tree at root. It compares sizes and times rather than contents, which would run the repository's filters;
// so a file that was only touched counts as changed.
func StatusOf(ctx context.Context, root string) (Status, error) {
	s := Status{Unpushed: -1}
	if _, err := os.Lstat(filepath.Join(root, ".git")); err != nil {
		return Status{}, err
	}
	if out, err := run(ctx, root, "symbolic-ref", "--quiet", "--short", "HEAD"); err == nil {
		s.Branch = strings.TrimSpace(string(out))
	}
	files, err := list(ctx, root)
	if err != nil {
		return Status{}, err
	}
	changed := map[string]bool{}
	for path, was := range files {
		if ctx.Err() != nil {
			return Status{}, ctx.Err()
		}
		info, err := os.Lstat(filepath.Join(root, path))
		if err == nil && (info.IsDir() || was.same(stampOf(info))) { // a folder is a submodule
			continue
		}
		changed[path] = true
	}
	staged, err := run(ctx, root, "diff-index", "--cached", "--name-only", "-z", "--ignore-submodules=all", "HEAD")
	if err != nil { // there is no HEAD before the first commit, so that all are new
		for path := range files {
			changed[path] = true
		}
	} else {
		for name := range bytes.SplitSeq(bytes.TrimSuffix(staged, []byte{0}), []byte{0}) {
			if len(name) > 0 {
				changed[string(name)] = true
			}
		}
	}
	s.Changed = len(changed)
	other, err := run(ctx, root, "ls-files", "-z", "--others", "--exclude-standard", "--directory", "--no-empty-directory")
	if err != nil {
		return Status{}, err
	}
	s.Untracked = bytes.Count(other, []byte{0})
	if out, err := run(ctx, root, "rev-list", "--count", "@{upstream}..HEAD"); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(out))); err == nil {
			s.Unpushed = n
		}
	}
	return s, ctx.Err() // without its last answer it would report that there is no upstream
}
