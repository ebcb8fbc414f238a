package agent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// unthinking is messages without the model's reasoning, which no later turn repeats.
func unthinking(messages []provider.Message) []provider.Message {
	var out []provider.Message
	for _, m := range messages {
		kept := provider.Message{Role: m.Role}
		for _, p := range m.Parts {
			if p.Reasoning == nil {
				kept.Parts = append(kept.Parts, p)
			}
		}
		out = append(out, kept)
	}
	return out
}

// Each request begins with the whole request before it, within a turn and from turn to turn, so that the provider's cache
// holds: also after a cd, an attachment, commands of the user's and changed instructions.
func TestRequestsRepeatTheirPrefix(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("AGENTS.md", "Use tabs.")
	put("note.txt", "attached text")
	if err := os.WriteFile(filepath.Join(dir, "pic.png"), pngOf(t, 3, 3), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	put("file.txt", "x")
	if out, err := exec.Command("git", "-C", dir, "add", "file.txt").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	sh := &stubTool{name: "sh", run: func(context.Context, tool.Action, func([]byte)) (tool.Result, error) {
		return tool.Result{Content: "[now in " + sub + "]", Cwd: sub}, nil
	}}
	model := newModel(
		step{reasoning: "hm", calls: []provider.ToolCall{calling("1", "sh", `{"command":"cd sub"}`), calling("2", "sh", `{"command":"ls"}`)}}, step{text: "One."},
		step{text: "Two."}, call1("sh", `{"command":"ls"}`), step{text: "Three."}, step{text: "Four."},
	)
	rec := &recorder{}
	turn := Turn{
		Model: model, Prompt: "one", Tools: []tool.Tool{sh}, Env: tool.Env{Cwd: dir},
		Attachments: []wire.Attachment{{Path: "note.txt"}, {Path: "pic.png"}},
		Place: Place{
			Trusted: func(string) bool { return true }, GitTime: time.Minute, Mode: "auto",
			Environ: func() map[string]string { return map[string]string{"VIRTUAL_ENV": "/v"} },
		},
	}
	rec.play(t.Context(), turn)
	put("AGENTS.md", "Use spaces.")
	put("new.txt", "")
	one := 1
	rec.turn = ""
	rec.emit(&wire.CommandResult{Command: "make", ExitCode: &one, OutputTail: []byte("boom")})
	turn.Prompt, turn.Attachments, turn.Env.Cwd = "two", nil, sub
	turn.Context.RecentCommands = []wire.RecentCommand{{Command: "make", ExitCode: &one, OutputTail: []byte("boom")}}
	rec.play(t.Context(), turn)
	turn.Prompt = "three"
	rec.play(t.Context(), turn)
	turn.Prompt, turn.Mode = "four", "plan"
	rec.play(t.Context(), turn)

	requests := model.requests()
	if len(requests) != 6 {
		t.Fatalf("got %d requests", len(requests))
	}
	for i, req := range requests[1:] {
		before, now := unthinking(requests[i].Messages), unthinking(req.Messages)
		if len(now) < len(before) || !reflect.DeepEqual(now[:len(before)], before) {
			t.Errorf("request %d does not begin with the one before:\n%s\nbefore:\n%s", i+1, show(now), show(before))
		}
		if req.System != requests[0].System || !reflect.DeepEqual(req.Tools, requests[0].Tools) {
			t.Errorf("request %d has another system prompt or other tools", i+1)
		}
	}
	for i, want := range map[int][]string{
		0: {"Working directory: " + dir + "\n", "Git: branch ", "Python environment: /v", "Mode: auto", "Use tabs.", "attached text"},
		2: {"Git: ", "Use spaces.", "The user ran `make` (exit code 1):\nboom"},
		5: {"Mode: plan"},
	} {
		for _, w := range want {
			if got := beside(requests[i]); strings.Count(got, w) != 1 {
				t.Errorf("request %d: got %q, want %q once", i, got, w)
			}
		}
	}
	if got := beside(requests[3]); got != "" {
		t.Errorf("nothing changed, but the third prompt came with %q", got)
	}
	if got := beside(requests[5]); strings.Count(got, "\n") != 2 {
		t.Errorf("only the mode changed, but the fourth prompt came with %q", got)
	}
}

// A conversation that continues in another folder, or with another shell, corrects what earlier messages reported: the directory that a
// command had entered, and the toolchain and commands of a folder that was left.
func TestSituationThatNoLongerHolds(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("all:\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	sh := &stubTool{name: "sh", run: func(context.Context, tool.Action, func([]byte)) (tool.Result, error) {
		return tool.Result{Content: "[now in " + other + "]", Cwd: other}, nil
	}}
	model := newModel(call1("sh", `{"command":"cd"}`), step{text: "One."}, step{text: "Two."}, step{text: "Three."}, step{text: "Four."})
	rec := &recorder{}
	turn := Turn{
		Model: model, Prompt: "one", Tools: []tool.Tool{sh}, Env: tool.Env{Cwd: dir},
		Place: Place{Project: dir, Environ: func() map[string]string { return map[string]string{"VIRTUAL_ENV": "/v"} }},
	}
	rec.play(t.Context(), turn)
	turn.Prompt, turn.Environ = "two", nil // no client began it: the variables are not known
	rec.play(t.Context(), turn)
	turn.Prompt, turn.Env.Cwd, turn.Project = "three", other, other
	turn.Environ = func() map[string]string { return map[string]string{"HOME": "/"} }
	rec.play(t.Context(), turn)
	turn.Prompt = "four"
	rec.play(t.Context(), turn)
	requests := model.requests()
	for i, want := range map[int]string{
		2: situationHead + "Working directory: " + dir + "\n",
		3: situationHead + "Working directory: " + other + "\nProject: " + other + "\nCommands of Makefile: none\nPython environment: none\n",
		4: "",
	} {
		if got := beside(requests[i]); got != want {
			t.Errorf("request %d: got %q, want %q", i, got, want)
		}
	}
}

