package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/question"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
	"sublet/wire"
)

// A call that another program makes is asked about as one that cannot be changed; a changed command is refused, and so recorded.
func TestFixedQuestion(t *testing.T) {
	h := newHub(t)
	w := &window{t: t}
	c := &Client{hub: h, Peer: w, confirm: true, cwd: "/"}
	s := watched(t, h, c)
	u := &turn{hub: h, s: s, operation: operation{origin: c}, id: "t1", wishes: wishes{mode: "ask"}}
	done := make(chan agent.Decision, 1)
	go func() {
		d, err := u.Approve(t.Context(), agent.Question{
			Agent: "claude", Tool: "bash", ExecutionID: "x", Fixed: true, Action: tool.Action{Command: "rm -rf build", Cwd: "/"},
		})
		if err != nil {
			t.Error(err)
		}
		done <- d
	}()
	q := awaitSent[*wire.ConfirmationRequest](w)
	if !q.Fixed {
		t.Errorf("asked %+v", q)
	}
	edited := "rm -rf build/tmp"
	if err := h.questions.Answer(q.ConfirmationID, c, func(*question.Question[*Client]) (string, agent.Decision, error) {
		return wire.DecisionAllow, agent.Decision{Allowed: true, EditedCommand: &edited, By: "client test 1"}, nil
	}); err != nil {
		t.Error(err)
	}
	if d := <-done; d.Allowed || d.EditedCommand != nil || !strings.Contains(d.Reason, edited) {
		t.Errorf("got %+v", d)
	}
	audit, err := os.ReadFile(filepath.Join(h.opts.Runtime, "audit"))
	for _, want := range []string{`"command":"rm -rf build"`, `"decision":"deny"`, `"by":"client test 1"`, "the user wants instead: " + edited} {
		if !strings.Contains(string(audit), want) {
			t.Errorf("%v, recorded %s, want %s in it", err, audit, want)
		}
	}
}

// A command that the user keeps changing to a riskier one is refused in the end, which was not recorded. Each of the two is riskier than
// the other: shred loses a file, and env is not held to the project.
func TestEditedTooOften(t *testing.T) {
	h := newHub(t)
	h.opts.Confine = func() reach.Confiner {
		return reach.Confiner{Support: confine.Support{How: "namespaces"}}
	}
	w := &window{t: t}
	c := &Client{hub: h, Peer: w, confirm: true, cwd: "/"}
	u := &turn{hub: h, s: watched(t, h, c), operation: operation{origin: c}, id: "t1", wishes: wishes{mode: "ask"}}
	dir, commands := t.TempDir(), []string{"shred x", "env"}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	done := make(chan agent.Decision, 1)
	go func() {
		d, err := u.Approve(t.Context(), agent.Question{
			Tool: "bash", ExecutionID: "x", Arguments: []byte("{}"), Action: tool.Action{Command: commands[0], Cwd: dir},
		})
		if err != nil {
			t.Error(err)
		}
		done <- d
	}()
	for i := range maxEdits {
		q := awaitSent[*wire.ConfirmationRequest](w)
		w.mu.Lock()
		w.sent = nil
		w.mu.Unlock()
		if err := h.questions.Answer(q.ConfirmationID, c, func(*question.Question[*Client]) (string, agent.Decision, error) {
			return wire.DecisionAllow, agent.Decision{Allowed: true, EditedCommand: &commands[(i+1)%2], By: "client test 1"}, nil
		}); err != nil {
			t.Error(err)
		}
	}
	d := <-done
	audit, err := os.ReadFile(filepath.Join(h.opts.Runtime, "audit"))
	if d.Allowed || !strings.Contains(string(audit), d.Reason) {
		t.Errorf("got %+v, %v, recorded %q", d, err, audit)
	}
}

