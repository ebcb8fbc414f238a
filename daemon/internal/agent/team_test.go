package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sublet/compaction"
	"sublet/daemon/config"
	"sublet/daemon/internal/job"
	"sublet/daemon/internal/picture"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/lease/shell"
	"sublet/wire"
)

// stubShell is a private shell that says where it is.
type stubShell struct{ name string }

func (s stubShell) Where(context.Context) (tool.ShellPlace, error) {
	return tool.ShellPlace{Cwd: "/" + s.name, Private: true}, nil
}

func (s stubShell) Run(_ context.Context, c tool.Command, live func([]byte)) (tool.CommandResult, error) {
	zero := 0
	if live != nil {
		live([]byte("live"))
	}
	return tool.CommandResult{Result: shell.Result{Output: []byte(s.name + " ran " + c.Text), ExitCode: &zero, Status: wire.StatusOK, Dir: "/" + s.name}}, nil
}

type shells struct {
	mu           sync.Mutex
	open, closed []string
}

func (s *shells) start(agent string) (tool.Shell, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, agent)
	return stubShell{agent}, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed = append(s.closed, agent)
	}
}

func teamTurn(model provider.Model, sh *shells) Turn {
	cfg := config.Default()
	roles, _ := Roles(cfg, "")
	return Turn{
		Role: roles[Orchestrator], Model: model, Prompt: "top", Tools: Tools(cfg, roles), Team: Team{Roles: roles, NewPrivateShell: sh.start},
		Env: tool.Env{Cwd: "/w", Shell: stubShell{"user"}},
	}
}

func TestTaskRunsSubAgents(t *testing.T) {
	model := newModel(
		call1("task", `{"tasks":[{"role":"engineer","title":"build","prompt":"one"},{"role":"engineer","prompt":"two"},{"role":"reviewer","prompt":"three"},{"role":"nobody","prompt":"x"},{"role":"orchestrator","prompt":"x"}]}`),
		step{text: "all done", usage: provider.Usage{Input: 1}},
	)
	for _, p := range []string{"one", "two"} {
		model.steps[p] = []step{call1("bash", `{"command":"make `+p+`"}`), {text: "built " + p, usage: provider.Usage{Input: 100}}}
	}
	model.steps["three"] = []step{
		{calls: []provider.ToolCall{calling("1", "write", `{"path":"x","content":"y"}`), calling("2", "task", `{"tasks":[]}`), calling("3", "glob", `{"pattern":"*.go","path":"/nowhere"}`)}},
		{text: "looks fine"},
	}
	sh := &shells{}
	var mu sync.Mutex
	questions := map[string]Question{}
	turn := teamTurn(model, sh)
	turn.Prompt = "top. Never push."
	turn.Environ = func() map[string]string { return map[string]string{"GOTOOLCHAIN": "go1.26.8"} }
	turn.Approver = approverFunc(func(_ context.Context, q Question) (Decision, error) {
		mu.Lock()
		defer mu.Unlock()
		questions[q.Agent] = q
		return Decision{Allowed: true}, nil
	})
	rec := &recorder{}
	o := rec.play(t.Context(), turn)
	if o.Err != nil || o.Usage.Input != 201 {
		t.Errorf("got %+v", o)
	}
	var report string
	for _, m := range rec.results() {
		if m.Tool == "task" {
			report = string(m.Output)
		}
	}
	for _, want := range []string{
		"(build)\nbuilt one\n\n[from the record of its calls]\nCommands (exit code 0 unless another is given):\n- make one", "built two",
		"## reviewer-1\nlooks fine\n\n[from the record of its calls]\nno file was changed with its tools, and no command was run", `there is no role "nobody"`, `there is no role "orchestrator"`,
	} {
		if !strings.Contains(report, want) {
			t.Errorf("got %q, want %q in it", report, want)
		}
	}
	// Each has a shell and a name of its own; shells start when needed and end with their agents.
	if slices.Sort(sh.open); !slices.Equal(sh.open, []string{"engineer-1", "engineer-2", "orchestrator", "reviewer-1"}) {
		t.Errorf("got shells %v opened", sh.open)
	}
	if slices.Sort(sh.closed); !slices.Equal(sh.closed, sh.open) {
		t.Errorf("got shells %v closed, want %v", sh.closed, sh.open)
	}
	if q := questions["engineer-2"]; q.Role != Engineer || q.ReadOnly || !q.Action.Private || q.Action.Cwd != "/engineer-2" {
		t.Errorf("got question %+v", q)
	}
	if n := len(rec.chunks(wire.ChunkToolOutput, "engineer-1")); n != 1 {
		t.Errorf("got %d live pieces, want the private shell's output streamed", n)
	}
	for _, r := range model.requests() {
		mustBeValid(t, r.Messages)
		if !strings.Contains(r.System, "Never push.") && firstText(r.Messages[0]) != turn.Prompt {
			t.Errorf("got a sub-agent without the user's limits: %s", r.System)
		}
		if got := show(r.Messages[:1]); !strings.Contains(got, "Go toolchain: go1.26.8") {
			t.Errorf("got an agent without the toolchain: %s", got)
		}
		if firstText(r.Messages[0]) == "three" {
			for _, s := range r.Tools {
				if slices.Contains([]string{"write", "edit", "task"}, s.Name) {
					t.Errorf("got the reviewer offered %s", s.Name)
				}
			}
		}
	}
	refused := []string{}
	for _, r := range o.Refused {
		refused = append(refused, r.Tool)
	}
	if !slices.Contains(refused, "write") || !slices.Contains(refused, "task") {
		t.Errorf("got refused %v, want what a reviewer may not", refused)
	}
	// The conversation of the user's agent holds nothing of theirs but the report.
	if s := show(History(rec.events).Messages()); strings.Contains(s, "make one") {
		t.Errorf("got\n%s", s)
	}
}

