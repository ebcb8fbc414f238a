package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
	"sublet/wire/jsonview"
)

func outcome(t *testing.T, r *wire.PolicyReply, mode string) wire.PolicyOutcome {
	t.Helper()
	i := slices.IndexFunc(r.Outcomes, func(o wire.PolicyOutcome) bool { return o.Mode == mode })
	if i < 0 {
		t.Fatalf("no outcome for %s in %+v", mode, r.Outcomes)
	}
	return r.Outcomes[i]
}

// A command is judged as an agent's would be: in the live shell's folder, with its aliases, by the rules in force and by
// what a project's file narrows; nothing runs and nothing is lent.
func TestPolicyTest(t *testing.T) {
	r := newRig(t)
	asking(r)
	p := r.dial()
	p.send(&wire.ShellState{
		Digest: "x", Cwd: "/w", Aliases: map[string]wire.OSString{"deploy": "git push --force"},
		Env: wire.EnvChange{Set: map[string]wire.OSString{}, Unset: []string{}},
	})
	p.policy(&wire.PolicyRequest{Op: "add", Rule: &wire.Rule{Decision: "allow", Pattern: "bash: make *", Scope: "session"}})
	p.policy(&wire.PolicyRequest{Op: "add", Rule: &wire.Rule{Decision: "deny", Pattern: "bash: git push *", Scope: "session"}})
	for command, want := range map[string]struct{ level, ask, full, rule string }{
		"ls":             {"low", "allow", "allow", ""},
		"make all":       {"medium", "allow", "allow", "bash: make *"},
		"go test ./...":  {"medium", "ask", "allow", ""},
		"sudo ls":        {"high", "ask", "allow", ""},
		"rm -rf /":       {"critical", "ask", "ask", ""},
		"deploy":         {"critical", "deny", "deny", "bash: git push *"},
		"ls; git push x": {"high", "deny", "deny", "bash: git push *"},
	} {
		got := p.policy(&wire.PolicyRequest{Op: "test", Command: wire.OSString(command)})
		if got.Verdict == nil || got.Verdict.Level != want.level {
			t.Errorf("%q: got %+v, want %s", command, got.Verdict, want.level)
			continue
		}
		if slices.ContainsFunc(got.Outcomes, func(o wire.PolicyOutcome) bool { return o.Mode == "auto" }) {
			t.Errorf("%q: says what auto would do, which is not offered where nothing holds commands", command)
		}
		for mode, decision := range map[string]string{"ask": want.ask, "full": want.full} {
			if o := outcome(t, got, mode); o.Decision != decision || decision == want.ask && mode == "ask" && o.Rule != want.rule || o.Why == "" {
				t.Errorf("%q in %s mode: got %+v, want %s by %q", command, mode, o, decision, want.rule)
			}
		}
	}
	nothingLent(t, p)
	// Another client, without a shell, judges in the shell last typed in.
	other := r.dial(script)
	if got := other.policy(&wire.PolicyRequest{Op: "test", Command: "deploy", Live: true}); got.Verdict.Level != "critical" {
		t.Errorf("live: got %+v, want the alias judged", got.Verdict)
	}
	if got := other.policy(&wire.PolicyRequest{Op: "test", Command: "deploy"}); got.Verdict.Level != "high" {
		t.Errorf("fresh: got %+v, want a program that is not known", got.Verdict)
	}
	id := requestID()
	other.send(&wire.PolicyRequest{RequestID: id, Op: "test", Command: "ls", Cwd: "relative"})
	if e := await(other, func(m *wire.Error) bool { return m.RequestID == id }); e.Code != wire.CodeInvalidMessage {
		t.Errorf("a relative folder: got %s", e.Code)
	}
}

