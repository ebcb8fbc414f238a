package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/lease/procstat"
)

// outsider is an agent of another program: how it is pointed to the model that stands in for its own, with telemetry and updates
// off, and started for one prompt.
type outsider struct {
	name  string            // for `sublet connect`, and of its program
	files map[string]string // settings below the home, as a user has them before connecting; $url is the model's
	env   []string
	args  []string  // $prompt is the prompt
	tui   []string  // the same with its own screen
	stop  string    // what cancels on that screen; "" = Escape
	deaf  string    // what that screen says of a cancel that does not reach the server: the user ends the command in the window
	http  [2]string // what stands in the settings, and what in its place names a server at $mcp that takes $token; none: not by HTTP
	// Without sublet: its own shell tool, what the command is called in that, and the words that let it run unasked.
	own, command string
	also         []string // its other required arguments
	unasked      []string
}

const codexSettings = `
model = "m"
model_provider = "stand-in"
check_for_update_on_startup = false
[model_providers.stand-in]
name = "stand-in"
base_url = "$url/v1"
wire_api = "responses"
[projects."$project"]
trust_level = "trusted"
[analytics]
enabled = false
[features]
daemon_auto_start = false # it would outlive the test
`

var outsiders = []outsider{
	{
		name: "claude",
		files: map[string]string{
			".claude.json": `{
  "hasCompletedOnboarding": true, "customApiKeyResponses": {"approved": ["none"], "rejected": []}, "projects": {"$project": {"hasTrustDialogAccepted": true}}
}`,
			".claude/settings.json": `{"permissions": {"allow": ["mcp__sublet"]}}`,
		},
		env: []string{
			"ANTHROPIC_BASE_URL=$url", "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
		},
		args: []string{"-p", "$prompt"},
		tui:  []string{"$prompt"},
		http: [2]string{`"projects":`, `"mcpServers": {"sublet": {
  "type": "http", "url": "$mcp", "headers": {"Authorization": "Bearer $token"}, "alwaysLoad": true
}}, "projects":`},
		own: "Bash", command: "command", unasked: []string{"--allowedTools", "Bash"},
	},
	{
		name: "codex",
		files: map[string]string{".codex/config.toml": codexSettings + `
[mcp_servers.sublet]
default_tools_approval_mode = "approve"
`},
		args: []string{"exec", "--skip-git-repo-check", "$prompt"},
		tui:  []string{"$prompt"},
		http: [2]string{"[mcp_servers.sublet]", `[mcp_servers.sublet]
url = "$mcp"
http_headers = {Authorization = "Bearer $token"}`},
		own: "exec_command", command: "cmd", unasked: []string{"--dangerously-bypass-approvals-and-sandbox"},
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
		tui:  []string{"-m", "gemini-2.5-pro", "-i", "$prompt"}, deaf: "cancelled",
		http: [2]string{`"sublet": {`, `"sublet": {"httpUrl": "$mcp", "headers": {"Authorization": "Bearer $token"}, `},
		own:  "run_shell_command", command: "command", unasked: []string{"-y"},
	},
	{
		name:  "goose",
		files: map[string]string{".config/goose/config.yaml": "GOOSE_PROVIDER: openai\nGOOSE_MODEL: m\nGOOSE_TELEMETRY_ENABLED: false\n"},
		env:   []string{"OPENAI_HOST=$url", "OPENAI_API_KEY=none", "GOOSE_DISABLE_KEYRING=1"},
		args:  []string{"run", "--no-session", "-t", "$prompt"},
		tui:   []string{"run", "--no-session", "-s", "-t", "$prompt"}, stop: ctrlC, deaf: "Interrupted",
		own: "shell", command: "command",
	},
	{
		name: "opencode",
		files: map[string]string{".config/opencode/opencode.json": `{
  "autoupdate": false, "share": "disabled", "model": "stand-in/m",
  "provider": {"stand-in": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "$url/v1", "apiKey": "none"}, "models": {"m": {"name": "m"}}}}
}`},
		env:  []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
		args: []string{"run", "$prompt"},
		tui:  []string{"--prompt", "$prompt"},
		http: [2]string{`"autoupdate"`, `"mcp": {"sublet": {"type": "remote", "url": "$mcp", "headers": {"Authorization": "Bearer $token"}, "oauth": false}}, "autoupdate"`},
		own:  "bash", command: "command", also: []string{"description"},
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
		tui:  []string{"-i", "$prompt"},
		http: [2]string{`"sublet": {`, `"sublet": {"httpUrl": "$mcp", "headers": {"Authorization": "Bearer $token"}, "alwaysLoadTools": true, `},
		own:  "run_shell_command", command: "command", also: []string{"is_background"}, unasked: []string{"-y"},
	},
}

