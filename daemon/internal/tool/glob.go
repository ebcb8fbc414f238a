package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"sublet/daemon/internal/policy"
)

const maxGlob = 500 // files shown

type globTool struct{}

// Glob returns the tool that finds files by name.
func Glob() Tool { return globTool{} }

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (globTool) Spec() Spec {
	return Spec{
		Name: "glob",
		Description: "Find files by name, the newest first. ** crosses folders: \"**/*.go\", \"src/**/test_*.py\"; a pattern without / matches names anywhere. " +
			"Files that git ignores and hidden files outside git are left out.",
		Example: `{"pattern":"**/*.go"}`,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string"},` +
			`"path":{"type":"string","description":"folder to look in; default: the working directory"}},"required":["pattern"],"additionalProperties":false}`),
		ReadOnly: true,
	}
}

func (t globTool) parse(env Env, args json.RawMessage) (pattern, root string, err error) {
	a, err := decode[globArgs](t.Spec(), args)
	switch {
	case err != nil:
		return "", "", err
	case a.Pattern == "":
		return "", "", errors.New("pattern: is empty")
	}
	root, err = searchRoot(env, a.Path)
	if err != nil {
		return "", "", err
	}
	pattern = a.Pattern
	if filepath.IsAbs(pattern) { // models write absolute patterns, which are made relative to path
		base, rest := doublestar.SplitPattern(pattern)
		if a.Path == "" {
			if root, err = Resolve(env.Cwd, base); err != nil {
				return "", "", err
			}
			pattern = rest
		} else if rel, err := filepath.Rel(root, pattern); err == nil && filepath.IsLocal(rel) {
			pattern = rel
		} else {
			return "", "", fmt.Errorf("pattern: %s is not below %s", pattern, root)
		}
	}
	if pattern, err = nameAnywhere(pattern); err != nil {
		return "", "", fmt.Errorf("pattern: %w", err)
	}
	return pattern, root, nil
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

func searchRoot(env Env, p string) (string, error) {
	if p == "" {
		p = "."
	}
	root, err := Resolve(env.Cwd, p)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(root); err != nil {
		return "", err
	}
	return root, nil
}

func (t globTool) Plan(_ context.Context, env Env, args json.RawMessage) (Action, error) {
	_, root, err := t.parse(env, args)
	if err != nil {
		return Action{}, err
	}
	return Action{Cwd: env.Cwd, Reads: []string{root}}, nil
}

func (t globTool) Run(ctx context.Context, env Env, args json.RawMessage, approved Action, _ func([]byte)) (Result, error) {
	pattern, root, err := t.parse(env, args)
	if err != nil {
		return Result{}, err
	}
	if len(approved.Reads) != 1 || approved.Reads[0] != root {
		return Result{}, ErrChanged
	}
	set, err := fileSet(ctx, root)
	if err != nil {
		return Result{}, err
	}
	type hit struct {
		name string
		at   time.Time
	}
	var hits []hit
	for _, f := range set.files {
		if ok, err := doublestar.Match(pattern, f); f != pattern && (err != nil || !ok) {
			continue
		}
		info, err := os.Lstat(filepath.Join(root, f))
		if err != nil || !info.Mode().IsRegular() {
			continue // just deleted, or a link
		}
		hits = append(hits, hit{f, info.ModTime()})
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.at.Compare(a.at) })
	var b strings.Builder
	shown := 0
	for _, h := range hits[:min(len(hits), maxGlob)] {
		line := display(root, h.name, env.Cwd) + "\n"
		if b.Len()+len(line) > MaxResult-200 {
			break
		}
		b.WriteString(line)
		shown++
	}
	if len(hits) == 0 {
		fmt.Fprintf(&b, "no file matches %s in %s\n", pattern, root)
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
func display(root, rel, cwd string) string {
	p := root
	if rel != "" {
		p = path.Join(root, rel)
	}
	if r, err := filepath.Rel(cwd, p); err == nil && filepath.IsLocal(r) {
		return r
	}
	return p
}
