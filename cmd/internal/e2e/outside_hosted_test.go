package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/lease/procstat"
)

// hostedCommands are the commands that speak the Agent Client Protocol, by the names of the outsiders. env has the secrets that
// they need, which the daemon does not pass on unless the settings name them.
var hostedCommands = map[string]struct {
	command []string
	env     string
}{
	"claude":   {[]string{"claude-agent-acp"}, `{ ANTHROPIC_API_KEY = "none" }`},
	"codex":    {[]string{"codex-acp", "-c", `model_providers.stand-in.env_key="OPENAI_API_KEY"`}, `{ OPENAI_API_KEY = "none" }`},
	"gemini":   {[]string{"gemini", "--acp", "-m", "gemini-2.5-pro"}, `{ GEMINI_API_KEY = "none" }`},
	"opencode": {[]string{"opencode", "acp"}, `{}`},
	"qwen":     {[]string{"qwen", "--acp"}, `{ OPENAI_API_KEY = "none" }`},
}

// TestOutsideHosted hosts the real agents: their commands run in the window that asks, as those of agents of our own do. It prints the
// second table of docs/agents.md, with sublet's own agent in the same window; what a row says beside the figures was tested.
func TestOutsideHosted(t *testing.T) {
	needOutside(t)
	var table strings.Builder
	row := func(t *testing.T, name string, took time.Duration, memory int) {
		if !t.Failed() {
			fmt.Fprintf(&table, "| %s | %.1f s | %d MB | in `sub`, `COLOUR` is green | your keyboard |\n", name, took.Seconds(), memory>>20)
		}
	}
	for _, o := range outsiders {
		if hostedCommands[o.name].command != nil {
			t.Run(o.name, func(t *testing.T) {
				took, memory := host(t, o)
				row(t, o.name, took, memory)
			})
		}
	}
	t.Run("sublet", func(t *testing.T) {
		w := lendingWorld(t)
		model := newStandIn(t)
		model.own = "bash"
		w.write(w.path("config.toml"), fmt.Sprintf("model = \"mine/m\"\n[provider.mine]\nkind = \"openai\"\nbase_url = %q\n", model.URL))
		term := w.openShell()
		w.awaitWindows(1)
		term.mode(true)
		begun := time.Now()
		term.send("do it", enter)
		a := &outside{w: w, model: model, q: model.next(), own: "bash"}
		took, memory := time.Since(begun), w.memory()
		a.useLentShell(term)
		a.password(term)
		row(t, "sublet", took, memory)
	})
	t.Log("\n" + table.String())
}

