package operator

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/client/internal/gateway"
	"sublet/client/internal/gateway/gatewaytest"

	"sublet/wire"
)

// C11, C12, L13, P4, P5, P11, N1: each bad line gets one answer that says what is wrong, in its dialect and with its id
// where that can be told; the connection goes on, and the daemon never hears of it.
func TestBadLines(t *testing.T) {
	w := quiet(t)
	c := w.dial()
	tok := `"metadata":{"token":"` + token + `"}`
	for i, tc := range []struct{ line, id, want string }{
		{`{`, "", "not JSON"},
		{`{"type":`, "", "not JSON"},
		{`nonsense`, "", "not a JSON object"}, // a first line of this kind is taken for HTTP
		{`[]`, "", "not a JSON object"},
		{`"dispatch"`, "", "not a JSON object"},
		{`null`, "", "not a JSON object"},
		{`12`, "", "not a JSON object"},
		{`{} {}`, "", "not JSON"},
		{`{}`, "", "type is missing"},
		{`{"type":null}`, "", "type is missing"},
		{`{"type":3}`, "", "type must be a string"},
		{`{"type":"jump","id":"a1"}`, "a1", "is none of cancel"},
		{`{"type":["dispatch"],"id":"a2"}`, "a2", "type must be"},
		{"{\"type\":\"dispatch\xff\"}", "", "not UTF-8"},
		{"\x00", "", "not a JSON object"},
		{`{"type":"dispatch","id":7,"agentID":"architect","content":"x",` + tok + `}`, "", "id must be a string"},
		{`{"type":"dispatch","agentID":"architect","content":"x",` + tok + `}`, "", "id is missing"},
		{`{"type":"dispatch","id":"b1","content":"x",` + tok + `}`, "b1", "agentID is missing"},
		{`{"type":"dispatch","id":"b2","agentID":"architect",` + tok + `}`, "b2", "content is missing"},
		{`{"type":"dispatch","id":"b3","agentID":"architect","content":"  ",` + tok + `}`, "b3", "content is empty"},
		{`{"type":"dispatch","id":"b4","agentID":"architect","content":{"a":1},` + tok + `}`, "b4", "content must be a string"},
		{`{"type":"dispatch","id":"b5","agentID":{"a":1},"content":"x",` + tok + `}`, "b5", "agentID must be"},
		{`{"type":"dispatch","id":"b6","agentID":"architect","content":"x","files":"a",` + tok + `}`, "b6", "files must be"},
		{`{"type":"dispatch","id":"b7","agentID":"architect","content":"x","files":[1],` + tok + `}`, "b7", "files must be"},
		{`{"type":"dispatch","id":"c1","agentID":"architect","content":"x","metadata":"x"}`, "c1", "metadata must be"},
		{`{"type":"dispatch","id":"c2","agentID":"architect","content":"x","metadata":{"token":3}}`, "c2", "metadata.token must be"},
		{`{"type":"dispatch","id":"c4","agentID":"architect","content":"x","metadata":{"timeoutMs":1e30}}`, "c4", "timeoutMs"},
		{`{"type":"dispatch","id":"c6","agentID":"architect","content":"x","version":"2.0",` + tok + `}`, "c6", "not supported"},
		{`{"type":"dispatch","id":"c7","agentID":"architect","content":"x","version":1,` + tok + `}`, "c7", "version must be"},
		{`{"type":"getSession","id":"d1",` + tok + `}`, "d1", "sessionID is missing"},
		{`{"type":"cancel","id":"d2",` + tok + `}`, "d2", "requestID"},
		{`{"type":"cancel","id":"d3","requestID":"none",` + tok + `}`, "d3", "no such request"},
		{`{"type":"confirm","id":"d4","sessionID":"s","confirmationID":"c","decision":"maybe",` + tok + `}`, "d4", "none of allow"},
		{`{"type":"confirm","id":"d5","sessionID":"s","confirmationID":"c","decision":"allow",` + tok + `}`, "d5", "asks this"},
		{`{"type":"query","id":"e1",` + tok + `}`, "e1", "messages is missing"},
		{`{"type":"query","id":"e2","messages":[{"role":"user","content":"x"}],"tools":"bash",` + tok + `}`, "e2", "tools must be"},
		{`{"type":"stream","id":"e3",` + tok + `}`, "e3", "sessionID is missing"},
		{`{"type":"send_context_request","id":"e4",` + tok + `}`, "e4", "context is missing"},
		{`{"type":"send_context_request","id":"e5","context":{"project":3,"userMessage":"x"},` + tok + `}`, "e5", "context.project must be"},
		{`{"type":"send_context_request","id":"e6","context":{"project":{"path":3},"userMessage":"x"},` + tok + `}`, "e6", "context.project.path"},
		{`{"type":"query","id":"e7","messages":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `,` + tok + `}`, "e7", "messages must be"},
		{`{"type":"query","id":"f1","messages":[` + strings.Repeat("{},", 1000) + `{}],` + tok + `}`, "f1", "messages has a list of more than 1000 elements"},
		{`{"type":"query","id":"f2","messages":[{"role":"user","content":[` + strings.Repeat("{},", 1000) + `{}]}],` + tok + `}`, "f2", "messages[0].content has a list of more than 1000"},
		{`{"type":"dispatch","id":"f3","agentID":"architect","content":"x","files":[` + strings.Repeat(`"",`, 1000) + `""],` + tok + `}`, "f3", "files has a list of more than 1000"},
		{strings.Repeat("[", 20000), "", "not a JSON object"},
		{`{"a":` + strings.Repeat("[", 20000), "", "not JSON"},
	} {
		c.write(tc.line + "\n")
		m := c.next()
		code, text := m.str("code"), m.str("message")
		if m.str("type") == "" {
			code = s4Code(m)
			for _, b := range m.list("content") {
				text += msg(b.(map[string]any)).str("message")
			}
		}
		if code != "INVALID_REQUEST" || m.str("id") != tc.id || !strings.Contains(text, tc.want) || len(text) > 1000 {
			t.Errorf("%d %.80q: got %.400v, want id %q and %q", i, tc.line, m, tc.id, tc.want)
		}
	}
	// A blank line is nothing.
	c.write("\n \r\n\t\n")
	c.write(`{"type":"jump","id":"last"}` + "\n")
	if m := c.next(); m.str("id") != "last" {
		t.Errorf("after blank lines: %v", m)
	}
}

// N1, N5, L21: a line over 10 MB is answered with the limit's number and forgotten, and the connection goes on; one of 70 KB
// is nothing special.
func TestLongLines(t *testing.T) {
	w := newWorld(t, []scene{{Match: "", Steps: []step{{Text: "read it"}}}})
	c := w.dial()
	head := `{"type":"jump","id":"at the limit","content":"`
	c.write(head + strings.Repeat("x", gateway.MaxLine-len(head)-2) + "\"}\n")
	if m := c.next(); m.str("id") != "at the limit" || !strings.Contains(m.str("message"), "is none of cancel") {
		t.Errorf("at the limit: %.300v", m)
	}
	c.write(head + strings.Repeat("x", gateway.MaxLine-len(head)-1) + "\"}\n")
	if m := c.next(); m.str("code") != "INVALID_REQUEST" || !strings.Contains(m.str("message"), "10485760") || m.obj("details")["limit"] != 10485760.0 {
		t.Errorf("one byte over: %.300v", m)
	}
	c.send(ask("2", strings.Repeat("word ", 14<<10)))
	if all := c.turn("2"); said(all) != "read it" {
		t.Errorf("70 KB: %v", all)
	}
	for want, field := range map[string]msg{ // bounds that the daemon checks
		"session_id: want 1 to 128":               {"sessionID": "a/b"},
		"options.timeout_ms: -1 is outside":       {"metadata": msg{"timeoutMs": -1}},
		"timeout_ms: 9300000000000000 is outside": {"metadata": msg{"timeoutMs": 93e14}}, // passed the range of a time and wrapped around
	} {
		m := ask("2b", "x")
		maps.Copy(m, field)
		c.send(m)
		if m := c.next(); m.str("code") != "INVALID_REQUEST" || m.str("id") != "2b" || !strings.Contains(m.str("message"), want) {
			t.Errorf("%v: got %v", field, m)
		}
	}
	c.send(msg{"type": "query", "id": "3", "sessionID": "nowhere", "messages": user("x")})
	c.next()
	c.write(strings.Repeat("y", gateway.MaxLine+1) + "\n") // the last dialect was S4
	if m := c.next(); s4Code(m) != "CONTEXT_TOO_LARGE" {
		t.Errorf("too long in S4: %.300v", m)
	}
}

// N2, N3, N6, L22, L23, E22: the limits of a connection, each with its number in the answer.
func TestLimits(t *testing.T) {
	w := newWorld(t, nil, func(o *Options) { o.Daemon.Limits.RequestsPerSecond, o.Daemon.Limits.RunningTurns = 20, 2 })
	gate := w.Path("gate")
	w.Script([]scene{{Match: "", Steps: []step{{WaitFile: gate, Text: "done"}}}})
	c := w.dial()
	for i := range 3 {
		c.send(ask(fmt.Sprint(i), "x"))
	}
	var over msg
	for over == nil {
		if m := c.next(); m.str("type") == "error" {
			over = m
		}
	}
	if over.str("id") != "2" || over.str("code") != "RATE_LIMIT" || !strings.Contains(over.str("message"), "2 concurrent queries") || over["recoverable"] != true {
		t.Errorf("a third query: %v", over)
	}
	c.send(msg{"type": "query", "id": "q", "messages": user("x")})
	if m := next(c, "q"); s4Code(m) != "RATE_LIMIT_EXCEEDED" {
		t.Errorf("in S4: %v", m)
	}
	c.send(ask("0", "again"))
	if m := next(c, "0"); m.str("code") != "INVALID_REQUEST" || !strings.Contains(m.str("message"), "still runs") {
		t.Errorf("a repeated id: %v", m)
	}
	w.Write("gate", "")
	for ended := 0; ended < 2; {
		if c.next().str("type") == "turn-completed" {
			ended++
		}
	}
	c.send(ask("3", "x")) // a place is free again
	if all := c.turn("3"); all[len(all)-1].str("stopReason") != "end_turn" {
		t.Errorf("afterwards: %v", all)
	}

	d := w.dial()
	flood := strings.Repeat(`{"type":"jump"}`+"\n", 200)
	d.write(flood)
	limited, refused := 0, 0
	for range 200 {
		m := d.next()
		switch m.str("code") {
		case "RATE_LIMIT":
			limited++
			if m.obj("details")["limit"] != 20.0 || !strings.Contains(m.str("message"), "20 requests a second") {
				t.Fatalf("over the rate: %v", m)
			}
		case "INVALID_REQUEST":
			refused++
		}
	}
	if limited == 0 || refused < 20 || limited+refused != 200 {
		t.Errorf("%d over the rate, %d others", limited, refused)
	}
}

// next skips what belongs to other requests.
func next(c *client, id string) msg {
	c.t.Helper()
	for {
		if m := c.next(); m.str("id") == id && m.str("type") != "turn-started" {
			return m
		}
	}
}

// P11: a client that goes away at any byte of a request leaves nothing behind, and others are served.
func TestDisconnectAtEveryByte(t *testing.T) {
	w := newWorld(t, []scene{{Match: "", Steps: []step{{Text: "hi"}}}}, func(o *Options) { o.Daemon.Limits.RequestsPerSecond = 10000 })
	for _, m := range []msg{ask("1", "x"), {"type": "query", "id": "1", "messages": user("x")}} {
		request := withToken(t, m) + "\n"
		for n := range len(request) + 1 {
			conn, err := net.Dial("tcp", w.addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write([]byte(request[:n])); err != nil {
				t.Fatal(err)
			}
			conn.Close()
		}
	}
	c := w.dial()
	for _, b := range []byte(withToken(t, ask("1", "x")) + "\n") { // a slow writer
		c.write(string(b))
	}
	if all := c.turn("1"); said(all) != "hi" {
		t.Errorf("afterwards: %v", all)
	}
}

// F19, F20: a client that stops reading for a while holds its own turn back and nobody else's; nothing is lost, in order,
// and what waits in memory is bounded.
func TestSlowReader(t *testing.T) {
	var want strings.Builder
	for i := 0; want.Len() < 1<<20; i++ { // far more than sockets, writer and inbox hold
		fmt.Fprintf(&want, "%d: %s\n", i, strings.Repeat("0123456789abcdef", 60))
	}
	w := newWorld(t, []scene{{Match: "much", Steps: []step{{Text: want.String(), ChunkBytes: 32 << 10}}}, {Match: "", Steps: []step{{Text: "quick"}}}}, func(o *Options) {
		o.Daemon.Inbox = 256 << 10
	})
	slow := w.dial()
	if err := slow.conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	m := ask("1", "much")
	m["sessionID"] = "slow"
	slow.send(m)
	first := slow.next() // the turn runs; from here on its client does not read until it has ended
	quick := w.dial()
	quick.send(msg{"type": "stream", "id": "g", "sessionID": "slow"})
	quick.results("g")
	quick.send(ask("2", "x"))
	if all := quick.turn("2"); said(all) != "quick" {
		t.Errorf("another client: %v", all)
	}
	all := append([]msg{first}, slow.turn("1")...)
	if got := said(all); got != want.String() {
		t.Errorf("got %d bytes, want %d, the first difference at %d", len(got), want.Len(), differ(got, want.String()))
	}
	end := all[len(all)-1]
	if end.str("content") != want.String() {
		t.Errorf("end: %d bytes", len(end.str("content")))
	}
}

func differ(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// The whole of the load: 200 clients at once, each with its own session, all served.
func TestManyClients(t *testing.T) {
	const clients = 200
	w := newWorld(t, []scene{{Match: "", Steps: []step{{Text: "for you"}}}})
	var all [clients]*client
	for i := range all {
		all[i] = w.dial()
	}
	gatewaytest.Crowd(t, clients, func(i int) error {
		m := ask("1", "x")
		m["sessionID"] = fmt.Sprint("client-", i)
		if _, err := all[i].conn.Write([]byte(withToken(t, m) + "\n")); err != nil {
			return err
		}
		text := ""
		for {
			m, err := all[i].read()
			if err != nil {
				return err
			}
			text += m.str("delta")
			if m.str("type") == "response-block" {
				text = m.str("content")
			}
			if final(m) {
				if text != "for you" || m.str("stopReason") != "end_turn" {
					return fmt.Errorf("%q, %v", text, m)
				}
				return nil
			}
		}
	})
}

// P11: a request of either dialect that is wrong in any one byte is answered, and the connection goes on.
func TestEveryByteMangled(t *testing.T) {
	w := newWorld(t, nil, func(o *Options) { o.Daemon.Limits.RequestsPerSecond = 1_000_000 })
	for _, whole := range []msg{{"type": "getSession", "id": "1", "sessionID": "none"}, {"type": "stream", "id": "1", "sessionID": "none"}} {
		c := w.dial()
		var in strings.Builder
		lines := gatewaytest.Mangled(withToken(t, whole))
		for _, line := range lines {
			in.WriteString(line + "\n")
		}
		go c.conn.Write([]byte(in.String())) //nolint:errcheck // the answers tell
		codes := map[string]int{}
		for range lines { // every one is answered, once
			m := c.next()
			codes[m.str("code")+s4Code(m)]++
		}
		if codes["INVALID_REQUEST"] < len(lines)/2 || codes["SESSION_NOT_FOUND"] == 0 || codes[""]+codes["INTERNAL_ERROR"] != 0 {
			t.Errorf("%v: answers by code: %v", whole, codes)
		}
		c.send(msg{"type": "listSessions", "id": "last"})
		if m := c.next(); m.str("id") != "last" {
			t.Errorf("afterwards: %v", m)
		}
	}
}

// C3: the server's end closes every connection, of clients that wait, that do not read, and that said nothing.
func TestServerStops(t *testing.T) {
	w := newWorld(t, []scene{{Match: "", Steps: []step{{Text: "so", ToolCalls: []call{bash("true")}}, {WaitFile: "/nonexistent/ever"}}}})
	waiting, silent := w.dial(), w.dial()
	socket := w.ws(nil)
	waiting.send(ask("1", "x"))
	for waiting.next().str("type") != "tool-result" {
	}
	socket.write(`{"type":"jump","id":"1"}`)
	socket.next()
	silent.write("{")
	w.stop()
	for _, c := range []*client{waiting, silent} {
		for {
			if _, err := c.read(); err != nil {
				break
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), gatewaytest.Patience)
	defer cancel()
	if _, _, err := socket.c.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("the WebSocket: %v", err)
	}
}

// H1, H2, H11, T2: a client of the page is asked, and its answer counts; without --ui the same request asks nobody.
func TestApprovals(t *testing.T) {
	w := newWorld(t, []scene{{Match: "remove", Steps: []step{{ToolCalls: []call{bash("rm -r old")}}, {Text: "done"}}}})
	old := filepath.Join(w.Project, "old")
	for i, decision := range []string{"deny", "allow"} {
		if err := os.MkdirAll(old, 0o700); err != nil {
			t.Fatal(err)
		}
		c := w.dial()
		m := ask("1", "remove it")
		m["metadata"] = msg{"approvals": true}
		c.send(m)
		var q msg
		session := ""
		for q == nil {
			m := c.next()
			switch m.str("type") {
			case "turn-started":
				session = m.str("sessionID")
			case "confirmation-request":
				q = m
			}
		}
		if q.str("command") != "rm -r old" || q.str("tool") != "bash" || q.str("level") == "" || len(q.list("reasons")) == 0 || q.str("cwd") == "" || q.list("grants") == nil {
			t.Errorf("question: %v", q)
		}
		c.send(msg{"type": "confirm", "id": "2", "sessionID": session, "confirmationID": q.str("confirmationID"), "decision": decision, "comment": "I say"})
		c.send(msg{"type": "confirm", "id": "3", "sessionID": session, "confirmationID": "nonsense", "decision": "allow"})
		seen := map[string]msg{}
		for seen["turn-completed"] == nil || seen["error 3"] == nil {
			m := c.next()
			key := m.str("type")
			if m.str("id") == "3" {
				key += " 3"
			}
			seen[key] = m
		}
		if seen["ok"].str("id") != "2" || seen["confirmation-resolved"].str("decision") != decision || seen["error 3"].str("code") != "INVALID_REQUEST" {
			t.Errorf("answers: %v", seen)
		}
		if _, err := os.Stat(old); (err == nil) != (i == 0) {
			t.Errorf("%s: %v", decision, err)
		}
	}
}

// Of a session that is too long for a message the newest turns are sent (N1).
func TestNewest(t *testing.T) {
	var turns []*turn
	for i := range 4 {
		turns = append(turns, &turn{id: wire.TurnID(fmt.Sprint(i)), prompt: strings.Repeat("p", 1000), status: "success"})
	}
	for _, c := range []struct{ most, want int }{{10_000, 4}, {3000, 2}, {10, 1}} {
		list, truncated := newest(turns, s4TurnOf, c.most)
		if len(list) != c.want || truncated != (c.want < 4) || !strings.HasPrefix(string(list[c.want-1]), `{"id":"3"`) {
			t.Errorf("%d bytes: got %d turns, truncated %v", c.most, len(list), truncated)
		}
	}
}

// E20: a connection that is attached to a session twice, with and without questions, gets each event of a turn once.
func TestTwoLinksToASession(t *testing.T) {
	w := newWorld(t, []scene{{Match: "say", Steps: []step{{ToolCalls: []call{bash("echo found")}}, {Text: "hello there"}}}})
	c := w.dial()
	for i, approvals := range []bool{true, false, true} {
		m := ask(fmt.Sprint(i), "say")
		m["sessionID"], m["metadata"] = "twice", msg{"approvals": approvals}
		c.send(m)
		if got, want := len(c.turn(fmt.Sprint(i))), 5; got != want { // begun, call, result, text, end
			t.Errorf("request %d: got %d events, want %d", i, got, want)
		}
	}
}

// C3: a client that closes its sending half gets all its answers first. They were dropped where it read slowly.
func TestAnswersBeforeTheEnd(t *testing.T) {
	const requests = 600 // their answers fit into the writer, and not into the sockets' buffers
	w := quiet(t, func(o *Options) { o.Daemon.Limits.RequestsPerSecond = 10 * requests })
	c := w.dial()
	conn := c.conn.(*net.TCPConn)
	if err := conn.SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	c.write(strings.Repeat(`{"type":"jump"}`+"\n", requests))
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for n := range requests {
		if _, err := c.read(); err != nil {
			t.Fatalf("after %d of %d answers: %v", n, requests, err)
		}
	}
}

// A server that stops does not wait for a peer that has sent the beginning of what may be an HTTP request.
func TestServerStopsWhileItSniffs(t *testing.T) {
	w := quiet(t)
	c := w.dial()
	c.write("GE")
	other := w.dial() // accepted after the first
	other.write(`{"type":"jump"}` + "\n")
	other.next()
	w.stop()
}
