package mcp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/client/internal/gateway/gatewaytest"
	"sublet/wire"
)

// The shell is the user's own: its aliases, functions and variables are there, and what a call changes is there for the next one,
// and told.
func TestLiveShell(t *testing.T) {
	w := gatewaytest.New(t, nil)
	win := openWindow(t, w)
	a := connect(t, w, "codex-mcp-client")
	if r := a.run("hi; mine 3; echo $FROM_RC"); r.Output != "hello from an alias\nmine 3\nyes\n" || r.ExitCode == nil || *r.ExitCode != 0 || r.isError || r.Where != "live" {
		t.Errorf("got %+v", r)
	}
	if began := next(t, win.began); began != "codex: hi; mine 3; echo $FROM_RC" {
		t.Errorf("the window shows %q", began)
	}
	if r := a.run("export LATER=1; alias zz=ls"); !strings.Contains(r.Output, "changed in the shell: set LATER, set alias zz") {
		t.Errorf("what changed is not told: %q", r.Output)
	}
	if r := a.run("cd /tmp"); r.Cwd != "/tmp" {
		t.Errorf("now in %q", r.Cwd)
	}
	if r := a.run("echo $LATER in $PWD; false"); !strings.HasPrefix(r.Output, "1 in /tmp\n") || r.ExitCode == nil || *r.ExitCode != 1 || r.isError {
		t.Errorf("got %+v", r)
	}
	if r := a.run("pwd", "cwd", w.Project); !strings.Contains(r.Output, w.Project) || r.Cwd != w.Project {
		t.Errorf("got %+v", r)
	}
}

// The tool's description for a client: a schema each way, what it may do, and that Claude Code need not search for it.
func TestToolIsDescribed(t *testing.T) {
	w := gatewaytest.New(t, nil)
	openWindow(t, w)
	a := connect(t, w, "claude-code")
	if got := a.InitializeResult().Instructions; len(strings.Split(got, "\n")) != 5 {
		t.Errorf("%d lines of instructions", len(strings.Split(got, "\n")))
	}
	list, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.InputSchema == nil || tool.OutputSchema == nil || tool.Annotations == nil || tool.Meta["anthropic/alwaysLoad"] != true {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
	}
}

// A risky command waits for the window's answer, the client hears that it waits, and only a yes of the window runs it.
func TestQuestionIsTheWindows(t *testing.T) {
	w := gatewaytest.New(t, nil)
	win := openWindow(t, w)
	a := connect(t, w, "gemini-cli-mcp-client-sublet", func(o *Options) { o.Progress = time.Millisecond })
	file := w.Write("project/precious", "x")
	a.run("true") // what is judged before the shell has reported its state may be judged again
	var work sync.WaitGroup
	work.Go(func() {
		for !strings.Contains(next(t, a.progress), "user's answer") {
		}
		if q := win.answer(wire.DecisionDeny); q.Borrower.Name != "gemini" || q.Borrower.PID != 4242 {
			t.Errorf("asked for %+v", q.Borrower)
		}
	})
	if r := a.run("rm precious"); r.Status != wire.StatusDenied || !r.isError || r.ExitCode != nil || !strings.Contains(r.text, "denied by the user") {
		t.Errorf("got %+v", r)
	}
	work.Wait()
	if _, err := os.Stat(file); err != nil {
		t.Errorf("it ran: %v", err)
	}
	work.Go(func() { win.answer(wire.DecisionAllow) })
	if r := a.run("rm precious"); r.Status != wire.StatusSuccess {
		t.Errorf("got %+v", r)
	}
	work.Wait()
	if _, err := os.Stat(file); err == nil {
		t.Error("it did not run")
	}
}

