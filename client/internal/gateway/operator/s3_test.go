package operator

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/client/internal/gateway/gatewaytest"
	"sublet/lease/confine/confinetest"
)

// A5, A10, A17, C2, E5, E18, E20, E21, E23, F7, F8, F9, F18, G1 to G4, K7, K8, T1, T5: two requests on one connection, each
// with the document's events in their order, and what they carry.
func TestS3Dispatch(t *testing.T) {
	w := newWorld(t, []scene{{Match: "look", Steps: []step{
		{Text: "I look.\n\n", ToolCalls: []call{bash("echo found")}},
		{Text: "It is there, *all* of it <b>.", ChunkBytes: 6},
	}}})
	c := w.dial()
	for _, id := range []string{"req-1", "req-2"} {
		m := ask(id, "look around")
		m["sessionID"], m["version"] = "sess-abc-123", "1.0"
		m["unknownField"] = msg{"a": 1}                                                                       // R1
		m["metadata"] = msg{"priority": "high", "context": []any{"security-review"}, "nested": msg{"a": nil}} // D10: the client's own
		c.send(m)
		all := c.turn(id)
		if got, want := types(all), "turn-started response-block tool-call tool-result response-chunk turn-completed"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		begun, end := all[0], all[len(all)-1]
		if begun.str("agentID") != "architect" || begun.str("sessionID") != "sess-abc-123" || begun.str("turnID") == "" {
			t.Errorf("turn-started: %v", begun)
		}
		for _, m := range all {
			if at, ok := m["timestamp"].(float64); !ok || time.Since(time.UnixMilli(int64(at))).Abs() > time.Hour {
				t.Errorf("timestamp of %v", m)
			}
			if m["turnID"] != begun["turnID"] {
				t.Errorf("turnID of %v", m)
			}
		}
		called, result := of(all, "tool-call")[0], of(all, "tool-result")[0]
		if called.str("name") != "bash" || called.obj("input").str("command") != "echo found" || called.str("toolID") == "" {
			t.Errorf("tool-call: %v", called)
		}
		if result["toolID"] != called["toolID"] || result.str("output") != "found\n" || result["error"] != nil {
			t.Errorf("tool-result: %v", result)
		}
		if _, ok := result["duration"].(float64); !ok {
			t.Errorf("duration: %v", result)
		}
		want := "I look.\n\nIt is there, *all* of it <b>."
		if said(all) != want || end.str("content") != want {
			t.Errorf("got %q and %q, want %q", said(all), end.str("content"), want)
		}
		usage := end.obj("usage")
		in, out, total := usage["inputTokens"].(float64), usage["outputTokens"].(float64), usage["totalTokens"].(float64)
		if in <= 0 || out <= 0 || total != in+out || end.str("stopReason") != "end_turn" {
			t.Errorf("usage %v, stopReason %v", usage, end["stopReason"])
		}
		calls := end.list("toolCalls")
		if len(calls) != 1 || msg(calls[0].(map[string]any)).str("output") != "found\n" || msg(calls[0].(map[string]any)).str("name") != "bash" {
			t.Errorf("toolCalls: %v", calls)
		}
	}
}

