package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// copyBound bounds what git does with a Copy.
const copyBound = 2 * time.Minute

// copies is the folder of a repository's copies.
const copies = ".sublet/worktrees"

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
	if _, err := os.Lstat(filepath.Join(repo, ".git")); err != nil {
		return c, fmt.Errorf("%s is not the top of a git working tree", repo)
	}
	base, err := run(ctx, repo, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return c, fmt.Errorf("%s has no commit yet", repo)
	}
	if err := noFilters(ctx, repo); err != nil {
		return c, err
	}
	if err := prepare(repo); err != nil {
		return c, err
	}
	c = Copy{Path: filepath.Join(repo, copies, name), Repo: repo, Base: strings.TrimSpace(string(base))}
	if _, err := runFor(ctx, copyBound, nil, repo, "worktree", "add", "--quiet", "--detach", "--no-checkout", c.Path, c.Base); err != nil {
		return c, fmt.Errorf("make a working tree: %w", err)
	}
	own, err := run(ctx, c.Path, "rev-parse", "--absolute-git-dir")
	if err == nil {
		c.Git = strings.TrimSpace(string(own))
		if err = noFilters(ctx, repo, c.at()...); err == nil { // settings may depend on c.Git
			_, err = c.git(ctx, nil, "reset", "--hard", "--quiet", "--no-recurse-submodules")
		}
	}
	if err != nil {
		return c, errors.Join(fmt.Errorf("make a working tree: %w", err), c.Remove())
	}
	return c, nil
}

// noFilters returns an error if git has filters in repo, or if that is not known. at selects the repository, as for git.
func noFilters(ctx context.Context, repo string, at ...string) error {
	_, err := run(ctx, repo, append(at, "config", "--get-regexp", `^filter\.`)...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 { // git-config(1): there is none
		return nil
	} else if err != nil {
		return fmt.Errorf("look for filters: %w", err)
	}
	return fmt.Errorf("the repository %s has filters (git config filter.…), which a working tree would run", repo)
}

// prepare makes the folder of a repository's copies, and has git ignore it. It follows no link, and changes nothing that exists.
func prepare(repo string) error {
	root, err := os.OpenRoot(repo)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, dir := range []string{filepath.Dir(copies), copies} {
		if err := root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
			return errors.Join(err, fmt.Errorf("%s is not a folder", filepath.Join(repo, dir)))
		}
	}
	ignore := filepath.Join(copies, ".gitignore")
	file, err := root.OpenFile(ignore, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if info, err := root.Lstat(ignore); err != nil || !info.Mode().IsRegular() {
			return errors.Join(err, fmt.Errorf("%s is not a regular file", filepath.Join(repo, ignore)))
		}
		return nil
	} else if err != nil {
		return err
	}
	_, err = file.WriteString("*\n")
	return errors.Join(err, file.Close())
}

// Diff returns what was changed in the tree since it was made, as a patch in git's format. The error is ErrUnchanged if that is
// nothing. A repository inside of the tree is an error: git would run what that one's settings name, and a patch cannot hold it.
func (c Copy) Diff(ctx context.Context) ([]byte, error) {
	if err := noFilters(ctx, c.Repo, c.at()...); err != nil {
		return nil, err
	}
	added, err := c.added(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the working tree: %w", err)
	}
	if len(added) > 0 {
		// Only these paths: for each submodule that its paths match, `add` runs git with the settings of the submodule.
		if _, err := c.git(ctx, added, "--literal-pathspecs", "add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
			return nil, fmt.Errorf("look at the working tree: %w", err)
		}
	}
	diff, err := c.git(ctx, nil, "diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", c.Base)
	if err != nil {
		return nil, fmt.Errorf("look at the working tree: %w", err)
	}
	if len(bytes.TrimSpace(diff)) == 0 {
		return nil, ErrUnchanged
	}
	return diff, nil
}

// added returns the paths that are not in the index yet, each followed by NUL.
func (c Copy) added(ctx context.Context) ([]byte, error) {
	index, err := c.git(ctx, nil, "ls-files", "-z", "--stage")
	if err != nil {
		return nil, err
	}
	for entry := range bytes.SplitSeq(index, []byte{0}) {
		const submodule = "160000 "
		_, name, _ := strings.Cut(string(entry), "\t")
		if !strings.HasPrefix(string(entry), submodule) {
			continue
		}
		if in, err := os.ReadDir(filepath.Join(c.Path, name)); err == nil && len(in) > 0 {
			return nil, fmt.Errorf("there are files in the submodule %q, which is not looked into", name)
		}
	}
	added, err := c.git(ctx, nil, "ls-files", "-z", "--others", "--exclude-standard")
	for name := range bytes.SplitSeq(added, []byte{0}) {
		if bytes.HasSuffix(name, []byte("/")) {
			return nil, fmt.Errorf("%q is a git repository of its own, which is not looked into", name)
		}
	}
	return added, err
}

// git runs git for the tree, whatever repository a file .git in it names.
func (c Copy) git(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	return runFor(ctx, copyBound, input, c.Path, append(c.at(), args...)...)
}

func (c Copy) at() []string { return []string{"--git-dir=" + c.Git, "--work-tree=" + c.Path} }

// Merge applies the changes to the user's working tree: all, or none and an error. It commits nothing.
func (c Copy) Merge(ctx context.Context) error {
	diff, err := c.Diff(ctx)
	if err != nil {
		return err
	}
	if err := noFilters(ctx, c.Repo); err != nil { // its settings may be others than those for the tree
		return err
	}
	if _, err := runFor(ctx, copyBound, diff, c.Repo, "apply", "--whitespace=nowarn", "-"); err != nil {
		return fmt.Errorf("the changes do not apply to the project as it is now: %w", err)
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