// A command in the background is a job of the user's shell: the call returns at once, and the tool job lists it, waits for a line
// of its output, and ends it.
func TestBackgroundJob(t *testing.T) {
	w := gatewaytest.New(t, nil)
	openWindow(t, w)
	a := connect(t, w, "claude-code")
	a.run("true") // what is judged before the shell has reported its state may be judged again, as another job
	r, err := a.call(t.Context(), "shell", map[string]any{"command": "echo up on 80; sleep 600; echo over", "background": true})
	if err != nil || r.isError || !strings.Contains(r.Output, "job j1 was started in") {
		t.Fatalf("got %+v, %v", r, err)
	}
	for _, c := range []struct {
		arguments map[string]any
		want      string
	}{
		{map[string]any{"id": "j1", "until": "up on [0-9]+"}, "[a line matched: up on 80]"},
		{map[string]any{"id": "j1"}, "nothing new was printed"},
		{nil, "j1: running"},
		{map[string]any{"id": "j1", "kill": true}, "ended by its agent"},
	} {
		if r, err := a.call(t.Context(), "job", c.arguments); err != nil || r.isError || !strings.Contains(r.Output, c.want) {
			t.Errorf("%v: got %+v, %v, want %q", c.arguments, r, err, c.want)
		}
	}
	if r, err := a.call(t.Context(), "job", map[string]any{"id": "j9"}); err != nil || !r.isError || !strings.Contains(r.text, "j9") {
		t.Errorf("an unknown job: %+v, %v", r, err)
	}
}

// A question that nobody answers within the gateway's bound is a no, and the result says so.
func TestQuestionNobodyAnswers(t *testing.T) {
	w := gatewaytest.New(t, nil)
	openWindow(t, w)
	a := connect(t, w, "opencode", func(o *Options) { o.Answer = time.Millisecond })
	if r := a.run("rm precious"); r.Status != wire.StatusDenied || !strings.Contains(r.text, "nobody answered within 1ms") {
		t.Errorf("got %+v", r)
	}
}

// A cancel of the client ends the command, and the shell is free for the next one.
func TestCancelEndsTheCommand(t *testing.T) {
	w := gatewaytest.New(t, nil)
	win := openWindow(t, w)
	a := connect(t, w, "qwen-code")
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := a.call(ctx, "shell", map[string]any{"command": "sleep 600"})
		over <- err
	}()
	next(t, win.began)
	cancel()
	if err := next(t, over); err == nil {
		t.Error("the call ended with a result")
	}
	if r := a.run("echo free; jobs"); r.Output != "free\n" {
		t.Errorf("got %+v", r)
	}
}

// A client that dies takes its command and its question with it; another one gets the shell.
func TestClientDies(t *testing.T) {
	w := gatewaytest.New(t, nil)
	win := openWindow(t, w)
	other := connect(t, w, "opencode")
	for _, command := range []string{"sleep 600", "rm precious"} {
		a := connect(t, w, "codex-mcp-client")
		over := make(chan struct{})
		go func() {
			defer close(over)
			a.call(t.Context(), "shell", map[string]any{"command": command}) //nolint:errcheck // its connection ends
		}()
		if command == "sleep 600" {
			next(t, win.began)
		} else {
			next(t, win.questions)
		}
		a.hangUp()
		<-over
		if r := other.run("echo free"); r.Output != "free\n" {
			t.Errorf("after %s: got %+v", command, r)
		}
		next(t, win.began)
	}
}

// Two agents at once take turns.
func TestTwoAgentsTakeTurns(t *testing.T) {
	w := gatewaytest.New(t, nil)
	openWindow(t, w)
	var work sync.WaitGroup
	for _, name := range []string{"codex", "claude-code"} {
		a := connect(t, w, name)
		work.Go(func() {
			for i := range 5 {
				want := fmt.Sprint(name, i)
				if r, err := a.call(t.Context(), "shell", map[string]any{"command": "echo " + want}); err != nil || r.Output != want+"\n" {
					t.Errorf("got %+v, %v", r, err)
				}
			}
		})
	}
	work.Wait()
}

