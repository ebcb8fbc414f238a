package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// copyBound bounds what git does with a Copy.
const copyBound = 2 * time.Minute

// Copy is a working tree of a repository beside the user's, at the commit of that one and on no branch.
type Copy struct {
	Path string // its folder, in .sublet/worktrees of the repository's, which git ignores
	Repo string // the folder of the user's working tree
	Base string // the commit
	Git  string // its folder in the repository's .git; a process in the tree cannot choose another one
}

// ErrUnchanged reports that nothing was changed in a Copy.
var ErrUnchanged = errors.New("nothing was changed in its working tree")

// Add makes a Copy of the working tree with the root repo. Changes that are not committed are not in it.
func Add(ctx context.Context, repo, name string) (c Copy, err error) {
	if !At(repo) {
		return c, fmt.Errorf("%s is not the top of a git working tree", repo)
	}
	base, err := run(ctx, repo, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return c, fmt.Errorf("%s has no commit yet", repo)
	}
	if _, err := run(ctx, repo, "config", "--get-regexp", `^filter\.`); err == nil {
		return c, fmt.Errorf("the repository %s has filters (git config filter.…), which a working tree would run", repo)
	}
	folder := filepath.Join(repo, ".sublet", "worktrees")
	if real, err := filepath.EvalSymlinks(repo); err != nil {
		return c, err
	} else if err := os.MkdirAll(folder, 0o700); err != nil {
		return c, err
	} else if at, err := filepath.EvalSymlinks(folder); err != nil || at != filepath.Join(real, ".sublet", "worktrees") {
		return c, fmt.Errorf("%s leads out of the repository", folder)
	}
	if err := os.WriteFile(filepath.Join(folder, ".gitignore"), []byte("*\n"), 0o600); err != nil {
		return c, err
	}
	c = Copy{Path: filepath.Join(folder, name), Repo: repo, Base: strings.TrimSpace(string(base))}
	if _, err := runFor(ctx, copyBound, nil, repo, "worktree", "add", "--quiet", "--detach", c.Path, c.Base); err != nil {
		return c, fmt.Errorf("make a working tree: %w", err)
	}
	own, err := run(ctx, c.Path, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return c, errors.Join(err, c.Remove())
	}
	c.Git = strings.TrimSpace(string(own))
	return c, nil
}

// Diff returns what was changed in the tree since it was made, as a patch in git's format. The error is ErrUnchanged if that is
// nothing.
func (c Copy) Diff(ctx context.Context) ([]byte, error) {
	in := []string{"--git-dir=" + c.Git, "--work-tree=" + c.Path}
	if _, err := runFor(ctx, copyBound, nil, c.Path, append(in, "add", "--all", "--intent-to-add")...); err != nil {
		return nil, fmt.Errorf("look at the working tree: %w", err)
	}
	diff, err := runFor(ctx, copyBound, nil, c.Path, append(in, "diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", c.Base)...)
	if err != nil {
		return nil, fmt.Errorf("look at the working tree: %w", err)
	}
	if len(bytes.TrimSpace(diff)) == 0 {
		return nil, ErrUnchanged
	}
	return diff, nil
}

// Merge applies the changes to the user's working tree: all, or none and an error. It commits nothing.
func (c Copy) Merge(ctx context.Context) error {
	diff, err := c.Diff(ctx)
	if err != nil {
		return err
	}
	if _, err := runFor(ctx, copyBound, diff, c.Repo, "apply", "--whitespace=nowarn", "-"); err != nil {
		return fmt.Errorf("the changes do not fit to the project as it is now: %w", err)
	}
	return nil
}

// Remove removes the tree with all that is in it.
func (c Copy) Remove() error {
	err := os.RemoveAll(c.Path)
	if c.Git != "" {
		err = errors.Join(err, os.RemoveAll(c.Git))
	}
	return err
}
