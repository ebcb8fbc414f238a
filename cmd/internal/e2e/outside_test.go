package e2e

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// outsider is an agent of another program: how it is pointed to the model that stands in for its own, with telemetry and updates
// off, and started for one prompt.
type outsider struct {
	name  string            // for `sublet connect`, and of its program
	files map[string]string // settings below the home, as a user has them before connecting; $url is the model's
	env   []string
	args  []string // $prompt is the prompt
}

var outsiders = []outsider{
	{
		name: "claude",
		files: map[string]string{
			".claude.json":          `{"hasCompletedOnboarding": true}`,
			".claude/settings.json": `{"permissions": {"allow": ["mcp__sublet__shell"]}}`,
		},
		env: []string{
			"ANTHROPIC_BASE_URL=$url", "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
		},
		args: []string{"-p", "$prompt"},
	},
	{
		name: "codex",
		files: map[string]string{".codex/config.toml": `
model = "m"
model_provider = "stand-in"
check_for_update_on_startup = false
[model_providers.stand-in]
name = "stand-in"
base_url = "$url/v1"
wire_api = "responses"
[mcp_servers.sublet]
default_tools_approval_mode = "approve"
[analytics]
enabled = false
`},
		args: []string{"exec", "--skip-git-repo-check", "$prompt"},
	},
	{
		name: "gemini",
		files: map[string]string{".gemini/settings.json": `{
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
  "general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
  "mcpServers": {"sublet": {"trust": true}}
}`},
		env:  []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=$url"},
		args: []string{"-m", "gemini-2.5-pro", "-p", "$prompt"},
	},
	{
		name: "opencode",
		files: map[string]string{".config/opencode/opencode.json": `{
  "autoupdate": false, "share": "disabled", "model": "stand-in/m",
  "provider": {"stand-in": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "$url/v1", "apiKey": "none"}, "models": {"m": {"name": "m"}}}}
}`},
		env:  []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
		args: []string{"run", "$prompt"},
	},
	{
		name: "qwen",
		files: map[string]string{".qwen/settings.json": `{
  "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}},
  "general": {"enableAutoUpdate": false, "disableAutoUpdate": true}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
  "mcpServers": {"sublet": {"trust": true}}
}`},
		env:  []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=$url/v1", "OPENAI_MODEL=m"},
		args: []string{"-p", "$prompt"},
	},
}

// connect points the agent to the model that stands in for its own, and has `sublet connect` write its settings.
func (o outsider) connect(w *world, model *standIn) {
	w.t.Helper()
	for path, text := range o.files {
		w.write(filepath.Join(w.home, path), strings.ReplaceAll(text, "$url", model.URL))
	}
	bin, err := filepath.Abs("testdata/outside/node_modules/.bin")
	if err != nil {
		w.t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+bin+":"+os.Getenv("PATH"))
	for _, e := range o.env {
		w.env = append(w.env, strings.ReplaceAll(e, "$url", model.URL))
	}
	out, errs, status := w.sublet("connect", o.name, "--yes")
	if status != 0 {
		w.t.Fatalf("connect %s: %s%s", o.name, out, errs)
	}
	w.t.Log(out)
}

// outside is such an agent at work.
type outside struct {
	*exec.Cmd
	w     *world
	model *standIn
	q     *question // what it asks the model now
}

// start starts a connected agent and waits for its first question to the model.
func (o outsider) start(w *world, model *standIn) *outside {
	w.t.Helper()
	args := slices.Clone(o.args)
	args[slices.Index(args, "$prompt")] = "do it"
	log, err := os.CreateTemp(w.root, o.name+".*.log")
	if err != nil {
		w.t.Fatal(err)
	}
	a := &outside{Cmd: exec.Command(o.name, args...), w: w, model: model}
	a.Path = filepath.Join("testdata/outside/node_modules/.bin", o.name)
	if a.Path, err = filepath.Abs(a.Path); err != nil {
		w.t.Fatal(err)
	}
	a.Err = nil // of looking for it on this test's own PATH
	a.Dir, a.Env, a.Stdout, a.Stderr = w.project, w.env, log, log
	a.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := a.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = syscall.Kill(-a.Process.Pid, syscall.SIGKILL) // may have ended
		_ = a.Wait()
		if text, err := os.ReadFile(log.Name()); w.t.Failed() {
			w.t.Logf("%s printed: %s %v", o.name, text, err)
		}
		log.Close()
	})
	a.q = a.model.next()
	return a
}

// begin has the model call a tool of ours.
func (a *outside) begin(tool string, arguments map[string]any) {
	a.w.t.Helper()
	name, ok := a.q.tool(tool)
	if !ok {
		a.w.t.Fatalf("the agent does not offer %s, only %v", tool, a.q.tools)
	}
	a.q.answer <- answer{tool: name, arguments: arguments}
}

// result is what the agent gives its model as the result of the call.
func (a *outside) result() string {
	a.w.t.Helper()
	had := len(a.q.results)
	a.q = a.model.next()
	if len(a.q.results) <= had {
		a.w.t.Fatalf("no result came back: %q", a.q.results)
	}
	return a.q.results[len(a.q.results)-1]
}

// shell has the agent run a command, and compares a part of what its model is told.
func (a *outside) shell(command, want string) {
	a.w.t.Helper()
	a.begin("shell", map[string]any{"command": command})
	if got := a.result(); !strings.Contains(got, want) {
		a.w.t.Errorf("%s: got %q, want %q in it", command, got, want)
	}
}

