package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
)

func task(role, prompt string, background bool) scripted.Step {
	return step("task", map[string]any{"tasks": []any{map[string]any{"role": role, "title": "dig", "prompt": prompt}}, "background": background})
}

func (p *peer) agents(r *wire.AgentsRequest) *wire.AgentsReply {
	p.t.Helper()
	r.RequestID = requestID()
	p.send(r)
	return await(p, func(m *wire.AgentsReply) bool { return m.RequestID == r.RequestID })
}

// reported waits for the turn that reports the end of an agent to the one that started it, and returns its prompt.
func (p *peer) reported(what string) string {
	p.t.Helper()
	return await(p, func(m *wire.TurnStarted) bool {
		return strings.HasPrefix(m.Prompt, "[sent by sublet, not by the user] agent ") && strings.Contains(m.Prompt, what)
	}).Prompt
}

// An agent in the background outlives the turn that started it. Its end wakes the agent that started it, with its report. It can
// then be asked further and remembers its work, also in the next daemon.
func TestAgentInTheBackground(t *testing.T) {
	r := newRig(t)
	gate := filepath.Join(r.dir, "gate")
	r.play(
		scripted.Script{Match: "^go", Steps: []scripted.Step{task("explorer", "dig deep", true), {Text: "meanwhile"}}},
		scripted.Script{Match: "^dig", Steps: []scripted.Step{step("bash", map[string]any{"command": "echo first"}), {WaitFile: gate, Text: "found it"}}},
		scripted.Script{Match: "has ended", Steps: []scripted.Step{{Text: "thanks"}}},
		scripted.Script{Match: "^ask", Steps: []scripted.Step{step("task", map[string]any{"agent": "explorer-1", "prompt": "where"}), {Text: "so there"}}},
		scripted.Script{Match: "^where", Steps: []scripted.Step{{Text: "below"}}},
	)
	p := r.dial(withoutShell, r.there)
	id := p.ask("go")
	if got := string(p.result(id, "task").Output); !strings.HasPrefix(got, "## explorer-1 (dig)\nIt works in the background.") {
		t.Errorf("the model is given %q", got)
	}
	list := p.agents(&wire.AgentsRequest{Op: "list"}).Agents
	if len(list) != 1 || list[0].Name != "explorer-1" || list[0].State != wire.AgentRunning || list[0].SessionID == "" || r.hub.Idle() {
		t.Fatalf("got %+v", list)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	news := p.reported("explorer-1")
	if !strings.Contains(news, "agent explorer-1 (dig) has ended: success. Its report:\n\nfound it\n\n[from the record of its calls]\nCommands (exit code 0 unless another is given):\n- echo first") {
		t.Errorf("told %q", news)
	}
	sessions := func() []wire.SessionInfo {
		list := &wire.SessionRequest{RequestID: requestID(), Op: "list"}
		p.send(list)
		return await(p, func(m *wire.SessionReply) bool { return m.RequestID == list.RequestID }).Sessions
	}
	if got := sessions(); len(got) != 1 || got[0].ID != p.session {
		t.Errorf("listed: %+v", got)
	}
	for range 2 {
		saw := &spy{}
		r.spy.Store(saw)
		got := string(p.result(p.ask("ask"), "task").Output)
		if !strings.Contains(got, "## explorer-1\nbelow\n\n[from the record of its calls]\nno file was changed") {
			t.Errorf("asked further, it reports %q", got)
		}
		saw.mu.Lock()
		if !strings.Contains(saw.text.String(), "Text:dig deep") {
			t.Error("asked further, it does not know what it was asked before")
		}
		saw.mu.Unlock()
		p.close()
		r.close()
		r.start()
		p = r.dial(withoutShell, r.there, inSession(p.session, 0))
	}
	if got := p.agents(&wire.AgentsRequest{Op: "show", Name: "explorer-1"}); !strings.HasPrefix(got.Text, "below") || got.Agents[0].Status != wire.StatusSuccess {
		t.Errorf("shown: %+v", got)
	}
}

// An agent can be ended alone: by the one that started it, from a window, or with its daemon. Its end is reported each time.
func TestAgentEndedAlone(t *testing.T) {
	r := newRig(t)
	never := filepath.Join(r.dir, "never")
	r.play(
		scripted.Script{Match: "^go", Steps: []scripted.Step{task("explorer", "dig deep", true), {Text: "meanwhile"}}},
		scripted.Script{Match: "^wait", Steps: []scripted.Step{task("explorer", "dig deep", false), {Text: "too bad"}}},
		scripted.Script{Match: "^dig", Steps: []scripted.Step{{WaitFile: never, Text: "found it"}}},
		scripted.Script{Match: "^stop", Steps: []scripted.Step{step("task", map[string]any{"agent": "explorer-1", "stop": true}), step("task", map[string]any{"agent": "explorer-9", "stop": true}), {Text: "well"}}},
	)
	p := r.dial(withoutShell, r.there)
	p.ended(p.ask("go"))
	p.ended(p.ask("stop"))
	if got := p.reported("explorer-1"); !strings.Contains(got, "has ended: cancelled, cancelled by the agent that started it") {
		t.Errorf("told %q", got)
	}
	p.ended(p.ask("go"))
	p.agents(&wire.AgentsRequest{Op: "stop", Name: "explorer-2"})
	if got := p.reported("explorer-2"); !strings.Contains(got, "has ended: cancelled, cancelled by client test") {
		t.Errorf("told %q", got)
	}
	// A turn that waits for the agent continues.
	id := p.ask("wait")
	await(p, func(m *wire.AgentStreamChunk) bool {
		return m.Agent == "explorer-3" && strings.HasPrefix(m.Chunk.Text, "started")
	})
	p.agents(&wire.AgentsRequest{Op: "stop", Name: "explorer-3"})
	if got := p.result(id, "task"); !strings.Contains(string(got.Output), "failed: cancelled by client test") || p.ended(id).Status != wire.StatusSuccess {
		t.Errorf("got %s %q", got.Status, got.Output)
	}
	p.ended(p.ask("go"))
	p.close()
	r.close()
	r.start()
	p = r.dial(withoutShell, r.there, inSession(p.session, 0))
	if got := p.reported("explorer-4"); !strings.Contains(got, "the daemon was stopped") {
		t.Errorf("told %q", got)
	}
	bad := &wire.AgentsRequest{RequestID: requestID(), Op: "stop", Name: "nobody-1"}
	p.send(bad)
	if got := p.refused(bad.RequestID); got.Code != wire.CodeInvalidMessage {
		t.Errorf("got %+v", got)
	}
}

// An agent in the background asks in the windows of the session that started it, with that session's mode and rules.
func TestAgentInTheBackgroundAsks(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(r.dir, "made")
	r.play(
		scripted.Script{Match: "^go", Steps: []scripted.Step{task("engineer", "make it", true), {Text: "meanwhile"}}},
		scripted.Script{Match: "^make", Steps: []scripted.Step{step("write", map[string]any{"path": file, "content": "x"}), {Text: "made"}}},
	)
	p := r.dial(withoutShell, r.there)
	p.policy(&wire.PolicyRequest{Op: "set_mode", Mode: "ask"})
	p.ended(p.ask("go"))
	q := question(p, anyQuestion)
	if q.Parent != p.session || q.SessionID == p.session || q.Agent != "engineer-1" {
		t.Fatalf("question: %+v", q)
	}
	late := r.dial(withoutShell, r.there, inSession(p.session, -1))
	question(late, func(m *wire.ConfirmationRequest) bool { return m.ConfirmationID == q.ConfirmationID })
	late.answer(q, wire.DecisionAllow)
	p.resolved(q)
	if got := p.reported("engineer-1"); !strings.Contains(got, "Files changed:\n- "+file) {
		t.Errorf("told %q", got)
	}
}

// An agent in the background cannot end plan mode, which is the mode of the session that started it.
func TestAgentInTheBackgroundPlans(t *testing.T) {
	r := newRig(t,
		scripted.Script{Match: "^go", Steps: []scripted.Step{task("planner", "make it", true), {Text: "meanwhile"}}},
		scripted.Script{Match: "^make", Steps: []scripted.Step{proposal("write it"), {Text: "no way"}}},
		scripted.Script{Match: "has ended", Steps: []scripted.Step{{Text: "thanks"}}},
	)
	r.set(func(c *config.Config) {
		c.Agents = map[string]config.Agent{"planner": {Description: "plans", Prompt: "Plan."}}
	})
	p := r.dial(withoutShell, r.there)
	p.policy(&wire.PolicyRequest{Op: "set_mode", Mode: "plan"})
	p.ended(p.ask("go"))
	m := await(p, func(m wire.Message) bool {
		_, asked := m.(*wire.ConfirmationRequest)
		news, ok := m.(*wire.TurnStarted)
		return asked || ok && strings.Contains(news.Prompt, "planner-1 (dig) has ended: success")
	})
	if q, ok := m.(*wire.ConfirmationRequest); ok {
		t.Errorf("the user is asked: %+v", q)
	}
}

// An agent whose turn waited for it is asked further in a later turn.
func TestAgentAskedFurther(t *testing.T) {
	r := newRig(t,
		scripted.Script{Match: "^go", Steps: []scripted.Step{task("explorer", "dig deep", false), {Text: "good"}}},
		scripted.Script{Match: "^dig", Steps: []scripted.Step{{Text: "found it"}}},
		scripted.Script{Match: "^ask", Steps: []scripted.Step{step("task", map[string]any{"agent": "explorer-1", "prompt": "where"}), step("task", map[string]any{"agent": "explorer-2", "prompt": "where"}), {Text: "so there"}}},
		scripted.Script{Match: "^where", Steps: []scripted.Step{{Text: "below"}}},
	)
	p := r.dial(withoutShell, r.there)
	p.ended(p.ask("go"))
	id := p.ask("ask")
	if got := string(p.result(id, "task").Output); !strings.Contains(got, `there is no agent "explorer-2"`) {
		t.Errorf("got %q", got)
	}
	if !has(p, func(m *wire.CommandResult) bool { return strings.Contains(string(m.Output), "## explorer-1\nbelow") }) {
		t.Errorf("it was not asked further\n%s", p.story())
	}
	p.sessions(&wire.SessionRequest{Op: "clear"}) // its conversation is gone with that of the session
	p.ended(p.ask("ask"))
	if !has(p, func(m *wire.CommandResult) bool {
		return strings.Contains(string(m.Output), `there is no agent "explorer-1"`)
	}) {
		t.Errorf("it was asked further after a clear\n%s", p.story())
	}
}

// An agent whose role has a working tree changes nothing in the project until its changes are merged, from the window.
func TestAgentInAWorkingTree(t *testing.T) {
	r := newRig(t,
		scripted.Script{Match: "^go", Steps: []scripted.Step{task("engineer", "make it", false), {Text: "see"}}},
		scripted.Script{Match: "^make", Steps: []scripted.Step{step("write", map[string]any{"path": "made", "content": "x\n"}), {Text: "made"}}},
	)
	repo := filepath.Join(r.dir, "proj")
	for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	r.set(func(c *config.Config) { c.Agents = map[string]config.Agent{"engineer": {Worktree: true}} })
	p := r.dial(withoutShell, r.there, func(env *wire.EnvSnapshot) { env.Cwd = wire.OSString(repo) })
	made := filepath.Join(repo, "made")
	for _, c := range []struct {
		op, name string
		there    bool
	}{{"drop", "engineer-1", false}, {"merge", "engineer-2", true}} {
		if got := string(p.result(p.ask("go"), "task").Output); !strings.Contains(got, "/agents merge "+c.name+", or drop]\ndiff --git") || !strings.Contains(got, "+x") {
			t.Fatalf("reported %q", got)
		}
		if _, err := os.Stat(made); err == nil {
			t.Error("it is in the project before it was merged")
		}
		if got := p.agents(&wire.AgentsRequest{Op: "show", Name: c.name}).Text; strings.Count(got, "diff --git") != 1 {
			t.Errorf("shown: %q", got)
		}
		a := p.agents(&wire.AgentsRequest{Op: c.op, Name: c.name}).Agents[0]
		if _, err := os.Stat(string(a.Worktree)); err == nil {
			t.Errorf("%s: the working tree is still there", c.op)
		}
		if _, err := os.Stat(made); (err == nil) != c.there {
			t.Errorf("%s: in the project: %v, want %v", c.op, err == nil, c.there)
		}
	}
	again := &wire.AgentsRequest{RequestID: requestID(), Op: "merge", Name: "engineer-2"}
	p.send(again)
	if got := p.refused(again.RequestID); !strings.Contains(got.Message, "has no working tree") {
		t.Errorf("got %+v", got)
	}
}

// With a session go those that its agents in the background had: they stood in the list of sessions from then on.
func TestAgentsGoWithTheirSession(t *testing.T) {
	r := newRig(t)
	r.play(
		scripted.Script{Match: "^go", Steps: []scripted.Step{task("explorer", "dig deep", true), {Text: "meanwhile"}}},
		scripted.Script{Match: "^dig", Steps: []scripted.Step{{Text: "found it"}}},
		scripted.Script{Match: "has ended", Steps: []scripted.Step{{Text: "thanks"}}},
	)
	p := r.dial(withoutShell, r.there)
	p.ask("go")
	await(p, func(m *wire.AgentComplete) bool { return m.Summary == "thanks" })
	p.sessions(&wire.SessionRequest{Op: "delete", SessionID: &p.session})
	if list := p.sessions(&wire.SessionRequest{Op: "list"}).Sessions; len(list) > 0 {
		t.Errorf("left: %+v", list)
	}
	if hits := p.sessions(&wire.SessionRequest{Op: "search", Query: "deep"}).Hits; len(hits) > 0 {
		t.Errorf("found: %+v", hits)
	}
}