// host is one hosted agent's day: state that stays, a question, another daemon, a password, a cancel, an end by kill -9, and a turn
// taken. It returns how long the agent took from the first prompt to its model's first request, and what all processes of the world
// had then.
func host(t *testing.T, o outsider) (took time.Duration, memory int) {
	w := lendingWorld(t)
	gate := filepath.Join(w.project, "sub", "gate")
	w.write(gate, "wait\n")
	running := func(command string) bool { return strings.Contains(w.processes(), command) }
	free := func() bool { return idle(w.status()) }
	model := newStandIn(t)
	o = o.unconnected()
	o.settle(w, model)
	h := hostedCommands[o.name]
	o.setting(w)
	term := w.openShell()
	w.awaitWindows(1)
	term.mode(true)
	term.send("/agent "+o.name, enter)
	term.see(o.name + " answers from now on")
	prompts := 0
	prompt := func() *outside {
		prompts++
		text := fmt.Sprint("do it ", prompts)
		term.send(ctrlU, text, enter) // keys that came before a question was armed are in the line
		a := &outside{w: w, model: model, q: model.next()}
		for !strings.Contains(a.q.body, text) { // some ask their model for more when a turn has ended
			a.q.answer <- answer{text: "ok"}
			a.q = model.next()
		}
		return a
	}

	begun := time.Now()
	a := prompt()
	took, memory = time.Since(begun), w.memory()
	if slices.Contains(a.q.tools, toolName{name: o.own}) {
		t.Errorf("it has a shell tool of its own still: %v", a.q.tools)
	}
	a.useLentShell(term)
	a.q.answer <- answer{text: "that is all"}
	term.see("that is all")

	// The agent of the next daemon takes the session up.
	if o.name == "gemini" { // it loses a session that it takes up within the minute in which that began
		began := time.Now().Minute()
		w.await("the next minute", func() bool { return time.Now().Minute() != began })
	}
	if _, errs, status := w.sublet("daemon", "stop"); status != 0 {
		t.Fatal(errs)
	}
	a = prompt()
	if !strings.Contains(a.q.body, "do it 1") || term.sees("begins a new session") {
		t.Error("it does not know what was said before")
	}
	a.password(term)
	a.q.answer <- answer{text: "thank you"}
	term.see("thank you")

	// A cancel ends the command. The agent then answers the next prompt.
	a = prompt()
	a.begin("shell", map[string]any{"command": "sleep 7000"})
	w.await("the command to run", func() bool { return running("sleep 7000") })
	term.send(ctrlC)
	w.await("the cancelled command to be gone", func() bool { return !running("sleep 7000") && free() })
	term.see("cancelled")

	a = prompt()
	a.begin("shell", map[string]any{"command": "sleep 7001"})
	w.await("the command to run", func() bool { return running("sleep 7001") })
	if err := syscall.Kill(w.hostedPID(h.command[0]), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.await("the killed agent's command to be gone", func() bool { return !running("sleep 7001") && free() })
	term.see(`it ended: signal: killed`)

	// Two at once take turns.
	first := prompt()
	first.begin("shell", map[string]any{"command": "until grep -q go gate; do sleep 0.1; done; echo said to the first"})
	w.await("the first agent's command to run", func() bool { return running("sleep 0.1") })
	term.send("/new", enter)
	term.see("a new conversation")
	second := prompt()
	second.begin("shell", map[string]any{"command": "echo said to the second"})
	w.await("the second agent to wait", func() bool {
		list, _, _ := w.sublet("lease", "ls")
		return strings.Contains(list, "waits")
	})
	if err := os.WriteFile(gate, []byte("go\n"), 0o600); err != nil { // in place: an overlay of /tmp shows no file in place of another
		t.Fatal(err)
	}
	for range 2 {
		got := strings.Join(model.next().results, "\n")
		if strings.Contains(got, "said to the first") == strings.Contains(got, "said to the second") {
			t.Errorf("two at once: got %q", got)
		}
	}
	return took, memory
}

// setting writes the settings that host the agent.
func (o outsider) setting(w *world) {
	h := hostedCommands[o.name]
	w.write(w.path("config.toml"), fmt.Sprintf("[agents.%s]\ncommand = [%s]\nenv = %s\n", o.name, quoted(h.command), h.env))
}

// TestOutsideDoctor has `sublet doctor NAME` try each agent by a prompt: with its model, and where that cannot be reached.
func TestOutsideDoctor(t *testing.T) {
	needOutside(t)
	for _, o := range outsiders {
		if hostedCommands[o.name].command == nil {
			continue
		}
		t.Run(o.name, func(t *testing.T) {
			w := newWorld(t, "", nil)
			model := newStandIn(t)
			o = o.unconnected()
			o.settle(w, model)
			o.setting(w)
			if out, errs, status := w.sublet("doctor", o.name); status != 0 || !strings.Contains(out, "ok       agent     "+o.name+" answers") {
				t.Errorf("with its model: %d, %s%s", status, out, errs)
			}
			model.Close()
			out, errs, status := w.sublet("doctor", o.name)
			if status != 1 || !strings.HasPrefix(out, "error    agent     "+o.name) {
				t.Errorf("without: %d, %s%s", status, out, errs)
			}
			t.Logf("without its model: %s", out)
		})
	}
}

// TestOutsideSignIn signs in to opencode in the window: its list of providers has the user's keyboard, and the prompt is sent after it.
func TestOutsideSignIn(t *testing.T) {
	needOutside(t)
	w := lendingWorld(t)
	model := newStandIn(t)
	o := outsiders[slices.IndexFunc(outsiders, func(o outsider) bool { return o.name == "opencode" })].unconnected()
	for path, text := range o.files {
		o.files[path] = strings.NewReplacer("@ai-sdk/openai-compatible", "@ai-sdk/openai", `, "apiKey": "none"`, "").Replace(text)
	}
	o.settle(w, model)
	w.write(w.path("config.toml"), "[agents.opencode]\ncommand = [\"opencode\", \"acp\"]\n")
	term := w.openShell()
	w.awaitWindows(1)
	term.useAgent("opencode")
	term.ask("do it")
	term.see(`You are not signed in to opencode`)
	term.answer("1", func() bool { return term.sees(`answered: You are not`) })
	term.see(`'auth' 'login'`)
	term.see(`\[n\] no`)
	term.answer("y", func() bool { return !term.sees(`\[n\] no`) }) // another y would be for the program
	w.await("the program to have the keyboard", func() bool { return strings.Contains(term.bytes(), "⌨ ") })
	for _, step := range [][2]string{{`Select provider`, "other"}, {`Enter provider id`, "stand-in"}, {`Enter your API key`, "none"}} {
		term.see(step[0])
		term.send(step[1], enter)
	}
	if q := model.next(); !strings.Contains(q.body, "do it") {
		t.Errorf("got %s", q.body)
	}
}

// hostedPID returns the process id of an agent: the child of the daemon whose command line contains program.
func (w *world) hostedPID(program string) int {
	w.t.Helper()
	for line := range strings.Lines(w.processes()) {
		text, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(text)
		if err != nil {
			w.t.Fatal(err)
		}
		p, err := procstat.Read(pid)
		if err != nil || !strings.Contains(command, program) {
			continue
		}
		if parent, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Parent)); err == nil && strings.HasPrefix(string(parent), binary+"\x00daemon") {
			return pid
		}
	}
	w.t.Fatalf("no process of %s below the daemon:\n%s", program, w.processes())
	return 0
}

// quoted returns a list of strings as the elements of a TOML array.
func quoted(list []string) string {
	var words []string
	for _, s := range list {
		words = append(words, strconv.Quote(s))
	}
	return strings.Join(words, ", ")
}
