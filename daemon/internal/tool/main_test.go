package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sublet/daemon/internal/store"
	"sublet/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newEnv is an environment whose working directory is a new folder (its real path, for comparing).
func newEnv(t *testing.T) Env {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Env{Cwd: dir, Files: &FileLog{}, Todo: &TodoList{}, ExecutionID: "x1", CheckTime: 3 * time.Second}
}

// undoable is newEnv with a store for what Undo undoes.
func undoable(t *testing.T) Env {
	t.Helper()
	env := newEnv(t)
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Append(t.Context(), &wire.SessionInfo{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	env.Files.Changes = store.Changes{Store: db, Session: "s"}
	return env
}

// args makes the JSON of a call.
func args(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type m = map[string]any

// do plans and runs a call, as the agent does after an approval.
func do(t *testing.T, tl Tool, env Env, a m) (Result, error) {
	t.Helper()
	raw := args(t, a)
	action, err := tl.Plan(t.Context(), env, raw)
	if err != nil {
		return Result{}, err
	}
	return tl.Run(t.Context(), env, raw, action, nil)
}

func mustDo(t *testing.T, tl Tool, env Env, a m) Result {
	t.Helper()
	r, err := do(t, tl, env, a)
	if err != nil {
		t.Fatalf("%s %v: %v", tl.Spec().Name, a, err)
	}
	return r
}

func put(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func slurp(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantErr(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("got error %v, want one with %q", err, part)
	}
}

// Every schema is a JSON object that names the fields its tool decodes, and no call may have others. The tools' names are our own,
// not those of the documents' examples (G11).
func TestSchemasAreValid(t *testing.T) {
	var names []string
	for _, tl := range []Tool{Bash(1e9, 2e9), Read(), Write(), Edit(), Glob(), Grep(), Fetch(), Task("engineer: x"), Todo()} {
		s := tl.Spec()
		names = append(names, s.Name)
		var schema struct {
			Type       string                     `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(s.Schema, &schema); err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if schema.Type != "object" || len(schema.Properties) == 0 {
			t.Errorf("%s: got schema %s", s.Name, s.Schema)
		}
		_, err := tl.Plan(t.Context(), newEnv(t), json.RawMessage(`{"none_of_these":1}`))
		wantErr(t, err, `unexpected additional properties ["none_of_these"]`)
	}
	if got := strings.Join(names, " "); got != "bash read write edit glob grep fetch task todo" {
		t.Errorf("names: got %s", got)
	}
}

// what is no object, or names or types a field wrongly, is never taken for a call with empty arguments.
func TestBadArgumentsAreErrors(t *testing.T) {
	env := newEnv(t)
	env.Shell = &stubShell{place: ShellPlace{Cwd: env.Cwd}}
	for _, tc := range []struct{ args, want string }{
		{``, `missing properties: ["command"]`},
		{`null`, "not a JSON object"},
		{`"ls"`, "not a JSON object"},
		{`["ls"]`, "not a JSON object"},
		{`{}`, `missing properties: ["command"]`},
		{`{"command":null}`, `missing properties: ["command"]`},
		{`{"command":""}`, "command: is empty"},
		{`{"command":"  \n"}`, "command: is empty"},
		{`{"command":["ls","-l"]}`, `command: type: [ls -l] has type "array", want "string"`},
		{`{"command":{"x":1}}`, `has type "object", want "string"`},
		{`{"command":true}`, `has type "boolean", want "string"`},
		{`{"shell":"ls"}`, `unexpected additional properties ["shell"]`},
		{`{"command":"ls","cmd":"rm -rf x"}`, `unexpected additional properties ["cmd"]`},
		{`{"Command":"ls","cmd":"rm -rf x"}`, `unexpected additional properties ["cmd"]`},
		{`{"command":"ls","timeout_ms":"soon"}`, "arguments: timeout_ms: type: soon has type \"string\", want \"integer\"\nbash takes command (string), background (boolean, optional), description (string, optional)"},
		{`{"command":"ls"} {"command":"x"}`, "not a JSON object"},
		{`{"command":"ls"`, "not a JSON object"},
		{`{"command":"ls","cwd":"/"}`, `unexpected additional properties ["cwd"]`},
		{`{"command":"a\u0000b"}`, "NUL"},
		{`{"command":"ls","timeout_ms":99999999999}`, "arguments: timeout_ms: maximum: 99999999999"},
		{`{"command":"ls","timeout_ms":18446744073711}`, "timeout_ms"}, // 1.4 ms, in nanoseconds of 64 bits
		{`{"command":"ls","reach":"all"}`, "arguments: reach: enum: all does not equal any of: [read project free]"},
		{`{"command":"ls","timeout_ms":-1}`, "timeout_ms"},
		{`{"command":"ls","wake":true}`, "only with background"},
		{`{"command":"ls","background":true,"wake_on":"("}`, "wake_on: error parsing regexp"},
	} {
		_, err := Bash(1e9, 2e9).Plan(t.Context(), env, json.RawMessage(tc.args))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error with %q", tc.args, err, tc.want)
		}
	}
}

func TestBoundCutsBetweenCharacters(t *testing.T) {
	for _, s := range []string{strings.Repeat("é", 50_000), strings.Repeat("漢字🙂", 20_000), strings.Repeat("a\xff", 40_000)} {
		out, left := Bound(s, 1000)
		if !strings.Contains(out, "bytes left out") || left == 0 {
			t.Errorf("got %d bytes and %d left out, want a note", len(out), left)
		}
		if len(out) > 1100 {
			t.Errorf("got %d bytes, want about 1000", len(out))
		}
		if strings.ToValidUTF8(out, "") != out {
			t.Error("got invalid UTF-8")
		}
	}
	if out, left := Bound("short", 1000); out != "short" || left != 0 {
		t.Errorf("got %q, %d; want it unchanged", out, left)
	}
}

func TestTodo(t *testing.T) {
	env := newEnv(t)
	r := mustDo(t, Todo(), env, m{"todos": []m{{"text": "look", "status": "done"}, {"text": "mend", "status": "in_progress"}}})
	if want := "[x] look\n[>] mend"; r.Content != want {
		t.Errorf("got %q, want %q", r.Content, want)
	}
	if r := mustDo(t, Todo(), env, m{}); !strings.Contains(r.Content, "mend") {
		t.Errorf("got %q, want the plan read back", r.Content)
	}
	_, err := do(t, Todo(), env, m{"todos": []m{{"text": "x", "status": "later"}}})
	wantErr(t, err, "status")
	mustDo(t, Todo(), env, m{"todos": []m{}})
	if got := len(env.Todo.Items()); got != 0 {
		t.Errorf("got %d steps, want the plan emptied", got)
	}
}

type stubDelegate func(ctx context.Context, a Assignment) (Report, error)

func (d stubDelegate) Delegate(ctx context.Context, a Assignment) (Report, error) { return d(ctx, a) }

func (d stubDelegate) Report(ctx context.Context, agent string) (Report, error) {
	return Report{Agent: agent, Answer: agent + " works"}, nil
}
func (d stubDelegate) Stop(string) error { return errors.New("there is no such agent") }

func TestTaskRunsSideBySide(t *testing.T) {
	env := newEnv(t)
	meet := make(chan struct{})
	env.Delegate = stubDelegate(func(ctx context.Context, a Assignment) (Report, error) {
		select { // both must be there at once
		case meet <- struct{}{}:
		case <-meet:
		}
		if a.Role == "reviewer" {
			return Report{Agent: "reviewer-1"}, errors.New("no such file")
		}
		return Report{Agent: "engineer-1", Answer: "did " + a.Prompt}, nil
	})
	r := mustDo(t, Task("engineer: x"), env, m{"tasks": []m{
		{"role": "engineer", "title": "mend it", "prompt": "the work"}, {"role": "reviewer", "prompt": "look"},
	}})
	for _, want := range []string{"## engineer-1 (mend it)\ndid the work", "## reviewer-1\nfailed: no such file"} {
		if !strings.Contains(r.Content, want) {
			t.Errorf("got %q, want %q in it", r.Content, want)
		}
	}
	if r.IsError {
		t.Error("got an error, want none while one task succeeded")
	}
}

// One agent is looked at, ended or asked further; what does not go together is refused.
func TestTaskOfOneAgent(t *testing.T) {
	env := newEnv(t)
	env.Delegate = stubDelegate(func(_ context.Context, a Assignment) (Report, error) {
		return Report{Agent: a.Agent, Answer: fmt.Sprint(a.Prompt, a.Background)}, nil
	})
	tl := Task("engineer: x")
	if r := mustDo(t, tl, env, m{"agent": "engineer-1"}); r.Content != "engineer-1 works" {
		t.Errorf("looked: %q", r.Content)
	}
	if r := mustDo(t, tl, env, m{"agent": "engineer-1", "prompt": "more", "background": true}); r.Content != "## engineer-1\nmoretrue" {
		t.Errorf("asked: %q", r.Content)
	}
	for _, bad := range []m{
		{},
		{"prompt": "x"},
		{"stop": true},
		{"agent": "a", "tasks": []m{{"role": "r", "prompt": "p"}}},
		{"agent": "a", "prompt": "x", "stop": true},
		{"agent": "engineer-1", "stop": true},
	} {
		if r, err := do(t, tl, env, bad); err == nil {
			t.Errorf("%v: got %q", bad, r.Content)
		}
	}
}