// What the user says while a turn runs goes with the results of the next calls, or is a prompt of its own after an answer; a later
// turn derives the same from the events.
func TestSteering(t *testing.T) {
	model := newModel(call1("sh", `{"command":"a"}`), step{text: "Almost."}, step{text: "Done."}, step{text: "Yes."})
	rec := &recorder{}
	words := [][]string{{"faster", "never push"}, {"and then?"}, nil}
	turn := Turn{Model: model, Prompt: "go", Tools: []tool.Tool{&stubTool{name: "sh"}}, Env: tool.Env{Cwd: "/w"}}
	turn.Steering = func() []*wire.TurnSteered {
		if len(words) == 0 {
			return nil
		}
		var out []*wire.TurnSteered
		for _, w := range words[0] {
			m := &wire.TurnSteered{Prompt: w}
			rec.emit(m)
			out = append(out, m)
		}
		words = words[1:]
		return out
	}
	if o := rec.play(t.Context(), turn); o.Err != nil || o.Summary != "Done." {
		t.Errorf("ended with %+v", o)
	}
	turn.Prompt = "more"
	rec.play(t.Context(), turn)
	requests := model.requests()
	for i, req := range requests[1:] {
		mustBeValid(t, req.Messages)
		if before := requests[i].Messages; len(req.Messages) < len(before) || !reflect.DeepEqual(req.Messages[:len(before)], before) {
			t.Errorf("request %d does not begin with the one before:\n%s", i+1, show(req.Messages))
		}
	}
	last := show(requests[3].Messages)
	for _, want := range []string{
		`user: result(ran a) "The user says, while you work:\nfaster" "The user says, while you work:\nnever push"`,
		"assistant: \"Almost.\"\nuser: \"and then?\"\nassistant: \"Done.\"\n",
	} {
		if !strings.Contains(last, want) {
			t.Errorf("got\n%s\nwant %s", last, want)
		}
	}
	if limits := (&runner{t: turn, entries: History(rec.events).entries}).userLimits(); len(limits) != 1 || limits[0] != "never push" {
		t.Errorf("got the limits %q", limits)
	}
}

