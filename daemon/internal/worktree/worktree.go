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
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// askBound is how long git may take to list the index, maxList how many bytes the list may have. If either is exceeded, no
	// file counts as tracked.
	askBound = 3 * time.Second
	maxList  = 64 << 20
)

// stamp identifies the state of a file.
type stamp struct {
	sec, nsec int64
	size      uint32 // the low 32 bits, as git stores it
}

// same reports whether a file on disk with stamp now is unchanged since s. An index may lack the nanoseconds.
func (s stamp) same(now stamp) bool {
	return s.size == now.size && s.sec == now.sec && (s.nsec == now.nsec || s.nsec == 0)
}

// Tracked reports whether path, absolute and clean, is a regular file below root that is in git's index and unchanged since
// by size and time. root is the folder that contains .git. On an error, and if git takes longer than askBound, it returns false.
func Tracked(ctx context.Context, root, path string) bool {
	rel, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
	if !ok || rel == "" {
		return false
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	files, err := list(ctx, root, rel)
	if err != nil {
		return false
	}
	was, ok := files[rel]
	return ok && was.same(stampOf(info))
}

func stampOf(info fs.FileInfo) stamp {
	at := info.ModTime()
	return stamp{sec: at.Unix(), nsec: int64(at.Nanosecond()), size: uint32(info.Size())}
}

// list returns the entries of git's index for paths below root, or all. `ls-files` alone does not compare contents, and so runs no
// filter.
func list(ctx context.Context, root string, paths ...string) (map[string]stamp, error) {
	text, err := run(ctx, root, append([]string{"--literal-pathspecs", "ls-files", "-z", "--debug", "--cached", "--"}, paths...)...)
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
	var stderr bytes.Buffer
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // git then removes its locks, and a tree that it makes
	cmd.WaitDelay, cmd.Stdin, cmd.Stderr = time.Second, bytes.NewReader(input), &stderr
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
		if why := strings.TrimSpace(stderr.String()); why != "" {
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
		sec, nsec, _ := strings.Cut(strings.TrimPrefix(string(lines[1]), "  mtime: "), ":")
		size, mask, _ := strings.Cut(strings.TrimPrefix(string(lines[4]), "  size: "), "\tflags: ")
		var errs [4]error
		var s stamp
		var length, flags uint64
		s.sec, errs[0] = strconv.ParseInt(sec, 10, 64)
		s.nsec, errs[1] = strconv.ParseInt(nsec, 10, 64)
		length, errs[2] = strconv.ParseUint(size, 10, 32)
		flags, errs[3] = strconv.ParseUint(mask, 16, 64)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("git ls-files: %q: %w", path, err)
		}
		s.size = uint32(length)
		if flags&(conflict|intent) == 0 {
			files[string(path)] = s
		}
	}
	return files, nil
}