// unconnected is the agent without what its settings say of our server: Codex does not start with one that has no command.
func (o outsider) unconnected() outsider {
	o.files = maps.Clone(o.files)
	for path, text := range o.files {
		o.files[path], _, _ = strings.Cut(text, "[mcp_servers")
	}
	return o
}

// settle points the agent to the model that stands in for its own.
func (o outsider) settle(w *world, model *standIn) {
	w.t.Helper()
	for path, text := range o.files {
		w.write(filepath.Join(w.home, path), strings.NewReplacer("$url", model.URL, "$project", w.project).Replace(text))
	}
	bin, err := filepath.Abs("testdata/outside/node_modules/.bin")
	if err != nil {
		w.t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+bin+":"+os.Getenv("PATH"))
	for _, e := range o.env {
		w.env = append(w.env, strings.ReplaceAll(e, "$url", model.URL))
	}
}

// connect has `sublet connect` write the agent's settings.
func (o outsider) connect(w *world) {
	w.t.Helper()
	out, errs, status := w.sublet("connect", o.name, "--yes")
	if status != 0 || !strings.Contains(out, o.name+" has taken ") || strings.Contains(out, "not recognised") || strings.Contains(out, "not be checked") {
		w.t.Fatalf("connect %s: %s%s", o.name, out, errs)
	}
}

// connectHTTP starts a server for it, and writes its settings.
func (o outsider) connectHTTP(w *world, model *standIn) {
	w.t.Helper()
	_, out := w.spawn("mcp", "--http", "127.0.0.1:0")
	line, err := out.ReadBytes('\n')
	var at struct{ URL, Token string }
	if err := errors.Join(err, json.Unmarshal(line, &at)); err != nil {
		w.t.Fatal(err)
	}
	for path, text := range o.files {
		text = strings.ReplaceAll(text, o.http[0], o.http[1])
		w.write(filepath.Join(w.home, path), strings.NewReplacer("$url", model.URL, "$project", w.project, "$mcp", at.URL, "$token", at.Token).Replace(text))
	}
}

// outside is such an agent at work.
type outside struct {
	*exec.Cmd
	w     *world
	model *standIn
	q     *question // what it asks the model now
	own   string    // the name of its own shell tool, where that is used; "" = ours
}

// start starts the agent, with more words, and waits for its first question to the model.
func (o outsider) start(w *world, model *standIn, more ...string) *outside {
	w.t.Helper()
	args := append(slices.Clone(o.args), more...)
	args[slices.Index(args, "$prompt")] = "do it"
	log, err := os.CreateTemp(w.root, o.name+".*.log")
	if err != nil {
		w.t.Fatal(err)
	}
	a := &outside{Cmd: exec.Command(o.name, args...), w: w, model: model}
	a.Path = filepath.Join("testdata/outside/node_modules/.bin", o.name)
	if o.name == "sublet" {
		a.Path = binary
	}
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
	if a.own != "" {
		name, ok = toolName{name: a.own}, true
	}
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

// shell has the agent run a command, and checks that the tool result which its model receives contains a text.
func (a *outside) shell(command, want string) {
	a.w.t.Helper()
	a.begin("shell", map[string]any{"command": command})
	if got := a.result(); !strings.Contains(got, want) {
		a.w.t.Errorf("%s: got %q, want %q in it", command, got, want)
	}
}

// kill kills the process that speaks the protocol with our server, and leaves that; by HTTP, the agent as a whole.
func (a *outside) kill() {
	a.w.t.Helper()
	victim := -a.Process.Pid
	for line := range strings.Lines(a.w.processes()) {
		pid, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.TrimSpace(command) != binary+" serve mcp" {
			continue
		}
		server, err := strconv.Atoi(pid)
		if err != nil {
			a.w.t.Fatal(err)
		}
		p, err := procstat.Read(server)
		if group, _ := syscall.Getpgid(p.Parent); err == nil && group == a.Process.Pid {
			victim = p.Parent
		}
	}
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		a.w.t.Fatal(err)
	}
}