// After its last step a turn takes in nothing, since no request follows that would answer it.
func TestNoSteeringAfterTheLastStep(t *testing.T) {
	turn := Turn{Model: newModel(call1("sh", `{"command":"a"}`), step{text: "Done."}), Prompt: "go", Tools: []tool.Tool{&stubTool{name: "sh"}}, Bounds: Bounds{MaxSteps: 2}}
	taken := 0
	turn.Steering = func() []*wire.TurnSteered { taken++; return nil }
	if o := (&recorder{}).play(t.Context(), turn); o.Err != nil || taken != 1 {
		t.Errorf("took in prompts %d times, want once, after the first step; ended with %v", taken, o.Err)
	}
}

// What is folded away in the middle of a turn is added again, once, and a later turn derives the same from the events.
func TestSituationAfterACompaction(t *testing.T) {
	model := newModel(step{text: "One."})
	model.info.ContextWindow = 3000
	model.info.Kind = config.KindOffline // folds by rules, without a request
	for range 12 {
		model.steps[""] = append(model.steps[""], step{text: strings.Repeat("word ", 200), calls: call1("sh", `{"command":"make"}`).calls})
	}
	model.steps[""] = append(model.steps[""], step{text: "Two."})
	sh := &stubTool{name: "sh", run: func(context.Context, tool.Action, func([]byte)) (tool.Result, error) {
		return tool.Result{Content: "ok"}, nil
	}}
	rec := &recorder{}
	turn := Turn{Model: model, Prompt: "first", Env: tool.Env{Cwd: "/w"}, Tools: []tool.Tool{sh}}
	turn.Jobs = func() string { return "j1 `make`" }
	rec.play(t.Context(), turn)
	turn.Prompt, turn.Env.Cwd = "second", "/x"
	rec.play(t.Context(), turn)
	folded := 0
	for _, ev := range rec.events {
		if c, ok := ev.(*wire.CompactionComplete); ok && c.Status == wire.StatusSuccess {
			if folded++; !slices.Equal(c.Ledger.Jobs, []string{"j1 `make`"}) {
				t.Errorf("the ledger has the jobs %q", c.Ledger.Jobs)
			}
		}
	}
	requests := model.requests()
	last := requests[len(requests)-1]
	if n := strings.Count(texts(last), "Working directory: /x"); n != 1 || folded == 0 {
		t.Errorf("after %d compactions the directory is told %d times, want 1:\n%s", folded, n, show(last.Messages))
	}
	if again := texts(provider.Request{Messages: History(rec.events).Messages()}); strings.Count(again, "Working directory: /x") != 1 {
		t.Errorf("the conversation derived from the events tells the directory otherwise:\n%s", again)
	}
}

func texts(req provider.Request) string {
	var b strings.Builder
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			b.WriteString(p.Text + "\n")
		}
	}
	return b.String()
}

// In plan mode nothing is offered that writes. The tools of MCP servers were, though each call of one was refused; and a call of write
// was refused as if the role had no such tool.
func TestPlanModeOffersNothingThatWrites(t *testing.T) {
	model := newModel(call1("write", `{}`), step{text: "ok"})
	tools := append(Tools(config.Default(), nil), &stubTool{name: "mcp__issues__close"})
	turn := Turn{Model: model, Prompt: "x", Place: Place{Mode: "plan"}, Env: tool.Env{Cwd: "/w"}, Tools: tools}
	(&recorder{}).play(t.Context(), turn)
	for _, s := range model.requests()[0].Tools {
		if s.Name == "write" || s.Name == "edit" || s.Name == "mcp__issues__close" {
			t.Errorf("plan mode offers %s", s.Name)
		}
	}
	if got := sentResults(model.requests()[1])[0]; !strings.Contains(got, "write is not available in plan mode") {
		t.Errorf("got %q", got)
	}
}