// K3, K5, K7, K8, K10, L15: sessions are created under the name a client chose, listed by agent, fetched whole, and stay
// deleted.
func TestS3Sessions(t *testing.T) {
	w := newWorld(t, []scene{{Match: "", Steps: []step{{Text: "an answer", Usage: &gatewaytest.Usage{Input: 100, CacheRead: 20, Output: 30}}}}})
	c := w.dial()
	send := func(m msg) msg {
		t.Helper()
		c.send(m)
		return c.next()
	}
	if m := send(msg{"type": "getSession", "id": "a", "sessionID": "mine"}); m.str("code") != "SESSION_NOT_FOUND" || m.str("id") != "a" {
		t.Errorf("before: %v", m)
	}
	for i, agent := range []string{"architect", "engineer"} {
		m := ask(fmt.Sprint("d", i), "question "+agent)
		m["agentID"], m["sessionID"] = agent, "of-"+agent
		c.send(m)
		c.turn(m.str("id"))
	}
	c.send(ask("d3", "without a session")) // E13
	if made := c.turn("d3")[0].str("sessionID"); made == "" {
		t.Error("no session was made")
	}
	all := send(msg{"type": "listSessions", "id": "l1"})
	if all.str("type") != "sessions" || len(all.list("sessions")) != 3 {
		t.Errorf("all: %v", all)
	}
	for agent, want := range map[string]int{"architect": 2, "orchestrator": 2, "engineer": 1, "reviewer": 0} {
		if m := send(msg{"type": "listSessions", "id": "l-" + agent, "agentID": agent}); len(m.list("sessions")) != want {
			t.Errorf("sessions of %s: got %v, want %d", agent, m, want)
		}
	}
	got := send(msg{"type": "getSession", "id": "g", "sessionID": "of-engineer"}).obj("session")
	turns := got.list("turns")
	if got.str("sessionID") != "of-engineer" || got.str("agentID") != "engineer" || got.str("title") != "question engineer" || len(turns) != 1 {
		t.Fatalf("session: %v", got)
	}
	one := msg(turns[0].(map[string]any))
	if one.obj("request").str("content") != "question engineer" || one.obj("response").str("content") != "an answer" || one.str("id") == "" ||
		fmt.Sprint(one.obj("usage")) != "map[inputTokens:120 outputTokens:30 totalTokens:150]" || one["timestamp"].(float64) <= 0 || one.list("toolCalls") == nil {
		t.Errorf("turn: %v", one)
	}
	more := ask("d5", "a second question")
	more["sessionID"] = "of-engineer"
	c.send(more)
	if end := c.turn("d5"); fmt.Sprint(end[len(end)-1].obj("usage")) != "map[inputTokens:120 outputTokens:30 totalTokens:150]" {
		t.Errorf("a turn's usage: %v", end)
	}
	if s := send(msg{"type": "getSession", "id": "g2", "sessionID": "of-engineer"}).obj("session"); fmt.Sprint(s.obj("usage")) != "map[inputTokens:240 outputTokens:60 totalTokens:300]" ||
		s["updatedAt"].(float64) < s["createdAt"].(float64) || s["turnCount"] != 2.0 {
		t.Errorf("a session's usage: %v", s)
	}
	if m := send(msg{"type": "query", "id": "u", "sessionID": "of-engineer", "messages": user("x")}); fmt.Sprint(m.obj("usage")) != "map[inputTokens:120 outputTokens:30]" {
		t.Errorf("usage in S4: %v", m)
	}
	if m := send(msg{"type": "deleteSession", "id": "x", "sessionID": "of-engineer"}); m.str("type") != "session-deleted" || m.str("sessionID") != "of-engineer" {
		t.Errorf("delete: %v", m)
	}
	m := ask("d4", "again")
	m["sessionID"] = "of-engineer"
	c.send(m)
	if m := c.turn("d4"); len(m) != 1 || m[0].str("code") != "SESSION_NOT_FOUND" {
		t.Errorf("a deleted session: %v", m)
	}
	if m := send(msg{"type": "query", "id": "q", "sessionID": "of-engineer", "messages": user("x")}); s4Code(m) != "SESSION_NOT_FOUND" {
		t.Errorf("a deleted session in S4: %v", m)
	}
}

// H11, H12, P9: what would need a question is refused with its reason, in the tool's result; the turn goes on.
// L16, G9: a tool that fails is an error event with recoverable, and not the turn's end.
func TestS3RefusedTool(t *testing.T) {
	w := newWorld(t, []scene{{Match: "remove", Steps: []step{{ToolCalls: []call{bash("rm -r old")}}, {Text: "So be it."}}}})
	old := filepath.Join(w.Project, "old")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	c := w.dial()
	c.send(ask("1", "remove it"))
	all := c.turn("1")
	if got, want := types(all), "turn-started tool-call tool-result error response-block turn-completed"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	result, e := of(all, "tool-result")[0], of(all, "error")[0]
	if !strings.Contains(result.str("output"), "Denied") || !strings.Contains(result.str("error"), "bash") {
		t.Errorf("result: %v", result)
	}
	if e.str("code") != "TOOL_ERROR" || e["recoverable"] != true || e.obj("details").str("tool") != "bash" || e.str("turnID") == "" {
		t.Errorf("error: %v", e)
	}
	if end := all[len(all)-1]; end.str("stopReason") != "end_turn" {
		t.Errorf("end: %v", end)
	}
	if _, err := os.Stat(old); err != nil {
		t.Errorf("it ran: %v", err)
	}
}