// TestOutside has real agents of other programs run their commands in the user's live shell. It needs a network namespace with
// loopback only: what they send anywhere else goes nowhere.
func TestOutside(t *testing.T) {
	needOutside(t)
	for _, o := range outsiders {
		t.Run(o.name, func(t *testing.T) { lendTo(t, o, false) })
		if o.http[0] != "" {
			t.Run(o.name+" by HTTP", func(t *testing.T) { lendTo(t, o, true) })
		}
	}
}

func needOutside(t *testing.T) {
	if os.Getenv("SUBLET_OUTSIDE") == "" {
		t.Skip("make test-outside runs it")
	}
	if nets, err := net.Interfaces(); err != nil || len(nets) != 1 {
		t.Fatalf("not in a network namespace of its own: %v %v", nets, err)
	}
}

// lendingWorld is a world whose shell has an alias, a function and a folder, which works uses.
func lendingWorld(t *testing.T) *world {
	w := newWorld(t, "alias hi='echo hello from an alias'\nmine() { echo \"mine $1\"; }\n", nil)
	w.write(filepath.Join(w.project, "sub", "old", "file"), "x")
	return w
}

// useLentShell runs commands in the shell of a lendingWorld: its state lasts from one to the next, and a risky one runs only when the
// user has allowed it.
func (a *outside) useLentShell(term *terminal) {
	t := a.w.t
	t.Helper()
	a.shell("cd sub", "sub")
	a.shell("export COLOUR=green", "")
	a.shell(`hi; mine own; echo "$COLOUR in ${PWD##*/}"`, "hello from an alias")
	a.shell(`hi; mine own; echo "$COLOUR in ${PWD##*/}"`, "green in sub")
	old := func() bool { _, err := os.Stat(filepath.Join(a.w.project, "sub", "old")); return err == nil }
	for _, c := range []struct {
		key  string
		want string
		left bool
	}{{"n", "denied by the user", true}, {"y", "", false}} {
		a.begin("shell", map[string]any{"command": "rm -r old"})
		term.see(`\[n\] no`)
		if !old() {
			t.Fatal("it ran before it was allowed")
		}
		term.answer(c.key, func() bool { return !term.sees(`\[n\] no`) })
		if got := a.result(); !strings.Contains(got, c.want) || old() != c.left {
			t.Errorf("answered %s: the model gets %q, and the folder exists: %v", c.key, got, old())
		}
	}
}

// password runs a command that asks for a password, which is typed in the window.
func (a *outside) password(term *terminal) {
	t := a.w.t
	t.Helper()
	a.begin("shell", map[string]any{"command": `read -rsp 'Password: ' p; echo; echo "got ${#p} letters"; unset p`})
	term.allow("the keyboard to be handed over", func() bool { return strings.Contains(term.bytes(), "⌨ ") })
	term.send("secret", enter)
	if got := a.result(); !strings.Contains(got, "got 6 letters") {
		t.Errorf("the password: got %q", got)
	}
}

// lendTo is one agent's day: state that stays, a question, a password, a cancel, a turn taken, and an end by kill -9.
func lendTo(t *testing.T, o outsider, http bool) {
	w := lendingWorld(t)
	running := func(command string) bool { return strings.Contains(w.processes(), command) }
	free := func() bool { return idle(w.status()) }
	term := w.openShell()
	w.awaitWindows(1)
	model := newStandIn(t)
	o.settle(w, model)
	if http {
		o.connectHTTP(w, model)
	} else {
		o.connect(w)
	}
	a := o.start(w, model)

	if !http && slices.Contains(a.q.tools, toolName{name: o.own}) {
		t.Errorf("it has a shell tool of its own still: %v", a.q.tools)
	}
	a.useLentShell(term)
	term.send(ctrlU) // keys that came before a question was armed are in the line
	term.run(`echo "$COLOUR in ${PWD##*/}"`, `^green in sub$`)

	a.password(term)

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
	b.kill()
	w.await("the killed agent's command to be gone", func() bool { return !running("sleep 7001") && free() })
	a.shell("echo goes on", "goes on")
}

