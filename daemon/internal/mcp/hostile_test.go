package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/daemon/internal/child"
)

// What cannot be had is told in words, at once or within the bound, and the others are there all the same.
func TestTroubles(t *testing.T) {
	missing := program("db", "plain", "A", "${NOT_SET_ANYWHERE}")
	missing.Expand = true
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/nowhere\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		spec  Spec
		start time.Duration
		want  string
	}{
		"crash":    {program("db", "crash"), 0, "it ended: exit status 3; its last words: cannot reach the database at postgres://me:"},
		"mute":     {program("db", "mute"), 300 * time.Millisecond, "it did not answer within 300ms"},
		"spew":     {program("db", "spew"), 0, "it sent a message of more than 12 MiB"},
		"no file":  {Spec{Name: "db", Command: "/nowhere/x"}, 0, "no such file"},
		"not path": {Spec{Name: "db", Command: "sublet-no-such-program"}, 0, `"sublet-no-such-program" is not found on PATH`},
		"no shell": {Spec{Name: "db", Command: script}, 0, "no such file"},
		"variable": {missing, 0, "the daemon has no variable NOT_SET_ANYWHERE"},
		"nonsense": {Spec{Name: "db", Command: "/bin/sh", Args: []string{"-c", "echo hello there; cat >/dev/null"}}, 0, "invalid character 'h'"},
		"silent":   {Spec{Name: "db", Command: "/bin/true"}, 0, "it ended"},
		"no http":  {Spec{Name: "db", URL: "http://127.0.0.1:1/mcp"}, 0, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			specs := []Spec{tc.spec, program("other", "plain")}
			if tc.start != 0 {
				specs = specs[:1] // the other one may need longer
			}
			w := newWorld(t, Options{Start: tc.start, Retry: time.Hour}, specs...)
			for range 2 { // the second time nothing is started again, and it is told as the same
				tools, notes := w.ready()
				if err := notes[0].Err; err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") || notes[0].Start != 1 {
					t.Errorf("got %v (start %d), want %q", err, notes[0].Start, tc.want)
				}
				if len(specs) > 1 && (tools["mcp__other__echo"] == nil || notes[1].Err != nil) {
					t.Errorf("the other: %v", notes[1].Err)
				}
			}
		})
	}
}

// Where a server sends a line that is not a message, the error names that as the reason, also if the line was read before the next
// request was sent. The end of the server, which follows from it, is not the reason.
func TestNonsenseBehindTheGreeting(t *testing.T) {
	w := newWorld(t, Options{}, program("db", "chatty"))
	c, err := w.list[0].greet(t.Context(), w.at, commonVersion)
	if err == nil {
		_ = c.session.Wait()
		err = c.listTools(t.Context())
		c.close()
	}
	if err == nil || !strings.Contains(c.endReason(err).Error(), "invalid character 'h'") {
		t.Errorf("got %v from %v", c.endReason(err), err)
	}
}

// A server that is slow keeps nobody waiting beyond the bound, and is there later.
func TestSlowServer(t *testing.T) {
	fifo := mkfifo(t)
	spec := Spec{Name: "db", Command: "/bin/sh", Args: []string{"-c", `read -r x <"$FIFO"; exec "$SERVER"`}, Env: map[string]string{
		"FIFO": fifo, "SERVER": os.Args[0], "MCP_TEST_MODE": "plain",
	}}
	w := newWorld(t, Options{Patience: 50 * time.Millisecond}, spec)
	if tools, notes := w.ready(); len(tools) != 0 || !errors.Is(notes[0].Err, errLate) {
		t.Fatalf("got %v", notes)
	}
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "go")
	f.Close()
	srv := w.list[0]
	srv.mu.Lock()
	starting := srv.starting
	srv.mu.Unlock()
	if starting != nil {
		<-starting
	}
	if tools, notes := w.ready(); tools["mcp__db__echo"] == nil || notes[0].Start != 1 {
		t.Errorf("got %v", notes)
	}
}

