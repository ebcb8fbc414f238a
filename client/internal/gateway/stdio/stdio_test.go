package stdio

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/wire/citest"

	"go.uber.org/goleak"

	"sublet/client/internal/gateway"
	"sublet/client/internal/gateway/gatewaytest"
	"sublet/lease/confine/confinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	scene = gatewaytest.Scene
	step  = gatewaytest.Step
	call  = gatewaytest.Call
)

var bash = gatewaytest.Bash

var common = []scene{
	{Match: "^say$", Steps: []step{{Text: "hello there", ChunkBytes: 6}}},
	{Match: "^tool$", Steps: []step{{Text: "looking ", ToolCalls: []call{bash("echo tool-ran")}}, {Text: "ok"}}},
	{Match: "^medium$", Steps: []step{{ToolCalls: []call{{Name: "write", Arguments: map[string]any{"path": "made.txt", "content": "x"}}}}, {Text: "ok"}}},
	{Match: "^fails$", Steps: []step{{ToolCalls: []call{{Name: "read", Arguments: map[string]any{"path": "not-there.txt"}}}}, {Text: "went on"}}},
	{Match: "^file$", Steps: []step{{Text: "seen", Error: "auth", ErrorOver: 30_000}}},
	{Match: "^odd$", Steps: []step{{Text: "a\nb\u2028\u00e9\U0001f600", ChunkBytes: 1, ToolCalls: []call{bash(`printf 'one\ntwo\377'`)}}, {Text: "ok"}}},
	{Match: "^auth$", Steps: []step{{Error: "auth"}}},
	{Match: "^endless$", Steps: []step{{Text: strings.Repeat("word ", 5000), ChunkBytes: 5, ChunkMS: 20}}},
	{Match: "^remember$", Steps: []step{{Text: "noted"}}},
}

// runtime is `serve stdio` with its ends in this test's hands.
type runtime struct {
	t      testing.TB
	in     *io.PipeWriter
	out    *bufio.Reader
	over   chan error
	cancel context.CancelFunc
	log    *citest.Buffer
}

func start(t testing.TB, w *gatewaytest.World, change ...func(*Options)) *runtime {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	log := &citest.Buffer{}
	o := Options{Daemon: w.Daemon(), In: inR, Out: outW, Mode: "ask"}
	o.Daemon.Log = slog.New(slog.NewTextHandler(log, nil))
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &runtime{t: t, in: inW, out: bufio.NewReaderSize(outR, 1<<20), over: make(chan error, 1), cancel: cancel, log: log}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.over <- Serve(ctx, o)
		outW.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		cancel()
		go io.Copy(io.Discard, outR) //nolint:errcheck // ends with the pipe
		<-done
		outR.Close()
	})
	if m := r.next(); m["type"] != "ready" {
		t.Fatalf("got %v, want ready", m)
	}
	return r
}

// Requests that do not end when the runtime stops are named.
func TestStuckRequestsAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &citest.Buffer{}
		s := &server{o: Options{In: strings.NewReader("")}, log: slog.New(slog.NewTextHandler(log, nil)), ctx: t.Context()}
		for _, id := range []string{"one", "two"} {
			if err := s.turns.Begin(&gateway.Turn{ID: id}, 0); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.serve(ctx); err != nil {
			t.Fatal(err)
		}
		if got := log.String(); !strings.Contains(got, "id=one") || !strings.Contains(got, "id=two") {
			t.Errorf("got %q", got)
		}
	})
}

// D11: of a conversation in which nothing was asked nothing is left when the daemon was restarted; what is asked then is stored under
// its name all the same.
func TestEmptyConversationAfterARestart(t *testing.T) {
	w := gatewaytest.New(t, common)
	r := start(t, w)
	status := `{"id":"s","kind":"get_status","metadata":{"conversationId":"kept"}}`
	length := func(r *runtime) any {
		t.Helper()
		r.send(status)
		data, _ := r.next()["data"].(map[string]any)
		return data["conversationLength"]
	}
	if got := length(r); got != 0.0 {
		t.Fatalf("got length %v", got)
	}
	w.Stop()
	w.Start()
	length(r) // answered once the daemon is found again
	r.send(`{"id":"1","kind":"user_message","message":"say","metadata":{"conversationId":"kept"}}`)
	for m := r.next(); m["type"] != "done"; m = r.next() {
		if m["type"] == "error" {
			t.Fatal(m)
		}
	}
	if got := length(start(t, w)); got != 2.0 {
		t.Errorf("got length %v, want 2", got)
	}
}