// A language server is not started for an agent that changes no file.
func TestOpensFilesOnlyForChanges(t *testing.T) {
	for mode, want := range map[string]bool{"plan": false, "ask": true} {
		env := tool.Env{Cwd: "/w", Opened: func(string, []byte) {}}
		r := newRunner(complete(Turn{Model: newModel(), Place: Place{Mode: mode}, Env: env, Tools: Tools(config.Default(), nil)}))
		if got := r.environment().Opened != nil; got != want {
			t.Errorf("in %s mode files are opened: %v", mode, got)
		}
	}
}

// maxFirstRequest bounds what a session's first request costs before the user has said anything, in bytes.
const maxFirstRequest = 14 << 10

var update = flag.Bool("update", false, "write testdata/first-request.txt anew")

// The first request to a model is the one in testdata, but for who and when.
func TestFirstRequest(t *testing.T) {
	roles, _ := Roles(config.Default(), "")
	got, size := "", 0
	for _, p := range Preview(t.Context(), complete(Turn{
		Role: roles[Orchestrator], Team: Team{Roles: roles}, Model: newModel(), Prompt: "hello", Place: Place{Project: "/home/user/project", Mode: "auto", Shell: "bash 5.2"}, Env: tool.Env{Cwd: "/home/user/project"},
		Tools: Tools(config.Default(), roles),
	})) {
		got += "── " + p.Name + "\n" + p.Text + "\n"
		size += len(p.Name) + len(p.Text)
	}
	if size > maxFirstRequest {
		t.Errorf("the first request has %d bytes, want at most %d", size, maxFirstRequest)
	}
	got = regexp.MustCompile(`(?m)^(User|Date|System): .*$`).ReplaceAllString(got, "$1: …")
	const file = "testdata/first-request.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the first request is not that of %s (go test ./daemon/internal/agent -run FirstRequest -update writes it):\n%s", file, got)
	}
}

// beside is what the newest message of a request says beside the prompt.
func beside(req provider.Request) string {
	var b strings.Builder
	for _, p := range req.Messages[len(req.Messages)-1].Parts[1:] {
		b.WriteString(p.Text + "\n")
	}
	return b.String()
}

