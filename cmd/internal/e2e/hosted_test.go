package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"
	mcp "github.com/modelcontextprotocol/go-sdk/mcp"
)

// hostedMode is a variable that makes this test program an agent that speaks the Agent Client Protocol. It names the file in which
// the agent keeps all that it gets, from sublet and from its MCP server.
const hostedMode = "SUBLET_TEST_HOSTED"

// puppet is an agent without a model: it passes each prompt to its MCP server as a command for the shell tool.
type puppet struct {
	acp.Agent // nil: what is not played is not called
	conn      *acp.AgentSideConnection
	server    *mcp.ClientSession
	got       *os.File
	cwd       string // of its session
	again     string // begins its answers in a session that it took up
	uses      string // ends them: the model and mode that were set
}

// signedIn is the file that the puppet called locked makes when the user has signed in.
func signedIn() string { return os.Getenv(hostedMode) + ".signed" }

// playPuppet runs the agent on standard input and output, or the sign-in of it in a terminal.
func playPuppet() {
	if slices.Contains(os.Args, "sign-in") {
		fmt.Print("Code: ")
		code, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err = errors.Join(err, os.WriteFile(signedIn(), []byte(code), 0o600)); err != nil {
			os.Exit(1)
		}
		return
	}
	got, err := os.OpenFile(os.Getenv(hostedMode), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p := &puppet{got: got}
	in, w := io.Pipe() // nothing is read before conn is set
	p.conn = acp.NewAgentSideConnection(p, os.Stdout, in)
	_, err = io.Copy(io.MultiWriter(w, got), os.Stdin)
	w.CloseWithError(err)
	<-p.conn.Done()
}

func (p *puppet) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	can := acp.AgentCapabilities{SessionCapabilities: acp.SessionCapabilities{Resume: &acp.SessionResumeCapabilities{}}}
	byTerminal := acp.AuthMethod{Terminal: &acp.AuthMethodTerminalInline{Id: "t", Name: "By a code", Type: "terminal", Args: []string{"sign-in"}}}
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber, AuthMethods: []acp.AuthMethod{byTerminal}, AgentCapabilities: can}, nil
}

func (p *puppet) NewSession(_ context.Context, r acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	if _, err := os.Stat(signedIn()); strings.HasSuffix(os.Getenv(hostedMode), "locked.got") && err != nil {
		return acp.NewSessionResponse{}, acp.NewAuthRequired(nil)
	}
	p.cwd = r.Cwd
	return acp.NewSessionResponse{
		SessionId: "s",
		Models:    &acp.SessionModelState{CurrentModelId: "big", AvailableModels: []acp.ModelInfo{{ModelId: "big"}, {ModelId: "small"}}},
		Modes:     &acp.SessionModeState{CurrentModeId: "default", AvailableModes: []acp.SessionMode{{Id: "default"}, {Id: "edits"}}},
	}, p.connect(r.McpServers)
}

func (p *puppet) UnstableSetSessionModel(_ context.Context, r acp.UnstableSetSessionModelRequest) (acp.UnstableSetSessionModelResponse, error) {
	p.uses += " by " + string(r.ModelId)
	return acp.UnstableSetSessionModelResponse{}, nil
}

func (p *puppet) SetSessionMode(_ context.Context, r acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	p.uses += " in " + string(r.ModeId)
	return acp.SetSessionModeResponse{}, nil
}

func (p *puppet) ResumeSession(_ context.Context, r acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	p.again = "again in " + string(r.SessionId) + ", "
	return acp.ResumeSessionResponse{}, p.connect(r.McpServers)
}

// connect connects the server, as the protocol asks, and lists its tools.
func (p *puppet) connect(servers []acp.McpServer) (err error) {
	if len(servers) == 0 { // it is only checked
		return nil
	}
	s := servers[0].Stdio
	cmd := exec.Command(s.Command, s.Args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")} // as Codex does
	for _, v := range s.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "puppet", Version: "1"}, nil)
	if p.server, err = client.Connect(context.Background(), &mcp.LoggingTransport{Transport: &mcp.CommandTransport{Command: cmd}, Writer: p.got}, nil); err == nil {
		_, err = p.server.ListTools(context.Background(), nil)
	}
	return err
}

