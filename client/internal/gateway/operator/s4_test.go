package operator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/client/internal/gateway/gatewaytest"
)

// E6, E7, E8, E9, K4, K6, L15, L30, F11, F12, F13, F14, M4, G7: dispatch answers at once with the session; its
// stream begins with stream_start, grows, shows tools, and ends with the turn. query has it all at once.
func TestS4DispatchAndStream(t *testing.T) {
	text := "Here:\n\n```go\nfunc main() {}\n```\n\n```svg\n<svg width=\"40\" height='20.5px'><rect/></svg>\n```\n![a cat](https://example.org/cat.png)\nDone."
	gate := "GATE"
	w := newWorld(t, nil)
	gate = w.Path("gate")
	w.Script([]scene{{Match: "tests", Steps: []step{
		{Text: "Analyzing", ToolCalls: []call{bash("echo ran")}}, {WaitFile: gate, Text: text},
	}}})
	c := w.dial()
	c.send(msg{"type": "dispatch", "id": "d", "messages": user("Run the tests"), "tools": []string{"bash"}, "agentID": "architect"})
	taken := c.next()
	session := taken.str("sessionID")
	if session == "" || taken.str("agentID") != "architect" || len(taken.list("content")) != 0 || taken["stopReason"] != nil || taken.str("id") != "d" {
		t.Fatalf("dispatch: %v", taken)
	}
	c.send(msg{"type": "stream", "id": "s", "sessionID": session})
	first := c.next()
	if first.str("stopReason") != "stream_start" || len(first.list("content")) != 0 || len(first.list("turns")) != 0 || first.str("sessionID") != session {
		t.Fatalf("first: %v", first)
	}
	before := 0
	for { // until the tool is there with its result
		m := c.next()
		if m["stopReason"] != nil {
			t.Fatalf("stopReason before the end: %v", m)
		}
		if n := len(m.list("content")); n < before {
			t.Fatalf("a result shrank: %v", m)
		} else {
			before = n
		}
		turns := m.list("turns")
		if len(turns) == 0 {
			continue
		}
		calls := msg(turns[0].(map[string]any)).list("toolCalls")
		if len(calls) == 1 && msg(calls[0].(map[string]any)).str("result") == "ran\n" {
			break
		}
	}
	w.Write("gate", "")
	all := c.results("s")
	end := all[len(all)-1]
	var kinds []string
	for _, b := range end.list("content") {
		kinds = append(kinds, msg(b.(map[string]any)).str("type"))
	}
	if got, want := strings.Join(kinds, " "), "text tool text code svg image text"; got != want {
		t.Fatalf("blocks: got %s, want %s in %v", got, want, end)
	}
	block := func(i int) msg { return end.list("content")[i].(map[string]any) }
	if b := block(1); b.str("name") != "bash" || b.obj("input").str("command") != "echo ran" || b.str("id") == "" {
		t.Errorf("tool: %v", b)
	}
	if b := block(3); b.str("language") != "go" || b.str("source") != "func main() {}" {
		t.Errorf("code: %v", b)
	}
	if b := block(4); b["width"] != 40.0 || b["height"] != 20.5 || !strings.HasPrefix(b.str("content"), "<svg") {
		t.Errorf("svg: %v", b)
	}
	if b := block(5); b.str("url") != "https://example.org/cat.png" || b.str("alt") != "a cat" {
		t.Errorf("image: %v", b)
	}
	if end.str("stopReason") != "end_turn" || end.obj("usage")["inputTokens"].(float64) <= 0 || end.obj("usage")["outputTokens"].(float64) <= 0 {
		t.Errorf("end: %v", end)
	}
	turn := msg(end.list("turns")[0].(map[string]any))
	run := msg(turn.list("toolCalls")[0].(map[string]any))
	if at, err := time.Parse(time.RFC3339, run.str("executedAt")); err != nil || time.Since(at).Abs() > time.Hour {
		t.Errorf("executedAt: %v, %v", run, err)
	}
	if turn.str("id") == "" || turn.obj("request").str("role") != "user" || turn.obj("response").str("role") != "assistant" ||
		msg(turn.obj("request").list("content")[0].(map[string]any)).str("text") != "Run the tests" {
		t.Errorf("turn: %v", turn)
	}

	c.send(msg{"type": "query", "id": "q", "sessionID": session, "messages": user("Run the tests")})
	m := c.next()
	if m.str("id") != "q" || len(m.list("turns")) != 2 || len(m.list("content")) != 7 || m.str("stopReason") != "end_turn" {
		t.Errorf("query: %v", m)
	}
	c.send(msg{"type": "query", "id": "q2", "sessionID": "nowhere", "messages": user("x")})
	if m := c.next(); s4Code(m) != "SESSION_NOT_FOUND" || m.str("stopReason") != "error" || m.str("sessionID") != "nowhere" || len(m.list("turns")) != 0 {
		t.Errorf("an unknown session: %v", m)
	}
	c.send(msg{"type": "stream", "id": "s2", "sessionID": "nowhere"})
	if m := c.next(); s4Code(m) != "SESSION_NOT_FOUND" {
		t.Errorf("a stream of an unknown session: %v", m)
	}
}