// A request that is asked while the daemon is away ends, though its conversation's session is lost: it went without an answer once the
// conversation was named again.
func TestAskedInALostSession(t *testing.T) {
	w := gatewaytest.New(t, nil)
	gate := w.Path("gate")
	w.Script([]scene{{Match: "^wait$", Steps: []step{{Text: "begun", ToolCalls: []call{bash("true")}}, {WaitFile: gate, Text: "ended"}}}})
	r := start(t, w)
	status := `{"id":"s","kind":"get_status","metadata":{"conversationId":"kept"}}`
	r.send(status)
	r.next()
	w.Stop()
	r.send(`{"id":"1","kind":"user_message","message":"wait","metadata":{"conversationId":"kept"}}`)
	w.Start()
	for m := r.next(); m["type"] != "token"; m = r.next() {
		if m["type"] == "error" {
			t.Fatal(m)
		}
	}
	r.send(status)
	for m := r.next(); m["type"] != "status"; m = r.next() {
		if m["type"] == "error" {
			t.Fatal(m)
		}
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for m := r.next(); m["type"] != "done"; m = r.next() {
		if m["type"] == "error" {
			t.Fatal(m)
		}
	}
}

func (r *runtime) send(lines ...string) {
	r.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(r.in, l+"\n"); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *runtime) next() map[string]any {
	r.t.Helper()
	line, err := r.out.ReadString('\n')
	if err != nil {
		r.t.Fatalf("read: %v; log: %s", err, r.log)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		r.t.Fatalf("%v in %q", err, line)
	}
	check(r.t, m)
	return m
}

var s5 = gatewaytest.Document("S5")

// check holds every message that any test reads to the document's types.
func check(t testing.TB, m map[string]any) {
	t.Helper()
	if err := s5.Check("AgentResponse", m); err != nil {
		t.Errorf("%v: %v", m, err)
	}
	if at := time.UnixMilli(int64(m["timestamp"].(float64))); time.Since(at).Abs() > time.Hour { // F18
		t.Errorf("%v: its time is %v", m, at)
	}
}

// answer reads the responses to one id up to its end. Others are a failure.
func (r *runtime) answer(id string) (list []map[string]any) {
	r.t.Helper()
	for {
		m := r.next()
		if m["id"] != id {
			r.t.Fatalf("got %v, want id %s", m, id)
		}
		list = append(list, m)
		switch m["type"] {
		case "done", "error", "status":
			return list
		}
	}
}

func last(list []map[string]any) map[string]any { return list[len(list)-1] }

func text(list []map[string]any) string {
	var b strings.Builder
	for _, m := range list {
		if m["type"] == "token" {
			b.WriteString(m["token"].(string))
		}
	}
	return b.String()
}

func ask(id, message string, more ...string) string {
	return fmt.Sprintf(`{"id":%q,"kind":"user_message","message":%q%s}`, id, message, strings.Join(more, ""))
}

// One test for each row of the checklist that S5 states, named by it.
func TestConformance(t *testing.T) {
	confinetest.Beside(t) // auto is offered only with it
	w := gatewaytest.New(t, common)
	run := func(name string, f func(t *testing.T, r *runtime)) {
		t.Run(name, func(t *testing.T) { f(t, start(t, w)) })
	}
	t.Run("B2 B9 B14 Q8 ready comes first, once, with version and capabilities", func(t *testing.T) {
		outR, outW := io.Pipe()
		over := make(chan error, 1)
		go func() {
			over <- Serve(context.Background(), Options{Daemon: w.Daemon(), In: strings.NewReader(""), Out: outW})
			outW.Close()
		}()
		raw, err := io.ReadAll(outR)
		if err != nil || <-over != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		if _, ok := m["id"]; ok || m["type"] != "ready" || m["version"] != "1.0.0" || fmt.Sprint(m["capabilities"]) != "[streaming tools attachments]" {
			t.Errorf("got %v", m)
		}
	})
	run("E10 E19 F10 A10 a message, tokens, done", func(t *testing.T, r *runtime) {
		r.send(ask("req-1", "say"))
		list := r.answer("req-1")
		if last(list)["type"] != "done" || text(list) != "hello there" || len(list) < 3 {
			t.Errorf("got %v", list)
		}
	})
	run("G1 G2 G3 T1 tool_use and tool_result", func(t *testing.T, r *runtime) {
		r.send(ask("req-1", "tool"))
		list := r.answer("req-1")
		var kinds []string
		var use, res map[string]any
		for _, m := range list {
			if n := len(kinds); n == 0 || kinds[n-1] != m["type"] {
				kinds = append(kinds, m["type"].(string))
			}
			switch m["type"] {
			case "tool_use":
				use = m["data"].(map[string]any)
			case "tool_result":
				res = m["data"].(map[string]any)
			}
		}
		if !slices.Equal(kinds, []string{"token", "tool_use", "tool_result", "token", "done"}) {
			t.Fatalf("order: got %v", kinds)
		}
		if use["toolName"] != "bash" || use["input"].(map[string]any)["command"] != "echo tool-ran" || use["toolId"] != res["toolId"] || res["toolName"] != "bash" {
			t.Errorf("got %v %v", use, res)
		}
		if out := res["result"].(map[string]any); out["output"] != "tool-ran\n" || out["exitCode"] != 0.0 || out["error"] != nil {
			t.Errorf("result: got %v", out)
		}
	})
	run("A7 A11 A12 A17 Q7 T8 whatever is said, each response is one line of its own, in one shape", func(t *testing.T, r *runtime) {
		r.send(ask("req-1", "odd"))
		list := r.answer("req-1") // its reader takes every line as one JSON text, with type, id and timestamp
		if got, want := text(list), "a\nb\u2028\u00e9\U0001f600ok"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		i := slices.IndexFunc(list, func(m map[string]any) bool { return m["type"] == "tool_result" })
		if i < 0 || list[i]["data"].(map[string]any)["result"].(map[string]any)["output"] != "one\ntwo\uFFFD" {
			t.Errorf("got %v", list)
		}
	})
	t.Run("A13 C9 M6 N7 what is said comes at once; a parent may give up on a request and ask another", func(t *testing.T) {
		gate := w.Path("gate")
		w.Script(append([]scene{{Match: "^gate$", Steps: []step{{Text: "first ", ToolCalls: []call{bash("true")}}, {WaitFile: gate, Text: "late"}}}}, common...))
		r := start(t, w)
		meta := `,"metadata":{"conversationId":"gated"}`
		r.send(ask("slow", "gate", meta))
		if m := r.next(); m["token"] != "first " { // the turn has not ended, and nothing else is there to push it out
			t.Fatalf("got %v", m)
		}
		r.send(`{"id":"s","kind":"get_status"` + meta + `}`)
		m := r.next()
		for m["type"] != "status" {
			m = r.next()
		}
		if d := m["data"].(map[string]any); d["state"] != "processing" || d["conversationLength"] != 1.0 {
			t.Errorf("status while it runs: %v", d)
		}
		r.send(`{"id":"c","kind":"clear_history"` + meta + `}`)
		for m["id"] != "c" {
			m = r.next()
		}
		if m["type"] != "error" {
			t.Errorf("cleared while it runs: %v", m)
		}
		r.send(ask("other", "say"))
		ended := map[any]bool{}
		for !ended["slow"] {
			m := r.next()
			if m["type"] == "done" {
				if ended[m["id"]] = true; m["id"] == "other" {
					w.Write("gate", "")
				}
			}
		}
		if !ended["other"] {
			t.Error("the other request did not end before the slow one")
		}
	})
	run("G9 L33 a tool that fails tells it in its result, and the request goes on", func(t *testing.T, r *runtime) {
		r.send(ask("req-1", "fails"))
		list := r.answer("req-1")
		if last(list)["type"] != "done" || text(list) != "went on" {
			t.Fatalf("got %v", list)
		}
		for _, m := range list {
			if m["type"] == "tool_result" {
				out := m["data"].(map[string]any)["result"].(map[string]any)
				if e, _ := out["error"].(string); !strings.Contains(e, "not-there.txt") {
					t.Errorf("got %v", out)
				}
			}
		}
	})
	run("L29 an error", func(t *testing.T, r *runtime) {
		r.send(ask("req-1", "auth"))
		m := last(r.answer("req-1"))
		if m["type"] != "error" || !strings.Contains(m["error"].(string), "scripted auth") {
			t.Errorf("got %v", m)
		}
	})
	run("H12 what would need a question is refused, and says why", func(t *testing.T, r *runtime) {
		r.send(ask("req-1", "medium"))
		list := r.answer("req-1")
		i := slices.IndexFunc(list, func(m map[string]any) bool { return m["type"] == "tool_result" })
		if i < 0 || !strings.Contains(fmt.Sprint(list[i]), "cannot confirm") {
			t.Errorf("got %v", list)
		}
		if _, err := os.Stat(filepath.Join(w.Project, "made.txt")); err == nil {
			t.Error("it ran")
		}
	})
	t.Run("H12 --approve=medium lets it run", func(t *testing.T) {
		r := start(t, w, func(o *Options) { o.Mode = "auto" })
		r.send(ask("req-1", "medium"))
		r.answer("req-1")
		if err := os.Remove(filepath.Join(w.Project, "made.txt")); err != nil {
			t.Error(err)
		}
	})
	run("D9 attachments", func(t *testing.T, r *runtime) {
		path := filepath.Join(w.Project, "note.txt")
		if err := os.WriteFile(path, []byte(strings.Repeat("attached words\n", 3000)), 0o600); err != nil {
			t.Fatal(err)
		}
		files := fmt.Sprintf(`,"attachments":[{"path":%q,"mime":"text/plain"}]`, path)
		for id, c := range map[string]struct{ with, want string }{"without": {"", "done"}, "with": {`,"metadata":{"conversationId":"with"}` + files, "error"}} { // the model is given them
			r.send(ask(id, "file", c.with))
			if m := last(r.answer(id)); m["type"] != c.want {
				t.Errorf("%s: got %v", id, m)
			}
		}
		for i, bad := range []string{`[{"path":"/not/there","mime":"x"}]`, `[{"path":"/","mime":"x"}]`, `[{"mime":"x"}]`, `[{"path":1}]`, `{}`} {
			id := fmt.Sprint("bad-", i)
			r.send(ask(id, "file", `,"attachments":`+bad))
			if m := last(r.answer(id)); m["type"] != "error" || !strings.Contains(m["error"].(string), "attachments") {
				t.Errorf("%s: got %v", bad, m)
			}
		}
	})
	run("D11 E11 E12 K11 conversations by id, status, clear_history", func(t *testing.T, r *runtime) {
		meta := `,"metadata":{"conversationId":"conv-456","userId":"user-789","other":1}`
		var first time.Duration
		var at time.Time
		length := func(id, more string) float64 {
			sent := time.Now()
			r.send(`{"id":"` + id + `","kind":"get_status"` + more + `}`)
			d := last(r.answer(id))["data"].(map[string]any)
			up := time.Duration(d["uptime"].(float64)) * time.Millisecond
			if first == 0 {
				first, at = up, time.Now()
			}
			if d["state"] != "idle" || up < 0 || up-first < sent.Sub(at)-time.Millisecond {
				t.Errorf("got %v after %v at %v", d, first, at)
			}
			return d["conversationLength"].(float64)
		}
		r.send(ask("1", "remember", meta))
		r.answer("1")
		if n := length("2", meta); n != 2 {
			t.Errorf("length: got %v, want 2", n)
		}
		if n := length("3", ""); n != 0 {
			t.Errorf("default conversation: got %v, want 0", n)
		}
		// Another runtime finds it under the same name.
		r2 := start(t, w)
		r2.send(`{"id":"4","kind":"get_status"` + meta + `}`)
		if d := last(r2.answer("4"))["data"].(map[string]any); d["conversationLength"] != 2.0 {
			t.Errorf("in another runtime: got %v", d)
		}
		r.send(`{"id":"5","kind":"clear_history"` + meta + `}`)
		if m := last(r.answer("5")); m["type"] != "done" {
			t.Errorf("clear: got %v", m)
		}
		if n := length("6", meta); n != 0 {
			t.Errorf("cleared: got %v, want 0", n)
		}
		r.send(ask("7", "say", meta))
		if l := r.answer("7"); text(l) != "hello there" {
			t.Errorf("after clear: got %v", l)
		}
	})
	run("C11 T10 malformed input is logged and survived", func(t *testing.T, r *runtime) {
		for _, bad := range []string{`{`, `nonsense`, `[]`, `7`, `null`, `{"kind":"user_message"}`, `{"id":null,"kind":"get_status"}`, "\xff\xfe", strings.Repeat("[", 20000), `{"id":""}`} {
			r.send(bad)
		}
		r.send(ask("ok", "say"))
		if l := r.answer("ok"); text(l) != "hello there" {
			t.Errorf("got %v", l)
		}
		if n := strings.Count(r.log.String(), "not understood"); n != 10 {
			t.Errorf("logged %d lines, want 10:\n%s", n, r.log)
		}
	})
	run("C12 P5 unknown kinds and wrong types are answered", func(t *testing.T, r *runtime) {
		for i, c := range []struct{ line, want string }{
			{`,"kind":"dance"}`, "dance"},
			{`}`, "kind"},
			{`,"kind":"user_message"}`, "message"},
			{`,"kind":"user_message","message":7}`, "message"},
			{`,"kind":"user_message","message":"say","metadata":[]}`, "metadata"},
			{`,"kind":7}`, "kind"},
		} {
			id := fmt.Sprint("r", i)
			r.send(`{"id":"` + id + `"` + c.line)
			if m := last(r.answer(id)); m["type"] != "error" || !strings.Contains(m["error"].(string), c.want) {
				t.Errorf("%s: got %v", c.line, m)
			}
		}
		r.send(`{"id":5,"kind":"get_status"}`)
		if m := last(r.answer("5")); !strings.Contains(m["error"].(string), "want a string") {
			t.Errorf("got %v", m)
		}
	})
	run("E20 E21 E22 two at once, each with one end; an id that runs is not taken again", func(t *testing.T, r *runtime) {
		r.send(ask("long", "endless", `,"metadata":{"conversationId":"a"}`))
		if m := r.next(); m["id"] != "long" || m["type"] != "token" {
			t.Fatalf("got %v", m)
		}
		r.send(ask("long", "say"), ask("short", "say", `,"metadata":{"conversationId":"b"}`))
		ends := map[string]int{}
		for ends["short"] == 0 || ends["long"] == 0 {
			m := r.next()
			if m["type"] == "error" || m["type"] == "done" {
				ends[m["id"].(string)]++
				if m["id"] == "long" && !strings.Contains(m["error"].(string), "still runs") {
					t.Errorf("got %v", m)
				}
			}
		}
	})
	run("N3 more than three at once are refused with the limit", func(t *testing.T, r *runtime) {
		for i := range 4 {
			r.send(ask(fmt.Sprint(i), "endless", fmt.Sprintf(`,"metadata":{"conversationId":"n%d"}`, i)))
		}
		for {
			if m := r.next(); m["type"] == "error" {
				if m["id"] != "3" || !strings.Contains(m["error"].(string), "3") {
					t.Errorf("got %v", m)
				}
				return
			}
		}
	})
	run("C4 the end of the runtime cancels what runs, and tells", func(t *testing.T, r *runtime) {
		r.send(ask("long", "endless"))
		r.next()
		r.cancel()
		list := r.answer("long")
		if m := last(list); m["type"] != "error" || !strings.Contains(m["error"].(string), "cancelled") {
			t.Errorf("got %v", m)
		}
		if _, err := r.out.ReadString('\n'); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
		if err := <-r.over; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	run("T7 the end of input waits for what runs; a last line needs no newline", func(t *testing.T, r *runtime) {
		if _, err := io.WriteString(r.in, ask("req", "tool")); err != nil {
			t.Fatal(err)
		}
		r.in.Close()
		if m := last(r.answer("req")); m["type"] != "done" {
			t.Errorf("got %v", m)
		}
		if err := <-r.over; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Run("T9 A20 each message is logged for debugging", func(t *testing.T) {
		log := &citest.Buffer{}
		r := start(t, w, func(o *Options) {
			o.Daemon.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		r.send(ask("req", "say"))
		r.answer("req")
		for _, want := range []string{"msg=sent type=ready ", "msg=received kind=user_message id=req\n", "msg=sent type=token id=req\n", "msg=sent type=done id=req\n"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %q in %s", want, log)
			}
		}
	})
	t.Run("N1 a line over the limit is logged and survived", func(t *testing.T) {
		r := start(t, w, func(o *Options) { o.Daemon.Limits.MessageBytes = 1000 })
		r.send(ask("big", strings.Repeat("x", 2000)), ask("ok", "say"))
		if l := r.answer("ok"); text(l) != "hello there" || !strings.Contains(r.log.String(), "1000") {
			t.Errorf("got %v, log %s", l, r.log)
		}
	})
}
