package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	acp "github.com/coder/acp-go-sdk"
	mcp "github.com/modelcontextprotocol/go-sdk/mcp"
)

// hostedMode is a variable that makes this test program an agent that speaks the Agent Client Protocol.
const hostedMode = "SUBLET_TEST_HOSTED"

// puppet is an agent without a model: it passes each prompt to its MCP server as a command for the shell tool.
type puppet struct {
	acp.Agent // nil: what is not played is not called
	conn      *acp.AgentSideConnection
	server    *mcp.ClientSession
}

// playPuppet runs the agent on standard input and output.
func playPuppet() {
	p := &puppet{}
	in, w := io.Pipe() // nothing is read before conn is set
	p.conn = acp.NewAgentSideConnection(p, os.Stdout, in)
	_, err := io.Copy(w, os.Stdin)
	w.CloseWithError(err)
	<-p.conn.Done()
}

func (p *puppet) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber, AuthMethods: []acp.AuthMethod{}}, nil
}

// NewSession connects the server, as the protocol asks, and lists its tools.
func (p *puppet) NewSession(_ context.Context, r acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	s := r.McpServers[0].Stdio
	cmd := exec.Command(s.Command, s.Args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")} // as Codex does
	for _, v := range s.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "puppet", Version: "1"}, nil)
	var err error
	if p.server, err = client.Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, nil); err == nil {
		_, err = p.server.ListTools(context.Background(), nil)
	}
	return acp.NewSessionResponse{SessionId: "s"}, err
}

// Prompt runs the command and answers with the result. Like Gemini CLI and Codex it does not pass a cancel on to the server.
func (p *puppet) Prompt(_ context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	command, _, _ := strings.Cut(r.Prompt[0].Text.Text, "\n\n[")
	res, err := p.server.CallTool(context.Background(), &mcp.CallToolParams{Name: "shell", Arguments: map[string]any{"command": command}})
	if err != nil {
		return acp.PromptResponse{}, err
	}
	text := res.Content[0].(*mcp.TextContent).Text
	err = p.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: "s", Update: acp.UpdateAgentMessageText("the agent got: " + text)})
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
}

func (p *puppet) Cancel(context.Context, acp.CancelNotification) error { return nil }

// A hosted agent's commands run in the window that asked, like those of sublet's own agents. The agent ends with the daemon.
func TestHostedAgent(t *testing.T) {
	w := newWorld(t, "alias hi='echo hello from an alias'\n", nil)
	w.write(filepath.Join(w.project, "sub", "old", "file"), "x")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.write(w.path("config.toml"), fmt.Sprintf("[agents.puppet]\ncommand = [%q]\nenv = { %s = \"1\" }\n", self, hostedMode))
	term := w.openShell()
	w.connected(1)
	term.mode(true)
	term.send("/agent puppet", enter)
	term.see("puppet answers from now on")
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

	pid := w.hosted(filepath.Base(self))
	_, _, status := w.sublet("daemon", "stop")
	w.await("the agent to be gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	if status != 0 {
		t.Errorf("daemon stop: %d", status)
	}
}