// A long output is cut in the middle, and the whole is where the result says.
func TestLongOutput(t *testing.T) {
	w := gatewaytest.New(t, nil)
	openWindow(t, w)
	a := connect(t, w, "codex")
	for _, n := range []int{3000, 60_000} { // within what the daemon passes on, and beyond
		r := a.run(fmt.Sprintf("seq 1 %d", n))
		if got := len(r.Output); got > 10_000 || !strings.HasPrefix(r.Output, "1\n2\n") || !strings.Contains(r.Output, fmt.Sprint("\n", n, "\n")) {
			t.Errorf("%d: %d bytes, %.40q … %q", n, got, r.Output, r.Output[len(r.Output)-200:])
		}
		whole, err := os.ReadFile(r.Rest)
		if err != nil || !strings.Contains(strings.ReplaceAll(string(whole), "\r", ""), fmt.Sprint("\n", n/2, "\n")) {
			t.Errorf("%d: the rest is in %q: %v", n, r.Rest, err)
		}
	}
	// The file that a job's result named as the whole had only what the daemon had already cut.
	if r, err := a.call(t.Context(), "shell", map[string]any{"command": "seq 1 60000", "background": true}); err != nil || r.isError {
		t.Fatalf("got %+v, %v", r, err)
	}
	r, err := a.call(t.Context(), "job", map[string]any{"id": "j1", "until": ""})
	if err != nil || len(r.Output) > 10_000 || !strings.Contains(r.Output, "; the whole is in "+r.Rest) {
		t.Errorf("the job: %d bytes, %v: %q", len(r.Output), err, r.Rest)
	}
	if whole, err := os.ReadFile(r.Rest); !strings.Contains(string(whole), "\n30000\n") {
		t.Errorf("the job's rest is in %q: %v", r.Rest, err)
	}
}

// Without a window the call says so, and a private shell keeps its state between calls.
func TestWithoutAWindow(t *testing.T) {
	w := gatewaytest.New(t, nil)
	a := connect(t, w, "codex")
	if r := a.run("ls"); !r.isError || !strings.Contains(r.text, "no sublet window is open") || !strings.Contains(r.text, "private shell") {
		t.Errorf("got %+v", r)
	}
	a.run("cd /tmp", "where", "private")
	if r := a.run("pwd", "where", "private"); r.Output != "/tmp\n" || r.Where != "private" || r.isError {
		t.Errorf("got %+v", r)
	}
	if r := a.run("rm -rf ~/x", "where", "private"); r.Status != wire.StatusDenied {
		t.Errorf("got %+v", r)
	}
}

// Bad input is answered with its cause, and the next call works.
func TestBadInput(t *testing.T) {
	w := gatewaytest.New(t, nil)
	openWindow(t, w)
	a := connect(t, w, "codex")
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"shell", map[string]any{}, "command"},
		{"shell", map[string]any{"command": 1}, "command"},
		{"shell", map[string]any{"command": "ls", "approve": true}, "approve"},
		{"shell", map[string]any{"command": " "}, "command: is empty"},
		{"shell", map[string]any{"command": "ls\x00"}, "NUL"},
		{"shell", map[string]any{"command": "ls", "cwd": "there"}, "not absolute"},
		{"shell", map[string]any{"command": "ls", "cwd": "/not/there"}, "not a folder"},
		{"shell", map[string]any{"command": "ls", "where": "root"}, "where"},
		{"shell", map[string]any{"command": "ls", "timeout_ms": -1}, "timeout_ms"},
		{"shell", map[string]any{"command": "ls", "timeout_ms": 3_600_001}, "timeout_ms"},
		{"sudo", map[string]any{}, "sudo"},
	} {
		r, err := a.call(t.Context(), c.tool, c.arguments)
		if err != nil {
			r.text, r.isError = err.Error(), true
		}
		if !r.isError || !strings.Contains(r.text, c.want) {
			t.Errorf("%s %.60v: got %+v, want an error about %s", c.tool, c.arguments, r, c.want)
		}
	}
	if r := a.run("echo well"); r.Output != "well\n" {
		t.Errorf("afterwards: %+v", r)
	}
}

