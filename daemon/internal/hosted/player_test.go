package hosted

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/daemon/internal/agent"
)

// player is an agent that does what its mode says.
type player struct {
	sdk.Agent // nil: what is not played is not called
	mode      string
	conn      *sdk.AgentSideConnection
	stop      chan struct{} // closed by session/cancel
	once      sync.Once
	costs     float64
	took      string // which session it took up
	uses      chosen // its model and mode
}

// chosen is the model and the mode that are set in a player.
type chosen struct{ model, mode string }

// play is one agent on standard input and output.
func play(mode string) {
	switch mode {
	case "crash":
		fmt.Fprintln(os.Stderr, "\x1b[31mcannot\x1b[0m start: password=hunter2hunter2")
		os.Exit(3)
	case "greets":
		fmt.Println("Welcome! This is no protocol.")
		os.Exit(0)
	case "mute":
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // it never answers
		time.Sleep(time.Hour)
	case "deaf": // reads no answers to what it asks for
		in := bufio.NewReader(os.Stdin)
		in.ReadString('\n') //nolint:errcheck // the test finds out
		fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}`)
		for i := range 5000 {
			fmt.Printf(`{"jsonrpc":"2.0","id":%d,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/x"}}`+"\n", i)
		}
		time.Sleep(time.Hour)
	}
	p := &player{mode: mode, stop: make(chan struct{})}
	in, w := io.Pipe() // nothing is read before conn is set
	p.conn = sdk.NewAgentSideConnection(p, os.Stdout, in)
	_, err := io.Copy(w, os.Stdin)
	w.CloseWithError(err)
	<-p.conn.Done()
}

func (p *player) Initialize(_ context.Context, in sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	r := sdk.InitializeResponse{ProtocolVersion: sdk.ProtocolVersionNumber, AuthMethods: []sdk.AuthMethod{}, AgentInfo: &sdk.Implementation{Name: "player", Version: "1.2"}}
	switch p.mode {
	case "loads":
		r.AgentCapabilities.LoadSession = true
	case "resumes", "costs":
		r.AgentCapabilities.SessionCapabilities.Resume = &sdk.SessionResumeCapabilities{}
	case "old":
		r.ProtocolVersion = 7
	case "unsigned", "late":
		r.AgentCapabilities.SessionCapabilities.Resume = &sdk.SessionResumeCapabilities{}
		r.AuthMethods = []sdk.AuthMethod{
			{Agent: &sdk.AuthMethodAgent{Id: "web", Name: "Sign in on the web"}},
			{Terminal: &sdk.AuthMethodTerminalInline{Id: "t", Name: "Terminal", Type: "terminal", Args: []string{"login"}, Env: map[string]any{"A": "b c"}}},
		}
		if in.ClientCapabilities.Meta[terminalAuth] == true { // as opencode does; to the request it would answer that all is well
			way := map[string]any{"command": filepath.Base(os.Args[0]), "args": []string{"auth", "login"}, "label": "Player Login"}
			r.AuthMethods = append(r.AuthMethods, sdk.AuthMethod{Agent: &sdk.AuthMethodAgent{Id: "o", Name: "Older", Meta: map[string]any{terminalAuth: way}}})
		}
	}
	return r, nil
}

// signedIn reports whether the file exists that a sign-in makes.
func signedIn() bool {
	_, err := os.Stat(os.Getenv("HOSTED_TEST_SIGNED"))
	return err == nil
}

