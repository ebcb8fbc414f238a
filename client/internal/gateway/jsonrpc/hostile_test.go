package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sublet/client/internal/gateway"
	"sublet/client/internal/gateway/gatewaytest"
	"sublet/wire"
)

// N1: 10 MB are taken; one byte more is answered, and the connection goes on behind its newline. What is no JSON does:
// the length is looked at first, and 10 MB that are take the race detector seconds.
func TestN1_MessageSize(t *testing.T) {
	const limit = 10 << 20
	w := newWorld(t, common)
	c := w.ready()
	c.write(strings.Repeat("x", limit) + "\n")
	if m := c.next(); errorCode(m) != codeParse {
		t.Errorf("at the limit: got %v", m)
	}
	c.write(strings.Repeat("x", limit+1) + "\n")
	m := c.next()
	e, _ := m["error"].(map[string]any)
	data, _ := e["data"].(map[string]any)
	if errorCode(m) != codeRequest || m["id"] != nil || data["limit"] != float64(limit) {
		t.Errorf("one byte over: got %v", m)
	}
	c.outcome(c.query("say"))
}

// a long line goes through to the agent. (10 MB do too, in 4 s: most of it is the search for secrets in the prompt.)
func TestN1_ALongPrompt(t *testing.T) {
	w := newWorld(t, []scene{{Match: "needle$", Steps: []step{{Text: "found"}}}})
	c := w.ready()
	head, tail := `{"jsonrpc":"2.0","id":5,"method":"agent.query","params":{"message":"`, `needle"}}`
	go io.WriteString(c.conn, head+strings.Repeat("hay ", (200<<10-len(head)-len(tail))/4)+tail+"\n") //nolint:errcheck // the answer tells
	m := c.next()
	text, complete, _ := c.outcome(result(t, m)["query_id"].(string))
	if complete["status"] != "success" || text != "found" {
		t.Errorf("got %q %v", text, complete)
	}
}

