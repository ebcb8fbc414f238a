package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

type editTool struct{}

// Edit returns the tool that replaces one text in a file by another.
func Edit() Tool { return editTool{} }

type editArgs struct {
	Path       *string `json:"path"`
	Old        *string `json:"old"`
	New        *string `json:"new"`
	ReplaceAll bool    `json:"replace_all"`
}

func (editTool) Spec() Spec {
	return Spec{
		Name: "edit",
		Description: "Replace a text in a file. old must stand in the file exactly once (else give more of its surroundings, or set replace_all), " +
			"without the line numbers that read shows. The file must have been read before.",
		Example: `{"path":"main.go","old":"x := 1","new":"x := 2"}`,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string"},` +
			`"old":{"type":"string","description":"the text to replace, as it stands in the file"},` +
			`"new":{"type":"string","description":"what to put in its place; empty to delete"},` +
			`"replace_all":{"type":"boolean"}},"required":["path","old","new"],"additionalProperties":false}`),
	}
}

func (t editTool) parse(env Env, args json.RawMessage) (a editArgs, path string, err error) {
	if err := decode(t.Spec(), args, &a); err != nil {
		return a, "", err
	}
	switch {
	case a.Path == nil:
		return a, "", errors.New("path: is missing")
	case a.Old == nil:
		return a, "", errors.New("old: is missing")
	case a.New == nil:
		return a, "", errors.New("new: is missing")
	case *a.Old == "":
		return a, "", errors.New("old: is empty; use write to fill an empty file")
	case *a.Old == *a.New:
		return a, "", errors.New("old and new are the same")
	case len(*a.New) > maxWrite:
		return a, "", fmt.Errorf("new: %d bytes is more than the limit of %d", len(*a.New), maxWrite)
	}
	path, err = resolve(env.Cwd, *a.Path)
	return a, path, err
}

func (t editTool) Plan(_ context.Context, env Env, args json.RawMessage) (Action, error) {
	a, path, err := t.parse(env, args)
	if err != nil {
		return Action{}, err
	}
	digest, before, err := fileState(path)
	switch {
	case err != nil:
		return Action{}, err
	case digest == "":
		return Action{}, fmt.Errorf("%s: does not exist; use write to create it", path)
	}
	known, ok := env.Files.Known(path)
	switch {
	case !ok:
		return Action{}, fmt.Errorf("%s: read it before you edit it", path)
	case known != digest:
		return Action{}, fmt.Errorf("%s: changed since you read it; read it again", path)
	}
	after, _, err := a.apply(before)
	if err != nil {
		return Action{}, fmt.Errorf("%s: %w", path, err)
	}
	return Action{Cwd: env.Cwd, Writes: []string{path}, FileDigest: digest, Preview: preview(env.Cwd, path, before, after, true)}, nil
}

func (t editTool) Run(_ context.Context, env Env, args json.RawMessage, approved Action, _ func([]byte)) (Result, error) {
	a, path, err := t.parse(env, args)
	if err != nil {
		return Result{}, err
	}
	n := 0
	p, err := change(env, path, approved, func(before []byte) (after []byte, err error) {
		after, n, err = a.apply(before)
		return after, err
	})
	if err != nil {
		return Result{}, err
	}
	times := "once"
	if n > 1 {
		times = fmt.Sprintf("%d times", n)
	}
	return Result{
		Content:       fmt.Sprintf("edited %s (replaced %s, %s)\n%s", path, times, changeSummary(p), CutHead(p.Content, 4000)),
		FilesModified: []string{path},
	}, nil
}

// apply makes the replacement. In a file with CRLF line ends, old and new written with LF mean CRLF. Nothing else is
// touched: a missing last line end stays missing.
func (a editArgs) apply(before []byte) (after []byte, n int, err error) {
	old, repl := []byte(*a.Old), []byte(*a.New)
	n = bytes.Count(before, old)
	if crlf := []byte("\r\n"); bytes.Contains(before, crlf) && !bytes.Contains(old, crlf) {
		lf := []byte("\n")
		wide := bytes.ReplaceAll(old, lf, crlf)
		if m := bytes.Count(before, wide); n == 0 || bytes.Equal(wide, old) {
			n, old = m, wide
			if !bytes.Contains(repl, crlf) {
				repl = bytes.ReplaceAll(repl, lf, crlf)
			}
		}
	}
	switch {
	case n == 0:
		return nil, 0, errors.New("old does not stand in the file; read it again and copy the text exactly")
	case n > 1 && !a.ReplaceAll:
		return nil, 0, fmt.Errorf("old stands in the file %d times; give more of its surroundings, or set replace_all", n)
	}
	if len(before)+n*(len(repl)-len(old)) > maxFile {
		return nil, 0, errors.New("the file would become too large")
	}
	return bytes.ReplaceAll(before, old, repl), n, nil
}