// each --approve, by the mode it becomes.
func TestApproveLevels(t *testing.T) {
	for _, tc := range []struct {
		mode string
		runs bool
	}{{"plan", false}, {"ask", false}, {"auto", true}} {
		t.Run(tc.mode, func(t *testing.T) {
			confinetest.Beside(t)
			w := newWorld(t, []scene{{Match: "make", Steps: []step{{ToolCalls: []call{bash("mkdir made")}}, {Text: "done"}}}},
				func(o *Options) { o.Mode = tc.mode })
			c := w.dial()
			c.send(ask("1", "make it"))
			c.turn("1")
			if _, err := os.Stat(filepath.Join(w.Project, "made")); (err == nil) != tc.runs {
				t.Errorf("ran: got %v, want %v", err == nil, tc.runs)
			}
		})
	}
}

// L19, L20, L22, L27, M2, M3: what the provider does becomes an error event in the turn, then the turn's one end (E20).
func TestS3ProviderErrors(t *testing.T) {
	w := newWorld(t, []scene{
		{Match: "auth", Steps: []step{{Error: "auth"}}},
		{Match: "long", Steps: []step{{Error: "context_too_long"}}},
		{Match: "broken", Steps: []step{{Text: "half an", Error: "broken"}}},
		{Match: "busy", Steps: []step{{Error: "overloaded"}}},
		{Match: "cut", Steps: []step{{Text: "to the limit", StopReason: "max_tokens"}}},
	})
	c := w.dial()
	for _, tc := range []struct{ prompt, code, stop string }{
		{"auth", "PROVIDER_ERROR", "error"}, {"long", "TOKEN_LIMIT", "error"}, {"broken", "PROVIDER_ERROR", "error"}, {"busy", "RATE_LIMIT", "error"}, {"cut", "", "max_tokens"},
	} {
		c.send(ask(tc.prompt, tc.prompt))
		all := c.turn(tc.prompt)
		end := all[len(all)-1]
		if end.str("type") != "turn-completed" || end.str("stopReason") != tc.stop {
			t.Errorf("%s: end %v", tc.prompt, end)
		}
		code := ""
		if e := of(all, "error"); len(e) == 1 {
			code = e[0].str("code")
			if e[0].str("message") == "" || e[0]["recoverable"] == nil {
				t.Errorf("%s: %v", tc.prompt, e[0])
			}
		}
		if code != tc.code {
			t.Errorf("%s: got %q, want %q in %v", tc.prompt, code, tc.code, all)
		}
	}
}

// D10: a request may name its model.
func TestS3Model(t *testing.T) {
	w := newWorld(t, []scene{{Match: "", Steps: []step{{Text: "hi"}}}})
	c := w.dial()
	for model, want := range map[string]string{"test/m": "end_turn", "nowhere/m": "error"} {
		m := ask(model, "x")
		m["metadata"] = msg{"model": model}
		c.send(m)
		all := c.turn(model)
		if end := all[len(all)-1]; end.str("stopReason") != want && end.str("type") != want {
			t.Errorf("%s: %v", model, all)
		}
	}
}

// L25, C10, N7: a request's own time-out.
func TestS3Timeout(t *testing.T) {
	w := newWorld(t, []scene{{Match: "wait", Steps: []step{{WaitFile: "/nonexistent/ever"}}}})
	c := w.dial()
	m := ask("1", "wait")
	m["metadata"] = msg{"timeoutMs": 50}
	c.send(m)
	all := c.turn("1")
	if e := of(all, "error"); len(e) != 1 || e[0].str("code") != "TIMEOUT" || all[len(all)-1].str("stopReason") != "error" {
		t.Errorf("got %v", all)
	}
}