// The report of an agent that is asked further has only what it did since.
func TestReportOfAgentAskedFurther(t *testing.T) {
	model := newModel(
		call1("task", `{"tasks":[{"role":"engineer","prompt":"one"}]}`), call1("task", `{"agent":"engineer-1","prompt":"two"}`), step{text: "all done"},
	)
	model.steps["one"] = []step{
		call1("bash", `{"command":"make one"}`), {text: "built one"}, call1("bash", `{"command":"make two"}`), {text: "built two"},
	}
	rec := &recorder{}
	turn := teamTurn(model, &shells{})
	turn.Approver = approverFunc(func(context.Context, Question) (Decision, error) { return Decision{Allowed: true}, nil })
	rec.play(t.Context(), turn)
	var reports []string
	for _, m := range rec.results() {
		if m.Tool == "task" {
			reports = append(reports, string(m.Output))
		}
	}
	if len(reports) != 2 || !strings.Contains(reports[0], "\n- make one ") || !strings.Contains(reports[1], "given):\n- make two ") {
		t.Errorf("got %q", reports)
	}
}

// A model that learned another program's tool names the agent to start by its role alone.
func TestTaskOfOneAgent(t *testing.T) {
	for _, args := range []string{`{"subagent_type":"explorer","description":"a look","prompt":"one"}`, `{"agent":"explorer","prompt":"one"}`, `{"role":"explorer","prompt":"one"}`} {
		model := newModel(call1("task", args), step{text: "all done"})
		model.steps["one"] = []step{{text: "seen"}}
		rec := &recorder{}
		rec.play(t.Context(), teamTurn(model, &shells{}))
		if list := rec.results(); len(list) != 1 || !strings.Contains(string(list[0].Output), "## explorer-1") || !strings.Contains(string(list[0].Output), "seen") {
			t.Errorf("%s: got %+v", args, list)
		}
	}
}