// TestOutsideCancel presses Escape on the agent's own screen while its command runs, and Ctrl-C in the window for an agent that
// keeps that to itself: the command ends, and the agent goes on.
func TestOutsideCancel(t *testing.T) {
	needOutside(t)
	for _, o := range outsiders {
		t.Run(o.name, func(t *testing.T) {
			w := newWorld(t, "", nil)
			term := w.openShell()
			w.awaitWindows(1)
			model := newStandIn(t)
			o.settle(w, model)
			o.connect(w)
			words := slices.Clone(o.tui)
			words[slices.Index(words, "$prompt")] = "do it"
			path, err := filepath.Abs(filepath.Join("testdata/outside/node_modules/.bin", o.name))
			if err != nil {
				t.Fatal(err)
			}
			screen := w.openProgram(path, words...)
			t.Cleanup(func() { _ = syscall.Kill(-screen.cmd.Process.Pid, syscall.SIGKILL); screen.wait() })
			a := &outside{w: w, model: model}
			last := time.Now()
			w.await("the agent to offer the shell", func() bool {
				select {
				case a.q = <-model.asked:
				default:
					if time.Since(last) > 5*time.Second { // some begin before they have connected our server
						screen.send("do it", enter)
						last = time.Now()
					}
				}
				return a.q != nil
			})
			a.begin("shell", map[string]any{"command": "sleep 7000"})
			w.await("the command to run", func() bool { return strings.Contains(w.processes(), "sleep 7000") })
			pressed := time.Now()
			stop := cmp.Or(o.stop, escape)
			screen.send(stop)
			if o.deaf != "" {
				screen.see(o.deaf)
				term.send(ctrlC)
			}
			w.await("the cancelled command to be gone", func() bool {
				if time.Since(pressed) > 5*time.Second { // some take the first one to themselves
					screen.send(stop)
					pressed = time.Now()
				}
				return !strings.Contains(w.processes(), "sleep 7000") && idle(w.status())
			})
			if !screen.alive() {
				t.Error("the agent ended")
			}
		})
	}
}

// TestOutsideAlone measures the same agents with the shell tool of their own, and sublet beside them: the table of docs/agents.md.
func TestOutsideAlone(t *testing.T) {
	needOutside(t)
	var table strings.Builder
	for _, o := range append(outsiders, outsider{name: "sublet", own: "bash", command: "command"}) {
		t.Run(o.name, func(t *testing.T) {
			w := newWorld(t, "", nil)
			w.write(filepath.Join(w.project, "sub", "file"), "x")
			model := newStandIn(t)
			model.own = o.own
			o = o.unconnected()
			o.settle(w, model)
			if o.name == "sublet" {
				w.write(w.path("config.toml"), fmt.Sprintf("model = \"mine/m\"\n[provider.mine]\nkind = \"openai\"\nbase_url = %q\n", model.URL))
				o.args = []string{"ask", "$prompt"}
			}
			begun := time.Now()
			a := o.start(w, model, o.unasked...)
			took := time.Since(begun)
			if o.name == "sublet" {
				w.openShell()
			}
			memory := w.memory()
			run := func(command string) string {
				arguments := map[string]any{o.command: command}
				for _, name := range o.also {
					arguments[name] = map[string]any{"description": "try it", "is_background": false}[name]
				}
				a.q.answer <- answer{tool: toolName{name: o.own}, arguments: arguments}
				return a.result()
			}
			run("cd sub; export COLOUR=green")
			state := run(`echo "[[$COLOUR in ${PWD##*/}]]"`)
			password := "[[the user's keyboard]]" // as TestOutside shows
			if o.name != "sublet" {
				password = run(`if read -rs p; then echo "[[got it]]"; else echo "[[end of file]]"; fi`)
			}
			t.Logf("%q, %q", state, password)
			last := func(in string) string { // some repeat the command first
				found := append([]string{""}, regexp.MustCompile(`\[\[.*?\]\]`).FindAllString(in, -1)...)
				return strings.Trim(found[len(found)-1], "[]")
			}
			fmt.Fprintf(&table, "| %s | %.1f s | %d MB | %s | %s |\n", o.name, took.Seconds(), memory>>20, last(state), last(password))
		})
	}
	t.Log("\n" + table.String())
}

// memory is what all processes of the world have for themselves, with their part of what they share, in bytes.
func (w *world) memory() (sum int) {
	for line := range strings.Lines(w.processes()) {
		pid, _, _ := strings.Cut(line, " ")
		text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		if err != nil {
			continue // it ended meanwhile
		}
		if m := regexp.MustCompile(`(?m)^Pss: +(\d+) kB`).FindSubmatch(text); m != nil {
			kB, _ := strconv.Atoi(string(m[1]))
			sum += kB << 10
		}
	}
	return sum
}