// N2: more than 100 requests in a second are refused with the number and how long to wait; the connection goes on.
func TestN2_Rate(t *testing.T) {
	w := newWorld(t, common)
	c := w.ready()
	const n = 300
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%d,"method":"agent.cancel","params":{"query_id":"none"}}`+"\n", i)
	}
	go io.WriteString(c.conn, b.String()) //nolint:errcheck // the answers tell
	taken, refused := 0, 0
	for range n {
		m := c.next()
		switch errorCode(m) {
		case codeParams:
			taken++
		case codeAgent:
			refused++
			e := m["error"].(map[string]any)
			data := e["data"].(map[string]any)
			if !strings.Contains(e["message"].(string), "rate limit") || data["limit"] != 100.0 || data["retry_after_ms"].(float64) < 1 {
				t.Fatalf("got %v", m)
			}
		default:
			t.Fatalf("got %v", m)
		}
	}
	if taken < 90 || refused == 0 {
		t.Errorf("%d were taken and %d refused", taken, refused)
	}
	other := w.ready()                                      // another connection has a rate of its own
	go io.WriteString(other.conn, strings.Repeat("7\n", n)) //nolint:errcheck // the answers tell
	codes := map[int]int{}
	for range n {
		codes[errorCode(other.next())]++
	}
	if codes[codeRequest] < 90 || codes[codeAgent] == 0 { // what is not a request counts, and the rate comes first
		t.Errorf("of what is no request: %v", codes)
	}
}

// N3: a fourth query at a time is refused with the number; when one ends there is room again.
func TestN3_ConcurrentQueries(t *testing.T) {
	w := newWorld(t, common)
	c := w.ready()
	var ids []string
	for range 3 {
		ids = append(ids, c.query("endless"))
	}
	m := c.call("agent.query", `{"message":"say"}`)
	e, _ := m["error"].(map[string]any)
	data, _ := e["data"].(map[string]any)
	if errorCode(m) != codeAgent || !strings.Contains(e["message"].(string), "concurrent queries") || data["limit"] != 3.0 {
		t.Errorf("got %v", m)
	}
	for i := len(ids) - 1; i >= 0; i-- { // those that wait first
		if r := result(t, c.call("agent.cancel", `{"query_id":"`+ids[i]+`"}`)); r["cancelled"] != true {
			t.Errorf("got %v", r)
		}
		for {
			complete, _ := c.until("stream.complete")
			if complete["query_id"] == ids[i] {
				if complete["status"] != "cancelled" {
					t.Errorf("got %v", complete)
				}
				break
			}
		}
	}
	c.outcome(c.query("say"))
}

// P2: a token, where the server asks for one.
func TestP2_Token(t *testing.T) {
	w := newWorld(t, common, func(o *Options) { o.Token = "secret-token" })
	for params, code := range map[string]int{
		`{"protocol_version":"1.0.0"}`: codePermission, `{"protocol_version":"1.0.0","token":"secret-toke"}`: codePermission,
		`{"protocol_version":"1.0.0","token":""}`: codePermission, `{"protocol_version":"1.0.0","token":"secret-token"}`: 0,
	} {
		c := w.dial()
		if m := c.call("initialize", params); errorCode(m) != code {
			t.Errorf("%s: got %v, want code %d", params, m, code)
		}
		if m := c.call("agent.query", `{"message":"say"}`); code != 0 && errorCode(m) != codeRequest {
			t.Errorf("%s: a query after that: %v", params, m)
		}
	}
}

// H10: nobody answers: a no, and the agent goes on.
func TestH10_ApprovalTimeout(t *testing.T) {
	w := newWorld(t, common, func(o *Options) { o.approvalTimeout = 50 * time.Millisecond })
	c := w.ready()
	_, complete, seen := c.outcome(c.query("risky"))
	if complete["status"] != "success" || exists(filepath.Join(w.Project, "made.txt")) {
		t.Errorf("got %v", complete)
	}
	if !strings.Contains(fmt.Sprint(seen), "not answered within") {
		t.Errorf("the agent was not told: %v", seen)
	}
}

// H4, H10: an answer that cannot be sent, since the daemon is away for longer than a request waits, leaves the question open: the
// client may answer again, and without an answer it is refused again.
func TestH4_DaemonAway(t *testing.T) {
	for name, want := range map[string]string{"answered again": wire.DecisionAllow, "not answered": wire.DecisionDeny} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var away atomic.Bool
				peers, got := make(chan *wire.Conn, 1), make(chan string, 8)
				d := &gateway.Daemon{Open: func(context.Context, *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
					if away.Load() {
						return nil, nil, errors.New("nobody listens")
					}
					client, daemon := net.Pipe()
					peer := wire.NewConn(daemon)
					peers <- peer
					go func() { // ends with the connection
						defer peer.Close()
						for {
							m, err := peer.Receive()
							if err != nil {
								return
							}
							switch m := m.(type) {
							case *wire.ConfirmationResponse:
								got <- m.Decision
							case *wire.Heartbeat:
								_ = peer.Send(&wire.Heartbeat{Nonce: m.Nonce, Reply: true})
							}
						}
					}()
					return wire.NewConn(client), &wire.Ready{Session: wire.SessionInfo{ID: "s"}}, nil
				}}
				c, q, told := stage(t, "streaming")
				session, err := d.Connect(t.Context(), gateway.Options{})
				if err != nil {
					t.Fatal(err)
				}
				c.session = session
				c.ask(q, gateway.NewQuestion(c.ctx, session, &wire.ConfirmationRequest{
					Event: of, ConfirmationID: "c1", ExecutionID: "e1", Tool: "bash", Arguments: "{}",
					Verdict: wire.Verdict{Level: "high"}, Preview: wire.Preview{Type: "none"},
				}))
				away.Store(true)
				(<-peers).Close()
				synctest.Wait()
				approve := &request{Params: json.RawMessage(`{"execution_id":"e1","approved":true}`)}
				if want == wire.DecisionAllow {
					if _, f := c.approve(approve); f == nil || f.Code != codeInternal {
						t.Errorf("while the daemon is away: %v", f)
					}
				} else {
					time.Sleep(approvalBound + 21*time.Second) // the refusal has waited for the daemon in vain
				}
				away.Store(false)
				if want == wire.DecisionAllow {
					if _, f := c.approve(approve); f != nil {
						t.Errorf("when it is back: %v", f)
					}
				}
				time.Sleep(approvalBound + time.Minute)
				select {
				case decision := <-got:
					if decision != want {
						t.Errorf("the daemon got %q, want %s", decision, want)
					}
				default:
					t.Error("the daemon got no answer")
				}
				if _, f := c.approve(approve); f == nil || f.Code != codeTimeout {
					t.Errorf("once more: %v", f)
				}
				session.Close()
				told()
			})
		})
	}
}

// H5: what was remembered is not asked for again.
func TestH5_RememberChoice(t *testing.T) {
	w := newWorld(t, common)
	c := w.ready()
	id := c.query("write")
	ask, _ := c.until("tool.request_approval")
	r := result(t, c.call("tool.approve", `{"execution_id":"`+ask["execution_id"].(string)+`","approved":true,"options":{"remember_choice":true}}`))
	if r["remembered"] != true || r["covers"] == "" {
		t.Errorf("got %v", r)
	}
	c.outcome(id)
	other := w.ready() // for the project, so for another connection too
	_, complete, seen := other.outcome(other.query("write"))
	for _, m := range seen {
		if m["method"] == "tool.request_approval" {
			t.Errorf("asked again: %v", m)
		}
	}
	if complete["status"] != "success" {
		t.Errorf("got %v", complete)
	}
}

// P11: a client may go at every byte of a message; others are served as ever and nothing is left behind.
func TestP11_DisconnectAtEveryByte(t *testing.T) {
	w := newWorld(t, common)
	message := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol_version":"1.0.0","client_info":{"name":"é","version":"1"}}}` + "\n"
	for i := range len(message) {
		conn, err := net.Dial("unix", w.o.Socket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, message[:i]); err != nil {
			t.Fatalf("byte %d: %v", i, err)
		}
		conn.Close()
	}
	query := `{"jsonrpc":"2.0","id":2,"method":"agent.query","params":{"message":"endless"}}` + "\n"
	for i := range len(query) + 1 {
		c := w.ready()
		c.write(query[:i])
		c.conn.Close()
	}
	w.awaitIdle() // the one that was whole was cancelled
	c := w.ready()
	c.outcome(c.query("say"))
}

