// Package worktree answers two questions about a git working tree: whether a file is in version control exactly as it is on
// disk, so that it could be restored, and the status of the whole tree. And it makes further working trees of a repository,
// in which agents work. It asks the git program in a way that runs nothing of the repository: no hooks, filters, file system
// monitor or pager. It is a leaf; what an answer means for a command is left to package risk.
package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// askBound is how long git may take to list the index, maxList how many bytes the list may have. If either is exceeded, no
	// file counts as tracked.
	askBound = 3 * time.Second
	maxList  = 64 << 20
	// maxGitFile bounds a .git file, which names a folder, in bytes: PATH_MAX of Linux.
	maxGitFile = 4096
	// maxTrees is how many lists are cached.
	maxTrees = 16
)

// Trees caches git's lists, each until the tree's index changes. The zero value is ready; it is safe for concurrent use and
// must not be copied.
type Trees struct {
	Patience time.Duration // bounds Status; 0 = half a second

	mu sync.Mutex
	// below: guarded by mu
	byRoot map[string]*tree
}

type tree struct {
	mu sync.Mutex // held while git runs
	// below: guarded by mu
	index stamp
	files map[string]stamp // by path below the root, as they were when added to the index
	err   error            // why they could not be read
}

// stamp identifies the state of a file.
type stamp struct {
	sec, nsec int64
	size      uint32 // the low 32 bits, as git stores it
	inode     uint64 // of the index; 0 for files in it
}

// same reports whether a file on disk with stamp now is unchanged since s. An index may lack the nanoseconds.
func (s stamp) same(now stamp) bool {
	return s.size == now.size && s.sec == now.sec && (s.nsec == now.nsec || s.nsec == 0)
}

// Tracked reports whether path, absolute and clean, is a regular file below root that is in git's index and unchanged since
// by size and time. root is the folder that contains .git. On an error it returns false. The first call for a root, and the
// first after its index changed, waits for git, at most askBound.
func (t *Trees) Tracked(ctx context.Context, root, path string) bool {
	rel, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
	if !ok || rel == "" {
		return false
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	files, err := t.of(root).all(ctx, root)
	if err != nil {
		return false
	}
	was, ok := files[rel]
	return ok && was.same(stampOf(info))
}

// of returns the cache entry of a tree. One beyond maxTrees replaces all others.
func (t *Trees) of(root string) *tree {
	t.mu.Lock()
	defer t.mu.Unlock()
	tr := t.byRoot[root]
	if tr == nil {
		if t.byRoot == nil || len(t.byRoot) >= maxTrees {
			t.byRoot = map[string]*tree{}
		}
		tr = &tree{}
		t.byRoot[root] = tr
	}
	return tr
}

// all returns the entries of git's index by path below root. Callers must not change the map.
func (tr *tree) all(ctx context.Context, root string) (map[string]stamp, error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	index, err := indexOf(root)
	if err != nil {
		return nil, err
	}
	if tr.index != index {
		// An error is cached too, until the index changes.
		files, err := list(ctx, root)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		tr.index, tr.files, tr.err = index, files, err
	}
	return tr.files, tr.err
}

// indexOf returns the stamp of the index of the tree at root: in .git, or in the folder that a .git file names. It is zero in a new
// repository, which has none yet.
func indexOf(root string) (stamp, error) {
	git := filepath.Join(root, ".git")
	info, err := os.Lstat(git)
	if err != nil {
		return stamp{}, err
	}
	if info.Mode().IsRegular() && info.Size() < maxGitFile {
		text, err := os.ReadFile(git)
		if err != nil {
			return stamp{}, err
		}
		dir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if !ok {
			return stamp{}, errors.New("no gitdir")
		}
		if git = dir; !filepath.IsAbs(git) {
			git = filepath.Join(root, dir)
		}
	}
	info, err = os.Stat(filepath.Join(git, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}, nil
	}
	if err != nil {
		return stamp{}, err
	}
	if !info.Mode().IsRegular() {
		return stamp{}, errors.New("the index is not a regular file")
	}
	s := stampOf(info)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = st.Ino
	}
	return s, nil
}

func stampOf(info fs.FileInfo) stamp {
	at := info.ModTime()
	return stamp{sec: at.Unix(), nsec: int64(at.Nanosecond()), size: uint32(info.Size())}
}

// list returns the entries of git's index. `ls-files` alone does not compare contents, and so runs no filter.
func list(ctx context.Context, root string) (map[string]stamp, error) {
	text, err := run(ctx, root, "ls-files", "-z", "--debug", "--cached")
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// run runs git in root and returns at most maxList bytes of its output. args must be a command that does not compare contents,
// since that runs filters.
func run(ctx context.Context, root string, args ...string) ([]byte, error) {
	return runFor(ctx, askBound, nil, root, args...)
}

// runFor runs git in root for at most bound and returns at most maxList bytes of its output. It disables hooks, the file system
// monitor and the pager, and ignores the settings of the user, the system and the environment.
func runFor(ctx context.Context, bound time.Duration, input []byte, root string, args ...string) ([]byte, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return nil, err
	}
	if strings.HasPrefix(program, strings.TrimSuffix(root, "/")+"/") {
		return nil, fmt.Errorf("%s lies in the repository", program)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{
		"--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false", "-C", root,
	}, args...)...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(root),
	}
	var said bytes.Buffer
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // git then removes its locks, and a tree that it makes
	cmd.WaitDelay, cmd.Stdin, cmd.Stderr = time.Second, bytes.NewReader(input), &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(out, maxList+1))
	if len(text) > maxList {
		err = fmt.Errorf("the list is over %d bytes", maxList)
	}
	if err != nil {
		cancel()
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		if why := strings.TrimSpace(said.String()); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		return nil, err
	}
	return text, nil
}

// parse reads the output of ls-files --debug: a path and a NUL, then five lines about the entry. It leaves out entries that
// are in conflict or only intended to be added, which git cannot restore.
func parse(text []byte) (map[string]stamp, error) {
	const conflict, intent = 0x3000, 1 << 29 // CE_STAGEMASK and CE_INTENT_TO_ADD of git's cache.h, which --debug prints
	files := make(map[string]stamp, bytes.Count(text, []byte{0}))
	for len(text) > 0 {
		path, rest, ok := bytes.Cut(text, []byte{0})
		if !ok {
			return nil, errors.New("git ls-files: a path does not end")
		}
		var lines [5][]byte
		for i := range lines {
			if lines[i], rest, ok = bytes.Cut(rest, []byte{'\n'}); !ok {
				return nil, fmt.Errorf("git ls-files: the entry of %q is cut off", path)
			}
		}
		text = rest
		var s stamp
		var flags uint64
		if _, err := fmt.Sscanf(string(lines[1]), "  mtime: %d:%d", &s.sec, &s.nsec); err != nil {
			return nil, fmt.Errorf("git ls-files: %q: %w", path, err)
		}
		if _, err := fmt.Sscanf(string(lines[4]), "  size: %d\tflags: %x", &s.size, &flags); err != nil {
			return nil, fmt.Errorf("git ls-files: %q: %w", path, err)
		}
		if flags&(conflict|intent) == 0 {
			files[string(path)] = s
		}
	}
	return files, nil
}