// what an agent changed in the shell is listed, and once the user takes it for their own it raises nothing.
func TestAcceptChanges(t *testing.T) {
	for _, private := range []bool{false, true} {
		r := newRig(t, bash("change", "export PATH=/tmp/x:/usr/bin:/bin PAGER=/tmp/y"), bash("again", "export PAGER=/tmp/z"), bash("list", "ls"))
		asking(r)
		var options []func(*wire.EnvSnapshot)
		if private {
			dir := wire.OSString(t.TempDir())
			options = append(options, withoutShell, func(env *wire.EnvSnapshot) { env.Cwd, env.Env["HOME"] = dir, dir })
		}
		p := r.dial(options...)
		p.ended(p.ask("change", func(r *wire.AgentRequest) { r.Options.Mode = "full" }))
		id := p.ask("list")
		p.answer(question(p, anyQuestion), "deny")
		p.ended(id)
		if got := p.policy(&wire.PolicyRequest{Op: "get"}).Suspects; !slices.Contains(got, "PATH") || !slices.Contains(got, "PAGER") {
			t.Errorf("private %v: suspects: got %q, want PATH and PAGER", private, got)
		}
		// What came after the list that the user saw is not accepted with it: the name was, whatever it meant by then.
		p.ended(p.ask("again", func(r *wire.AgentRequest) { r.Options.Mode = "full" }))
		if got := p.policy(&wire.PolicyRequest{Op: "accept", Suspects: []string{"PAGER", "PATH", "gone"}}).Suspects; !slices.Equal(got, []string{"PAGER"}) {
			t.Errorf("private %v: after accept: got %q, want the PAGER that was set since", private, got)
		}
		if got := p.policy(&wire.PolicyRequest{Op: "accept"}).Suspects; len(got) != 0 {
			t.Errorf("private %v: after accept: got %q", private, got)
		}
		if end := p.ended(p.ask("list")); end.Status != wire.StatusSuccess || len(end.Refused) > 0 {
			t.Errorf("private %v: ls is still asked about: %+v", private, end)
		}
	}
}

// What a text changed that cannot be seen in it is suspect although a person allowed the text; what stands in it is not.
func TestOpaqueChangesAreSuspect(t *testing.T) {
	r := newRig(t, bash("opaque", ". ./x.sh"), bash("literal", "export PAGER=less"), bash("end", "kill -9 "+strconv.Itoa(os.Getpid())))
	asking(r)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.sh"), []byte("export PAGER=/tmp/evil\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := r.dial(withoutShell, func(env *wire.EnvSnapshot) { env.Cwd, env.Env["HOME"] = wire.OSString(dir), wire.OSString(dir) })
	for _, c := range []struct {
		prompt  string
		suspect bool
	}{{"opaque", true}, {"literal", false}} {
		id := p.ask(c.prompt)
		p.answer(question(p, func(q *wire.ConfirmationRequest) bool { return q.RequestID == id }), "allow")
		p.ended(id)
		if got := slices.Contains(p.policy(&wire.PolicyRequest{Op: "get"}).Suspects, "PAGER"); got != c.suspect {
			t.Errorf("%s: PAGER is suspect: %v, want %v", c.prompt, got, c.suspect)
		}
	}
	// The daemon's own process is known by its number.
	id := p.ask("end")
	q := question(p, func(q *wire.ConfirmationRequest) bool { return q.RequestID == id })
	if q.Verdict.Level != "critical" {
		t.Errorf("a signal to the daemon: got %s", q.Verdict.Level)
	}
	p.answer(q, "deny")
	p.ended(id)
}

// A rule of the settings that does not do what its examples say is told of; it allows nothing, and still forbids.
func TestRuleExamples(t *testing.T) {
	r := newRig(t, bash("test", "npm test"), bash("push", "git push"))
	r.set(func(c *config.Config) {
		c.Policy.Mode = "ask"
		c.Policy.Rules = []config.Rule{
			{Decision: "allow", Pattern: "bash: npm test", NoMatch: []string{"npm test"}},
			{Decision: "deny", Pattern: "bash: git push *", Match: []string{"git pull"}},
		}
	})
	p := r.dial()
	id := p.ask("test")
	p.answer(question(p, anyQuestion), "deny")
	p.ended(id)
	for _, want := range []string{`is about "npm test"`, `is not about "git pull"`} {
		await(p, func(m *wire.Notice) bool { return m.Level == "warning" && strings.Contains(m.Text, want) })
	}
	id = p.ask("push")
	if end := p.ended(id); len(end.Refused) != 1 {
		t.Errorf("git push: got %+v, want it refused", end)
	}
	for _, rule := range p.policy(&wire.PolicyRequest{Op: "list"}).Rules {
		if rule.Fault == "" {
			t.Errorf("%s %s: no fault", rule.Decision, rule.Pattern)
		}
	}
	// A rule with examples survives in the store.
	p.policy(&wire.PolicyRequest{Op: "add", Rule: &wire.Rule{Decision: "deny", Pattern: "bash: rm *", Scope: "always", Match: []string{"rm x"}, NoMatch: []string{"ls"}}})
	rules, err := r.store.Rules(t.Context())
	if err != nil || len(rules) != 1 || !slices.Equal(rules[0].Match, []string{"rm x"}) || !slices.Equal(rules[0].NoMatch, []string{"ls"}) {
		t.Errorf("stored: got %+v, %v", rules, err)
	}
}