// Prompt runs the command and answers with the result. Like Gemini CLI and Codex it does not pass a cancel on to the server.
func (p *puppet) Prompt(_ context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	command, _, _ := strings.Cut(r.Prompt[0].Text.Text, "\n\n[")
	if line, ok := strings.CutPrefix(command, "in a terminal: "); ok {
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, p.terminal(line)
	}
	arguments := map[string]any{}
	if line, ok := strings.CutPrefix(command, "in the folder, after cd sub: "); ok {
		if _, err := p.server.CallTool(context.Background(), &mcp.CallToolParams{Name: "shell", Arguments: map[string]any{"command": "cd sub"}}); err != nil {
			return acp.PromptResponse{}, err
		}
		command, arguments["cwd"] = line, p.cwd
	}
	arguments["command"] = command
	res, err := p.server.CallTool(context.Background(), &mcp.CallToolParams{Name: "shell", Arguments: arguments})
	if err != nil {
		return acp.PromptResponse{}, err
	}
	text := res.Content[0].(*mcp.TextContent).Text
	err = p.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: "s", Update: acp.UpdateAgentMessageText(p.again + "the agent got: " + text + p.uses)})
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
}

// terminal runs the command in a terminal of sublet's, and says what it has written before it ends.
func (p *puppet) terminal(command string) error {
	made, err := p.conn.CreateTerminal(context.Background(), acp.CreateTerminalRequest{SessionId: "s", Command: command})
	out := acp.TerminalOutputResponse{}
	for err == nil && out.Output == "" {
		time.Sleep(20 * time.Millisecond) // as such agents do
		out, err = p.conn.TerminalOutput(context.Background(), acp.TerminalOutputRequest{SessionId: "s", TerminalId: made.TerminalId})
	}
	if err != nil {
		return err
	}
	text := fmt.Sprintf("so far %q, ended: %v", out.Output, out.ExitStatus != nil)
	return p.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: "s", Update: acp.UpdateAgentMessageText(text)})
}

func (p *puppet) Cancel(context.Context, acp.CancelNotification) error { return nil }

// puppets makes agents of these names, and returns the file in which one keeps all that it gets.
func (w *world) puppets(names ...string) (got func(name string) string) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	old, err := os.ReadFile(w.path("config.toml"))
	if err != nil {
		w.t.Fatal(err)
	}
	text := string(old)
	for _, name := range names {
		text += fmt.Sprintf("[agents.%s]\ncommand = [%q]\nenv = { %s = %q }\n", name, self, hostedMode, w.path(name+".got"))
	}
	w.write(w.path("config.toml"), text)
	return func(name string) string {
		w.t.Helper()
		raw, err := os.ReadFile(w.path(name + ".got"))
		if err != nil {
			w.t.Fatal(err)
		}
		return string(raw)
	}
}

// useAgent has the agent of that name answer in the window.
func (term *terminal) useAgent(name string) {
	term.t.Helper()
	term.mode(true)
	term.send("/agent "+name, enter)
	term.see(name + " answers from now on")
}

// A hosted agent's commands run in the window that asked, like those of sublet's own agents. The agent ends with the daemon, and the
// next one's takes its session up, until the conversation is cleared.
func TestHostedAgent(t *testing.T) {
	w := newWorld(t, "alias hi='echo hello from an alias'\n", nil)
	w.write(filepath.Join(w.project, "sub", "old", "file"), "x")
	w.puppets("puppet", "stranger")
	term := w.openShell()
	w.awaitWindows(1)
	term.mode(true)
	term.send("/model test/m", enter)
	term.see("test/m answers from now on")
	term.useAgent("puppet") // has its own models
	term.ask("cd sub; export COLOUR=green")
	term.see(`the agent got: `)
	term.ask(`hi; echo "$COLOUR in ${PWD##*/}"`)
	term.see(`green in sub`)
	term.ask("rm -r old")
	term.see(`\[n\] no`)
	term.answer("n", func() bool { return !term.sees(`\[n\] no`) })
	term.see(`denied by the user`)
	if _, err := os.Stat(filepath.Join(w.project, "sub", "old")); err != nil {
		t.Errorf("it ran: %v", err)
	}
	term.ask("sleep 7000")
	running := func() bool { return strings.Contains(w.processes(), "sleep 7000") }
	w.await("the command to run", running)
	term.send(ctrlC)
	w.await("the cancelled command to be gone", func() bool { return !running() && idle(w.status()) })

	pid := w.hostedPID(filepath.Base(os.Args[0]))
	_, _, status := w.sublet("daemon", "stop")
	w.await("the agent to be gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	if status != 0 {
		t.Errorf("daemon stop: %d", status)
	}
	term.ask("echo of the next daemon")
	term.see(`again in s, the agent got: of the next daemon`)
	term.useAgent("stranger")
	term.ask("echo hello")
	term.see(`^· stranger begins a new session: it does not know what was said here before$`)
	term.see(`the agent got: hello \[exit`)
	term.useAgent("puppet")
	term.send("/clear", enter)
	term.see(`/clear again does it`)
	term.send("/clear", enter)
	term.see(`the conversation is empty`)
	term.ask("echo of a clear mind")
	term.see(`│ the agent got: of a clear mind`)
}