func (p *player) Authenticate(_ context.Context, r sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	if r.MethodId == "web" {
		if seen := os.Getenv("HOSTED_TEST_SEEN"); seen != "" { // the user must see the address before the sign-in can go on
			fmt.Fprintln(os.Stderr, "Otherwise open \x1b[4mhttps://sign.in/auth?state=4f0c2d1e9b8a7c6d5e4f30211a2b3c4d&scope=a%20b\x1b[0m .")
			for range 1000 {
				if _, err := os.Stat(seen); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		return sdk.AuthenticateResponse{}, os.WriteFile(os.Getenv("HOSTED_TEST_SIGNED"), nil, 0o600)
	}
	return sdk.AuthenticateResponse{}, nil
}

func (p *player) NewSession(context.Context, sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	if p.mode == "unsigned" && !signedIn() {
		return sdk.NewSessionResponse{}, sdk.NewAuthRequired(nil)
	}
	if p.mode == "refuses" {
		return sdk.NewSessionResponse{}, sdk.NewInternalError(map[string]any{"details": "your plan has no sessions left"})
	}
	made := sdk.NewSessionResponse{SessionId: "s", Modes: &sdk.SessionModeState{
		CurrentModeId: "auto", AvailableModes: []sdk.SessionMode{{Id: "auto", Name: "Auto"}, {Id: "default", Name: "Ask"}, {Id: "plan", Name: "Plan"}},
	}}
	switch p.uses = (chosen{"big", "auto"}); p.mode {
	case "lists", "resumes":
		made.Models = &sdk.SessionModelState{CurrentModelId: "big", AvailableModels: []sdk.ModelInfo{{ModelId: "big", Name: "Big"}, {ModelId: "small", Name: "Small"}}}
	case "options":
		made.ConfigOptions = p.options()
	}
	return made, nil
}

// options are the player's models, in groups, and its modes.
func (p *player) options() []sdk.SessionConfigOption {
	model, mode := sdk.SessionConfigOptionCategoryModel, sdk.SessionConfigOptionCategoryMode
	return []sdk.SessionConfigOption{
		{Select: &sdk.SessionConfigOptionSelect{Id: "m", Category: &model, CurrentValue: sdk.SessionConfigValueId(p.uses.model), Options: sdk.SessionConfigSelectOptions{
			Grouped: &sdk.SessionConfigSelectOptionsGrouped{{Options: []sdk.SessionConfigSelectOption{{Value: "big"}}}, {Options: []sdk.SessionConfigSelectOption{{Value: "small"}}}},
		}}},
		{Select: &sdk.SessionConfigOptionSelect{Id: "k", Category: &mode, CurrentValue: sdk.SessionConfigValueId(p.uses.mode), Options: sdk.SessionConfigSelectOptions{
			Ungrouped: &sdk.SessionConfigSelectOptionsUngrouped{{Value: "auto"}, {Value: "default"}, {Value: "plan"}},
		}}},
	}
}

func (p *player) SetSessionConfigOption(_ context.Context, r sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	switch v := r.ValueId; v.ConfigId {
	case "m":
		p.uses.model = string(v.Value)
	case "k":
		p.uses.mode = string(v.Value)
	}
	return sdk.SetSessionConfigOptionResponse{ConfigOptions: p.options()}, nil
}

func (p *player) UnstableSetSessionModel(_ context.Context, r sdk.UnstableSetSessionModelRequest) (sdk.UnstableSetSessionModelResponse, error) {
	p.uses.model = string(r.ModelId)
	return sdk.UnstableSetSessionModelResponse{}, nil
}

// LoadSession implements the SDK's agent: it sends what was said before.
func (p *player) LoadSession(_ context.Context, r sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	if r.SessionId != "s" || os.Getenv("HOSTED_TEST_GONE") != "" {
		return sdk.LoadSessionResponse{}, errors.New("no such session")
	}
	p.say("what was said before")
	p.took = " it"
	return sdk.LoadSessionResponse{}, nil
}

func (p *player) ResumeSession(_ context.Context, r sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	if p.mode == "unsigned" && !signedIn() {
		return sdk.ResumeSessionResponse{}, sdk.NewAuthRequired(nil)
	}
	p.took, p.costs = " "+string(r.SessionId), 0.25
	return sdk.ResumeSessionResponse{}, nil
}

func (p *player) SetSessionMode(_ context.Context, r sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	if r.ModeId == "plan" && os.Getenv("HOSTED_TEST_SLOW") != "" {
		<-p.stop
	}
	p.uses.mode = string(r.ModeId)
	return sdk.SetSessionModeResponse{}, nil
}

func (p *player) Cancel(context.Context, sdk.CancelNotification) error {
	if p.mode != "stubborn" {
		p.once.Do(func() { close(p.stop) })
	}
	return nil
}

func (p *player) update(u sdk.SessionUpdate) {
	if err := p.conn.SessionUpdate(context.Background(), sdk.SessionNotification{SessionId: "s", Update: u}); err != nil {
		os.Exit(9)
	}
}

func (p *player) say(format string, args ...any) {
	p.update(sdk.UpdateAgentMessageText(fmt.Sprintf(format, args...)))
}

// Prompt plays one turn. The prompt's text is what some modes work on.
func (p *player) Prompt(ctx context.Context, r sdk.PromptRequest) (sdk.PromptResponse, error) {
	text := r.Prompt[0].Text.Text
	end := sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}
	switch p.mode {
	case "reports":
		p.update(sdk.UpdateAgentThoughtText("hm\x1b[2J"))
		p.update(sdk.UpdatePlan(sdk.PlanEntry{Content: "one", Status: sdk.PlanEntryStatusCompleted, Priority: "high"}))
		p.say("first ")
		p.say("answer")
		p.update(sdk.StartToolCall("c", "Edit file", sdk.WithStartKind(sdk.ToolKindEdit)))
		p.update(sdk.UpdateToolCall("c", sdk.WithUpdateStatus(sdk.ToolCallStatusCompleted), sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolDiffContent("/f", "new\n", "old\n")})))
		p.update(sdk.StartToolCall("m", "sublet_shell", sdk.WithStartStatus(sdk.ToolCallStatusCompleted)))
		p.say("the end: %s", text)
	case "asks":
		for _, call := range []sdk.ToolCallUpdate{
			{ToolCallId: "1", Title: sdk.Ptr("`rm -rf x`"), Kind: sdk.Ptr(sdk.ToolKindExecute), RawInput: map[string]any{"command": "rm -rf x"}},
			{ToolCallId: "2", Title: sdk.Ptr("Write f"), Kind: sdk.Ptr(sdk.ToolKindEdit), Locations: []sdk.ToolCallLocation{{Path: text + "/f"}}},
		} {
			p.ask(ctx, call)
		}
	case "commands":
		for _, input := range []map[string]any{
			nil,
			{"command": "ls\nrm -rf src"},
			{"command": []string{"bash", "-lc", "rm -rf src"}},
			{"command": "bash", "args": []string{"-lc", "rm -rf src"}, "workdir": "/other"},
			{"cmd": "ls", "command": "rm"},
			{"command": "ls", "workdir": "/other"},
			{"command": "ls", "cwd": "below"},
		} {
			p.ask(ctx, sdk.ToolCallUpdate{ToolCallId: sdk.ToolCallId(fmt.Sprint(input)), Kind: sdk.Ptr(sdk.ToolKindExecute), Title: sdk.Ptr("ls"), RawInput: input})
		}
	case "races": // says more of a call while it is asked about
		for i := range 50 {
			id := sdk.ToolCallId(fmt.Sprint("c", i))
			diff := []sdk.ToolCallContent{sdk.ToolDiffContent("/f", "new\n", "old\n")}
			var all sync.WaitGroup
			all.Go(func() {
				p.ask(ctx, sdk.ToolCallUpdate{ToolCallId: id, Kind: sdk.Ptr(sdk.ToolKindEdit), Title: sdk.Ptr("f"), Content: diff, RawInput: map[string]any{"path": "/f"}})
			})
			p.update(sdk.StartToolCall(id, "Edit file", sdk.WithStartKind(sdk.ToolKindEdit), sdk.WithStartContent(diff), sdk.WithStartStatus(sdk.ToolCallStatusCompleted)))
			all.Wait()
		}
	case "hoards": // in lines that cost their reader little: it is JSON's scanner that is slow
		fmt.Println("x")
		for range 40 {
			os.Stdout.Write(append(bytes.Repeat([]byte("x"), 4<<20), '\n')) //nolint:errcheck // it is ended meanwhile
		}
		<-p.stop
	case "crowds":
		var all sync.WaitGroup
		var returned atomic.Int32
		for i := range 2 * maxActive {
			all.Go(func() {
				p.ask(ctx, sdk.ToolCallUpdate{ToolCallId: sdk.ToolCallId(fmt.Sprint("q", i))})
				if returned.Add(1) == maxActive {
					p.say("full")
				}
			})
		}
		all.Wait()
	case "calls":
		for i := range maxCalls + 10 {
			p.ask(ctx, sdk.ToolCallUpdate{ToolCallId: sdk.ToolCallId(fmt.Sprint("q", i))})
		}
	case "claims":
		for _, call := range []sdk.ToolCallUpdate{
			{ToolCallId: "input", Kind: sdk.Ptr(sdk.ToolKindOther), RawInput: map[string]any{"server": "sublet", "tool": "shell"}},
			{ToolCallId: "title", Kind: sdk.Ptr(sdk.ToolKindOther), Title: sdk.Ptr("sublet_shell")},
			{ToolCallId: "edit", Kind: sdk.Ptr(sdk.ToolKindEdit), Title: sdk.Ptr("sublet_shell"), RawInput: map[string]any{"server": "sublet", "tool": "shell"}},
			{ToolCallId: "path", Title: sdk.Ptr("sublet/shell")},
			{ToolCallId: "text", Title: sdk.Ptr("shell (sublet MCP Server): x")},
			{ToolCallId: "mcp_sublet_shell__id"},
			{ToolCallId: "claude", Meta: map[string]any{"claudeCode": map[string]any{"toolName": "mcp__sublet__shell"}}},
			{ToolCallId: "qwen", Meta: map[string]any{"toolName": "mcp__sublet__shell"}},
			{ToolCallId: "workflow", Meta: map[string]any{"toolName": "mcp__sublet__shell", "workflowApproval": true}},
			{ToolCallId: "tool", Meta: map[string]any{"toolName": "mcp__sublet__x"}, Title: sdk.Ptr("sublet_x"), RawInput: map[string]any{"server": "sublet", "tool": "x"}},
		} {
			p.ask(ctx, call)
		}
	case "hurries": // a request that overtakes the updates before it has nothing but an id
		for range 200 {
			p.update(sdk.UpdatePlan(sdk.PlanEntry{Content: "x", Status: sdk.PlanEntryStatusPending, Priority: "high"}))
		}
		fmt.Println(`{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": "from a later version"}}}`)
		p.update(sdk.StartToolCall("call", "shell", sdk.WithStartRawInput(map[string]any{"server": "sublet", "tool": "shell"})))
		p.ask(ctx, sdk.ToolCallUpdate{ToolCallId: "call"})
	case "costs":
		p.costs += 0.25
		p.update(sdk.SessionUpdate{UsageUpdate: &sdk.SessionUsageUpdate{Cost: &sdk.Cost{Amount: p.costs, Currency: "USD"}, Size: 10, Used: 1}})
	case "grants": // each approved, then written
		file := filepath.Join(text, "g")
		edit := func(to string, from ...string) []sdk.ToolCallContent {
			return []sdk.ToolCallContent{sdk.ToolDiffContent(file, to, from...)}
		}
		for _, c := range []struct {
			sdk.ToolCallUpdate
			content string
		}{
			{sdk.ToolCallUpdate{ToolCallId: "edit", Kind: sdk.Ptr(sdk.ToolKindEdit), Content: edit("new\n")}, "new\n"},
			{sdk.ToolCallUpdate{ToolCallId: "delete", Kind: sdk.Ptr(sdk.ToolKindDelete), Locations: []sdk.ToolCallLocation{{Path: file}}}, "new\n"},
			{sdk.ToolCallUpdate{ToolCallId: "other", Kind: sdk.Ptr(sdk.ToolKindEdit), Content: edit("other\n")}, "new\n"},
			{sdk.ToolCallUpdate{ToolCallId: "again", Kind: sdk.Ptr(sdk.ToolKindEdit), Content: edit("newer\n", "new\n")}, "newer\n"},
			{sdk.ToolCallUpdate{ToolCallId: "hides", Kind: sdk.Ptr(sdk.ToolKindEdit), Content: edit("evil\n", "evil\n")}, "evil\n"}, // its diff is empty
		} {
			p.ask(ctx, c.ToolCallUpdate)
			_, err := p.conn.WriteTextFile(ctx, sdk.WriteTextFileRequest{SessionId: "s", Path: file, Content: c.content})
			p.say("%v ", err)
		}
		if err := os.WriteFile(file+"-empty", nil, 0o600); err != nil {
			return end, err
		}
		for path, old := range map[string][]string{file + "-new": {""}, file + "-empty": nil} { // as some agents give them
			p.ask(ctx, sdk.ToolCallUpdate{ToolCallId: "fills", Kind: sdk.Ptr(sdk.ToolKindEdit), Content: []sdk.ToolCallContent{sdk.ToolDiffContent(path, "new\n", old...)}})
			_, err := p.conn.WriteTextFile(ctx, sdk.WriteTextFileRequest{SessionId: "s", Path: path, Content: "new\n"})
			p.say("%v ", err)
		}
	case "late":
		if !signedIn() {
			return end, sdk.NewAuthRequired(nil)
		}
		p.say("late%s", p.took)
	case "lists", "options":
		if strings.HasPrefix(text, "leave your mode") {
			p.update(sdk.SessionUpdate{CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{CurrentModeId: "auto"}})
		}
		p.say("%s in %s", p.uses.model, p.uses.mode)
	case "loads", "resumes", "forgets", "unsigned":
		p.say("%s", p.mode+p.took)
	case "files":
		p.files(ctx, text)
	case "terminal":
		p.terminal(ctx)
	case "waits", "stubborn":
		p.say("waiting")
		<-p.stop
		end.StopReason = sdk.StopReasonCancelled
	case "dies":
		p.say("about to")
		os.Exit(4)
	case "silent":
		<-p.stop
	case "floods": // faster than it is read and handled, however slow that is
		os.Stdout.Write(bytes.Repeat([]byte("\n"), 2*linesAtOnce)) //nolint:errcheck // it is ended meanwhile
		<-p.stop
	case "spews":
		os.Stdout.Write(bytes.Repeat([]byte("x"), 20<<20)) //nolint:errcheck // it is ended meanwhile
		<-p.stop
	case "babbles":
		for range 200 {
			fmt.Println("this is \x1b[1mno\x1b[0m message")
		}
		<-p.stop
	case "child": // leaves a process behind that ignores every polite signal
		sleep := os.Getenv("HOSTED_TEST_CHILD")
		if err := exec.Command("sh", "-c", "trap '' TERM HUP INT; "+sleep+"; "+sleep).Start(); err != nil {
			os.Exit(9)
		}
		p.say("started")
		<-p.stop
	}
	return end, nil
}

