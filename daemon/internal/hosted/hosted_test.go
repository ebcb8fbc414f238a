package hosted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// What an agent sends becomes the events of an agent of our own; a call of our MCP server is left out, which has events of its own.
func TestUpdatesBecomeEvents(t *testing.T) {
	w := newWorld(t, Options{})
	program := w.as(turnOf("reports", "", w.dir, w.emit), "opencode").Of.Role.Hosted.Command[0]
	for _, prompt := range []string{"one", "two"} {
		turn := turnOf("reports", prompt, w.dir, w.emit)
		turn.Of.Role.Hosted.Command[0] = program
		o := w.Run(t.Context(), turn)
		if o.Err != nil || o.Status != wire.StatusSuccess || o.Summary != "the end: "+prompt || strings.Join(o.ToolsExecuted, " ") != "todo edit" {
			t.Errorf("%s: got %+v", prompt, o)
		}
	}
	w.wants(
		"notice player 1.2, mode default \n", "reasoning hm", `tool_call todo{"todos":[{"text":"one","status":"done"}]} `,
		"text first  \n", "text answer \n", `tool_call edit{"path":"/f"} `, `-old\n+new\n" ["/f"]`, "tool_result edit success\n", "text the end: two \n",
	)
	if got := w.text(); strings.Count(got, "notice player") != 1 || strings.Contains(got, "sublet_") {
		t.Errorf("got\n%s", got)
	}
}

// A secret that an agent sends in pieces was stored and shown: each piece was masked for itself.
func TestSecretInPieces(t *testing.T) {
	secret := "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	got := ""
	r := newRun(t.Context(), Turn{Of: agent.Turn{Role: agent.Role{Name: "a"}, Emit: func(m wire.EventMessage) {
		c := m.(*wire.AgentStreamChunk).Chunk
		got += c.Type + "<" + c.Text + ">"
	}}})
	defer r.close()
	for _, piece := range []string{"it is ", secret[:7], secret[7:], " there"} {
		r.addText(wire.ChunkText, piece)
	}
	r.addText(wire.ChunkReasoning, "why\x1b[31m?")
	r.flushText()
	if strings.Contains(got, secret[7:]) || !strings.HasPrefix(got, "text<it is ") || !strings.Contains(got, " there>") || !strings.HasSuffix(got, "reasoning<why?>") {
		t.Errorf("got %q", got)
	}
}

// The policy decides what the agent asks for, once each time.
func TestPermissions(t *testing.T) {
	w := newWorld(t, Options{})
	o := w.play(t.Context(), "asks", "/p")
	w.wants("1:no", "2:yes")
	if len(o.Refused) != 1 {
		t.Errorf("refused %v", o.Refused)
	}
}

// A call of our own server is allowed at once, by what the agent's program sets and not its model; of an agent that is not known
// everything is asked about.
func TestOwnCalls(t *testing.T) {
	for program, want := range map[string]string{
		"my-agent": "", "claude-agent-acp": "claude", "codex-acp": "input", "gemini": "mcp_sublet_shell__id", "opencode": "title", "qwen": "qwen",
	} {
		t.Run(program, func(t *testing.T) {
			w := newWorld(t, Options{Folder: t.TempDir()})
			turn := w.as(turnOf("claims", "", w.dir, w.emit), program)
			asked := 0
			turn.Of.Approver = asker(func(agent.Question) agent.Decision { asked++; return agent.Decision{Reason: "no"} })
			o := w.Run(t.Context(), turn)
			allowed := ""
			for word := range strings.FieldsSeq(w.text()) {
				if id, ok := strings.CutSuffix(word, ":yes"); ok {
					allowed += id
				}
			}
			if n := 10 - min(len(want), 1); o.Err != nil || asked != n || allowed != want {
				t.Errorf("%d were asked about, allowed at once %q, %v; want %d and %q", asked, allowed, o.Err, n, want)
			}
		})
	}
}

// A request for permission is answered after the updates before it. Codex describes a call in an update alone: its call of our server was
// asked about when the request was faster.
func TestPermissionAfterUpdates(t *testing.T) {
	w := newWorld(t, Options{})
	turn := w.as(turnOf("hurries", "", w.dir, w.emit), "codex-acp")
	turn.Of.Approver = asker(func(agent.Question) agent.Decision {
		t.Error("the call was asked about")
		return agent.Decision{}
	})
	if o := w.Run(t.Context(), turn); o.Err != nil || o.Summary != "call:yes" {
		t.Errorf("got %q, %v", o.Summary, o.Err)
	}
}