// E15, C3: a cancel ends a turn; closing the connection cancels the turns of S3's dispatch, and not those of
// S4's.
func TestCancelAndClose(t *testing.T) {
	w := newWorld(t, []scene{
		{Match: "wait", Steps: []step{{Text: "so ", ToolCalls: []call{bash("true")}}, {WaitFile: "GATE", Text: "late"}}},
	})
	gate := w.Path("gate")
	w.Script([]scene{{Match: "wait", Steps: []step{{Text: "so ", ToolCalls: []call{bash("true")}}, {WaitFile: gate, Text: "late"}}}})
	c := w.dial()
	c.send(ask("1", "wait"))
	for c.next().str("type") != "tool-result" {
	}
	c.send(msg{"type": "cancel", "id": "2", "requestID": "1"})
	answered := false
	for {
		m := c.next()
		answered = answered || m.str("id") == "2" && m.str("type") == "ok"
		if m.str("id") == "1" && final(m) {
			if m.str("stopReason") != "error" {
				t.Errorf("end: %v", m)
			}
			break
		}
	}
	if !answered {
		t.Error("the cancel had no answer")
	}

	s3, s4 := ask("3", "wait"), msg{"type": "dispatch", "id": "4", "messages": user("wait")}
	s3["sessionID"] = "closing"
	c.send(s3)
	for c.next().str("type") != "tool-result" {
	}
	c.send(s4)
	kept := c.next().str("sessionID")
	c.conn.Close()

	d := w.dial()
	status := func(id, session string) msg {
		d.send(msg{"type": "getSession", "id": id, "sessionID": session})
		return d.next().obj("session")
	}
	d.send(msg{"type": "stream", "id": "c", "sessionID": "closing"})
	d.results("c")
	turns := status("c", "closing").list("turns")
	if one := msg(turns[0].(map[string]any)); one.str("stopReason") != "error" {
		t.Errorf("closing: %v", one)
	}
	if s := status("k", kept); s["running"] != true {
		t.Errorf("S4's turn ended with its connection: %v", s)
	}
	w.Write("gate", "")
	d.send(msg{"type": "stream", "id": "s", "sessionID": kept})
	all := d.results("s")
	if end := all[len(all)-1]; end.str("stopReason") != "end_turn" {
		t.Errorf("kept: %v", end)
	}
}