// C6, C7, T6: a stream that was dropped goes on after the last turn the client has, whole, from a new connection.
func TestS4Resume(t *testing.T) {
	w := newWorld(t, nil)
	gate := w.Path("gate")
	w.Script([]scene{
		{Match: "first", Steps: []step{{Text: "one"}}},
		{Match: "second", Steps: []step{{Text: "two ", ToolCalls: []call{bash("echo tool")}}, {WaitFile: gate, Text: "and a half"}}},
	})
	c := w.dial()
	c.send(msg{"type": "query", "id": "q", "messages": user("first")})
	done := c.next()
	session := done.str("sessionID")
	one := msg(done.list("turns")[0].(map[string]any)).str("id")
	c.send(msg{"type": "dispatch", "id": "d", "sessionID": session, "messages": user("second")})
	c.next()
	c.send(msg{"type": "stream", "id": "s", "sessionID": session, "lastTurnID": one})
	for len(c.next().list("turns")) == 0 { // in the middle of the turn
	}
	c.conn.Close()

	d := w.dial()
	d.send(msg{"type": "stream", "id": "again", "sessionID": session, "lastTurnID": one})
	if m := d.next(); m.str("stopReason") != "stream_start" {
		t.Fatalf("first: %v", m)
	}
	if m := d.next(); len(m.list("turns")) != 1 || len(m.list("content")) != 2 {
		t.Fatalf("where it stands: %v", m)
	}
	w.Write("gate", "")
	all := d.results("again")
	end := all[len(all)-1]
	if len(end.list("turns")) != 1 || end.str("stopReason") != "end_turn" || len(end.list("content")) != 3 {
		t.Errorf("end: %v", end)
	}
	// A turn that ended meanwhile is told at once; with everything told, the stream waits for the next turn.
	d.send(msg{"type": "stream", "id": "late", "sessionID": session, "lastTurnID": one})
	if all := d.results("late"); len(all) != 2 || len(all[1].list("turns")) != 1 {
		t.Errorf("late: %v", all)
	}
	two := msg(end.list("turns")[0].(map[string]any)).str("id")
	d.send(msg{"type": "stream", "id": "next", "sessionID": session, "lastTurnID": two})
	if m := d.next(); m.str("stopReason") != "stream_start" {
		t.Errorf("next: %v", m)
	}
	e := w.dial()
	e.send(msg{"type": "query", "id": "q", "sessionID": session, "messages": user("first")})
	e.next()
	all = d.results("next")
	if end := all[len(all)-1]; len(end.list("turns")) != 1 || fmt.Sprint(end.list("content")) != "[map[text:one type:text]]" {
		t.Errorf("next: %v", end)
	}
	d.send(msg{"type": "stream", "id": "odd", "sessionID": session, "lastTurnID": "nonsense"})
	if all := d.results("odd"); s4Code(all[1]) != "INVALID_REQUEST" {
		t.Errorf("an unknown turn: %v", all)
	}
}