// server is the process that the agent speaks the protocol with, and agent the one that started it.
func (a *outside) server() (server, agent int) {
	a.w.t.Helper()
	for line := range strings.Lines(a.w.processes()) {
		pid, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(command, binary+" serve mcp") {
			continue
		}
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		server, _ = strconv.Atoi(pid)
		agent, _ = strconv.Atoi(fields[1])
		if group, _ := syscall.Getpgid(agent); group == a.Process.Pid {
			return server, agent
		}
	}
	a.w.t.Fatalf("the agent has no server:\n%s", a.w.processes())
	return 0, 0
}

// TestOutside has real agents of other programs run their commands in the user's live shell. It needs a network namespace with
// loopback only: what they send anywhere else goes nowhere.
func TestOutside(t *testing.T) {
	if os.Getenv("SUBLET_OUTSIDE") == "" {
		t.Skip("make test-outside runs it")
	}
	if nets, err := net.Interfaces(); err != nil || len(nets) != 1 {
		t.Fatalf("not in a network namespace of its own: %v %v", nets, err)
	}
	for _, o := range outsiders {
		t.Run(o.name, func(t *testing.T) { lendTo(t, o) })
	}
}

// lendTo is one agent's day: state that stays, a question, a password, a cancel, a turn taken, and an end by kill -9.
func lendTo(t *testing.T, o outsider) {
	w := newWorld(t, "alias hi='echo hello from an alias'\nmine() { echo \"mine $1\"; }\n", nil)
	w.write(filepath.Join(w.project, "sub", "old", "file"), "x")
	old := func() bool { _, err := os.Stat(filepath.Join(w.project, "sub", "old")); return err == nil }
	running := func(command string) bool { return strings.Contains(w.processes(), command) }
	free := func() bool { return idle(w.status()) }
	term := w.openShell()
	w.connected(1)
	model := newStandIn(t)
	o.connect(w, model)
	a := o.start(w, model)

	a.shell("cd sub", "sub")
	a.shell("export COLOUR=green", "")
	a.shell(`hi; mine own; echo "$COLOUR in ${PWD##*/}"`, "hello from an alias")
	a.shell(`hi; mine own; echo "$COLOUR in ${PWD##*/}"`, "green in sub")
	term.run(`echo "$COLOUR in ${PWD##*/}"`, `^green in sub$`)

	for _, c := range []struct {
		key  string
		want string
		left bool
	}{{"n", "denied by the user", true}, {"y", "", false}} {
		a.begin("shell", map[string]any{"command": "rm -r old"})
		term.see(o.name + ` wants to run this`)
		term.see(`\[n\] no`)
		if !old() {
			t.Fatal("it ran before it was allowed")
		}
		term.answer(c.key, func() bool { return !term.sees(`\[n\] no`) })
		if got := a.result(); !strings.Contains(got, c.want) || old() != c.left {
			t.Errorf("answered %s: the model is told %q, and the folder is there: %v", c.key, got, old())
		}
	}

	a.begin("shell", map[string]any{"command": `read -rsp 'Password: ' p; echo; echo "got ${#p} letters"; unset p`})
	term.allow("the keyboard to be handed over", func() bool { return strings.Contains(term.bytes(), "⌨ ") })
	term.send("secret", enter)
	if got := a.result(); !strings.Contains(got, "got 6 letters") {
		t.Errorf("the password: got %q", got)
	}

	// An interrupt is how a run without a terminal is cancelled.
	a.begin("shell", map[string]any{"command": "sleep 7000"})
	w.await("the command to run", func() bool { return running("sleep 7000") })
	if err := syscall.Kill(-a.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	w.await("the cancelled command to be gone", func() bool { return !running("sleep 7000") && free() })
	term.send(ctrlU) // keys that came before a question of the program was armed are in the line
	term.atPrompt()
	term.run("echo after the cancel", `^after the cancel$`)

	a, b := o.start(w, model), o.start(w, model)
	a.begin("shell", map[string]any{"command": `read -rp 'go on? ' x; echo "first: $x"`})
	w.await("the first agent's command to have the keyboard", func() bool { return strings.Count(term.bytes(), "⌨ ") == 2 })
	b.begin("shell", map[string]any{"command": "echo second"})
	w.await("the second agent to wait", func() bool {
		list, _, _ := w.sublet("lease", "ls")
		return strings.Contains(list, "waits")
	})
	term.send("yes", enter)
	for range 2 {
		q := model.next()
		switch got := strings.Join(q.results, "\n"); {
		case strings.Contains(got, "first: yes"):
			a.q = q
		case strings.Contains(got, "second"):
			b.q = q
		default:
			t.Fatalf("two at once: got %q", got)
		}
	}
	order := term.text()
	if !strings.Contains(order[strings.LastIndex(order, "first: yes"):], "│ second") {
		t.Errorf("the second one did not run after the first:\n%s", order)
	}

	b.begin("shell", map[string]any{"command": "sleep 7001"})
	w.await("the command to run", func() bool { return running("sleep 7001") })
	_, agent := b.server()
	if err := syscall.Kill(agent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.await("the killed agent's command to be gone", func() bool { return !running("sleep 7001") && free() })
	a.shell("echo goes on", "goes on")
}