// P11: a list as long as a message can be costs no more than a short one, in memory and in time: a batch is refused whole,
// and of recent commands the newest count.
func TestP11_LongLists(t *testing.T) {
	w := newWorld(t, common)
	c := w.ready()
	c.write("[" + strings.Repeat("1,", gateway.MaxList) + "1]\n")
	m := c.next()
	e, _ := m["error"].(map[string]any)
	data, _ := e["data"].(map[string]any)
	if errorCode(m) != codeRequest || data["limit"] != float64(gateway.MaxList) {
		t.Errorf("a long batch: got %v", m)
	}
	long := strings.Repeat(`"",`, gateway.MaxList) + `""`
	for field, m := range map[string]map[string]any{
		"open_files":   c.call("agent.query", `{"message":"say","context":{"open_files":[`+long+`]}}`),
		"capabilities": w.dial().call("initialize", `{"protocol_version":"1.0.0","capabilities":[`+long+`]}`),
	} {
		if errorCode(m) != codeParams {
			t.Errorf("%s: got %.300v", field, m)
		}
	}
	for _, n := range []int{1, maxHistory, maxHistory + 1, 2 * maxHistory, 7*maxHistory + 3} {
		list := make([]recentCommand, n)
		list[n-1].Command = "the newest"
		raw, err := json.Marshal(list)
		var got recentCommands
		if err = errors.Join(err, json.Unmarshal(raw, &got)); err != nil || len(got) != min(n, maxHistory) || got[len(got)-1].Command != "the newest" {
			t.Errorf("of %d commands: got %d, %v", n, len(got), err)
		}
	}
	c.outcome(c.query("say"))
}

// A message may come in pieces of any size.
func TestA10_MessageInPieces(t *testing.T) {
	w := newWorld(t, common)
	c := w.dial()
	for _, b := range []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol_version":"1.0.0"}}` + "\r\n") {
		c.write(string(b))
	}
	if m := c.next(); result(t, m)["status"] != "ready" {
		t.Errorf("got %v", m)
	}
}

// C3: a client that closes its side after its last line still gets its answer; one that is gone has its query cancelled.
func TestC3_EitherSideCloses(t *testing.T) {
	w := newWorld(t, common)
	c := w.ready()
	id := c.query("tool")
	if err := c.conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, complete, _ := c.outcome(id); complete["status"] != "success" {
		t.Errorf("got %v", complete)
	}
	if _, err := c.r.ReadByte(); err != io.EOF {
		t.Errorf("after the end: %v, want EOF", err)
	}
	gone := w.ready()
	gone.query("endless")
	gone.until("stream.token")
	gone.conn.Close()
	w.awaitIdle()
}

// awaitIdle waits until no turn runs.
func (w *world) awaitIdle() {
	w.T.Helper()
	s, err := w.o.Daemon.Connect(w.T.Context(), gatewayOptions)
	if err != nil {
		w.T.Fatal(err)
	}
	defer s.Close()
	for deadline := time.Now().Add(gatewaytest.Patience); ; time.Sleep(25 * time.Millisecond) { // there is no event of another's turn
		st, err := wire.Call(w.T.Context(), s, &wire.StatusRequest{Shells: true, Look: true})
		if err != nil {
			w.T.Fatal(err)
		}
		if st.Turns == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.T.Fatalf("%d turns still run", st.Turns)
		}
	}
}