// A command is judged as its call's input has it, and in its folder; what the input does not say is a call with unknown
// effects.
func TestCommandsAreTheInputs(t *testing.T) {
	w := newWorld(t, Options{})
	turn := turnOf("commands", "", w.dir, w.emit)
	var got []string
	turn.Of.Approver = asker(func(q agent.Question) agent.Decision {
		got = append(got, fmt.Sprintf("%s:%s:%s in %s", q.Tool, q.Action.Server, q.Action.Command, q.Action.Cwd))
		return agent.Decision{Reason: "no"}
	})
	o := w.Run(t.Context(), turn)
	unknown := "tool:commands: in " + w.dir
	want := []string{
		unknown, "bash::ls\nrm -rf src in " + w.dir, unknown, unknown, unknown, "bash::ls in /other", "bash::ls in " + w.dir + "/below",
	}
	if o.Err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, o.Err, want)
	}
}

// An agent's own shell would run the command that was asked about: one that the user changed is refused.
func TestEditedCommand(t *testing.T) {
	w := newWorld(t, Options{})
	turn := turnOf("asks", "/p", w.dir, w.emit)
	turn.Of.Approver = asker(func(q agent.Question) agent.Decision {
		if !q.Fixed {
			t.Errorf("can be changed: %+v", q)
		}
		if edited := "rm -rf x/tmp"; q.Action.Command != "" {
			return agent.Decision{Allowed: true, EditedCommand: &edited}
		}
		return agent.Decision{Allowed: true}
	})
	o := w.Run(t.Context(), turn)
	w.wants("1:no", "2:yes")
	if len(o.Refused) != 1 {
		t.Errorf("refused %v", o.Refused)
	}
}

// An agent that may only read is asked about as a role that does: for its own calls, its files and its commands.
func TestReachRead(t *testing.T) {
	w := newWorld(t, Options{})
	for _, mode := range []string{"asks", "files", "terminal"} {
		turn := turnOf(mode, w.dir, w.dir, w.emit)
		turn.Of.Role.Hosted.Reach = "read"
		asked := 0
		turn.Of.Approver = asker(func(q agent.Question) agent.Decision {
			if asked++; !q.ReadOnly {
				t.Errorf("%s: got %+v", mode, q)
			}
			return agent.Decision{Reason: "no"}
		})
		if o := w.Run(t.Context(), turn); o.Err != nil || asked == 0 {
			t.Errorf("%s: %d were asked about, %v", mode, asked, o.Err)
		}
	}
}

// What an agent asks and reports is bounded: open questions, and calls.
func TestBounds(t *testing.T) {
	for mode, most := range map[string]int{"crowds": maxActive, "calls": maxCalls} {
		w := newWorld(t, Options{})
		turn := turnOf(mode, "", w.dir, w.emit)
		var mu sync.Mutex
		asked, full := 0, make(chan struct{})
		turn.Of.Approver = asker(func(agent.Question) agent.Decision {
			mu.Lock()
			asked++
			mu.Unlock()
			if mode == "crowds" {
				<-full
			}
			return agent.Decision{Allowed: true}
		})
		turn.Of.Emit = func(m wire.EventMessage) {
			w.emit(m)
			if c, ok := m.(*wire.AgentStreamChunk); ok && c.Chunk.Text == "full" {
				close(full)
			}
		}
		o := w.Run(t.Context(), turn)
		if o.Err != nil || asked != most {
			t.Errorf("%s: %d were asked, %v", mode, asked, o.Err)
		}
	}
}

// An agent may say more of a call while it is asked about.
func TestCallIsUpdatedWhileItIsAskedAbout(t *testing.T) {
	w := newWorld(t, Options{})
	if o := w.play(t.Context(), "races", ""); o.Err != nil {
		t.Error(o.Err)
	}
	w.wants("c0:yes", "c49:yes", "tool_result edit success")
}

// A yes for an edit is one for the change that was shown, and for one write of it.
func TestGrants(t *testing.T) {
	w := newWorld(t, Options{})
	turn := turnOf("grants", w.dir, w.dir, w.emit)
	var asked []string
	turn.Of.Approver = asker(func(q agent.Question) agent.Decision {
		asked = append(asked, q.Tool)
		return agent.Decision{Allowed: true}
	})
	o := w.Run(t.Context(), turn)
	if got := strings.Join(asked, " "); o.Err != nil || got != "edit delete write edit write edit edit write edit edit" {
		t.Errorf("asked about %s, %v", got, o.Err)
	}
}

