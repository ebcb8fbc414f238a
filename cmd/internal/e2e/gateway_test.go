package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A dialect is a protocol of another program: what its client sends, and what it waits for.
type dialect struct {
	name          string
	open          func(w *world) *peer
	hello         []string // each is answered; peer.fill names the variables
	ask           []string // sends $prompt as request $id; each but the last is answered
	failedLine    string   // of the line that ends a failed request: its parts, separated by *
	succeededLine string   // the same of one that succeeded
}

var dialects = []dialect{
	{
		name: "jsonrpc", open: openJSONRPC,
		hello: []string{`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocol_version":"1.0.0"}}`},
		ask:   []string{`{"jsonrpc":"2.0","id":"$id","method":"agent.query","params":{"message":"$prompt"}}`}, failedLine: `"stream.complete"*"status":"error"`, succeededLine: `"status":"success"`,
	},
	{
		name: "operator S3", open: openOperator,
		ask:        []string{`{"type":"dispatch","id":"$id","agentID":"architect","sessionID":"one","content":"$prompt","metadata":{"token":"$token"}}`},
		failedLine: `"turn-completed","id":"$id"*"stopReason":"error"`, succeededLine: `"turn-completed"*"stopReason":"end_turn"`,
	},
	{
		name: "operator S4", open: openOperator,
		hello: []string{`{"type":"query","id":"first","messages":[{"role":"user","content":"say"}],"metadata":{"token":"$token"}}`},
		ask: []string{
			`{"type":"dispatch","sessionID":"$session","messages":[{"role":"user","content":"$prompt"}],"metadata":{"token":"$token"}}`,
			`{"type":"stream","id":"$id","sessionID":"$session","metadata":{"token":"$token"}}`,
		},
		failedLine: `{"id":"$id",*"stopReason":"error"`, succeededLine: `{"id":"$id",*"stopReason":"end_turn"`,
	},
	{
		name: "stdio", open: func(w *world) *peer { return w.child("stdio") },
		ask: []string{`{"id":"$id","kind":"user_message","message":"$prompt"}`}, failedLine: `"type":"error","id":"$id"`, succeededLine: `"type":"done","id":"$id"`,
	},
	{
		name: "acp", open: func(w *world) *peer { return w.child("acp") },
		hello: []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
			`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"$project","mcpServers":[]}}`,
		},
		ask:        []string{`{"jsonrpc":"2.0","id":"$id","method":"session/prompt","params":{"sessionId":"$session","prompt":[{"type":"text","text":"$prompt"}]}}`},
		failedLine: `"id":"$id"*"error"`, succeededLine: `"id":"$id"*"stopReason":"end_turn"`,
	},
}

// peer is a client's connection.
type peer struct {
	w              *world
	in             io.Writer
	lines          *bufio.Reader
	deadline       func(time.Time) error
	session, token string
}

// fill replaces the variables in a line of a dialect; $session is the session that an answer named last.
func (p *peer) fill(format, prompt, id string) string {
	return strings.NewReplacer("$project", p.w.project, "$session", p.session, "$token", p.token, "$prompt", prompt, "$id", id).Replace(format)
}

func (p *peer) say(format, prompt, id string) {
	p.w.t.Helper()
	if _, err := io.WriteString(p.in, p.fill(format, prompt, id)+"\n"); err != nil {
		p.w.t.Fatal(err)
	}
}

// next reads a line, and keeps the session that it names.
func (p *peer) next() string {
	p.w.t.Helper()
	if p.deadline != nil {
		if err := p.deadline(time.Now().Add(patience)); err != nil {
			p.w.t.Fatal(err)
		}
	}
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.w.t.Fatalf("%v after %q; daemon log:\n%s", err, line, p.w.logTail())
	}
	var m struct {
		SessionID string `json:"sessionID"`
		Result    struct {
			SessionID string `json:"sessionId"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		p.w.t.Fatalf("%v in %q", err, line)
	}
	for _, id := range []string{m.SessionID, m.Result.SessionID} {
		if id != "" {
			p.session = id
		}
	}
	return line
}

// until reads up to a line that has all parts of want, which are separated by *.
func (p *peer) until(want string) (line, before string) {
	p.w.t.Helper()
	for {
		line = p.next()
		has := true
		for part := range strings.SplitSeq(want, "*") {
			has = has && strings.Contains(line, part)
		}
		if has {
			return line, before
		}
		before += line
	}
}

func (w *world) connect(network, addr string) *peer {
	w.t.Helper()
	nc, err := net.Dial(network, addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { nc.Close() })
	return &peer{w: w, in: nc, lines: bufio.NewReaderSize(nc, 1<<16), deadline: nc.SetReadDeadline}
}

func openOperator(w *world) *peer {
	addr, token := w.operator()
	p := w.connect("tcp", addr)
	p.token = token
	return p
}

// spawn starts `sublet serve` with these arguments. At the end of the test it gets SIGTERM and must exit with 0.
func (w *world) spawn(args ...string) (in io.WriteCloser, out *bufio.Reader) {
	w.t.Helper()
	cmd := exec.Command(binary, append([]string{"serve"}, args...)...)
	cmd.Env, cmd.Dir = w.env, w.project
	in, err1 := cmd.StdinPipe()
	pipe, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			w.t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("serve %v after SIGTERM: %v", args, err)
		}
	})
	return in, bufio.NewReaderSize(pipe, 1<<16)
}

func (w *world) child(name string) *peer {
	in, out := w.spawn(name)
	p := &peer{w: w, in: in, lines: out}
	if name == "stdio" {
		p.until(`"ready"`)
	}
	return p
}

func openJSONRPC(w *world) *peer {
	_, out := w.spawn("jsonrpc", "--socket", w.path("rpc.sock"))
	path, err := out.ReadString('\n') // it serves
	if err != nil {
		w.t.Fatal(err)
	}
	return w.connect("unix", strings.TrimSpace(path))
}

// A daemon that is killed with -9 in the middle of a turn: each translator starts another one, reports that the turn ended,
// and the conversation goes on over the same connection (C6, T6).
func TestGatewaysSurviveTheDaemon(t *testing.T) {
	for _, f := range dialects {
		t.Run(f.name, func(t *testing.T) {
			w := newWorld(t, "", script{
				{Match: "^wait", Steps: []step{{Text: "before ", ToolCalls: []call{bash("true")}}, {WaitFile: "/nonexistent/ever"}}},
				{Match: "^say", Steps: []step{{Text: "hello"}}},
			})
			p := f.open(w)
			for _, line := range f.hello {
				p.say(line, "", "")
				p.next()
			}
			ask := func(prompt, id string) {
				for i, line := range f.ask {
					p.say(line, prompt, id)
					if i < len(f.ask)-1 {
						p.next()
					}
				}
			}
			ask("wait", "r1")
			p.until("before ")
			if err := syscall.Kill(w.daemonPID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			p.until(p.fill(f.failedLine, "", "r1"))
			ask("say", "r2")
			if line, before := p.until(p.fill(f.succeededLine, "", "r2")); !strings.Contains(before+line, "hello") {
				t.Errorf("afterwards: %s", before+line)
			}
		})
	}
}