// The models and modes of a hosted agent are listed and chosen in the window, also before its first prompt; what it does not have is
// refused with what it has.
func TestHostedAgentModels(t *testing.T) {
	w := newWorld(t, "", nil)
	w.puppets("puppet")
	out, errs, status := w.sublet("agents")
	if want := "puppet: its models: big, small; in use: big\npuppet: its modes: default, edits; in use: default\n"; status != 0 || !strings.Contains(out, want) {
		t.Errorf("sublet agents: %s%s", out, errs)
	}
	term := w.openShell()
	w.awaitWindows(1)
	term.useAgent("puppet")
	term.send("/model", enter)
	term.see(`^▸ big\s*$`)
	term.see(`^  small\s*$`)
	term.send("/model huge", enter)
	term.see(`no model has huge in its name`)
	term.send("/model small", enter)
	term.see(`small answers from now on in this window`)
	term.send("/mode yolo", enter)
	term.see(`/mode: puppet: it has no mode yolo`)
	term.see(`it has default, edits`)
	term.send("/mode edits", enter)
	term.see(`puppet is in its own mode edits; it has default, edits`)
	term.ask("echo hello")
	term.see(`edits by small`) // after the line that is broken
	term.send("/mode plan", enter)
	term.see(`plan mode: agents only look`)
	term.see(`puppet is in its own mode default`)
	_, errs, status = w.sublet("ask", "--agent", "puppet", "--model", "huge", "echo")
	if status == 0 || !strings.Contains(errs, "puppet: it has no model huge") || !strings.Contains(errs, "it has big, small") {
		t.Errorf("ask: %d %s", status, errs)
	}
}

// What a hosted agent's command asks for is typed by the user, in their shell. What was typed with echo off is nowhere afterwards, and
// the agent never gets it, also where the command prints it.
func TestHostedAgentAndPasswords(t *testing.T) {
	w := newWorld(t, "", nil)
	got := w.puppets("puppet")
	// What sudo and ssh do: they ask on the terminal, whatever their input is.
	w.write(filepath.Join(w.project, "ask"), "#!/bin/bash\nread -rsp 'Secret: ' p </dev/tty; echo; echo \"asked for ${#p} letters\"\n")
	if err := os.Chmod(filepath.Join(w.project, "ask"), 0o700); err != nil {
		t.Fatal(err)
	}
	const secret, printed, phrase = "zq7Hunter-Xw9", "kV4Correct/Horse", "mB2open.sesame"
	type step struct{ command, typed, gets string }
	steps := []step{
		{"echo piped | ./ask", secret, `asked for 13 letters`},
		{"read -rsp 'Token: ' t; echo; echo \"said $t.\"; unset t", printed, `said [masked:typed]`},
	}
	if keygen, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Log("ssh-keygen is not on this machine")
	} else if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", phrase, "-f", filepath.Join(w.project, "box")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	} else {
		steps = append(steps, step{"ssh-keygen -y -f box", phrase, `ssh-ed25519 AAAA`})
	}
	term := w.openShell()
	w.awaitWindows(1)
	term.useAgent("puppet")
	for i, s := range steps {
		term.ask(s.command)
		term.allow("the keyboard to be handed to: "+s.command, func() bool { return strings.Count(term.bytes(), "⌨ ") > i })
		term.send(s.typed, enter)
		w.await("the agent to get: "+s.gets, func() bool { return strings.Contains(got("puppet"), s.gets) })
	}
	w.keptNowhere(secret, printed, phrase)
}

