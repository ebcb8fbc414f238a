package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"sublet/daemon/internal/store"
)

// Write returns the tool that creates a file or replaces its content.
func Write() Tool {
	return newTool(Spec{
		Name:        "write",
		Description: "Create a file and its folders, or replace a whole file. To change part of a file, use edit.",
		Example:     `{"path":"notes.txt","content":"one line\n"}`,
		Schema:      json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`),
	}, writeArgs{})
}

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`

	located
}

func (a *writeArgs) check(env Env) error {
	return a.find(env.Cwd, a.Path)
}

func (a *writeArgs) plan(_ context.Context, env Env) (Action, error) {
	path, content := a.path, []byte(a.Content)
	digest, before, err := fileState(path)
	if err != nil {
		return Action{}, err
	}
	if known, ok := env.Files.Known(env.Agent, path); ok && digest != "" && known != digest {
		return Action{}, fmt.Errorf("%s: changed since you read it; read it again", path)
	}
	if !utf8.Valid(before) && bytes.ContainsRune(content, utf8.RuneError) {
		return Action{}, fmt.Errorf("content: %w", errNotUTF8)
	}
	after := withLineEnds(content, before)
	return Action{
		Cwd: env.Cwd, Writes: a.names, FileDigest: digest, Preview: Diff(env.Cwd, path, before, after, digest != ""),
	}, nil
}

func (a *writeArgs) run(ctx context.Context, env Env, approved Action, _ func([]byte)) (Result, error) {
	var content []byte
	p, report, err := change(ctx, env, a.located, approved, func(before []byte) ([]byte, error) {
		content = withLineEnds([]byte(a.Content), before)
		return content, nil
	})
	if err != nil {
		return Result{}, err
	}
	verb := "replaced"
	if approved.FileDigest == "" {
		verb = "created"
	}
	return Result{
		Content:       fmt.Sprintf("%s %s (%d bytes, %s)", verb, a.path, len(content), changeSummary(p)) + report,
		FilesModified: []string{a.path},
	}, nil
}

// errNotUTF8 reports a text with U+FFFD for a file in which read shows that for bytes of another encoding.
var errNotUTF8 = errors.New("has \uFFFD, which read shows for bytes of the file that are not UTF-8; edit other parts of it, or change it with a command")

// withLineEnds returns content with CRLF line ends if all lines of the file before end so: read shows no line ends.
func withLineEnds(content, before []byte) []byte {
	if n := bytes.Count(before, []byte("\r\n")); n == 0 || n < bytes.Count(before, []byte("\n")) || bytes.IndexByte(content, '\r') >= 0 {
		return content
	}
	return bytes.ReplaceAll(content, []byte("\n"), []byte("\r\n"))
}

// change replaces the approved file's content by next(old) and records the change for undo; report is a checker's. If the
// file is not the one that was judged it returns ErrChanged.
func change(ctx context.Context, env Env, file located, approved Action, next func(before []byte) ([]byte, error)) (p Preview, report string, err error) {
	path := file.path
	if !slices.Equal(approved.Writes, file.names) {
		return Preview{}, "", ErrChanged
	}
	c, after, err := env.replace(ctx, file, approved.FileDigest, next)
	if err != nil {
		return Preview{}, "", err
	}
	env.Files.changed(env.Agent, c)
	return Diff(env.Cwd, path, c.Before, after, c.Existed), env.checkChange(ctx, path, c.Before, after, c.Existed), nil
}

// replacing is held from the look at a file until it is replaced: agents work side by side.
var replacing sync.Mutex

// replace replaces the content of a file by next(before) and returns that as after. The error is ErrChanged if the file's digest ("" = there is
// no file) is not the given one. The change is recorded before it is made: if the daemon dies between, undo finds a file that is as it was before.
func (env Env) replace(ctx context.Context, file located, digest string, next func(before []byte) ([]byte, error)) (c store.FileChange, after []byte, err error) {
	replacing.Lock()
	defer replacing.Unlock()
	now, before, err := fileState(file.path)
	if err != nil {
		return c, nil, err
	}
	if now != digest {
		return c, nil, ErrChanged
	}
	if after, err = next(before); err != nil {
		return c, nil, err
	}
	c = store.FileChange{
		Path: file.path, Existed: digest != "", Before: before, After: Digest(after), Secret: slices.ContainsFunc(file.names, env.Secrets.Holds),
	}
	changes := env.Files.Changes
	if changes.Store != nil {
		if err := changes.Add(ctx, &c); err != nil {
			return c, nil, err
		}
	}
	err = inFolder(file.path, digest == "", func(path string) error { return replaceFile(path, after) })
	if err != nil && changes.Store != nil {
		err = errors.Join(err, changes.Remove(context.WithoutCancel(ctx), c.ID))
	}
	return c, after, err
}