// A permission for a project is one for the folder that a link led to when the question was asked, and for no other folder to which a
// link in the project leads.
func TestPermissionBehindALink(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	lead := func(link, to string) {
		t.Helper()
		if err := os.Remove(at(link)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Symlink(at(to), at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"app/.git", "other/.git", "third/.git", "notes"} {
		if err := os.MkdirAll(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lead("app/repo", "other")
	lead("app/notes", "notes")
	h := newHub(t)
	w := &window{t: t}
	c := &Client{hub: h, Peer: w, confirm: true, cwd: "/"}
	c.session = watched(t, h, c)
	u := &turn{hub: h, s: c.session, operation: operation{origin: c}, id: "t1"}
	v := risk.Verdict{Level: risk.Medium, Reversible: true}
	ask := func(act tool.Action) (q agent.Question, d policy.Decision) {
		q = agent.Question{Tool: "bash", ExecutionID: "x", Action: act}
		list, err := h.listRules(t.Context(), c.session)
		if err != nil {
			t.Fatal(err)
		}
		rules, _ := judge.InForce(list)
		return q, policy.Policy{Mode: policy.ModeAsk, Rules: rules}.Decide(v, u.action(q, risk.ReachProject))
	}
	// The question names the folder that is meant; the link is led elsewhere before the answer.
	q, d := ask(tool.Action{Command: "make", Cwd: at("app/repo")})
	if d.Outcome != policy.Ask || len(d.Grants) == 0 || !strings.HasPrefix(d.Grants[0].Covers, "edits and builds in "+at("other")+",") {
		t.Fatalf("got %+v", d)
	}
	done := make(chan error, 1)
	go func() {
		_, err := u.ask(t.Context(), q, v, d)
		done <- err
	}()
	asked := awaitSent[*wire.ConfirmationRequest](w)
	lead("app/repo", "third")
	if err := c.Confirm(t.Context(), &wire.ConfirmationResponse{ConfirmationID: asked.ConfirmationID, Decision: wire.DecisionAllowAlways, Grant: &asked.Grants[0]}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	app, err := judge.NewRule(wire.Rule{Decision: "allow", Pattern: "reach: project", Scope: policy.ScopeProject}, c.session.id, at("app"))
	if err == nil {
		err = c.addRule(t.Context(), c.session, app)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		act  tool.Action
		want string
	}{
		{tool.Action{Command: "make", Cwd: at("other")}, policy.Allow},
		{tool.Action{Command: "make", Cwd: at("third")}, policy.Ask},
		{tool.Action{Command: "make", Cwd: at("app/repo")}, policy.Ask},
		{tool.Action{Command: "make", Cwd: at("app")}, policy.Allow},
		{tool.Action{Command: "make", Cwd: at("app/notes")}, policy.Allow}, // the kernel holds it to app
		{tool.Action{Writes: []string{at("app/x")}, Cwd: at("app")}, policy.Allow},
		{tool.Action{Writes: []string{at("notes/x")}, Cwd: at("app/notes")}, policy.Ask},
	} {
		if _, d := ask(c.act); d.Outcome != c.want {
			t.Errorf("%+v: got %s, want %s", c.act, d.Outcome, c.want)
		}
	}
}

// A question about a folder's instructions that nobody answers decides nothing: it is asked again.
func TestTrustThatNobodyAnswers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Shout."), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		c := &Client{hub: h, Peer: &window{t: t}, confirm: true, cwd: "/"}
		u := &turn{hub: h, s: watched(t, h), operation: operation{origin: c}, id: "t1"}
		u.askTrust(t.Context(), dir)
		if trusted, decided, err := h.opts.Store.TrustsFolder(t.Context(), dir); trusted || decided || err != nil {
			t.Errorf("trusted %v, decided %v", trusted, decided)
		}
	})
}

// If the store cannot be read, a folder counts as not trusted, and a notice says that its instructions are not followed.
func TestTrustThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Shout."), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHub(t)
	w := &window{t: t}
	u := &turn{hub: h, s: watched(t, h), operation: operation{origin: &Client{hub: h, Peer: w, confirm: true, cwd: "/"}}, id: "t1"}
	intact := h.opts.Store
	defer func() { h.opts.Store = intact }()
	closed, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "db"), h.log)
	if err == nil {
		err = closed.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	h.opts.Store = closed
	u.askTrust(t.Context(), dir)
	if n := awaitSent[*wire.Notice](w); !strings.Contains(n.Text, "AGENTS.md") || h.trusts(dir) {
		t.Errorf("got %+v", n)
	}
}

// A rule for a project is one for the project that the client is in, whatever folder its session began in.
func TestRuleOfTheCurrentFolder(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := newHub(t)
	w := &window{t: t}
	c := &Client{hub: h, Peer: w, confirm: true, cwd: wire.OSString(dir)}
	c.session = watched(t, h, c)
	err = c.Policy(t.Context(), &wire.PolicyRequest{Op: "add", Rule: &wire.Rule{Decision: "allow", Pattern: "reach: project", Scope: "project"}})
	if err != nil {
		t.Fatal(err)
	}
	if reply := awaitSent[*wire.PolicyReply](w); len(reply.Rules) != 1 || string(reply.Rules[0].Subject) != dir {
		t.Errorf("got %+v, want a rule for %s", reply, dir)
	}
}

// The mode of a request that was not wider than its session's, which anybody may ask for, is none that outlasts the session's: when
// the user makes that stricter, it holds for the turn too. A wider one is a person's, and stays.
func TestModeOfARequestIsNoWider(t *testing.T) {
	for _, was := range []policy.Mode{policy.ModeAuto, policy.ModeAsk} {
		h := newHub(t)
		c := &Client{hub: h, Peer: &window{t: t}, confirm: true, cwd: "/", owner: lend.OwnerOf(1, 0)}
		c.session = watched(t, h, c)
		c.session.policy.SetMode(was)
		u, _, err := c.newTurn(t.Context(), "r", &wire.AgentRequest{RequestID: "r", Prompt: "x", Options: wire.RequestOptions{Mode: "auto"}})
		if err != nil {
			t.Fatal(err)
		}
		u.hub = h
		want := map[policy.Mode]policy.Mode{policy.ModeAuto: policy.ModePlan, policy.ModeAsk: policy.ModeAuto}[was]
		c.session.policy.SetMode(policy.ModePlan)
		if got := u.policy(t.Context(), agent.Question{Tool: "bash"}).Mode; got != want {
			t.Errorf("auto was asked for in %s mode: got %s, want %s", was, got, want)
		}
		h.release(c.session)
	}
}