// A role that is a program is played by the host, with the prompt, a private shell, and the role's time. One that is asked further
// is known to have been asked before.
func TestTaskRunsHostedAgents(t *testing.T) {
	model := newModel(call1("task", `{"tasks":[{"role":"codex","prompt":"one"}]}`), call1("task", `{"agent":"codex-1","prompt":"two"}`), step{text: "all done"})
	turn := teamTurn(model, &shells{})
	var asked []string
	turn.Roles["codex"] = Role{Name: "codex", Model: "acp/codex", Hosted: &config.Agent{Command: []string{"codex-acp"}}, Timeout: time.Hour}
	turn.Host = func(ctx context.Context, at Turn) Outcome {
		if _, bounded := ctx.Deadline(); !bounded || at.Name != "codex-1" || !at.Role.Private {
			t.Errorf("bounded %v, got %+v", bounded, at)
		}
		asked = append(asked, fmt.Sprint(at.Prompt, " after ", at.History.Len()))
		return Outcome{AgentComplete: wire.AgentComplete{Status: wire.StatusSuccess, Summary: "done by a program"}}
	}
	rec := &recorder{}
	if o := rec.play(t.Context(), turn); o.Err != nil {
		t.Fatal(o.Err)
	}
	if got := string(rec.results()[0].Output); !strings.Contains(got, "codex-1") || !strings.HasSuffix(strings.TrimSpace(got), "done by a program") {
		t.Errorf("got %q", got)
	}
	if got := strings.Join(asked, ", "); got != "one after 0, two after 1" {
		t.Errorf("asked %s", got)
	}
}