// spy remembers what a model was given.
type spy struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu

	fault string // what the model panics with; "" = it does not
}

type spied struct {
	provider.Model
	spy *spy
}

func (m *spied) Stream(ctx context.Context, r provider.Request, onDelta func(provider.Delta)) (provider.Response, error) {
	m.spy.mu.Lock()
	fmt.Fprintf(&m.spy.text, "%+v", r)
	for _, message := range r.Messages {
		for _, part := range message.Parts {
			if part.ToolResult != nil {
				m.spy.text.WriteString(part.ToolResult.Content)
			}
		}
	}
	m.spy.mu.Unlock()
	if m.spy.fault != "" {
		panic(m.spy.fault)
	}
	return m.Model.Stream(ctx, r, onDelta)
}

// seenByModel watches what models are given from now on.
func (r *rig) seenByModel() func() string {
	s := &spy{}
	r.spy.Store(s)
	return func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.text.String()
	}
}

// What looks like a secret is masked before a model sees it, unless the user allows it for this session; what is stored
// is masked all the same.
func TestSecretsShown(t *testing.T) {
	const key = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	dir := t.TempDir()
	file := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(file, []byte("the key is "+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := scripted.Call{Name: "read", Arguments: []byte(`{"path":"` + file + `"}`)}
	for _, show := range []bool{false, true} {
		r := newRig(t, scripted.Script{Match: "look", Steps: []scripted.Step{{ToolCalls: []scripted.Call{read}}, {Text: "seen"}}})
		p := r.dial(func(env *wire.EnvSnapshot) { env.Cwd = wire.OSString(dir) })
		if show {
			if got := p.policy(&wire.PolicyRequest{Op: "set_secrets", Secrets: "show"}).Secrets; got != "show" {
				t.Errorf("secrets: got %q, want show", got)
			}
		}
		seen := r.seenByModel()
		p.ended(p.ask("look"))
		if got := strings.Contains(seen(), key); got != show {
			t.Errorf("show %v: the model saw the key: %v", show, got)
		}
		if strings.Contains(p.story(), key) {
			t.Errorf("show %v: the key is in what is stored and sent", show)
		}
	}
	r := newRig(t)
	p := r.dial()
	id := requestID()
	p.send(&wire.PolicyRequest{RequestID: id, Op: "set_secrets", Secrets: "maybe"})
	if e := await(p, func(m *wire.Error) bool { return m.RequestID == id }); e.Code != wire.CodeInvalidMessage {
		t.Errorf("set_secrets maybe: got %s", e.Code)
	}
}

// A key that a client brought along is masked wherever it turns up, whatever it looks like.
func TestCredentialsAreMasked(t *testing.T) {
	const key = "four-plain-words-here"
	r := newRig(t, bash("tell", "echo "+key))
	p := r.dial(func(env *wire.EnvSnapshot) { env.Credentials = map[string]string{"SOME_API_KEY": key} })
	seen := r.seenByModel()
	p.ended(p.ask("tell"))
	res := await(p, func(*wire.CommandResult) bool { return true })
	if strings.Contains(string(res.Output), key) || !strings.Contains(string(res.Output), "[masked:") {
		t.Errorf("stored and sent: %q", res.Output)
	}
	if got := seen(); strings.Contains(got, key) || !strings.Contains(got, "ran: echo [masked:") {
		t.Errorf("the model saw %q", got)
	}
	events, _, err := r.store.Events(t.Context(), p.session, 0, 100)
	if err != nil || len(events) == 0 {
		t.Fatal(events, err)
	}
	for _, e := range events {
		if text := jsonview.Of(e); strings.Contains(string(text), key) {
			t.Errorf("stored: %s", text)
		}
	}
}