// A sign-in in a terminal is a command in the user's shell, which they choose, see and allow, and which has their keyboard.
func TestHostedAgentSignIn(t *testing.T) {
	w := newWorld(t, "", nil)
	w.puppets("locked")
	if out, errs, _ := w.sublet("agents"); !strings.Contains(errs, "you are not signed in there") || !strings.Contains(errs, "By a code: run `") {
		t.Errorf("sublet agents: %s%s", out, errs)
	}
	term := w.openShell()
	w.awaitWindows(1)
	term.useAgent("locked")
	term.ask("echo hello")
	term.see(`You are not signed in to locked`)
	term.answer("1", func() bool { return term.sees(`answered: You are not`) })
	term.see(`reach free: nothing holds it`)
	term.see(`\[n\] no`)
	term.answer("y", func() bool { return !term.sees(`\[n\] no`) }) // another y would be for the program
	w.await("the program to have the keyboard", func() bool { return strings.Contains(term.bytes(), "⌨ ") })
	term.send("open sesame", enter)
	term.see(`the agent got: hello`)
	if code, err := os.ReadFile(w.path("locked.got.signed")); err != nil || string(code) != "open sesame\n" {
		t.Errorf("got %q, %v", code, err)
	}
}

// What a command in an agent's terminal has written can be read before it ends.
func TestHostedAgentTerminal(t *testing.T) {
	w := newWorld(t, "", nil)
	w.puppets("puppet")
	term := w.openShell()
	w.awaitWindows(1)
	term.useAgent("puppet")
	term.ask("in a terminal: echo begun; sleep 7000")
	term.see(`so far "begun\\n", ended: false`)
}

// Two agents whose turns run at once in one window's shell: the second one's command waits for the first one's, and each gets the
// output of its own.
func TestTwoHostedAgents(t *testing.T) {
	w := newWorld(t, "", nil)
	got := w.puppets("castor", "pollux")
	gate := filepath.Join(w.project, "gate")
	w.write(gate, "wait\n")
	term := w.openShell()
	w.awaitWindows(1)
	term.useAgent("castor")
	term.ask("until grep -q go gate; do sleep 0.1; done; echo said to the first")
	w.await("the first agent's command to run", func() bool { return strings.Contains(w.processes(), "sleep 0.1") })
	term.send("/new", enter)
	term.see("a new conversation")
	term.useAgent("pollux")
	term.ask("echo said to the second")
	w.await("the second agent to wait", func() bool {
		list, _, _ := w.sublet("lease", "ls")
		return strings.Contains(list, "castor") && strings.Contains(list, "pollux") && strings.Contains(list, "waits")
	})
	if err := os.WriteFile(gate, []byte("go\n"), 0o600); err != nil { // in place: an overlay of /tmp shows no file in place of another
		t.Fatal(err)
	}
	term.see(`the agent got: .*said to the second`)
	first, second := got("castor"), got("pollux")
	if !strings.Contains(first, "said to the first") || strings.Contains(first, "said to the second") || strings.Contains(second, "said to the first") {
		t.Errorf("the first one got\n%s\nthe second one\n%s", first, second)
	}
}

// An agent of another program that works in the background has a private shell, reports like sublet's own, and ends with the session
// that it works for.
func TestHostedAgentInTheBackground(t *testing.T) {
	task := call{"task", map[string]any{"background": true, "tasks": []map[string]string{{"role": "puppet", "title": "look", "prompt": "echo in private"}}}}
	w := newWorld(t, "", script{
		{Match: "^go", Steps: []step{{ToolCalls: []call{task}}, {Text: "meanwhile"}}},
		{Match: "has ended: success(?s:.*)the agent got: in private", Steps: []step{{Text: "so it is done"}}},
	})
	w.puppets("puppet")
	term := w.openShell()
	w.awaitWindows(1)
	term.ask("go")
	term.see("so it is done")
	pid := w.hostedPID(filepath.Base(os.Args[0]))
	if _, errs, status := w.sublet("session", "rm", w.lastSession()); status != 0 {
		t.Fatal(errs)
	}
	w.await("the agent to be gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

// A command that names the turn's folder runs there, also in a private shell that an earlier command has moved: it ran where the shell was.
func TestHostedAgentNamesTheFolder(t *testing.T) {
	task := call{"task", map[string]any{"tasks": []map[string]string{{"role": "puppet", "title": "look", "prompt": "in the folder, after cd sub: echo in $PWD, which has *"}}}}
	w := newWorld(t, "", script{{Match: "^go", Steps: []step{{ToolCalls: []call{task}}, {Text: "done"}}}})
	got := w.puppets("puppet")
	w.write(filepath.Join(w.project, "sub", "file"), "x")
	if out, errs, status := w.sublet("ask", "go"); status != 0 || !strings.Contains(out, "done") {
		t.Fatalf("got %d %q %s", status, out, errs)
	}
	if want := "in " + w.project + ", which has sub"; !strings.Contains(got("puppet"), want) {
		t.Errorf("got %s, want %q", got("puppet"), want)
	}
}