// E9, D7, D8, G12, L17, P10: the context's project is where the agent works; a tool that is not on its list is refused as
// TOOL_NOT_AVAILABLE; one that fails is TOOL_EXECUTION_FAILED (L18), and the turn goes on.
func TestS4Context(t *testing.T) {
	w := newWorld(t, []scene{
		{Match: "where", Steps: []step{{ToolCalls: []call{bash("pwd")}}, {Text: "there"}}},
		{Match: "fail", Steps: []step{{ToolCalls: []call{bash("exit 3")}}, {Text: "anyway"}}},
	})
	there := t.TempDir()
	c := w.dial()
	request := func(id, message string, tools []string, path string) msg {
		t.Helper()
		c.send(msg{"type": "send_context_request", "id": id, "context": msg{
			"project": msg{"name": "p", "path": path}, "tools": tools, "userMessage": message,
		}})
		return c.next()
	}
	m := request("1", "where am I", []string{"bash", "read"}, there)
	run := msg(msg(m.list("turns")[0].(map[string]any)).list("toolCalls")[0].(map[string]any))
	if strings.TrimSpace(run.str("result")) != there || m.str("stopReason") != "end_turn" {
		t.Errorf("project: %v", m)
	}
	if m := request("2", "where am I", []string{"read"}, there); s4Code(m) != "TOOL_NOT_AVAILABLE" || m.str("stopReason") != "end_turn" {
		t.Errorf("a tool not on the list: %v", m)
	}
	if m := request("3", "where am I", []string{}, there); s4Code(m) != "TOOL_NOT_AVAILABLE" {
		t.Errorf("an empty list: %v", m)
	}
	if m := request("4", "fail", []string{"bash"}, there); s4Code(m) != "TOOL_EXECUTION_FAILED" || m.str("stopReason") != "end_turn" {
		t.Errorf("a tool that fails: %v", m)
	}
	// The list counts as well in query and dispatch.
	c.send(msg{"type": "query", "id": "5", "messages": user("where"), "tools": []string{"read"}})
	if m := c.next(); s4Code(m) != "TOOL_NOT_AVAILABLE" {
		t.Errorf("a tool not on a query's list: %v", m)
	}
	c.send(msg{"type": "dispatch", "id": "6", "messages": user("where"), "tools": []string{"read"}})
	c.send(msg{"type": "stream", "id": "7", "sessionID": c.next().str("sessionID")})
	if all := c.results("7"); s4Code(all[len(all)-1]) != "TOOL_NOT_AVAILABLE" {
		t.Errorf("a tool not on a dispatch's list: %v", all)
	}
	for i, path := range []string{"relative", "/nonexistent/x", there + "/..", "/etc/passwd", "/\x00"} {
		if m := request(fmt.Sprint("p", i), "where", nil, path); s4Code(m) != "INVALID_REQUEST" {
			t.Errorf("project %q: %v", path, m)
		}
	}
}

// F22, F15, E7: messages of both roles; what came before goes along with the question.
func TestS4Messages(t *testing.T) {
	w := newWorld(t, []scene{{Match: `(?s)user: a\n.*assistant: b\n.*Now:\s+c`, Steps: []step{{Text: "all of it"}}}, {Match: `\[image image/png https://x/y.png\]`, Steps: []step{{Text: "an image"}}}})
	c := w.dial()
	say := func(role, text string) msg {
		return msg{"role": role, "content": []msg{{"type": "text", "text": text}}}
	}
	answer := func(id string, messages any) msg {
		t.Helper()
		c.send(msg{"type": "query", "id": id, "messages": messages})
		return c.next()
	}
	if m := answer("1", []msg{say("user", "a"), say("assistant", "b"), say("user", "c")}); fmt.Sprint(m.list("content")) != "[map[text:all of it type:text]]" {
		t.Errorf("history: %v", m)
	}
	image := msg{"role": "user", "content": []msg{{"type": "text", "text": "what is"}, {"type": "image", "url": "https://x/y.png", "mimeType": "image/png"}}}
	if m := answer("2", []msg{image}); fmt.Sprint(m.list("content")) != "[map[text:an image type:text]]" {
		t.Errorf("image: %v", m)
	}
	for i, bad := range []any{
		[]msg{},
		nil, "text",
		[]msg{say("system", "x")},
		[]msg{say("tool", "x")},
		[]msg{say("assistant", "x")},
		[]msg{{"role": "user"}},
		[]msg{{"role": "user", "content": 3}},
		[]msg{{"role": "user", "content": []msg{{"type": "video"}}}},
		[]msg{{"role": "user", "content": []msg{{"type": "text"}}}},
		[]msg{{"role": "user", "content": []msg{{"type": "image"}}}},
		[]msg{{"role": "user", "content": []msg{}}},
		[]msg{{"role": 3}},
		[]any{1},
		map[string]any{},
	} {
		if m := answer(fmt.Sprint("b", i), bad); s4Code(m) != "INVALID_REQUEST" || m.str("stopReason") != "error" {
			t.Errorf("%v: got %v", bad, m)
		}
	}
}