// ask asks for permission and sends the answer as text.
func (p *player) ask(ctx context.Context, call sdk.ToolCallUpdate) {
	got, err := p.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{SessionId: "s", ToolCall: call, Options: []sdk.PermissionOption{
		{OptionId: "always", Kind: sdk.PermissionOptionKindAllowAlways, Name: "always"},
		{OptionId: "yes", Kind: sdk.PermissionOptionKindAllowOnce, Name: "yes"},
		{OptionId: "no", Kind: sdk.PermissionOptionKindRejectOnce, Name: "no"},
	}})
	if err == nil && got.Outcome.Selected != nil {
		p.say("%s:%s ", call.ToolCallId, got.Outcome.Selected.OptionId)
	}
}

// files reads and writes in the folder dir.
func (p *player) files(ctx context.Context, dir string) {
	file := filepath.Join(dir, "f")
	try := func(what string, err error) {
		var refused *sdk.RequestError
		if errors.As(err, &refused) {
			p.say("%s: %d %s\n", what, refused.Code, refused.Message)
		} else {
			p.say("%s: %v\n", what, err)
		}
	}
	got, err := p.conn.ReadTextFile(ctx, sdk.ReadTextFileRequest{SessionId: "s", Path: file, Line: sdk.Ptr(2), Limit: sdk.Ptr(1)})
	try("read "+got.Content, err)
	_, err = p.conn.ReadTextFile(ctx, sdk.ReadTextFileRequest{SessionId: "s", Path: "/etc/passwd"})
	try("outside", err)
	_, err = p.conn.ReadTextFile(ctx, sdk.ReadTextFileRequest{SessionId: "s", Path: filepath.Join(dir, "link", "passwd")})
	try("through a link", err)
	_, err = p.conn.WriteTextFile(ctx, sdk.WriteTextFileRequest{SessionId: "s", Path: filepath.Join(dir, "dangling"), Content: "mine\n"})
	try("through a dangling link", err)
	_, err = p.conn.WriteTextFile(ctx, sdk.WriteTextFileRequest{SessionId: "s", Path: file, Content: "mine\n"})
	try("write", err)
	os.WriteFile(file, []byte("theirs\n"), 0o600) //nolint:errcheck // the test finds out
	_, err = p.conn.WriteTextFile(ctx, sdk.WriteTextFileRequest{SessionId: "s", Path: file, Content: "mine again\n"})
	try("stale", err)
}