// C4, A4: a server that stops tells its clients how their queries ended, and removes its socket.
func TestC4_Stop(t *testing.T) {
	w := newWorld(t, common)
	c := w.ready()
	id := c.query("endless")
	c.until("stream.token")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.stop()
	}()
	if _, complete, _ := c.outcome(id); complete["status"] != "cancelled" {
		t.Errorf("got %v", complete)
	}
	if _, err := c.r.ReadByte(); err != io.EOF {
		t.Errorf("after the end: %v, want EOF", err)
	}
	<-stopped
	if exists(w.o.Socket) {
		t.Error("the socket is still there")
	}
}

// C6: a daemon that is restarted is found again. What it was doing ends with an error, the conversation goes on.
func TestC6_DaemonRestarts(t *testing.T) {
	w := newWorld(t, common)
	c := w.ready()
	c.outcome(c.query("say"))
	id := c.query("endless")
	c.until("stream.token")
	w.Stop()
	w.Start()
	_, complete, _ := c.outcome(id)
	if complete["status"] == "success" {
		t.Errorf("got %v", complete)
	}
	if text, complete, _ := c.outcome(c.query("say")); text != "hello there" || complete["status"] != "success" {
		t.Errorf("afterwards: got %q %v", text, complete)
	}
}

// F19, N4: a client that does not read loses nothing, however much there is, and the others are served meanwhile.
func TestF19_SlowReader(t *testing.T) {
	const words = 800
	w := newWorld(t, append([]scene{{Match: "^flood$", Steps: []step{{Text: strings.Repeat("0123456789abcdef ", words), ChunkBytes: 17}}}}, common...), func(o *Options) { o.Daemon.Inbox = 32 << 10 })
	slow := w.ready()
	id := slow.query("flood")
	other := w.ready() // from here on the first one reads nothing
	other.outcome(other.query("say"))
	w.awaitIdle() // the turn has ended: nobody waited for the one who does not read
	text, complete, _ := slow.outcome(id)
	if complete["status"] != "success" || text != strings.Repeat("0123456789abcdef ", words) {
		t.Errorf("got %d bytes of text, want %d; %v", len(text), 17*words, complete)
	}
}

// 200 clients at once, each served; every tenth asks something.
func TestTwoHundredClients(t *testing.T) {
	w := newWorld(t, common)
	var together sync.WaitGroup
	together.Add(200)
	gatewaytest.Crowd(t, 200, func(i int) error {
		defer together.Wait() // nobody leaves before all are in
		defer together.Done()
		conn, err := net.Dial("unix", w.o.Socket)
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(gatewaytest.Patience))
		_, _ = io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol_version":"1.0.0"}}`+"\n") // the read tells
		if i%10 == 0 {
			_, _ = io.WriteString(conn, `{"jsonrpc":"2.0","id":2,"method":"agent.query","params":{"message":"say"}}`+"\n")
		}
		for d := json.NewDecoder(conn); ; {
			var m map[string]any
			if err := d.Decode(&m); err != nil {
				return err
			}
			if m["error"] != nil {
				return fmt.Errorf("got %v", m)
			}
			if m["method"] == "stream.complete" || i%10 != 0 && m["result"] != nil {
				return nil
			}
		}
	})
}

// P11: a request wrong in any one byte is answered, or is a notification or an unknown field; the connection goes on, and
// the next client is served.
func TestP11_EveryByteMangled(t *testing.T) {
	w := settled(t, common, "[limits]\nrequests_per_second = 100000", func(o *Options) { o.Daemon.Limits.RequestsPerSecond = 100_000 })
	c := w.ready()
	var in strings.Builder
	for _, line := range gatewaytest.Mangled(`{"jsonrpc":"2.0","id":7,"method":"tool.approve","params":{"execution_id":"é","approved":true,"options":{"remember_choice":false}}}`) {
		in.WriteString(line + "\n")
	}
	in.WriteString(`{"jsonrpc":"2.0","id":"last","method":"agent.cancel","params":{"query_id":"none"}}` + "\n")
	go io.WriteString(c.conn, in.String()) //nolint:errcheck // the answers tell
	codes := map[int]int{}
	for {
		m := c.next()
		codes[errorCode(m)]++
		if m["id"] == "last" {
			break
		}
	}
	if codes[codeParse] == 0 || codes[codeRequest] == 0 || codes[codeMethod] == 0 || codes[codeParams] == 0 || codes[0] != 0 || codes[codeAgent] != 0 {
		t.Errorf("answers by code: %v", codes)
	}
	other := w.ready()
	other.outcome(other.query("say"))
}