// both dialects on one connection, line by line; each answer in the dialect of its request.
func TestDialectsMixed(t *testing.T) {
	w := newWorld(t, []scene{{Match: "", Steps: []step{{Text: "hi"}}}})
	c := w.dial()
	for i := range 3 {
		c.send(ask(fmt.Sprint("a", i), "x"))
		c.turn(fmt.Sprint("a", i))
		c.send(msg{"type": "query", "id": fmt.Sprint("b", i), "messages": user("x")})
		if m := c.next(); m.str("stopReason") != "end_turn" {
			t.Errorf("S4: %v", m)
		}
	}
	// What says nothing about its dialect is answered in the one spoken last; an unknown type was answered in S3.
	for _, line := range []string{"nonsense", `{"type":"jump"}`, `{"type":3}`} {
		c.write(line + "\n")
		if m := c.next(); s4Code(m) != "INVALID_REQUEST" {
			t.Errorf("after S4: %s: %v", line, m)
		}
	}
	c.send(ask("c", "x"))
	c.turn("c")
	c.write("nonsense\n")
	if m := c.next(); m.str("code") != "INVALID_REQUEST" {
		t.Errorf("after S3: %v", m)
	}
	// An S4 stream and an S3 turn side by side, told apart by id (E21).
	c.send(msg{"type": "query", "id": "q", "messages": user("x")})
	c.send(ask("r", "x"))
	got := map[string]bool{}
	for !got["q"] || !got["r"] {
		m := c.next()
		if m.str("id") == "q" || final(m) {
			got[m.str("id")] = true
		}
	}
}

// C6: a daemon that was restarted is found again, and a stream tells how its turn ended.
func TestDaemonRestart(t *testing.T) {
	w := newWorld(t, []scene{{Match: "wait", Steps: []step{{WaitFile: "/nonexistent/ever"}}}, {Match: "", Steps: []step{{Text: "back"}}}})
	c := w.dial()
	c.send(msg{"type": "dispatch", "id": "d", "messages": user("wait")})
	session := c.next().str("sessionID")
	c.send(msg{"type": "stream", "id": "s", "sessionID": session})
	if m := c.next(); m.str("stopReason") != "stream_start" {
		t.Fatalf("stream: %v", m)
	}
	m := ask("s3", "wait")
	m["sessionID"] = "other"
	c.send(m)
	for c.next().str("type") != "turn-started" {
	}
	w.Stop()
	w.Start()
	ended := map[string]bool{}
	deadline := time.Now().Add(gatewaytest.Patience)
	for !(ended["s"] && ended["s3"]) && time.Now().Before(deadline) {
		m := c.next()
		if m.str("stopReason") == "error" {
			ended[m.str("id")] = true
		}
	}
	if !ended["s"] || !ended["s3"] {
		t.Fatalf("ended: %v", ended)
	}
	c.send(msg{"type": "query", "id": "q", "sessionID": session, "messages": user("hello")})
	if m := c.next(); m.str("stopReason") != "end_turn" || len(m.list("turns")) != 2 {
		t.Errorf("afterwards: %v", m)
	}
}

// A whole result is read after its turn has ended, when the connection may have released its link to the session in favour of others.
func TestWholeResultsOfManySessions(t *testing.T) {
	const n = 10 * maxLinks
	w := newWorld(t, []scene{{Match: "hello", Steps: []step{{Text: "hi"}}}}, func(o *Options) { o.Daemon.Limits.RunningTurns, o.Daemon.Limits.RequestsPerSecond = n, n })
	c := w.dial()
	for i := range n {
		c.send(msg{"type": "query", "id": fmt.Sprint(i), "messages": user("hello")})
	}
	for range n {
		if m := c.next(); fmt.Sprint(m.list("content")) != "[map[text:hi type:text]]" {
			t.Errorf("got %v", m)
		}
	}
}