// A link that is put into a path once it was found to be in the project leads nowhere, also with a grant for that path.
func TestWriteThroughALinkThatCameLate(t *testing.T) {
	project, outside := t.TempDir(), t.TempDir()
	path := filepath.Join(project, "folder", "f")
	if err := os.Symlink(outside, filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	r := newRun(t.Context(), turnOf("files", project, project, func(wire.EventMessage) {}))
	defer r.close()
	r.granted[newWrite(path, "", "x")] = 1
	err := r.writeFile(t.Context(), path, "x")
	if _, missing := os.Stat(filepath.Join(outside, "f")); err == nil || missing == nil {
		t.Errorf("got %v, and the file: %v", err, missing)
	}
}

// An agent reports the cost of its session; that of a turn is what it adds.
func TestCostIsTheTurns(t *testing.T) {
	st := openStore(t)
	spent := 0.0
	for range 2 {
		w := newWorld(t, Options{Store: st}) // a daemon
		turn := turnOf("costs", "", w.dir, w.emit)
		turn.Of.Budget.Spend = func(usd float64) (float64, error) { spent += usd; return spent, nil }
		o := w.Run(t.Context(), turn)
		if c := o.Usage.CostUSD; o.Err != nil || c == nil || *c != 0.25 {
			t.Errorf("got %v, %v", c, o.Err)
		}
	}
	if spent != 0.5 {
		t.Errorf("counted %v", spent)
	}
}

// Files are read and written inside of the folder, and not over what changed meanwhile.
func TestFiles(t *testing.T) {
	w := newWorld(t, Options{})
	err := errors.Join(
		os.WriteFile(filepath.Join(w.dir, "f"), []byte("a\nb\nc\n"), 0o600), os.Symlink("/etc", filepath.Join(w.dir, "link")),
		os.Symlink(filepath.Join(t.TempDir(), "new"), filepath.Join(w.dir, "dangling")),
	)
	if err != nil {
		t.Fatal(err)
	}
	o := w.play(t.Context(), "files", w.dir)
	for _, want := range []string{
		"read b\n: <nil>", "outside: -32602 path: /etc/passwd lies outside of the folder", "through a link: -32602 path:", "through a dangling link: -32602 path:", "write: <nil>",
		"stale: -32602 " + filepath.Join(w.dir, "f") + ": changed since you read it",
	} {
		if !strings.Contains(o.Summary, want) {
			t.Errorf("got %q, want %q in it", o.Summary, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "f")); err != nil || string(text) != "theirs\n" {
		t.Errorf("got %q, %v", text, err)
	}
}

// A terminal is a command of the turn's shell.
func TestTerminals(t *testing.T) {
	w := newWorld(t, Options{})
	w.play(t.Context(), "terminal", "")
	w.wants("create <nil>\n", "exit true <nil>\n", `output A='b c' 'echo' 'it'\''s' 'here'`, "released true\n", `line A='b' 'sh' '-c' 'cd x && make'`, "bad variable true\n", "tool_call bash")
	w.wants("so far one\ntoken=[masked", "no exit status true\n", "in the end ")
}

// A cancel ends what runs for the agent, and then its turn.
func TestCancel(t *testing.T) {
	for mode, want := range map[string]string{"waits": "", "stubborn": "it did not end its turn when that was cancelled, and was ended"} {
		w := newWorld(t, Options{Cancel: 200 * time.Millisecond})
		why := errors.New("the user said so")
		ctx, cancel := context.WithCancelCause(t.Context())
		called := make(chan error, 1)
		turn := turnOf(mode, "", w.dir, w.emit)
		turn.Shell = func(string, func([]byte)) tool.Shell { return shell{began: func() { cancel(why) }} }
		turn.Of.Emit = func(m wire.EventMessage) {
			w.emit(m)
			if c, ok := m.(*wire.AgentStreamChunk); ok && c.Chunk.Text == "waiting" {
				w.Agents.mu.Lock()
				token := w.hosts[key{"s", mode}].token
				w.Agents.mu.Unlock()
				go func() {
					_, err := w.Call(context.Background(), &wire.ToolRequest{Hosted: token, Tool: "bash", Arguments: `{"command":"sleep 1000"}`})
					called <- err
				}()
			}
		}
		o := w.Run(ctx, turn)
		if o.Status != wire.StatusCancelled || !errors.Is(o.Err, why) {
			t.Errorf("%s: got %+v", mode, o)
		}
		if err := <-called; err != nil {
			t.Errorf("%s: its command was not ended as one of a turn: %v", mode, err)
		}
		w.wants(want, "result bash cancelled")
	}
}

// A fault of ours in what an agent asks for ends that agent's turn, and nothing else.
func TestOurFault(t *testing.T) {
	w := newWorld(t, Options{})
	for _, mode := range []string{"asks", "files", "reports"} {
		turn := turnOf(mode, w.dir, w.dir, w.emit)
		turn.Of.Approver = asker(func(agent.Question) agent.Decision { panic("a fault\nin lines") })
		if mode == "reports" {
			turn.Of.Emit = func(m wire.EventMessage) {
				if _, ok := m.(*wire.CommandResult); ok {
					panic("a fault\nin lines")
				}
			}
		}
		o := w.Run(t.Context(), turn)
		if want := mode + ": a fault in sublet ended it (the log has more): a fault in lines"; o.Err == nil || o.Err.Error() != want {
			t.Errorf("%s: got %v, want %q", mode, o.Err, want)
		}
	}
	if o := w.play(t.Context(), "loads", "x"); o.Err != nil {
		t.Error(o.Err)
	}
}

// An agent that fails is ended, and the turn says in one line what happened.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		mode string
		o    Options
		want string
	}{
		{"crash", Options{}, "crash: it ended: exit status 3; its last words: cannot start: password=[masked"},
		{"greets", Options{}, "what it sent is not the protocol: Welcome! This is no protocol."},
		{"mute", Options{Start: 300 * time.Millisecond}, "mute: it did not answer within 300ms"},
		{"deaf", Options{Start: 2 * time.Second}, "deaf: it did not answer within 2s"},
		{"old", Options{}, "old: it speaks version 7 of the protocol, and sublet version 1"},
		{"dies", Options{}, "dies: it ended: exit status 4"},
		{"silent", Options{Silence: 300 * time.Millisecond}, "silent: it has sent nothing for 300ms, and was ended"},
		{"floods", Options{}, "floods: it sends without end"},
		{"hoards", Options{}, "hoards: it has sent more than 64 MiB in one turn, and was ended"},
		{"spews", Options{}, "spews: it sent a message of more than 8 MiB"},
		{"babbles", Options{Silence: 300 * time.Millisecond}, "babbles: it has sent nothing for 300ms, and was ended"},
		{"refuses", Options{}, "refuses: Internal error: your plan has no sessions left"}, // not that it ended, which it then does
		{"unsigned", Options{}, "unsigned: you are not signed in there"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			w := newWorld(t, c.o)
			o := w.play(t.Context(), c.mode, "x")
			if o.Status != wire.StatusError || o.Err == nil || !strings.Contains(o.Err.Error(), c.want) || strings.ContainsAny(o.Err.Error(), "\n\x1b") {
				t.Errorf("got %s, %v, want %q", o.Status, o.Err, c.want)
			}
			if w.Agents.mu.Lock(); len(w.hosts) != 0 && c.mode != "unsigned" {
				t.Error("the agent is kept")
			}
			w.Agents.mu.Unlock()
		})
	}
}

