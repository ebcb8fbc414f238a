package jsonrpc

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// One test for each row of the checklist that S2 states, named by it. One server serves those that need nothing special.

var common = []scene{
	{Match: "^say$", Steps: []step{{Text: "hello there"}}},
	{Match: "^pieces$", Steps: []step{{Text: "one two three four", ChunkBytes: 4, ChunkMS: 1}}},
	{Match: "^tool$", Steps: []step{{ToolCalls: []call{bash("echo tool-ran")}}, {Text: "ok"}}},
	{Match: "^risky$", Steps: []step{{ToolCalls: []call{bash("echo x > made.txt")}}, {Text: "ok"}}},
	{Match: "^write$", Steps: []step{{ToolCalls: []call{{Name: "write", Arguments: map[string]any{"path": "new.txt", "content": "one\ntwo\n"}}}}, {Text: "ok"}}},
	{Match: "^env$", Steps: []step{{ToolCalls: []call{bash("pwd; echo color=$FAVOURITE")}}, {Text: "ok"}}},
	{Match: "^endless$", Steps: []step{{Text: strings.Repeat("word ", 2000), ChunkBytes: 5, ChunkMS: 20}}},
	{Match: "^code$", Steps: []step{{Text: "Look:\n```go\nx := 1\n```\n"}}},
	{Match: "^odd$", Steps: []step{{Text: "a\nb\u2028\u00e9\U0001f600\n", ChunkBytes: 1, ToolCalls: []call{bash(`printf 'one\ntwo\r\n\377\0end'`)}}, {Text: "ok"}}},
	{Match: "^auth$", Steps: []step{{Error: "auth"}}},
	{Match: "^broken$", Steps: []step{{Text: "begun", Error: "broken"}}},
}