// 100 calls at once: those that there is room for run one after the other, the others are refused with the reason.
func TestManyCallsAtOnce(t *testing.T) {
	w := gatewaytest.New(t, nil)
	openWindow(t, w)
	a := connect(t, w, "codex")
	ran := make(chan bool, 100)
	for i := range 100 {
		go func() {
			r, err := a.call(t.Context(), "shell", map[string]any{"command": fmt.Sprint("echo ", i)})
			if full := strings.Contains(r.text, "too many"); err != nil || !full && r.Output != fmt.Sprint(i, "\n") {
				t.Errorf("got %+v, %v", r, err)
			}
			ran <- !strings.Contains(r.text, "too many")
		}()
	}
	n := 0
	for range 100 {
		if next(t, ran) {
			n++
		}
	}
	if n < maxWaiting {
		t.Errorf("%d ran, want %d at the least", n, maxWaiting)
	}
	if r := a.run("echo well"); r.Output != "well\n" {
		t.Errorf("afterwards: %+v", r)
	}
}

// A message that is too long ends its client alone.
func TestTooLongAMessage(t *testing.T) {
	w := gatewaytest.New(t, nil)
	openWindow(t, w)
	inR, inW := ioPipe(t)
	var said strings.Builder
	over := make(chan error, 1)
	go func() { over <- Serve(t.Context(), Options{Daemon: w.Daemon(), In: inR, Out: &said}) }()
	go func() {
		fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shell","arguments":{"command":"%s"}}}`+"\n", strings.Repeat("x", 11<<20)) //nolint:errcheck // it is cut off
	}()
	if err := next(t, over); err == nil || !strings.Contains(err.Error(), "maximum") {
		t.Errorf("got %v", err)
	}
	if r := connect(t, w, "codex").run("echo well"); r.Output != "well\n" {
		t.Errorf("afterwards: %+v", r)
	}
}

// A client that never reads gets its command run, and others the shell.
func TestClientThatNeverReads(t *testing.T) {
	w := gatewaytest.New(t, nil)
	win := openWindow(t, w)
	inR, inW := ioPipe(t)
	outR, outW := ioPipe(t)
	over := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		over <- Serve(ctx, Options{Daemon: w.Daemon(), In: inR, Out: outW, Progress: time.Millisecond})
	}()
	go fmt.Fprint(inW, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"deaf","version":"1"}}}`+"\n") //nolint:errcheck // see below
	line := make([]byte, 1<<16)
	if _, err := outR.Read(line); err != nil {
		t.Fatal(err)
	}
	go func() {
		fmt.Fprint(inW, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+ //nolint:errcheck // the other end is read until the server ends
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shell","arguments":{"command":"echo deaf"},"_meta":{"progressToken":1}}}`+"\n")
	}()
	next(t, win.began)
	if r := connect(t, w, "codex").run("echo well"); r.Output != "well\n" {
		t.Errorf("meanwhile: %+v", r)
	}
	outR.Close()
	cancel()
	next(t, over)
}

// The names that programs give themselves become those that users know.
func TestNames(t *testing.T) {
	for client, want := range map[string]string{
		"codex-mcp-client": "codex", "claude-code": "claude", "gemini-cli-mcp": "gemini", "": "mcp-client", "my-agent": "my-agent",
	} {
		if got := nameOf(client); got != want {
			t.Errorf("%q became %q, want %q", client, got, want)
		}
	}
	if p := Parent(); p.PID != os.Getppid() || filepath.Base(string(p.Executable)) == "" {
		t.Errorf("got %+v", p)
	}
}

