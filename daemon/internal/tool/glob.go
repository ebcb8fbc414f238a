package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"sublet/daemon/internal/policy"
)

const maxGlob, maxGlobNotes = 500, 200 // files shown, and bytes reserved for notes at the end

// Glob returns the tool that finds files by name.
func Glob() Tool {
	return newTool(Spec{
		Name:        "glob",
		Description: "Find files by name, newest first: \"**/*.go\", \"src/**/test_*.py\"; a pattern without / matches in any folder. Omits files that git ignores and, outside git, hidden ones.",
		Example:     `{"pattern":"**/*.go"}`,
		Schema:      json.RawMessage(`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"folder"}},"required":["pattern"]}`),
		ReadOnly:    true,
	}, globArgs{})
}

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	searchRoot
}

func (a *globArgs) check(env Env) error {
	if filepath.IsAbs(a.Pattern) { // as models write it
		a.Path, a.Pattern = doublestar.SplitPattern(a.Pattern)
	}
	if err := a.find(env, a.Path); err != nil {
		return err
	}
	var err error
	if a.Pattern, err = nameAnywhere(a.Pattern); err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	return nil
}

// nameAnywhere validates a pattern, and prefixes one without a slash so that it matches in every folder.
func nameAnywhere(pattern string) (string, error) {
	pattern = strings.TrimPrefix(pattern, "./")
	if err := policy.CheckGlob(pattern); err != nil {
		return "", err
	}
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	return pattern, nil
}

// searchRoot is the file or folder that a call searches.
type searchRoot struct{ located }

// find sets the root to path, "" for the working directory.
func (r *searchRoot) find(env Env, path string) (err error) {
	if err = r.located.find(env.Cwd, cmp.Or(path, ".")); err == nil {
		_, err = os.Lstat(r.path)
	}
	return err
}

func (r *searchRoot) plan(_ context.Context, env Env) (Action, error) {
	return Action{Cwd: env.Cwd, Reads: r.names}, nil
}

// files returns the files to search if approved is about the same root.
func (r *searchRoot) files(ctx context.Context, approved Action) (fileList, error) {
	if !slices.Equal(approved.Reads, r.names) {
		return fileList{}, ErrChanged
	}
	return fileSet(ctx, r.path)
}

func (a *globArgs) run(ctx context.Context, env Env, approved Action, _ func([]byte)) (Result, error) {
	set, err := a.files(ctx, approved)
	if err != nil {
		return Result{}, err
	}
	type hit struct {
		path string
		at   time.Time
	}
	var hits []hit
	for _, f := range set.files {
		if ok, err := doublestar.Match(a.Pattern, f); f != a.Pattern && (err != nil || !ok) {
			continue
		}
		full := filepath.Join(a.path, f)
		info, err := os.Lstat(full)
		if err != nil || !info.Mode().IsRegular() {
			continue // just deleted, or a link
		}
		hits = append(hits, hit{full, info.ModTime()})
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.at.Compare(a.at) })
	var b strings.Builder
	shown := 0
	for _, h := range hits[:min(len(hits), maxGlob)] {
		line := display(h.path, env.Cwd) + "\n"
		if b.Len()+len(line) > MaxResult-maxGlobNotes {
			break
		}
		b.WriteString(line)
		shown++
	}
	if len(hits) == 0 {
		fmt.Fprintf(&b, "no file matches %s in %s\n", a.Pattern, a.path)
	}
	if left := len(hits) - shown; left > 0 {
		fmt.Fprintf(&b, "[%d more; narrow the pattern]\n", left)
	}
	if set.unread > 0 {
		fmt.Fprintf(&b, "[left out: %d folders (could not be read)]\n", set.unread)
	}
	if set.more {
		fmt.Fprintf(&b, "[only the first %d files were looked at]\n", maxFiles)
	}
	return bounded(strings.TrimRight(b.String(), "\n")), nil
}

// display returns a found file's path for the model: relative to cwd if it is below.
func display(path, cwd string) string {
	if r, err := filepath.Rel(cwd, path); err == nil && filepath.IsLocal(r) {
		return r
	}
	return path
}