// The agents that are known have no shell of their own, and the user's files are not touched.
func TestKnown(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ command, args, env, file string }{
		{"codex-acp", "-c features.shell_tool=false -c features.unified_exec=false", "", ""},
		{"npx @google/gemini-cli --acp", "@google/gemini-cli --acp --policy " + dir + "/hosted-gemini.toml", "", "run_shell_command"},
		{"/opt/bin/opencode acp", "acp", `OPENCODE_PERMISSION={"bash":"deny"}`, ""},
		{"npx -y @google/gemini-cli@0.61.0 --acp", "-y @google/gemini-cli@0.61.0 --acp --policy " + dir + "/hosted-gemini.toml", "", "run_shell_command"},
		{"opencode acp --model google/gemini-2.5-pro", "acp --model google/gemini-2.5-pro", `OPENCODE_PERMISSION={"bash":"deny"}`, ""},
		{"my-agent --model gemini", "--model gemini", "", ""},
		{"sh -c gemini", "-c gemini", "", ""},
		{"my-agent", "", "", ""},
	} {
		command := strings.Fields(c.command)
		k := knownOf(command)
		args, env, err := k.withoutShell(command[1:], dir)
		text := ""
		for name, value := range env {
			text += name + "=" + value
		}
		if err != nil || strings.Join(args, " ") != c.args || text != c.env {
			t.Errorf("%s: got %q, %q, %v", c.command, args, text, err)
		}
		if file, _ := os.ReadFile(filepath.Join(dir, "hosted-gemini.toml")); c.file != "" && !strings.Contains(string(file), c.file) {
			t.Errorf("%s: got %q", c.command, file)
		}
	}
}