// A19: long deltas come compressed where the metadata asks; short ones do not. F20: nothing waits for the end.
func TestGzipDeltas(t *testing.T) {
	long := strings.Repeat("a long piece of an answer; ", 100)
	w := newWorld(t, []scene{{Match: "", Steps: []step{{Text: "start", ToolCalls: []call{bash("true")}}, {Text: long, ToolCalls: []call{bash("true")}}, {Text: "short"}}}})
	c := w.dial()
	m := ask("1", "x")
	m["metadata"] = msg{"compression": "gzip"}
	c.send(m)
	all := c.turn("1")
	chunks := of(all, "response-chunk")
	if len(chunks) != 2 || chunks[0]["deltaEncoded"] != true || chunks[1]["deltaEncoded"] != nil || chunks[1].str("delta") != "short" {
		t.Fatalf("chunks: %v", chunks)
	}
	raw, err := base64.StdEncoding.DecodeString(chunks[0].str("delta"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != long {
		t.Errorf("got %q, %v", got, err)
	}
	if len(raw) > len(long)/4 {
		t.Errorf("compressed: %d of %d bytes", len(raw), len(long))
	}
}

// F16, F21, R1, R4: events that the document does not have come only to those that asked for them.
func TestExtendedEvents(t *testing.T) {
	w := newWorld(t, []scene{{Match: "", Steps: []step{{Reasoning: "let me see", Text: "I look.", ToolCalls: []call{bash("echo live")}}, {Text: "done"}}}})
	c := w.dial()
	for _, extended := range []bool{false, true} {
		m := ask(fmt.Sprint(extended), "x")
		m["metadata"] = msg{"extended": extended}
		c.send(m)
		all := c.turn(m.str("id"))
		for _, kind := range []string{"thinking", "reasoning-chunk"} {
			if got := len(of(all, kind)) > 0; got != extended {
				t.Errorf("extended %v: %s %v in %s", extended, kind, got, types(all))
			}
		}
		if said(all) != "I look.done" {
			t.Errorf("extended %v: got %q", extended, said(all))
		}
	}
}

// A18, G10: results of calls that belong together come in one message where the metadata asks.
func TestToolResultsBatch(t *testing.T) {
	read := func(name string) call { return call{Name: "read", Arguments: map[string]any{"path": name}} }
	w := newWorld(t, []scene{{Match: "", Steps: []step{
		{ToolCalls: []call{read("a.txt"), read("b.txt"), read("none.txt")}}, {ToolCalls: []call{bash("echo alone")}}, {Text: "done"},
	}}})
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(w.Project, name), []byte("text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := w.dial()
	m := ask("1", "x")
	m["metadata"] = msg{"batchToolResults": true}
	c.send(m)
	all := c.turn("1")
	if got, want := types(all), "turn-started tool-call tool-results-batch error tool-call tool-result response-block turn-completed"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	results := of(all, "tool-results-batch")[0].list("results")
	ids := map[string]bool{}
	for _, c := range of(all, "tool-call")[:3] {
		ids[c.str("toolID")] = true
	}
	failed := 0
	for _, r := range results {
		r := msg(r.(map[string]any))
		if !ids[r.str("toolID")] {
			t.Errorf("result of nobody: %v", r)
		}
		if r.str("error") != "" {
			failed++
		}
	}
	if len(results) != 3 || failed != 1 {
		t.Errorf("results: %v", results)
	}
}

// D9, P6: files go along when they are in the project, and nothing else does.
func TestFiles(t *testing.T) {
	w := newWorld(t, []scene{{Match: "", Steps: []step{{Text: "read"}}}})
	secret := w.Write("secret.txt", "secret")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(w.Project, "src"), 0o700))
	must(os.WriteFile(filepath.Join(w.Project, "src", "auth.ts"), []byte("export {}"), 0o600))
	must(os.Symlink(secret, filepath.Join(w.Project, "link.txt")))
	must(os.Symlink("..", filepath.Join(w.Project, "up")))
	must(os.Symlink("src/auth.ts", filepath.Join(w.Project, "inside.ts")))
	c := w.dial()
	for i, tc := range []struct {
		file string
		ok   bool
	}{
		{"src/auth.ts", true},
		{"./src/auth.ts", true},
		{filepath.Join(w.Project, "src/auth.ts"), true},
		{"inside.ts", true},
		{"../secret.txt", false},
		{"src/../../secret.txt", false},
		{"src/../src/auth.ts", false},
		{secret, false},
		{"/etc/passwd", false},
		{"link.txt", false},
		{"up/secret.txt", false},
		{"src", false},
		{"none.ts", false},
		{"", false},
		{"a\x00b", false},
		{"/dev/zero", false},
	} {
		m := ask(fmt.Sprint(i), "read it")
		m["files"] = []string{"src/auth.ts", tc.file}
		c.send(m)
		all := c.turn(fmt.Sprint(i))
		if got := all[0].str("type") == "turn-started"; got != tc.ok {
			t.Errorf("%q: got %v", tc.file, all)
		} else if !tc.ok && (all[0].str("code") != "INVALID_REQUEST" || all[0].obj("details").str("field") != "files") {
			t.Errorf("%q: %v", tc.file, all)
		}
		s4 := msg{"type": "query", "id": fmt.Sprint("q", i), "messages": []msg{{"role": "user", "content": []msg{
			{"type": "text", "text": "read"}, {"type": "file", "path": tc.file, "size": 1},
		}}}}
		c.send(s4)
		if m := c.next(); (m.str("stopReason") == "end_turn") != tc.ok {
			t.Errorf("S4 %q: %v", tc.file, m)
		}
	}
}

// L14: an unknown agent, in both dialects.
func TestUnknownAgent(t *testing.T) {
	w := newWorld(t, nil)
	c := w.dial()
	m := ask("1", "x")
	m["agentID"] = "nobody"
	c.send(m)
	if all := c.turn("1"); len(all) != 1 || all[0].str("code") != "AGENT_NOT_FOUND" {
		t.Errorf("S3: %v", all)
	}
	for _, kind := range []string{"query", "dispatch"} {
		c.send(msg{"type": kind, "id": kind, "agentID": "nobody", "messages": user("x")})
		if m := c.next(); s4Code(m) != "AGENT_NOT_FOUND" || m.str("stopReason") != "error" {
			t.Errorf("%s: %v", kind, m)
		}
	}
}
