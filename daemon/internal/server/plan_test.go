package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
)

func step(name string, args any) scripted.Step {
	text, _ := json.Marshal(args) // no other kinds: no error
	return scripted.Step{ToolCalls: []scripted.Call{{Name: name, Arguments: text}}}
}

func proposal(items ...string) scripted.Step { return step("plan", map[string]any{"items": items}) }

// result waits for the result of the newest call of a tool in a request's turn.
func (p *peer) result(id wire.RequestID, tool string) *wire.CommandResult {
	p.t.Helper()
	p.ended(id)
	var found *wire.CommandResult
	for _, m := range p.all() {
		if res, ok := m.(*wire.CommandResult); ok && res.RequestID == id && res.Tool == tool {
			found = res
		}
	}
	if found == nil {
		p.t.Fatalf("no result of %s\n%s", tool, p.story())
	}
	return found
}

// Plan mode ends with the tool plan: the plan that the user accepted, as they edited it, is carried out in the same turn with the
// tools of the mode that holds then, and it is the session's plan after the turn, a compaction, and in another daemon.
func TestPlanAccepted(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(r.dir, "new.txt")
	r.play(
		scripted.Script{Match: "go", Steps: []scripted.Step{
			step("write", map[string]string{"path": file, "content": "too early"}),
			proposal("look", "write it"), step("write", map[string]string{"path": file, "content": "planned"}),
			{Text: "done"},
		}},
		scripted.Script{Match: "which plan", Steps: []scripted.Step{step("todo", struct{}{}), {Text: "that"}}},
	)
	asking(r)
	p := r.dial(withoutShell, r.there)
	p.policy(&wire.PolicyRequest{Op: "set_mode", Mode: "plan"})
	id := p.ask("go")
	q := question(p, func(m *wire.ConfirmationRequest) bool { return m.Tool == wire.ToolPlan })
	if q.Preview.Content != "1. look\n2. write it" || !strings.Contains(q.Verdict.Reasons[0].Text, "ask mode") {
		t.Errorf("question: %+v", q)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was written in plan mode")
	}
	empty := wire.OSString(" \n2. \n")
	p.answer(q, wire.DecisionAllow, func(a *wire.ConfirmationResponse) { a.EditedCommand = &empty }) // it stays open
	edited := wire.OSString("1. look\n2. ask\n\n3. write it")
	p.answer(q, wire.DecisionAllow, func(a *wire.ConfirmationResponse) { a.EditedCommand = &edited })
	p.answer(question(p, func(m *wire.ConfirmationRequest) bool { return m.Tool == "write" }), wire.DecisionAllow)
	if end := p.ended(id); end.Status != wire.StatusSuccess {
		t.Fatalf("%s\n%s", end.Status, p.story())
	}
	if got := string(p.result(id, "plan").Output); !strings.Contains(got, "changed the plan") || !strings.HasSuffix(got, "\n[ ] look\n[ ] ask\n[ ] write it") {
		t.Errorf("the model is given %q", got)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "planned" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if mode := p.policy(&wire.PolicyRequest{Op: "get"}).Mode; mode != "ask" {
		t.Errorf("the mode is %s", mode)
	}
	compact := requestID()
	p.send(&wire.CompactRequest{RequestID: compact, Op: "run"})
	await(p, func(m *wire.CompactionComplete) bool { return m.RequestID == compact })
	p.close()
	r.close()
	r.start()
	p = r.dial(withoutShell, r.there, inSession(p.session, 0))
	foreign, byHand := requestID(), requestID()
	p.send(&wire.ToolRequest{RequestID: foreign, Tool: "todo", Arguments: "{}", Borrower: wire.Borrower{Name: "codex"}})
	p.send(&wire.ToolRequest{RequestID: byHand, Tool: "todo", Arguments: "{}"})
	for _, id := range []wire.RequestID{foreign, byHand, p.ask("which plan")} {
		if got := string(p.result(id, "todo").Output); got != "[ ] look\n[ ] ask\n[ ] write it" {
			t.Errorf("the next daemon has the plan %q", got)
		}
	}
}

// A plan that nobody accepted leaves the mode and the session's plan as they were; what the user wants changed goes to the model.
func TestPlanNotAccepted(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []func(*wire.EnvSnapshot)
		comment string
		want    string
	}{
		{"no", nil, "", "denied by the user. Change nothing"},
		{"with a comment", nil, "tests first", "says: tests first"},
		{"nobody there", []func(*wire.EnvSnapshot){script}, "", "nobody is attached who could accept it. Change nothing"},
	} {
		r := newRig(t, scripted.Script{Match: ".", Steps: []scripted.Step{proposal("a"), step("todo", struct{}{}), {Text: "well"}}})
		asking(r)
		p := r.dial(append([]func(*wire.EnvSnapshot){withoutShell}, c.options...)...)
		id := p.ask("go", func(a *wire.AgentRequest) { a.Options.Mode = "plan" })
		if c.options == nil {
			p.answer(question(p, anyQuestion), wire.DecisionDeny, func(a *wire.ConfirmationResponse) { a.Comment = c.comment })
		}
		if got := p.result(id, "plan"); got.Status != wire.StatusDenied || !strings.Contains(string(got.Output), c.want) {
			t.Errorf("%s: the model is given %s %q", c.name, got.Status, got.Output)
		}
		if got := string(p.result(id, "todo").Output); got != "The plan is empty." {
			t.Errorf("%s: the plan is %q", c.name, got)
		}
	}
}

// Outside plan mode the tool is not offered. If the role keeps plan mode on, the question and the result say so.
func TestPlanTool(t *testing.T) {
	r := newRig(t, scripted.Script{Match: ".", Steps: []scripted.Step{proposal("a"), {Text: "well"}}})
	asking(r)
	p := r.dial(withoutShell)
	if got := p.result(p.ask("go"), "plan"); !strings.Contains(string(got.Output), "not in this agent's allow-list") {
		t.Errorf("got %q", got.Output)
	}
	r.set(func(c *config.Config) { c.Agents = map[string]config.Agent{"orchestrator": {Mode: "plan"}} })
	id := p.ask("go")
	q := question(p, anyQuestion)
	p.answer(q, wire.DecisionAllow)
	if got := string(p.result(id, "plan").Output); !strings.Contains(q.Verdict.Reasons[0].Text, "plan mode stays on") || !strings.Contains(got, "keep plan mode on") {
		t.Errorf("got %+v and %q", q.Verdict, got)
	}
}