func TestA2_SocketPath(t *testing.T) {
	env := map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}
	get := func(name string) string { return env[name] }
	for _, c := range []struct {
		compat bool
		want   string
	}{{false, "/run/user/7/sublet-42.sock"}, {true, "/run/user/7/openagent-terminal-42.sock"}} {
		if got := Path(get, 42, c.compat); got != c.want {
			t.Errorf("compat %v: got %s, want %s", c.compat, got, c.want)
		}
	}
	env["XDG_RUNTIME_DIR"] = ""
	if got, want := Path(get, 42, true), "/tmp/openagent-terminal-42.sock"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestConformance(t *testing.T) {
	w := newWorld(t, nil)
	w.Script(append([]scene{{Match: "^gate$", Steps: []step{{WaitFile: w.Path("gate-E4"), Text: "opened"}}}}, common...))
	run := func(name string, f func(t *testing.T, w *world)) {
		t.Run(name, func(t *testing.T) {
			own := *w
			world := *w.World
			world.T, own.World = t, &world
			f(t, &own)
		})
	}
	run("A1 A3 C8 P1 the socket, mode 0600, is there before a client is told of it", func(t *testing.T, w *world) {
		w.dial() // at once: nothing is tried twice
		info, err := os.Stat(w.o.Socket)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got %v %v, want mode 0600", info.Mode(), err)
		}
	})
	run("A16 ids are numbers or strings and come back as they were", func(t *testing.T, w *world) {
		c := w.ready()
		for _, id := range []string{`7`, `"seven"`, `-1`, `1.5`, `1e3`, `"\u00e9"`, `""`} {
			c.write(`{"jsonrpc":"2.0","id":` + id + `,"method":"agent.cancel","params":{"query_id":"none"}}` + "\n")
			var want any
			_ = json.Unmarshal([]byte(id), &want) // constants
			if m := c.next(); m["id"] != want {
				t.Errorf("id %s: got %v", id, m["id"])
			}
		}
		for _, id := range []string{`null`, `true`, `{}`, `[1]`} {
			c.write(`{"jsonrpc":"2.0","id":` + id + `,"method":"agent.cancel","params":{"query_id":"none"}}` + "\n")
			m := c.next()
			if got, ok := m["id"]; !ok || got != nil || errorCode(m) != codeRequest {
				t.Errorf("id %s: got %v, want -32600 with id null", id, m)
			}
		}
	})
	run("A16 params by position", func(t *testing.T, w *world) {
		c := w.dial()
		if m := c.call("initialize", `["1.0.0",{"name":"t","version":"0"},{"cols":80,"rows":24}]`); result(t, m)["status"] != "ready" {
			t.Errorf("got %v", m)
		}
		if m := c.call("agent.cancel", `["a","b"]`); errorCode(m) != codeParams {
			t.Errorf("too many: got %v", m)
		}
	})
	run("A15 B1 B6 B8 B10 B12 B13 initialize", func(t *testing.T, w *world) {
		c := w.dial()
		r := result(t, c.call("initialize", strings.ReplaceAll(`{"protocol_version":"1.0.0","client_info":{"name":"openagent-terminal","version":"0.1.0"},
			"terminal_size":{"cols":80,"rows":24,"pixel_width":800,"pixel_height":600},
			"capabilities":["streaming","blocks","syntax_highlighting","tool_approval","session_persistence"],
			"config":{"theme":"monokai","font_size":14}}`, "\n", " ")))
		if r["status"] != "ready" || r["protocol_version"] != "1.0.0" {
			t.Errorf("got %v", r)
		}
		info := r["server_info"].(map[string]any)
		if info["name"] == "" || info["version"] == "" {
			t.Errorf("server_info: got %v", info)
		}
		if got := fmt.Sprint(r["capabilities"]); got != "[streaming blocks tool_execution context_aware]" {
			t.Errorf("capabilities: got %v", got)
		}
		model := r["models"].([]any)[0].(map[string]any)
		if model["name"] != "test/m" || model["type"] != "chat" || model["loaded"] != true {
			t.Errorf("models: got %v", r["models"])
		}
	})
	run("B5 B7 B11 what a client says of itself", func(t *testing.T, w *world) {
		for _, bad := range []string{
			`"client_info":"me"`, `"client_info":{"name":7}`, `"client_info":{"version":[]}`, `"capabilities":"streaming"`, `"capabilities":[1]`,
			`"config":[]`, `"config":"monokai"`, `"terminal_size":{"cols":"80"}`,
		} {
			if m := w.dial().call("initialize", `{"protocol_version":"1.0.0",`+bad+`}`); errorCode(m) != codeParams {
				t.Errorf("%s: got %v", bad, m)
			}
		}
		// A capability decides what comes: without blocks code is text, without streaming it comes at once. One that is not
		// known is no mistake. Themes and fonts are the client's own affair.
		for _, c := range []struct {
			capabilities   string
			blocks, pieces bool
		}{{`"blocks","streaming"`, true, true}, {`"streaming"`, false, true}, {`"syntax_highlighting","session_persistence","of_tomorrow"`, false, false}} {
			cl := w.ready(`{"protocol_version":"1.0.0","client_info":{"name":"é","version":""},"config":{"theme":"monokai","font_size":14,"x":[1]},"capabilities":[` + c.capabilities + `]}`)
			text, _, seen := cl.outcome(cl.query("code"))
			blocks := slices.ContainsFunc(seen, func(m map[string]any) bool { return m["method"] == "stream.block" })
			if blocks != c.blocks || strings.Contains(text, "x := 1") == c.blocks {
				t.Errorf("%s: got %q, blocks %v", c.capabilities, text, blocks)
			}
			_, _, seen = cl.outcome(cl.query("odd"))
			if n := len(slices.DeleteFunc(seen, func(m map[string]any) bool { return m["method"] != "stream.token" && m["method"] != "stream.tokens" })); n == 0 || !c.pieces && n > 2 {
				t.Errorf("%s: %d pieces", c.capabilities, n)
			}
		}
	})
	run("A11 A12 no raw newline in a message, and UTF-8 whatever a program prints", func(t *testing.T, w *world) {
		c := w.ready() // its reader takes every line as one JSON text
		text, _, seen := c.outcome(c.query("odd"))
		if want := "a\nb\u2028\u00e9\U0001f600\nok"; text != want {
			t.Errorf("text: got %q, want %q", text, want)
		}
		if out := output(seen); !strings.HasPrefix(out, "one\ntwo\n\uFFFD") || !strings.Contains(out, "end") {
			t.Errorf("output: got %q", out)
		}
	})
	run("E4 M5 a query is answered before its model says anything", func(t *testing.T, w *world) {
		c := w.ready()
		r := result(t, c.call("agent.query", `{"message":"gate"}`))
		if id, _ := r["query_id"].(string); id == "" || r["status"] != "processing" || len(r) != 2 {
			t.Errorf("got %v", r)
		}
		w.Write("gate-E4", "")
		if _, complete, _ := c.outcome(r["query_id"].(string)); complete["status"] != "success" {
			t.Errorf("got %v", complete)
		}
	})
	run("B2 B3 B4 the version is negotiated", func(t *testing.T, w *world) {
		for version, ok := range map[string]bool{"1.0.0": true, "1.9.2": true, "1.0.7": true, "2.0.0": false, "0.9.0": false, "one": false, "": false, "1": false, "1.": false, "1.x.0": false, "1.0.0.0": false, "+1.0.0": false, "1.0": true} {
			m := w.dial().call("initialize", `{"protocol_version":"`+version+`","client_info":{"name":"t","version":"0"}}`)
			if got := errorCode(m) == 0; got != ok {
				t.Errorf("%q: got %v, want accepted %v", version, m, ok)
			}
		}
	})
	run("C12 L3 an unknown method", func(t *testing.T, w *world) {
		if m := w.ready().call("agent.dance", `{}`); errorCode(m) != codeMethod {
			t.Errorf("got %v", m)
		}
	})
	run("D1 D2 D3 E2 context and context.update move the agent's shell", func(t *testing.T, w *world) {
		c := w.ready()
		one, two := filepath.Join(w.Project, "one"), filepath.Join(w.Project, "two")
		for _, d := range []string{one, two} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		_, _, seen := c.outcome(c.query("env", `,"context":{"cwd":"`+one+`","shell":"bash","env":{"FAVOURITE":"blue"}}`))
		if out := output(seen); out != one+"\ncolor=blue\n" {
			t.Errorf("context: got %q", out)
		}
		c.write(`{"jsonrpc":"2.0","method":"context.update","params":{"cwd":"` + two + `","env":{"FAVOURITE":"red"},"terminal_size":{"cols":100,"rows":30}}}` + "\n")
		_, _, seen = c.outcome(c.query("env"))
		if out := output(seen); out != two+"\ncolor=red\n" {
			t.Errorf("context.update: got %q", out)
		}
	})
	run("D4 D5 D6 recent commands, output and open files are taken", func(t *testing.T, w *world) {
		c := w.ready()
		_, complete, _ := c.outcome(c.query("say", `,"context":{"recent_commands":[{"command":"cargo build","exit_code":0,"timestamp":1696435200},{"command":"cargo test","exit_code":1,"timestamp":1696435210}],"recent_output":"panicked","open_files":["src/main.rs"]}`))
		if complete["status"] != "success" {
			t.Errorf("got %v", complete)
		}
	})
	run("E3 options", func(t *testing.T, w *world) {
		c := w.ready()
		text, complete, seen := c.outcome(c.query("tool", `,"options":{"stream":true,"max_tokens":2048,"temperature":0.7,"tools_enabled":false,"require_approval":true}`))
		refused := fmt.Sprint(complete["metadata"])
		if !strings.Contains(refused, "allow-list") || output(seen) == "tool-ran\n" {
			t.Errorf("tools_enabled false: got %q %v", text, complete)
		}
		for _, bad := range []string{`"max_tokens":0`, `"temperature":3`, `"stream":"yes"`, `"max_tokens":1.5`} {
			if m := c.call("agent.query", `{"message":"say","options":{`+bad+`}}`); errorCode(m) != codeParams {
				t.Errorf("%s: got %v", bad, m)
			}
		}
	})
	run("E3 stream false gives the whole at its end", func(t *testing.T, w *world) {
		c := w.ready(`{"protocol_version":"1.0.0","client_info":{"name":"t","version":"0"},"capabilities":["streaming"]}`)
		_, _, seen := c.outcome(c.query("say", `,"options":{"stream":false}`))
		tokens := slices.DeleteFunc(seen, func(m map[string]any) bool { return !strings.HasPrefix(m["method"].(string), "stream.token") })
		if len(tokens) != 1 || tokens[0]["token"] != "hello there" {
			t.Errorf("got %v", tokens)
		}
	})
	run("E14 M1 T4 cancel", func(t *testing.T, w *world) {
		c := w.ready()
		id := c.query("endless")
		c.until("stream.token")
		if m := c.call("session.load", `{"path":"/x"}`); errorCode(m) != codeAgent || !strings.Contains(fmt.Sprint(m), "1 queries run") {
			t.Errorf("load while it runs: got %v", m)
		}
		r := result(t, c.call("agent.cancel", `{"query_id":"`+id+`"}`))
		if r["cancelled"] != true || r["query_id"] != id {
			t.Errorf("got %v", r)
		}
		_, complete, seen := c.outcome(id)
		if complete["status"] != "cancelled" {
			t.Errorf("status: got %v", complete)
		}
		if slices.ContainsFunc(seen, func(m map[string]any) bool { return m["method"] == "stream.error" }) {
			t.Errorf("a cancelled query told an error: %v", seen)
		}
		if r := result(t, c.call("agent.cancel", `{"query_id":"`+id+`"}`)); r["cancelled"] != false {
			t.Errorf("again: got %v", r)
		}
		if m := c.call("agent.cancel", `{"query_id":"q-none"}`); errorCode(m) != codeParams {
			t.Errorf("unknown: got %v", m)
		}
	})
	run("E17 E20 K9 O6 one end, with its metadata", func(t *testing.T, w *world) {
		c := w.ready()
		_, complete, _ := c.outcome(c.query("tool"))
		m := complete["metadata"].(map[string]any)
		if m["total_tokens"].(float64) <= 0 || m["model_used"] != "test/m" || fmt.Sprint(m["tools_executed"]) != "[bash]" || m["duration_ms"] == nil || m["tokens_per_second"] == nil {
			t.Errorf("got %v", m)
		}
		// Nothing follows an end but the answer to what comes next.
		c.call("agent.cancel", `{"query_id":"none"}`)
		if len(c.waiting) != 0 {
			t.Errorf("after the end: %v", c.waiting)
		}
	})
	run("F2 stream.token has an index that grows by one", func(t *testing.T, w *world) {
		c := w.ready()
		_, _, seen := c.outcome(c.query("pieces"))
		want := 0.0
		for _, m := range seen {
			list := []any{m}
			if m["method"] == "stream.tokens" { // F3
				list = m["tokens"].([]any)
			} else if m["method"] != "stream.token" {
				continue
			}
			for _, v := range list {
				tok := v.(map[string]any)
				meta := tok["metadata"].(map[string]any)
				if tok["index"] != want || meta["type"] != "text" || meta["confidence"] == nil {
					t.Errorf("got %v, want index %v", tok, want)
				}
				want++
			}
		}
		if want < 2 {
			t.Errorf("%v tokens", want)
		}
	})
	run("F16 agent.thinking", func(t *testing.T, w *world) {
		c := w.ready()
		_, _, seen := c.outcome(c.query("tool"))
		phases := map[any]bool{}
		for _, m := range seen {
			if m["method"] == "agent.thinking" {
				phases[m["phase"]] = true
			}
		}
		for _, want := range []string{"analyzing", "planning", "generating", "executing"} {
			if !phases[want] {
				t.Errorf("no phase %s in %v", want, phases)
			}
		}
	})
	run("F17 suggestion.inline", func(t *testing.T, w *world) {
		commands := `"recent_commands":[{"command":"cargo test","exit_code":1,"timestamp":1},{"command":"cargo test -- --nocapture","exit_code":0,"timestamp":2},{"command":"cargo test","exit_code":1,"timestamp":3}]`
		moved := w.ready()
		moved.write(`{"jsonrpc":"2.0","method":"context.update","params":{` + commands + "}}\n")
		if s, _ := moved.until("suggestion.inline"); s["suggestion"] != "cargo test -- --nocapture" {
			t.Errorf("after context.update: got %v", s)
		}
		c := w.ready()
		c.query("say", `,"context":{`+commands+`}`)
		s, _ := c.until("suggestion.inline")
		if s["suggestion"] != "cargo test -- --nocapture" || s["source"] != "command_history" || s["confidence"].(float64) <= 0 || s["context"] == "" {
			t.Errorf("got %v", s)
		}
	})
	run("G1 G2 G3 G5 G6 tool.progress and tool.complete", func(t *testing.T, w *world) {
		c := w.ready()
		_, _, seen := c.outcome(c.query("tool"))
		var id any
		for _, m := range seen {
			switch m["method"] {
			case "tool.progress":
				p := m["progress"].(map[string]any)
				if p["percentage"] == nil || p["status"] != "processing" || p["message"] == nil {
					t.Errorf("progress: got %v", m)
				}
				id = m["execution_id"]
			case "tool.complete":
				r := m["result"].(map[string]any)
				if m["execution_id"] != id || m["status"] != "success" || r["output"] != "tool-ran\n" || r["files_modified"] == nil || r["duration_ms"] == nil {
					t.Errorf("complete: got %v", m)
				}
				return
			}
		}
		t.Errorf("no tool.complete in %v", seen)
	})
	run("G8 H3 H4 H6 to H9 H11 H13 T2 a question is asked and allowed", func(t *testing.T, w *world) {
		c := w.ready()
		id := c.query("write")
		ask, _ := c.until("tool.request_approval")
		tool, risk, preview := ask["tool"].(map[string]any), ask["risk_assessment"].(map[string]any), ask["preview"].(map[string]any)
		if ask["query_id"] != id || tool["name"] != "write" || tool["category"] != "file_system" || tool["description"] == "" {
			t.Errorf("tool: got %v", ask)
		}
		if ask["arguments"].(map[string]any)["path"] != "new.txt" || preview["type"] != "diff" || !strings.Contains(preview["content"].(string), "+one") {
			t.Errorf("arguments, preview: got %v", ask)
		}
		if risk["level"] != "medium" || len(risk["reasons"].([]any)) == 0 || risk["reversible"] == nil || ask["timeout"] != float64(30) {
			t.Errorf("risk: got %v", ask)
		}
		r := result(t, c.call("tool.approve", `{"execution_id":"`+ask["execution_id"].(string)+`","approved":true,"options":{"remember_choice":false,"apply_to_similar":false}}`))
		if r["status"] != "approved" || r["execution_id"] != ask["execution_id"] {
			t.Errorf("got %v", r)
		}
		_, complete, seen := c.outcome(id)
		if complete["status"] != "success" || !exists(filepath.Join(w.Project, "new.txt")) {
			t.Errorf("got %v after %v", complete, seen)
		}
		if m := c.call("tool.approve", `{"execution_id":"`+ask["execution_id"].(string)+`","approved":true}`); errorCode(m) != codeTimeout {
			t.Errorf("again: got %v", m)
		}
		if m := c.call("tool.approve", `{"execution_id":"exec-none","approved":true}`); errorCode(m) != codeParams {
			t.Errorf("unknown: got %v", m)
		}
	})
	run("H11 a question is refused, and the agent goes on", func(t *testing.T, w *world) {
		c := w.ready()
		id := c.query("risky")
		ask, _ := c.until("tool.request_approval")
		if r := result(t, c.call("tool.approve", `{"execution_id":"`+ask["execution_id"].(string)+`","approved":false}`)); r["status"] != "rejected" {
			t.Errorf("got %v", r)
		}
		text, complete, seen := c.outcome(id)
		if complete["status"] != "success" || text != "ok" || exists(filepath.Join(w.Project, "made.txt")) {
			t.Errorf("got %q %v", text, complete)
		}
		i := slices.IndexFunc(seen, func(m map[string]any) bool { return m["method"] == "tool.complete" })
		if i < 0 || seen[i]["status"] != "denied" {
			t.Errorf("tool.complete: got %v", seen)
		}
	})
	run("E3 require_approval false refuses what would be asked", func(t *testing.T, w *world) {
		c := w.ready()
		_, complete, seen := c.outcome(c.query("risky", `,"options":{"require_approval":false}`))
		if slices.ContainsFunc(seen, func(m map[string]any) bool { return m["method"] == "tool.request_approval" }) {
			t.Errorf("it was asked: %v", seen)
		}
		if exists(filepath.Join(w.Project, "made.txt")) || !strings.Contains(fmt.Sprint(complete["metadata"]), "said not to ask") {
			t.Errorf("got %v", complete)
		}
	})
	run("B7 H12 a client without tool_approval is never asked", func(t *testing.T, w *world) {
		c := w.ready(`{"protocol_version":"1.0.0","client_info":{"name":"t","version":"0"},"capabilities":["streaming"]}`)
		_, complete, _ := c.outcome(c.query("risky"))
		if exists(filepath.Join(w.Project, "made.txt")) || !strings.Contains(fmt.Sprint(complete["metadata"]), "cannot confirm") {
			t.Errorf("got %v", complete)
		}
	})
	run("K1 K2 session.save and session.load", func(t *testing.T, w *world) {
		c := w.ready()
		c.outcome(c.query("tool"))
		path := filepath.Join(w.Root, "saved.json")
		r := result(t, c.call("session.save", `{"path":"`+path+`","include_history":true,"include_blocks":true}`))
		info, err := os.Stat(path)
		if err != nil || r["saved"] != true || r["path"] != path || r["size"] != float64(info.Size()) {
			t.Fatalf("save: got %v, %v", r, err)
		}
		c2 := w.ready()
		r = result(t, c2.call("session.load", `{"path":"`+path+`"}`))
		s := r["session"].(map[string]any)
		if r["loaded"] != true || s["id"] == "" || s["created"].(float64) < 1e9 || s["created"].(float64) > 1e11 || s["messages_count"] != 2.0 || s["blocks_count"] != 1.0 {
			t.Errorf("load: got %v", r)
		}
		if text, _, _ := c2.outcome(c2.query("say")); text != "hello there" {
			t.Errorf("after the load: got %q", text)
		}
		result(t, c2.call("session.save", `{"path":"`+path+`","include_history":false}`))
		s = result(t, w.ready().call("session.load", `{"path":"`+path+`"}`))["session"].(map[string]any)
		if s["messages_count"] != 0.0 || s["blocks_count"] != 0.0 {
			t.Errorf("saved without its history: got %v", s)
		}
		for _, bad := range []string{`{}`, `{"path":"/nowhere/at/all"}`, `{"path":7}`} {
			if m := c2.call("session.load", bad); errorCode(m) != codeParams {
				t.Errorf("load %s: got %v", bad, m)
			}
		}
	})
	run("L1 parse errors are answered with id null and the connection goes on", func(t *testing.T, w *world) {
		c := w.ready()
		for _, bad := range []string{`{`, `}`, `nonsense`, `{"jsonrpc":"2.0",}`, `{} {}`, "\"\xff\"", `{"a":"` + "\x01" + `"}`} {
			c.write(bad + "\n")
			m := c.next()
			if id, ok := m["id"]; errorCode(m) != codeParse || !ok || id != nil {
				t.Errorf("%q: got %v", bad, m)
			}
		}
		c.outcome(c.query("say"))
	})
	run("L2 invalid requests", func(t *testing.T, w *world) {
		c := w.ready()
		for _, bad := range []string{
			`1`, `"x"`, `true`, `null`, `{}`, `[]`, `{"jsonrpc":"1.0","id":1,"method":"a"}`, `{"id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":1}`,
			`{"jsonrpc":"2.0","id":1,"method":7}`, `{"jsonrpc":"2.0","id":1,"method":"agent.query","params":7}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		} {
			c.write(bad + "\n")
			if m := c.next(); errorCode(m) != codeRequest {
				t.Errorf("%s: got %v", bad, m)
			}
		}
	})
	run("L4 P5 parameters have their types", func(t *testing.T, w *world) {
		c := w.ready()
		for method, list := range map[string][]string{
			"agent.query":  {`{}`, `{"message":7}`, `{"message":""}`, `{"message":"x","context":[]}`, `{"message":"x","context":{"cwd":"relative"}}`, `{"message":"x","context":{"env":{"A":1}}}`, `{"message":"x","context":{"recent_commands":[{"command":1}]}}`},
			"agent.cancel": {`{}`, `{"query_id":1}`}, "tool.approve": {`{}`, `{"execution_id":"e"}`, `{"execution_id":"e","approved":"yes"}`},
			"context.update": {`{"cwd":1}`, `{"cwd":"not/absolute"}`, `{"terminal_size":{"cols":-1}}`, `{"terminal_size":{"rows":65536}}`}, "session.save": {`{}`, `{"path":"/x","include_history":1}`},
		} {
			for _, params := range list {
				if m := c.call(method, params); errorCode(m) != codeParams {
					t.Errorf("%s %s: got %v", method, params, m)
				}
			}
		}
	})
	run("B1 initialize comes first, and once", func(t *testing.T, w *world) {
		c := w.dial()
		for _, method := range []string{"agent.query", "agent.unknown"} { // every other method
			if m := c.call(method, `{"message":"say"}`); errorCode(m) != codeRequest {
				t.Errorf("%s before: got %v", method, m)
			}
		}
		if m := c.call("initialize", `{"protocol_version":"1.0.0"}`); errorCode(m) != 0 {
			t.Errorf("got %v", m)
		}
		if m := c.call("initialize", `{"protocol_version":"1.0.0"}`); errorCode(m) != codeRequest {
			t.Errorf("again: got %v", m)
		}
	})
	run("L7 L28 M1 a model that fails: one stream.error, one stream.complete", func(t *testing.T, w *world) {
		c := w.ready()
		for _, prompt := range []string{"auth", "broken"} {
			id := c.query(prompt)
			_, complete, seen := c.outcome(id)
			var errs []map[string]any
			for _, m := range seen {
				if m["method"] == "stream.error" {
					errs = append(errs, m)
				}
			}
			if complete["status"] != "error" || len(errs) != 1 || errs[0]["query_id"] != id {
				t.Fatalf("%s: got %v %v", prompt, complete, errs)
			}
			e := errs[0]["error"].(map[string]any)
			if e["code"] != float64(codeModel) || e["message"] == "" || e["details"] == "" {
				t.Errorf("%s: got %v", prompt, e)
			}
		}
	})
	run("A15 a batch", func(t *testing.T, w *world) {
		c := w.ready()
		c.write(`[{"jsonrpc":"2.0","id":1,"method":"agent.query","params":{"message":"say"}},{"jsonrpc":"2.0","method":"context.update","params":{}},5,{"jsonrpc":"2.0","id":"x","method":"none"},{"jsonrpc":"2.0","id":"x","method":"none"}]` + "\n")
		list, _ := c.next()["batch"].([]any)
		if len(list) != 4 {
			t.Fatalf("got %v, want 4 answers", list)
		}
		var codes []int
		for _, v := range list {
			codes = append(codes, errorCode(v.(map[string]any)))
		}
		if !slices.Equal(codes, []int{0, codeRequest, codeMethod, codeRequest}) {
			t.Errorf("got %v", codes)
		}
		id := list[0].(map[string]any)["result"].(map[string]any)["query_id"].(string)
		c.outcome(id)
		c.write(`[{"jsonrpc":"2.0","method":"context.update","params":{}}]` + "\n")
		c.outcome(c.query("say")) // only notifications: no answer came in between
	})
	run("F21 R1 what is not known is ignored", func(t *testing.T, w *world) {
		c := w.ready()
		c.write(`{"jsonrpc":"2.0","method":"agent.unknown","params":{}}` + "\n")
		c.outcome(c.query("say", `,"new_field":{"a":1},"options":{"new_option":true}`))
	})
}

func output(seen []map[string]any) string {
	for _, m := range seen {
		if m["method"] == "tool.complete" {
			return m["result"].(map[string]any)["output"].(string)
		}
	}
	return ""
}