// The shell is described without running anything, and without the value of a variable.
func TestShellState(t *testing.T) {
	w := gatewaytest.New(t, nil)
	a := connect(t, w, "codex")
	if r, err := a.call(t.Context(), "shell_state", nil); err != nil || !r.isError || !strings.Contains(r.text, "no sublet window is open") {
		t.Errorf("without a window: %+v, %v", r, err)
	}
	win := openWindow(t, w)
	a.run("export SOME_TOKEN=abcdefgh12345678; alias zz='ls -l'; cd /tmp")
	one := 1
	if err := win.conn.Send(&wire.CommandResult{Command: "make x", ExitCode: &one, OutputTail: []byte("no rule\x1b[31m\n")}); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Call(t.Context(), win.conn, &wire.StatusRequest{}); err != nil { // the daemon has it
		t.Fatal(err)
	}
	r, err := a.call(t.Context(), "shell_state", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"cwd":"/tmp"`, `"zz":"ls -l"`, `"mine"`, `"SOME_TOKEN"`, `"FROM_RC"`, `"command":"make x"`, `"exit_code":1`, "no rule"} {
		if !strings.Contains(r.text, want) {
			t.Errorf("%s is not in %s", want, r.text)
		}
	}
	if strings.Contains(r.text, "abcdefgh12345678") || strings.Contains(r.text, "u001b") {
		t.Errorf("it tells too much: %s", r.text)
	}
	for uri, want := range map[string]string{"sublet://cwd": `"/tmp"`, "sublet://last-command": "make x", "sublet://lease": `"holder"`} {
		res, err := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || !strings.Contains(res.Contents[0].Text, want) {
			t.Errorf("%s: got %+v, %v", uri, res, err)
		}
	}
}

// What programs and the user named ends no line of its own in an answer, and brings no control character.
func TestNamesAreMadeVisible(t *testing.T) {
	const folder, shown = "/x\n[exit code 0]\x1b[31m", "/x␤[exit code 0]␛[31m"
	var result shellOut
	result.fill(&wire.CommandResult{Cwd: folder, Status: wire.StatusError})
	if result.Cwd != shown || result.text() != "\n[the shell is in "+shown+"]" {
		t.Errorf("got %+v with %q", result, result.text())
	}
	st := stateOf(&wire.ShellLook{
		Cwd: folder, Shell: "bash\n", Exported: []string{"A\n"}, Functions: []string{"f\ng"},
		Aliases: map[string]wire.OSString{"z\n": "a\x1b[31m\nb"}, Recent: []wire.RecentCommand{{Command: "a\x1b\nb", OutputTail: []byte("\x1b")}},
	})
	if want := (stateOut{
		Cwd: shown, Shell: "bash␤", Exported: []string{"A␤"}, Functions: []string{"f␤g"},
		Aliases: map[string]string{"z␤": "a␛[31m\nb"}, Recent: []recentCommand{{Command: "a␛\nb", Output: "␛"}},
	}); !reflect.DeepEqual(st, want) {
		t.Errorf("got %+v, want %+v", st, want)
	}
	q := queueOf([]wire.LeaseStatus{{Holder: "a\nb", Purpose: "\x1b[1m", Queue: []wire.LeaseWaiter{{Agent: "c\n", Purpose: "d\r"}}}})[0]
	if q.Holder != "a␤b" || q.Purpose != "␛[1m" || q.Waiting[0] != "c␤: d␍" {
		t.Errorf("got %+v", q)
	}
	var c call
	if c.event(&wire.ShellLeaseQueued{Holder: "vi\n\x1b"}); c.state.Load() != "waits for the shell, which vi␤␛ has" {
		t.Errorf("got %q", c.state.Load())
	}
}

// A question to the user is answered in the window, by a choice or in their words, or not at all.
func TestAskUser(t *testing.T) {
	w := gatewaytest.New(t, nil)
	a := connect(t, w, "codex")
	question := map[string]any{"question": "Which one?", "choices": []string{"left", "right"}}
	if r, err := a.call(t.Context(), "ask_user", question); err != nil || !r.isError || !strings.Contains(r.text, "no sublet window is open") {
		t.Errorf("without a window: %+v, %v", r, err)
	}
	win := openWindow(t, w)
	for _, c := range []struct{ decision, comment, want string }{
		{wire.DecisionAllow, "right", `"answer":"right","answered":true`},
		{wire.DecisionDeny, "", `"answered":false`},
	} {
		var work sync.WaitGroup
		work.Go(func() {
			q := next(t, win.questions)
			if q.Tool != wire.ToolAskUser || !strings.Contains(q.Arguments, "Which one?") {
				t.Errorf("asked %+v", q)
			}
			if err := win.conn.Notify(&wire.ConfirmationResponse{ConfirmationID: q.ConfirmationID, Decision: c.decision, Comment: c.comment}); err != nil {
				t.Error(err)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), gatewaytest.Patience)
		r, err := a.call(ctx, "ask_user", question)
		cancel()
		work.Wait()
		if err != nil || !strings.Contains(r.text, c.want) {
			t.Errorf("%s: got %+v, %v", c.decision, r, err)
		}
	}
	for _, bad := range []map[string]any{{"question": " "}, {"question": strings.Repeat("x", 2001)}, {"question": "x", "choices": make([]string, 10)}, {"question": "x", "choices": []string{""}}} {
		if r, err := a.call(t.Context(), "ask_user", bad); err != nil || !r.isError {
			t.Errorf("%v: got %+v, %v", bad, r, err)
		}
	}
}

// shell_state does not describe the window last typed in to a hosted agent: it may belong to another session.
func TestHostedSeesNoOtherWindow(t *testing.T) {
	w := gatewaytest.New(t, nil)
	openWindow(t, w)
	s := newServer(t.Context(), Options{Daemon: w.Daemon(), Hosted: "guess"})
	defer s.close()
	here, there := sdk.NewInMemoryTransports()
	session, err := s.sdkServer().Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	a, err := sdk.NewClient(&sdk.Implementation{Name: "codex", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	list, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.Name == "shell_state" {
			t.Error("shell_state is offered")
		}
	}
	if _, err := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "sublet://last-command"}); err == nil {
		t.Error("sublet://last-command is read")
	}
}

// Where no window is open, a client that can ask its own user does so, by the newest revision of the protocol and by an older one.
// What is asked is checked first, and no answer is one. Where a window is open, that asks.
func TestAskUserInTheClient(t *testing.T) {
	w := gatewaytest.New(t, nil)
	question := map[string]any{"question": "Which one?", "choices": []string{"left", "right"}}
	var a *agent
	var asked *sdk.ElicitParams
	answer := func(action string) *sdk.ClientOptions {
		return &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			asked = r.Params
			return &sdk.ElicitResult{Action: action, Content: map[string]any{"answer": "right"}}, nil
		}}
	}
	for _, version := range []string{"", "2025-11-25"} {
		a = connectAs(t, w, "codex", version, answer("accept"))
		r, err := a.call(t.Context(), "ask_user", question)
		if err != nil || r.isError || !strings.Contains(r.text, `"answer":"right","answered":true`) || asked == nil || asked.Message != "Which one?" {
			t.Errorf("%q: got %+v, %v; asked %+v", version, r, err, asked)
		}
		asked = nil
		if r, err = a.call(t.Context(), "ask_user", map[string]any{"question": " "}); err != nil || !r.isError || asked != nil {
			t.Errorf("%q, no question: got %+v, %v; asked %+v", version, r, err, asked)
		}
		r, err = connectAs(t, w, "codex", version, answer("decline")).call(t.Context(), "ask_user", question)
		if err != nil || !strings.Contains(r.text, `"answered":false`) {
			t.Errorf("%q, declined: got %+v, %v", version, r, err)
		}
	}
	asked = nil
	win := openWindow(t, w)
	var work sync.WaitGroup
	work.Go(func() {
		q := next(t, win.questions)
		if err := win.conn.Notify(&wire.ConfirmationResponse{ConfirmationID: q.ConfirmationID, Decision: wire.DecisionAllow, Comment: "left"}); err != nil {
			t.Error(err)
		}
	})
	r, err := a.call(t.Context(), "ask_user", question)
	work.Wait()
	if err != nil || !strings.Contains(r.text, `"answer":"left","answered":true`) || asked != nil {
		t.Errorf("with a window: got %+v, %v; asked %+v", r, err, asked)
	}
}
