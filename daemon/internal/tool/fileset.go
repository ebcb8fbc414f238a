package tool

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"sublet/daemon/internal/project"
)

const (
	maxFiles    = 200_000 // for one glob or grep
	gitPatience = 20 * time.Second
)

// errTooMany reports that a file set was cut at maxFiles.
var errTooMany = errors.New("tool: too many files")

// fileList is the files that a search covers.
type fileList struct {
	files  []string // relative to the root, with "/" between names; "" is the root itself
	more   bool     // there were more than maxFiles
	unread int      // folders that could not be read
}

// fileSet returns the regular files below root, or root itself. Inside a git work tree those are the files that git tracks or
// does not ignore, also in repositories inside of it, else all but hidden ones. It leaves out symbolic links, so that nothing outside root is read.
func fileSet(ctx context.Context, root string) (set fileList, err error) {
	info, err := os.Lstat(root)
	if err != nil {
		return set, err
	}
	if !info.IsDir() {
		return fileList{files: []string{""}}, nil
	}
	if files, inside, ok := gitFiles(ctx, root); ok {
		set.files = files
		for _, name := range inside {
			if err := set.add(ctx, root, name); err != nil {
				return set, err
			}
		}
		set.more = set.more || len(set.files) > maxFiles
		set.files = set.files[:min(len(set.files), maxFiles)]
		return set, nil
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil { // skip a folder that cannot be read
			set.unread++
			return fs.SkipDir
		}
		if path != root && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() {
			if len(set.files) == maxFiles {
				return errTooMany
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			set.files = append(set.files, filepath.ToSlash(rel))
		}
		return nil
	})
	if set.more = errors.Is(err, errTooMany); set.more {
		err = nil
	}
	return set, err
}

// add adds the files of the repository name inside of root. One that is not checked out has none. The error is that of ctx only.
func (set *fileList) add(ctx context.Context, root, name string) error {
	dir := filepath.Join(root, name)
	if !project.IsRepository(dir) || len(set.files) > maxFiles {
		return nil
	}
	inner, err := fileSet(ctx, dir)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		set.unread++
	}
	for _, f := range inner.files {
		set.files = append(set.files, path.Join(name, f))
	}
	set.unread += inner.unread
	set.more = set.more || inner.more
	return nil
}

// gitFiles asks git. inside are the repositories inside of root, whose files it does not list. ok is false if root is in no work tree
// or ignored by it, or if git is missing or slow.
func gitFiles(ctx context.Context, root string) (files, inside []string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, gitPatience)
	defer cancel()
	// Disable fsmonitor and hooks, by which a repository's configuration could run programs.
	cmd := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false",
		"--no-optional-locks", "--literal-pathspecs", "ls-files", "-cos", "--exclude-standard", "-z", "--", ".")
	cmd.Dir = root
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil || len(out) == 0 { // an ignored folder, or an empty one
		return nil, nil, false
	}
	last, folders := "", links{root, map[string]bool{".": false}}
	for entry := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		name, mode := string(entry), ""
		if stage, file, ok := bytes.Cut(entry, []byte{'\t'}); ok && len(stage) >= 49 && stage[6] == ' ' && stage[len(stage)-2] == ' ' {
			mode, name = string(stage[:6]), string(file) // of a tracked file, before whose name stand mode, object and stage
		}
		switch {
		case name == last: // there is an entry for each side of a conflict
		case folders.linked(path.Dir(name)):
		case mode == "160000", strings.HasSuffix(name, "/"): // a submodule, or a repository that is not tracked
			if !folders.linked(path.Clean(name)) {
				inside = append(inside, name)
			}
		default:
			files = append(files, name)
		}
		last = name
		if len(files) > maxFiles {
			break
		}
	}
	return files, inside, true
}

// links finds the folders below root that a link leads to, of which git's index may still name files.
type links struct {
	root  string
	known map[string]bool // by relative path
}

func (l links) linked(dir string) bool {
	linked, ok := l.known[dir]
	if !ok {
		info, err := os.Lstat(filepath.Join(l.root, dir))
		linked = err == nil && !info.IsDir() || l.linked(path.Dir(dir))
		l.known[dir] = linked
	}
	return linked
}