// A sub-agent sees the jobs of its session, and ends none of another agent's.
func TestSubAgentsSeeJobs(t *testing.T) {
	jobs, err := job.Open(t.TempDir(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Close()
	d, err := jobs.New(wire.Job{SessionID: "s", Agent: Orchestrator, Command: "serve"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	over := exec.Command("true")
	if err := over.Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Folder, "pid"), []byte(strconv.Itoa(over.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.Started(); !ok {
		t.Fatal("the job was not started")
	}
	model := newModel(call1("task", `{"tasks":[{"role":"engineer","prompt":"one"}]}`), step{text: "all done"})
	model.steps["one"] = []step{{calls: []provider.ToolCall{calling("1", "jobs", `{}`), calling("2", "jobs", `{"id":"j1","kill":true}`)}}, {text: "seen"}}
	turn := teamTurn(model, &shells{})
	turn.Env.Jobs, turn.Env.Session = jobs, "s"
	rec := &recorder{}
	if o := rec.play(t.Context(), turn); o.Err != nil {
		t.Fatal(o.Err)
	}
	var got string
	for _, m := range rec.results() {
		if m.Tool == "jobs" {
			got += string(m.Output) + "\n"
		}
	}
	if !strings.Contains(got, ": serve") || !strings.Contains(got, "j1 is a job of orchestrator: you end only your own") {
		t.Errorf("got %q", got)
	}
}

// An agent that runs was reported as ended, without a status.
func TestReportOfRunningAgent(t *testing.T) {
	m := newTeam(newRunner(complete(Turn{})))
	me := &member{SubAgent: wire.SubAgent{Name: "engineer-1", State: wire.AgentRunning, StartedAtMS: time.Now().UnixMilli()}, cancel: func(error) {}}
	m.agents.begin(me)
	if r, err := m.Report(t.Context(), "engineer-1"); err != nil || !strings.HasPrefix(r.Answer, "engineer-1 has been working for ") {
		t.Errorf("got %q, %v of a running agent", r.Answer, err)
	}
	m.agents.end(me, Outcome{AgentComplete: wire.AgentComplete{Status: wire.StatusSuccess}}, nil)
	if r, err := m.Report(t.Context(), "engineer-1"); err != nil || !strings.HasPrefix(r.Answer, "engineer-1 has ended: success.") {
		t.Errorf("got %q, %v of an agent that has ended", r.Answer, err)
	}
	if _, err := m.Report(t.Context(), "engineer-2"); err == nil {
		t.Error("got a report of an agent that there is not")
	}
}

func TestAtMostSoManyAgentsAtOnce(t *testing.T) {
	var at, most atomic.Int32
	model := newModel()
	var tasks []string
	for i := range 6 {
		p := fmt.Sprint("p", i)
		tasks = append(tasks, fmt.Sprintf(`{"role":"engineer","prompt":%q}`, p))
		model.steps[p] = []step{{text: "ok", before: func(context.Context, provider.Request) error {
			n := at.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			at.Add(-1)
			return nil
		}}}
	}
	model.steps["top"] = []step{call1("task", `{"tasks":[`+strings.Join(tasks, ",")+`]}`), {text: "done"}}
	turn := teamTurn(model, &shells{})
	turn.MaxAgents = 2
	rec := &recorder{}
	if o := rec.play(t.Context(), turn); o.Err != nil {
		t.Fatal(o.Err)
	}
	if most.Load() > 2 {
		t.Errorf("got %d at once, want at most 2", most.Load())
	}
	if n := strings.Count(string(rec.results()[0].Output), "\nok"); n != 6 {
		t.Errorf("got %d reports, want 6", n)
	}
}

func TestCancelReachesSubAgents(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	var waiting sync.WaitGroup
	waiting.Add(2)
	hang := step{before: func(ctx context.Context, _ provider.Request) error {
		waiting.Done()
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	model := newModel()
	model.steps = map[string][]step{
		"top": {call1("task", `{"tasks":[{"role":"engineer","prompt":"a"},{"role":"reviewer","prompt":"b"},{"role":"engineer","prompt":"c"}]}`)},
		"a":   {hang}, "b": {hang}, "c": {hang},
	}
	turn := teamTurn(model, &shells{})
	turn.MaxAgents = 2 // the third waits for its place
	go func() { waiting.Wait(); cancel(stop) }()
	rec := &recorder{}
	o := rec.play(ctx, turn)
	if o.Status != wire.StatusCancelled || !errors.Is(o.Err, stop) {
		t.Errorf("got %+v", o)
	}
	if res := rec.results(); len(res) != 1 || res[0].Status != wire.StatusCancelled {
		t.Errorf("got %+v", res)
	}
	mustBeValid(t, History(rec.events).Messages())
}

// A role with a tool that does not exist was reported only when a turn used it.
func TestCheckSettings(t *testing.T) {
	for tool, want := range map[string]string{
		"read": "", "mcp__x__*": "",
		"raed": `agents.engineer.tools: there is no tool "raed"; there are bash, jobs, read, write, edit, glob, grep, fetch, task, todo, plan, recall`,
	} {
		c := config.Default()
		c.Agents = map[string]config.Agent{Engineer: {Tools: []string{"bash", tool}}}
		got := ""
		if err := CheckSettings(&c); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", tool, got, want)
		}
	}
}

func TestRoles(t *testing.T) {
	project := t.TempDir()
	dir := filepath.Join(project, ".sublet", "agents")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"tester.md":  "---\ndescription: \"writes tests\"\nmodel: openai/gpt-5\ntools: [read, bash]\nread_only: true\n---\nYou test.\n",
		"docs.md":    "---\ntools:\n  - read\n  - write\n---\r\nYou document.",
		"plain.md":   "You are plain.",
		"limited.md": "---\nname: limited\n# brief\nmax_turns: 7\nmax_tokens: 900\nmax_cost: 0.5\ntimeout: 2m\nmode: ask\n---\nYou are brief.",
		"cost.md":    "---\nmax_cost: cheap\n---\nx", "mode.md": "---\ndescription: d\nmode: yolo\n---\nx",
		"item.md": "---\ntools:\n  - read\n  - raed\n---\nx", "key.md": "---\nmax_truns: 3\n---\nx", "kind.md": "---\ntimeout: 30\n---\nx",
		"line.md": "---\nread only\n---\nx", "model.md": "---\nmodel: nobody/x\n---\nx", "model2.md": "---\nmodel: openai\n---\nx",
		"name.md": "---\nname: other\n---\nx", "number.md": "---\nmax_turns: two\n---\nx", "some.md": "---\nread_only: perhaps\n---\nx",
		"time.md": "---\ntimeout: soon\n---\nx", "tools.md": "---\ndescription: d\ntools: [read, Grep]\n---\nx",
		"engineer.md": "I am the engineer now.",
		"mine.md":     "Not yours.",
		"Bad Name.md": "x", "empty.md": "", "open.md": "---\nno end", "notes.txt": "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Agents = map[string]config.Agent{"mine": {Prompt: "Yours.", Model: "a/b", Tools: []string{"read"}}, Engineer: {Model: "big/one", Tools: []string{"read"}}}
	roles, faults := Roles(cfg, project)
	var names []string
	for n := range roles {
		names = append(names, n)
	}
	var said string
	for _, err := range faults {
		said += strings.TrimPrefix(err.Error(), dir+"/") + "\n"
	}
	if want := `Bad Name.md: Bad Name is not the name of a role: small letters, digits, - and _
cost.md:2: max_cost: want a number, found "cheap"
empty.md:1: there is no prompt
item.md:4: tools: there is no tool "raed"; there are bash, jobs, read, write, edit, glob, grep, fetch, task, todo, plan, recall
key.md:2: there is no key "max_truns"; there are description, model, tools, read_only, max_turns, max_tokens, max_cost, timeout, mode, worktree
kind.md:2: timeout: want a duration such as "30s" or "2m", found a value without a unit
line.md:2: "read only" is not of the form key: value
mode.md:3: mode: "yolo" is none of plan, ask, auto
model.md:2: model: no provider "nobody"; there is anthropic, google, offline, ollama, openai
model2.md:2: model: "openai" names a provider but no model; write "openai/NAME"
name.md:2: name: "other" is not the name of the file; a role is called as its file
number.md:2: max_turns: want a whole number, found "two"
open.md:1: the front matter has no end: a line of ---
some.md:2: read_only: want true or false, found "perhaps"
time.md:2: timeout: want a duration such as "30s" or "2m", found "soon"
tools.md:3: tools: there is no tool "Grep"; there are bash, jobs, read, write, edit, glob, grep, fetch, task, todo, plan, recall
`; strings.ReplaceAll(said, dir+"/", "") != want {
		t.Errorf("got %s, want %s", said, want)
	}
	if r := roles["limited"]; r.MaxTurns != 7 || r.MaxTokens != 900 || r.MaxCost != 0.5 || r.Timeout != 2*time.Minute || r.Mode != "ask" {
		t.Errorf("got %+v", r)
	}
	slices.Sort(names)
	if want := []string{"docs", "engineer", "explorer", "limited", "mine", "orchestrator", "plain", "reviewer", "tester"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if r := roles["tester"]; r.Model != "openai/gpt-5" || !r.Private || !r.ReadOnly || r.Description != "writes tests" || r.System != "You test." || !slices.Equal(r.Tools, []string{"read", "bash"}) {
		t.Errorf("got %+v", r)
	}
	if r := roles["docs"]; !slices.Equal(r.Tools, []string{"read", "write"}) || r.System != "You document." {
		t.Errorf("got %+v", r)
	}
	if r := roles["mine"]; r.System != "Yours." || r.Model != "a/b" || !r.Private {
		t.Errorf("got %+v, want the user's, not the project's", r)
	}
	if r := roles[Engineer]; r.Model != "big/one" || strings.Contains(r.System, "now") || !r.Private {
		t.Errorf("got %+v, want ours with the user's model", r)
	}
	if r := roles[Reviewer]; !r.ReadOnly || !r.Private {
		t.Errorf("got %+v", r)
	}
	if roles[Orchestrator].Private {
		t.Error("got a private orchestrator, want one that borrows the user's shell")
	}
}

// A role's own limits hold for its agents: how often they ask a model, how much they say at once, what they cost, how long they
// take, and the mode where it is the stricter one.
func TestRoleLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := 0.3
		work := call1("bash", `{"command":"make"}`)
		work.usage = provider.Usage{Input: 1, CostUSD: &cost}
		model := newModel(
			call1("task", `{"tasks":[{"role":"short","prompt":"short"},{"role":"cheap","prompt":"cheap"},{"role":"quick","prompt":"quick"}]}`),
			step{text: "done"},
		)
		model.steps["short"] = []step{work, work, work}
		model.steps["cheap"] = []step{work, work, work}
		model.steps["quick"] = []step{{before: func(ctx context.Context, _ provider.Request) error { <-ctx.Done(); return context.Cause(ctx) }}}
		turn := teamTurn(model, &shells{})
		turn.Mode, turn.MaxAgents = "auto", 1
		var modes []string
		turn.Approver = approverFunc(func(_ context.Context, q Question) (Decision, error) {
			modes = append(modes, q.Agent+" "+q.Mode)
			return Decision{Allowed: true}, nil
		})
		turn.Roles["short"] = Role{Name: "short", MaxTurns: 2, MaxTokens: 77, Mode: "ask"}
		turn.Roles["cheap"] = Role{Name: "cheap", MaxCost: 0.5}
		turn.Roles["quick"] = Role{Name: "quick", Timeout: time.Minute}
		rec := &recorder{}
		if o := rec.play(t.Context(), turn); o.Err != nil {
			t.Fatal(o.Err)
		}
		results := rec.results()
		report := string(results[len(results)-1].Output)
		for _, want := range []string{"short-1\nfailed: stopped after 2 steps", "the role cheap may cost $0.50 a turn, and has cost $0.60", "quick-1\nfailed: its time ran out"} {
			if !strings.Contains(report, want) {
				t.Errorf("got %q, want %q in it", report, want)
			}
		}
		slices.Sort(modes)
		if want := []string{"cheap-1 ", "cheap-1 ", "orchestrator ", "short-1 ask", "short-1 ask"}; !slices.Equal(modes, want) {
			t.Errorf("got %q, want %q", modes, want)
		}
		for _, r := range model.requests() {
			if short := firstText(r.Messages[0]) == "short"; short != (r.MaxTokens != nil && *r.MaxTokens == 77) || short != strings.Contains(show(r.Messages), "Mode: ask") {
				t.Errorf("got %v in %s", r.MaxTokens, show(r.Messages))
			}
		}
	})
}

// The agents that can be asked further are bounded in number and in what they said and saw together; the oldest go first.
func TestAgentsKeptAreBounded(t *testing.T) {
	text := entry{kind: compaction.Answer, msg: provider.Message{Parts: []provider.Part{{Text: strings.Repeat("x", maxKept/4)}}}}
	image := entry{kind: compaction.Answer, msg: provider.Message{Parts: []provider.Part{{Image: &picture.Image{Data: make([]byte, maxKept/4)}}}}}
	for name, c := range map[string]struct {
		said []entry
		want int
	}{
		"short": {nil, maxMembers}, "text": {[]entry{text}, 3}, "images": {[]entry{image}, 3}, "one too large": {[]entry{text, text, text, text}, 0},
	} {
		var a Agents
		for i := range maxMembers + 1 {
			m := &member{SubAgent: wire.SubAgent{Name: fmt.Sprint(i)}, cancel: func(error) {}}
			a.begin(m)
			a.end(m, Outcome{}, c.said)
		}
		list := a.List()
		if len(list) != c.want || c.want > 0 && list[c.want-1].Name != fmt.Sprint(maxMembers) {
			t.Errorf("%s: kept %+v, want the last %d", name, list, c.want)
		}
	}
}