// D4 to D6, D9.
func TestWhatGoesWithThePrompt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		".git/HEAD": "", "AGENTS.md": "Use tabs.", "sub/.sublet.md": "Here be dragons.", "note.txt": "attached text", "pic.png": "\x89PNG\r\n\x1a\n\x00",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside.md")
	if err := os.WriteFile(outside, []byte("from outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("AGENTS.md", filepath.Join(dir, "CLAUDE.md")), os.Symlink(outside, filepath.Join(dir, "sub/AGENTS.md"))); err != nil {
		t.Fatal(err)
	}
	one := 1
	model := newModel(step{text: "ok"}, step{text: "ok"}, step{text: "ok"}, step{text: "ok"})
	turn := Turn{
		Model: model, Prompt: "why?", Env: tool.Env{Cwd: filepath.Join(dir, "sub")},
		Attachments: []wire.Attachment{{Path: "../note.txt"}, {Path: "../pic.png"}},
		Context: wire.RequestContext{
			RecentCommands: []wire.RecentCommand{{Command: "make", ExitCode: &one, OutputTail: []byte("\x1b[31mError 2\x1b[0m\r\n")}},
			OpenFiles:      []wire.OSString{"/x/main.go"},
		},
	}
	(&recorder{}).play(t.Context(), turn)
	if told := beside(model.requests()[0]); strings.Contains(told, "tabs") || strings.Contains(told, "dragons") {
		t.Errorf("in a folder that is not trusted: got %s", told)
	}
	turn.Trusted = func(at string) bool { return filepath.Base(at) == "sub" }
	(&recorder{}).play(t.Context(), turn)
	if told := beside(model.requests()[1]); strings.Contains(told, "tabs") || !strings.Contains(told, "dragons") {
		t.Errorf("where only the folder below is trusted: got %s", told)
	}
	turn.Trusted = func(string) bool { return true }
	rec := &recorder{}
	rec.play(t.Context(), turn)
	req := model.requests()[2]
	parts := req.Messages[0].Parts
	if parts[0].Text != "why?" {
		t.Errorf("got first part %q, want the prompt itself", parts[0].Text)
	}
	all := show(req.Messages) + fmt.Sprint(parts)
	for _, want := range []string{"attached text", "pic.png (a PNG image with a broken header)", "`make` (exit code 1):\nError 2", "/x/main.go"} {
		if !strings.Contains(all, want) {
			t.Errorf("got %s, want %q in it", all, want)
		}
	}
	if strings.Contains(all, "\x1b") {
		t.Error("got control sequences")
	}
	for want, n := range map[string]int{"\nShell: bash, a private one": 1, "Use tabs.": 1, "Here be dragons.": 1, "from outside": 0, "Working directory: " + dir + "/sub\n": 1} {
		if got := strings.Count(beside(req), want); got != n {
			t.Errorf("got %q %d times, want %d", want, got, n)
		}
	}
	if f := req.Facts.RecentCommands; len(f) != 1 || f[0].OutputTail != "Error 2\n" {
		t.Errorf("got facts %+v", f)
	}
	// instruction files are read again.
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Use spaces."), 0o644); err != nil {
		t.Fatal(err)
	}
	turn.Shell = "zsh 5.9"
	rec.play(t.Context(), turn)
	told := beside(model.requests()[3])
	for _, want := range []string{"Use spaces.", "Shell: zsh 5.9, the user's own;"} {
		if !strings.Contains(told, want) {
			t.Errorf("got %s, want %q in it", told, want)
		}
	}
	for _, again := range []string{"Here be dragons.", "Working directory", "Error 2"} {
		if strings.Contains(told, again) {
			t.Errorf("got %s, where %q was told before", told, again)
		}
	}
}

// D5: the newest output goes along where no command brought its own, also beside commands that did not.
func TestRecentOutputGoesAlong(t *testing.T) {
	one := 1
	for _, c := range []struct {
		tail string
		want bool
	}{{"", true}, {"its own output", false}} {
		model := newModel(step{text: "ok"})
		(&recorder{}).play(t.Context(), Turn{
			Model: model, Prompt: "why?", Env: tool.Env{Cwd: t.TempDir()},
			Context: wire.RequestContext{
				RecentCommands: []wire.RecentCommand{{Command: "cargo test", ExitCode: &one, OutputTail: []byte(c.tail)}}, RecentOutput: []byte("thread 'main' panicked at..."),
			},
		})
		all := show(model.requests()[0].Messages) + fmt.Sprint(model.requests()[0].Messages[0].Parts)
		if !strings.Contains(all, "cargo test") || strings.Contains(all, "thread 'main' panicked") != c.want {
			t.Errorf("output %q: got %s", c.tail, all)
		}
	}
}

func TestSecretsDoNotReachTheModel(t *testing.T) {
	key := "ghp_" + strings.Repeat("a1B2", 9)
	sh := &stubTool{name: "sh", run: func(context.Context, tool.Action, func([]byte)) (tool.Result, error) {
		return tool.Result{Content: "token is " + key}, nil
	}}
	model := newModel(call1("sh", `{}`), step{text: "ok"})
	rec := &recorder{}
	rec.play(t.Context(), Turn{Model: model, Prompt: "use " + key, Tools: []tool.Tool{sh}})
	if s := show(model.requests()[1].Messages); strings.Contains(s, key) {
		t.Errorf("got the key in\n%s", s)
	}
}