// Servers that mean harm: nothing is lost but their own connection.
func TestHostile(t *testing.T) {
	tools := func(list ...string) string { return `{"tools":[` + strings.Join(list, ",") + `]}` }
	one := func(name, rest string) string {
		quoted, _ := json.Marshal(name)
		return fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"}%s}`, quoted, rest)
	}
	t.Run("names", func(t *testing.T) {
		long := strings.Repeat("l", 100)
		var many []string
		for i := range 200 {
			many = append(many, one(fmt.Sprintf("m%d", i), ""))
		}
		list := append([]string{
			one("ok", ""), one("a b", ""), one("a.b", ""), one("ok", `,"description":"again"`), one("", ""), one("\x1b[31mred", ""), one("../../x", ""),
			one(long, ""), one(long+"2", ""), one("told", `,"description":"a\u001b[31m\u202e b\u200b","annotations":{"readOnlyHint":true}`),
			one("wordy", `,"description":"`+strings.Repeat("w", 100_000)+`"`),
		}, many...)
		w := newWorld(t, Options{}, program("db", "names", "MCP_TEST_TOOLS", tools(list...)))
		got, notes := w.ready()
		if notes[0].Err != nil {
			t.Fatal(notes[0].Err)
		}
		for _, name := range []string{"mcp__db__ok", "mcp__db__a_b", "mcp__db____31mred", "mcp__db________x", "mcp__db__told"} {
			if got[name] == nil {
				t.Errorf("%s is missing", name)
			}
		}
		if len(got) != maxTools || !strings.Contains(notes[0].LeftOut, "a.b (another one has this name), ok (another one has this name)") {
			t.Errorf("got %d tools, left %q", len(got), notes[0].LeftOut)
		}
		longs := 0
		for name, remote := range got {
			if len(name) > maxName || invalidRunes.MatchString(name) || len(remote.Spec().Description) > maxDescription+200 || remote.Spec().ReadOnly {
				t.Errorf("got %q: %+v", name, remote.Spec())
			}
			if strings.HasPrefix(name, "mcp__db__lll") {
				longs++
			}
		}
		if longs != 2 {
			t.Errorf("%d tools with long names, want 2", longs)
		}
		if d := got["mcp__db__told"].Spec().Description; d != "[tool of the MCP server db] a⟨U+202E⟩ b⟨U+200B⟩" {
			t.Errorf("got %q", d)
		}
	})
	t.Run("schemas", func(t *testing.T) {
		deep := `"x"`
		for range 100 {
			deep = `{"a":` + deep + `}`
		}
		w := newWorld(t, Options{}, program("db", "schemas", "MCP_TEST_TOOLS", tools(
			`{"name":"none"}`, `{"name":"list","inputSchema":[1]}`, `{"name":"text","inputSchema":{"type":"string"}}`,
			`{"name":"props","inputSchema":{"type":"object","properties":[]}}`,
			`{"name":"deep","inputSchema":{"type":"object","properties":`+deep+`}}`,
			`{"name":"large","inputSchema":{"type":"object","description":"`+strings.Repeat("d", 100_000)+`"}}`,
			`{"name":"hidden","inputSchema":{"type":"object","properties":{"a\u202eb":{}}}}`,
			`{"name":"bare","inputSchema":{"description":"a\u0007\u200bb"}}`)))
		got, notes := w.ready()
		if notes[0].Err != nil || len(got) != 1 || string(got["mcp__db__bare"].Spec().Schema) != `{"description":"a⟨U+200B⟩b","properties":{},"type":"object"}` {
			t.Fatalf("got %v, %v", got, notes)
		}
		if want := "none (its schema is not a JSON object), list (its schema is not a JSON object), text (its schema does not describe an object), props (the properties of its schema are not a JSON object), …"; notes[0].LeftOut != want {
			t.Errorf("got %q", notes[0].LeftOut)
		}
		if r, err := call(t.Context(), got["mcp__db__bare"], `{}`, nil); err == nil {
			t.Errorf("a result of 5000 levels: got %+v", r)
		}
	})
	t.Run("endless list", func(t *testing.T) {
		w := newWorld(t, Options{Start: 5 * time.Second}, program("db", "endless", "MCP_TEST_TOOLS", `{"tools":[],"nextCursor":"more"}`))
		got, notes := w.ready()
		if len(got) != 0 || notes[0].Err == nil {
			t.Fatalf("got %v %v", got, notes)
		}
		// A loaded machine asks for too few pages in a second to be flooded by them.
		if err := notes[0].Err.Error(); !strings.HasPrefix(err, child.ErrFlood.Error()) && !strings.HasPrefix(err, "it did not answer within 5s") {
			t.Errorf("got %s", err)
		}
	})
	t.Run("flood", func(t *testing.T) {
		w := newWorld(t, Options{Retry: time.Hour}, program("db", "flood"))
		w.up()
		if err := w.end(); err == nil || !strings.HasPrefix(err.Error(), child.ErrFlood.Error()) {
			t.Errorf("got %v", err)
		}
	})
	// A server that reads no more: a call ends when it is cancelled, and the server with it.
	t.Run("stall", func(t *testing.T) {
		w := newWorld(t, Options{Retry: time.Hour, Stuck: 100 * time.Millisecond}, program("db", "stall"))
		a := w.up()["mcp__db__a"]
		c := w.list[0].conn
		args := fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 1<<20))        // more than a pipe holds
		for most := 50 * time.Millisecond; c.ctx.Err() == nil; most *= 2 { // one may be cancelled before it is written
			ctx, cancel := context.WithTimeout(t.Context(), most)
			if _, err := call(ctx, a, args, nil); err == nil {
				t.Error("it was answered")
			}
			cancel()
		}
		if err := c.wait(); err == nil || !strings.HasPrefix(err.Error(), "it does not read what it is sent") {
			t.Errorf("got %v", err)
		}
	})
}

// Whatever text there is, a name is one that the settings would take.
func TestName(t *testing.T) {
	for text, want := range map[string]string{
		"files": "files", "My Files!": "My_Files", "a__b": "a_b", "_x_": "x", "ü": "", "": "", "--": "", "@scope/server-x": "scope_server-x",
		strings.Repeat("n", 100): strings.Repeat("n", 32),
	} {
		if got := Name(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// However a server describes its tools, what is offered is bounded, valid, and named like nothing else.
func FuzzOffer(f *testing.F) {
	f.Add(`[{"name":"a","description":"d","inputSchema":{"type":"object"}}]`)
	f.Add(`[{"name":"a b","inputSchema":{"properties":{"x":{"enum":["\u202e"]}}}},{"name":"a.b","inputSchema":{}}]`)
	f.Fuzz(func(t *testing.T, text string) {
		var list []*sdk.Tool
		if json.Unmarshal([]byte(text), &list) != nil || slices.Contains(list, nil) {
			return
		}
		s := &server{spec: Spec{Name: "db"}}
		tools, left := s.offer(list)
		seen := map[string]bool{}
		for _, r := range tools {
			spec := r.Spec()
			if seen[spec.Name] || len(spec.Name) > maxName || invalidRunes.MatchString(spec.Name) || !json.Valid(spec.Schema) || len(spec.Schema) > maxSchema {
				t.Errorf("got %+v", spec)
			}
			seen[spec.Name] = true
		}
		if len(left) > 2<<10 {
			t.Errorf("left is %d bytes", len(left))
		}
	})
}
