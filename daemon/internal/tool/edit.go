package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sublet/wire/visible"
)

// edit replaces one text. Old is searched in the file as it was before the call.
type edit struct {
	Old        *string `json:"old"`
	New        *string `json:"new"`
	ReplaceAll bool    `json:"replace_all"`
}

// Edit returns the tool that replaces texts in a file: all of them, or none.
func Edit() Tool {
	const one = `"old":{"type":"string"},"new":{"type":"string"},"replace_all":{"type":"boolean"}`
	return newTool(Spec{
		Name: "edit",
		Description: "Replace text in a file that you have read. All edits are made, or none. old must match the file exactly, without line numbers, and only once " +
			"(include more lines, or set replace_all). For one edit, give old and new in place of edits.",
		Example: `{"path":"main.go","edits":[{"old":"x := 1","new":"x := 2"}]}`,
		Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},` +
			`"edits":{"type":"array","maxItems":200,"items":{"type":"object","properties":{` + one + `},"required":["old","new"]}},` + one + `},"required":["path"]}`),
	}, editArgs{})
}

type editArgs struct {
	Path  string `json:"path"`
	Edits []edit `json:"edits"`
	edit         // arguments of a single edit

	located
}

func (a *editArgs) check(env Env) error {
	switch single := a.Old != nil || a.New != nil; {
	case single && len(a.Edits) > 0:
		return errors.New("edits: give either edits or old and new, not both")
	case single:
		a.Edits = []edit{a.edit}
	case len(a.Edits) == 0:
		return errors.New("edits: is missing")
	}
	for i, e := range a.Edits {
		if err := e.check(); err != nil {
			return inEdit(a.Edits, i, err)
		}
	}
	return a.located.find(env.Cwd, a.Path)
}

func (e edit) check() error {
	switch {
	case e.Old == nil:
		return errors.New("old: is missing")
	case e.New == nil:
		return errors.New("new: is missing")
	case *e.Old == "":
		return errors.New("old: is empty; use write to fill an empty file")
	case *e.Old == *e.New:
		return errors.New("old and new are the same")
	}
	return nil
}

// inEdit adds to an error which of the edits it is about, if there are several.
func inEdit(edits []edit, i int, err error) error {
	if len(edits) == 1 {
		return err
	}
	return fmt.Errorf("edits[%d]: %w; none of the edits was made", i, err)
}

func (a *editArgs) plan(_ context.Context, env Env) (Action, error) {
	path := a.path
	digest, before, err := fileState(path)
	switch {
	case err != nil:
		return Action{}, err
	case digest == "":
		return Action{}, fmt.Errorf("%s: does not exist; use write to create it", path)
	}
	known, ok := env.Files.Known(env.Agent, path)
	switch {
	case !ok:
		return Action{}, fmt.Errorf("%s: read it before you edit it", path)
	case known != digest:
		return Action{}, fmt.Errorf("%s: changed since you read it; read it again", path)
	}
	made, err := apply(before, a.Edits)
	if err != nil {
		return Action{}, fmt.Errorf("%s: %w", path, err)
	}
	return Action{Cwd: env.Cwd, Writes: a.names, FileDigest: digest, Preview: Diff(env.Cwd, path, before, made.after, true)}, nil
}

func (a *editArgs) run(ctx context.Context, env Env, approved Action, _ func([]byte)) (Result, error) {
	var made applied
	p, report, err := change(ctx, env, a.located, approved, func(before []byte) ([]byte, error) {
		var err error
		made, err = apply(before, a.Edits)
		return made.after, err
	})
	if err != nil {
		return Result{}, err
	}
	times := "once"
	if made.places > 1 {
		times = fmt.Sprintf("%d times", made.places)
	}
	notes := ""
	for _, n := range made.notes {
		notes += "[" + n + "]\n"
	}
	return Result{
		Content:       fmt.Sprintf("edited %s (replaced %s, %s)\n%s%s", a.path, times, changeSummary(p), notes, visible.Cut(p.Content, 4000)) + report,
		FilesModified: []string{a.path},
	}, nil
}

// applied is the result of apply.
type applied struct {
	after  []byte
	places int      // how many places were replaced
	notes  []string // for the model: how texts were found
}

// apply makes all edits in text, or none. It changes nothing else: a missing newline at the end stays missing.
func apply(before []byte, edits []edit) (applied, error) {
	var out applied
	type replacement struct {
		place
		edit int
	}
	var all []replacement
	text := string(before)
	for i, e := range edits {
		found, note, err := e.find(text)
		if err != nil {
			return applied{}, inEdit(edits, i, err)
		}
		for _, p := range found {
			all = append(all, replacement{p, i})
		}
		if note != "" {
			out.notes = append(out.notes, note)
		}
	}
	slices.SortStableFunc(all, func(a, b replacement) int { return cmp.Compare(a.from, b.from) })
	size := len(text)
	for i, r := range all {
		if i > 0 && r.from < all[i-1].to {
			return applied{}, fmt.Errorf("edits[%d] and edits[%d] overlap in line %d; make them one edit; none of the edits was made",
				all[i-1].edit, r.edit, lineAt(text, r.from))
		}
		size += len(r.repl) - (r.to - r.from)
	}
	if size > maxFile {
		return applied{}, errors.New("the file would become too large")
	}
	var b strings.Builder
	b.Grow(size)
	at := 0
	for _, r := range all {
		b.WriteString(text[at:r.from])
		b.WriteString(r.repl)
		at = r.to
	}
	b.WriteString(text[at:])
	out.after, out.places = []byte(b.String()), len(all)
	return out, nil
}