// terminal runs commands in terminals.
func (p *player) terminal(ctx context.Context) {
	made, err := p.conn.CreateTerminal(ctx, sdk.CreateTerminalRequest{SessionId: "s", Command: "echo", Args: []string{"it's", "here"}, Env: []sdk.EnvVariable{{Name: "A", Value: "b c"}}})
	p.say("create %v\n", err)
	exit, err := p.conn.WaitForTerminalExit(ctx, sdk.WaitForTerminalExitRequest{SessionId: "s", TerminalId: made.TerminalId})
	p.say("exit %v %v\n", exit.ExitCode != nil && *exit.ExitCode == 0, err)
	out, err := p.conn.TerminalOutput(ctx, sdk.TerminalOutputRequest{SessionId: "s", TerminalId: made.TerminalId})
	p.say("output %s %v\n", out.Output, err)
	p.conn.ReleaseTerminal(ctx, sdk.ReleaseTerminalRequest{SessionId: "s", TerminalId: made.TerminalId}) //nolint:errcheck // seen by the next
	_, err = p.conn.TerminalOutput(ctx, sdk.TerminalOutputRequest{SessionId: "s", TerminalId: made.TerminalId})
	var refused *sdk.RequestError
	p.say("released %v\n", errors.As(err, &refused) && strings.Contains(refused.Message, "there is no terminal"))
	made, _ = p.conn.CreateTerminal(ctx, sdk.CreateTerminalRequest{SessionId: "s", Command: "cd x && make", Env: []sdk.EnvVariable{{Name: "A", Value: "b"}}})
	p.conn.WaitForTerminalExit(ctx, sdk.WaitForTerminalExitRequest{SessionId: "s", TerminalId: made.TerminalId}) //nolint:errcheck // seen by the next
	out, err = p.conn.TerminalOutput(ctx, sdk.TerminalOutputRequest{SessionId: "s", TerminalId: made.TerminalId})
	p.say("line %s %v\n", out.Output, err)
	_, err = p.conn.CreateTerminal(ctx, sdk.CreateTerminalRequest{SessionId: "s", Command: "x", Env: []sdk.EnvVariable{{Name: "A;reboot", Value: ""}}})
	p.say("bad variable %v\n", errors.As(err, &refused) && strings.Contains(refused.Message, "cannot be a variable"))
	made, _ = p.conn.CreateTerminal(ctx, sdk.CreateTerminalRequest{SessionId: "s", Command: "watched"})
	for out = (sdk.TerminalOutputResponse{}); !strings.Contains(out.Output, "token=") && out.ExitStatus == nil; time.Sleep(10 * time.Millisecond) {
		out, err = p.conn.TerminalOutput(ctx, sdk.TerminalOutputRequest{SessionId: "s", TerminalId: made.TerminalId})
	}
	p.say("so far %s %v\nno exit status %v\n", out.Output, err, out.ExitStatus == nil)
	p.conn.KillTerminal(ctx, sdk.KillTerminalRequest{SessionId: "s", TerminalId: made.TerminalId})               //nolint:errcheck // seen by the next
	p.conn.WaitForTerminalExit(ctx, sdk.WaitForTerminalExitRequest{SessionId: "s", TerminalId: made.TerminalId}) //nolint:errcheck // seen by the next
	out, err = p.conn.TerminalOutput(ctx, sdk.TerminalOutputRequest{SessionId: "s", TerminalId: made.TerminalId})
	p.say("in the end %s %v %v\n", out.Output, *out.ExitStatus.Signal, err)
}

// play plays one turn of an agent of that mode.
func (w *world) play(ctx context.Context, mode, prompt string) agent.Outcome {
	return w.Run(ctx, turnOf(mode, prompt, w.dir, w.emit))
}
