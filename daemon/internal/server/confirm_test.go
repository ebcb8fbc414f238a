package server_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
)

func asking(r *rig) { r.set(func(c *config.Config) { c.Policy.Mode = "ask" }) }

func question(p *peer, match func(*wire.ConfirmationRequest) bool) *wire.ConfirmationRequest {
	p.t.Helper()
	return await(p, match)
}

func anyQuestion(*wire.ConfirmationRequest) bool { return true }

func (p *peer) answer(q *wire.ConfirmationRequest, decision string, change ...func(*wire.ConfirmationResponse)) {
	p.t.Helper()
	r := &wire.ConfirmationResponse{ConfirmationID: q.ConfirmationID, Decision: decision}
	for _, c := range change {
		c(r)
	}
	p.send(r)
}

func (p *peer) resolved(q *wire.ConfirmationRequest) *wire.ConfirmationResolved {
	p.t.Helper()
	return await(p, func(m *wire.ConfirmationResolved) bool { return m.ConfirmationID == q.ConfirmationID })
}

// A client that attaches while a question waits is asked, too, and may answer: one that wants nothing old, and one that comes
// back and has seen the question before.
func TestQuestionThatWasOpen(t *testing.T) {
	r := newRig(t, bash("clean", "rm -rf build"))
	asking(r)
	p := r.dial()
	id := p.ask("clean")
	q := question(p, anyQuestion)
	late := r.dial(withoutShell, inSession(p.session, -1))
	again := question(late, anyQuestion)
	if again.ConfirmationID != q.ConfirmationID || again.Command != q.Command || again.Seq != q.Seq || count[*wire.TurnStarted](late) > 0 {
		t.Errorf("got %+v, want %+v and no event before it", again, q)
	}
	back := r.dial(withoutShell, inSession(p.session, q.Seq))
	question(back, anyQuestion)
	late.sessions(&wire.SessionRequest{Op: "new"})
	late.sessions(&wire.SessionRequest{Op: "resume", SessionID: &p.session, AfterSeq: -1})
	late.reached() // what follows the reply, too
	back.answer(again, wire.DecisionAllow)
	p.resolved(q)
	late.ended(id)
	if n := count[*wire.ConfirmationRequest](late); n != 2 {
		t.Errorf("asked %d times, want once for each time it attached", n)
	}
	third := r.dial(withoutShell, inSession(p.session, -1))
	third.ended(third.ask("clean", func(r *wire.AgentRequest) { r.Options.Mode = "full" }))
	if has(third, anyQuestion) {
		t.Error("a question that was answered is asked again")
	}
}

// Allowed runs, byte for byte; denied does not, the model is told, and the turn goes on (H1, H2, H11).
func TestConfirm(t *testing.T) {
	for _, c := range []struct {
		name     string
		decision string
		change   func(*wire.ConfirmationResponse)
		ran      []string
		status   string
		output   string
	}{
		{"allow", "allow", nil, []string{"rm -rf build"}, "success", "ran: rm -rf build"},
		{"deny", "deny", nil, nil, "denied", "denied by the user"},
		{"deny with a comment", "deny", func(r *wire.ConfirmationResponse) { r.Comment = "keep the build" }, nil, "denied", "keep the build"},
		{"edited", "allow", func(r *wire.ConfirmationResponse) {
			text := wire.OSString("rm -rf build/tmp")
			r.EditedCommand = &text
		}, []string{"rm -rf build/tmp"}, "success", "ran: rm -rf build/tmp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, bash("clean", "rm -rf build"))
			asking(r)
			p := r.dial()
			id := p.ask("clean")
			q := question(p, anyQuestion)
			if q.Command != "rm -rf build" || q.Cwd != "/w" || q.Verdict.Level == "low" || q.ExpiresAtMS != nil {
				t.Errorf("question: %+v", q)
			}
			// No lease is held, nor asked for, during a question.
			if has(p, func(*wire.AcquireShellLease) bool { return true }) {
				t.Error("a lease was asked for before the answer")
			}
			if c.change == nil {
				c.change = func(*wire.ConfirmationResponse) {}
			}
			p.answer(q, c.decision, c.change)
			if end := p.ended(id); end.Status != wire.StatusSuccess {
				t.Errorf("end: %s\n%s", end.Status, p.story())
			}
			if got := p.shell.ran(); !slices.Equal(got, c.ran) {
				t.Errorf("ran: got %q, want %q", got, c.ran)
			}
			res := await(p, func(*wire.CommandResult) bool { return true })
			if res.Status != c.status || !strings.Contains(string(res.Output), c.output) {
				t.Errorf("result: got %s %q, want %s %q", res.Status, res.Output, c.status, c.output)
			}
			if got := p.resolved(q); got.Decision != c.decision || !strings.HasPrefix(got.By, "client test ") {
				t.Errorf("resolved: got %s by %q", got.Decision, got.By)
			}
			nothingLent(t, p)
		})
	}
}

// A command that the user edited into a riskier one is asked about again. What is stored of it is the edited text, also where it
// then did not run; it was the model's own.
func TestEditedAndNotRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(p *peer, id wire.RequestID, again *wire.ConfirmationRequest)
		status string
	}{
		{"denied", func(p *peer, _ wire.RequestID, again *wire.ConfirmationRequest) { p.answer(again, wire.DecisionDeny) }, wire.StatusDenied},
		{"cancelled", func(p *peer, id wire.RequestID, _ *wire.ConfirmationRequest) {
			p.send(&wire.CancelRequest{RequestID: &id})
		}, wire.StatusCancelled},
	} {
		r := newRig(t, bash("clean", "rm -rf build"))
		asking(r)
		p := r.dial()
		id := p.ask("clean")
		edited := wire.OSString("rm -rf /")
		p.answer(question(p, anyQuestion), wire.DecisionAllow, func(r *wire.ConfirmationResponse) { r.EditedCommand = &edited })
		again := question(p, func(m *wire.ConfirmationRequest) bool { return m.Command == edited })
		if want := `{"command":"rm -rf /"}`; again.Arguments != want { // some clients show these
			t.Errorf("%s: asked about %s, want %s", c.name, again.Arguments, want)
		}
		c.end(p, id, again)
		p.ended(id)
		res := await(p, func(*wire.CommandResult) bool { return true })
		if res.Status != c.status || res.Command != edited {
			t.Errorf("%s: the result is %s of %q, want %s of %q", c.name, res.Status, res.Command, c.status, edited)
		}
		if c.status == wire.StatusDenied && !strings.Contains(string(res.Output), "changed the command to: "+string(edited)) {
			t.Errorf("%s: the model is given %q", c.name, res.Output)
		}
		if ran := p.shell.ran(); len(ran) > 0 {
			t.Errorf("%s: ran %q", c.name, ran)
		}
	}
}

// A no says what it is about, and what else of the command may be run.
func TestRefusalNamesItsPart(t *testing.T) {
	for command, want := range map[string]string{
		"git status && rm -rf build; ls | wc -l": "`rm -rf build` (deletes files); `build` (deletes build, build output).\nThe rest may be run without it: `git status`; `ls | wc -l`.",
		"rm -rf build":                           "deletes files; `build` (deletes build, build output).",
		"if true; then rm -rf build; fi":         "`rm -rf build` (deletes files); `build` (deletes build, build output).",
	} {
		for _, mode := range []string{"ask", "plan"} {
			r := newRig(t, bash("clean", command))
			asking(r)
			p := r.dial()
			id := p.ask("clean", func(r *wire.AgentRequest) { r.Options.Mode = mode })
			if mode == "ask" {
				p.answer(question(p, anyQuestion), wire.DecisionDeny)
			}
			p.ended(id)
			got := string(await(p, func(*wire.CommandResult) bool { return true }).Output)
			_, about, _ := strings.Cut(got, "say what you would need.")
			if about != "\nThe refusal is about this: "+want {
				t.Errorf("%s: %s: got %q, want %q", mode, command, about, want)
			}
		}
	}
}

// an approval holds for the folder and the state it was given for. The user moves while the question is open: the
// command does not run in the other folder, it is asked again; and what runs is what was shown.
func TestApprovalIsBoundToItsPlace(t *testing.T) {
	r := newRig(t, bash("clean", "rm -rf build"))
	asking(r)
	p := r.dial()
	id := p.ask("clean")
	q := question(p, anyQuestion)
	p.shell.move("/elsewhere")
	p.answer(q, "allow")
	again := question(p, func(m *wire.ConfirmationRequest) bool { return m.ConfirmationID != q.ConfirmationID })
	if again.Cwd != "/elsewhere" || again.Command != "rm -rf build" || again.Fingerprint == q.Fingerprint {
		t.Errorf("asked again: %q in %q", again.Command, again.Cwd)
	}
	if got := p.shell.ran(); len(got) != 0 {
		t.Errorf("ran %q before it was approved for its folder", got)
	}
	nothingLent(t, p)
	p.answer(again, "allow")
	p.ended(id)
	exec := await(p, func(*wire.ExecuteLeasedCommand) bool { return true })
	if exec.Fingerprint != again.Fingerprint || exec.Cwd != "/elsewhere" || exec.Command != again.Command {
		t.Errorf("executed: %+v", exec)
	}
}

// A client that has another state than it told refuses by the fingerprint; here it tells it on acquire.
func TestStateLearnedOnAcquire(t *testing.T) {
	r := newRig(t, bash("list", "ls"))
	p := r.dial()
	p.shell.mu.Lock()
	p.shell.cwd, p.shell.silent = "/moved", true // and does not say so
	p.shell.mu.Unlock()
	id := p.ask("list")
	p.ended(id)
	if n := count[*wire.AcquireShellLease](p); n != 2 {
		t.Errorf("leases: got %d, want 2: the first was given back", n)
	}
	res := await(p, func(*wire.CommandResult) bool { return true })
	if res.Cwd != "/moved" || !slices.Equal(p.shell.ran(), []string{"ls"}) {
		t.Errorf("ran %q in %q", p.shell.ran(), res.Cwd)
	}
}

// the first answer wins, the others are told; a second answer changes nothing; two questions at once stay two.
func TestFirstAnswerWins(t *testing.T) {
	write := func(name string) scripted.Call {
		return scripted.Call{Name: "write", Arguments: json.RawMessage(`{"path":"` + name + `","content":"x"}`)}
	}
	r := newRig(t)
	a, b := filepath.Join(r.dir, "a"), filepath.Join(r.dir, "b")
	both, err := json.Marshal(map[string]any{"tasks": []map[string]string{
		{"role": "engineer", "title": "t", "prompt": "make " + a}, {"role": "engineer", "title": "t", "prompt": "make " + b},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.play(
		scripted.Script{Match: "make .*/a$", Steps: []scripted.Step{{ToolCalls: []scripted.Call{write(a)}}, {Text: "a made"}}},
		scripted.Script{Match: "make .*/b$", Steps: []scripted.Step{{ToolCalls: []scripted.Call{write(b)}}, {Text: "b made"}}},
		scripted.Script{Match: "both", Steps: []scripted.Step{{ToolCalls: []scripted.Call{{Name: "task", Arguments: both}}}, {Text: "both done"}}},
	)
	asking(r)
	p := r.dial()
	other := r.dial(withoutShell, inSession(p.session, -1))
	id := p.ask("both")
	qa := question(p, func(m *wire.ConfirmationRequest) bool { return strings.Contains(m.Arguments, a) })
	qb := question(p, func(m *wire.ConfirmationRequest) bool { return strings.Contains(m.Arguments, b) })
	if qa.Agent == qb.Agent || qa.ConfirmationID == qb.ConfirmationID {
		t.Errorf("two questions: %s of %s and %s of %s", qa.ConfirmationID, qa.Agent, qb.ConfirmationID, qb.Agent)
	}
	question(other, func(m *wire.ConfirmationRequest) bool { return m.ConfirmationID == qa.ConfirmationID })
	other.answer(qa, "allow")
	if got := p.resolved(qa); got.Decision != "allow" || !strings.HasPrefix(got.By, "client test ") {
		t.Errorf("resolved: %+v", got)
	}
	p.answer(qa, "deny") // too late
	await(p, func(m *wire.Error) bool { return m.Details["confirmation_id"] == string(qa.ConfirmationID) })
	p.answer(qb, "deny")
	p.ended(id)
	if _, err := os.Stat(a); err != nil {
		t.Errorf("the allowed file: %v", err)
	}
	if _, err := os.Stat(b); err == nil {
		t.Error("the denied file is there")
	}
	checkNumbers(t, p, 0)
}

// A script's turn is refused at once what would need a question, and says so (H12); so is a plan's.
func TestNobodyToAsk(t *testing.T) {
	r := newRig(t, scripted.Script{Match: "write", Steps: []scripted.Step{
		{ToolCalls: []scripted.Call{{Name: "write", Arguments: json.RawMessage(`{"path":"x","content":"y"}`)}}}, {Text: "could not"},
	}})
	asking(r)
	p := r.dial(script, func(e *wire.EnvSnapshot) { e.Cwd = wire.OSString(r.dir) })
	end := p.ended(p.ask("write"))
	if end.Status != wire.StatusSuccess || len(end.Refused) != 1 || end.Refused[0].Tool != "write" || !strings.Contains(end.Refused[0].Reason, "cannot confirm") {
		t.Errorf("got %+v", end)
	}
	if count[*wire.ConfirmationRequest](p) != 0 {
		t.Error("a client that cannot confirm was asked")
	}
	p.answer(&wire.ConfirmationRequest{ConfirmationID: "x"}, "allow")
	if e := await(p, func(*wire.Error) bool { return true }); e.Code != wire.CodePermissionDenied {
		t.Errorf("answer of a client that cannot confirm: %s", e.Code)
	}
	window := r.dial(func(e *wire.EnvSnapshot) { e.Cwd = wire.OSString(r.dir) })
	end = window.ended(window.ask("write", func(r *wire.AgentRequest) { r.Options.Mode = "plan" }))
	if len(end.Refused) != 1 || count[*wire.ConfirmationRequest](window) != 0 {
		t.Errorf("plan: got %+v", end)
	}
}

// Cancel resolves an open question as a no.
func TestCancelResolvesQuestion(t *testing.T) {
	r := newRig(t, bash("clean", "rm -rf build"))
	asking(r)
	p := r.dial()
	id := p.ask("clean")
	q := question(p, anyQuestion)
	p.send(&wire.CancelRequest{RequestID: &id})
	if got := p.resolved(q); got.Decision != "deny" || got.By != "cancel" {
		t.Errorf("got %s by %s", got.Decision, got.By)
	}
	if end := p.ended(id); end.Status != wire.StatusCancelled {
		t.Errorf("end: %s", end.Status)
	}
}

// A turn whose window closed keeps its question; it is there after resume, as it would run, and can be answered.
func TestQuestionSurvivesItsWindow(t *testing.T) {
	secret := "rm -rf build --token=ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	r := newRig(t, bash("clean", secret))
	asking(r)
	p := r.dial()
	id := p.ask("clean")
	q := question(p, anyQuestion)
	p.close()
	back := r.dial(inSession(p.session, 0), asPID(p.pid))
	again := question(back, anyQuestion)
	if again.ConfirmationID != q.ConfirmationID || string(again.Command) != secret {
		t.Errorf("question after resume: %q", again.Command)
	}
	back.answer(again, "allow")
	back.ended(id)
	if got := back.shell.ran(); !slices.Equal(got, []string{secret}) {
		t.Errorf("ran %q", got)
	}
	// What is kept holds no secret; what is no question any more is shown as kept.
	late := r.dial(withoutShell, inSession(p.session, 0))
	if kept := question(late, anyQuestion); strings.Contains(string(kept.Command), "ghp_0123") {
		t.Errorf("the store holds %q", kept.Command)
	}
	checkNumbers(t, back, 0)
}

// allow_always and deny_always make the rule that was offered, and no other; rules are listed and revoked.
func TestAlways(t *testing.T) {
	r := newRig(t, bash("make it", "make build"))
	asking(r)
	p := r.dial()
	id := p.ask("make it")
	q := question(p, anyQuestion)
	if len(q.Grants) == 0 {
		t.Fatalf("no grant offered for %q: %+v", q.Command, q.Verdict)
	}
	p.answer(q, "allow_always", func(r *wire.ConfirmationResponse) {
		r.Grant = &wire.Grant{Scope: "always", Rule: "bash: rm *", Covers: "everything"}
	})
	if e := await(p, func(*wire.Error) bool { return true }); e.Code != wire.CodeInvalidMessage {
		t.Errorf("a grant that was not offered: %s", e.Code)
	}
	p.answer(q, "allow_always", func(r *wire.ConfirmationResponse) { r.Grant = &q.Grants[0] })
	p.ended(id)
	if end := p.ended(p.ask("make it")); end.Status != wire.StatusSuccess || count[*wire.ConfirmationRequest](p) != 1 {
		t.Errorf("the second time: %d questions", count[*wire.ConfirmationRequest](p))
	}
	list := p.policy(&wire.PolicyRequest{Op: "list"})
	if len(list.Rules) != 1 || list.Rules[0].Pattern != q.Grants[0].Rule || list.Rules[0].Decision != "allow" {
		t.Fatalf("rules: %+v", list.Rules)
	}
	if left := p.policy(&wire.PolicyRequest{Op: "revoke", RuleID: list.Rules[0].ID}); len(left.Rules) != 0 {
		t.Errorf("after revoke: %+v", left.Rules)
	}
	deny := p.policy(&wire.PolicyRequest{Op: "add", Rule: &wire.Rule{Decision: "deny", Pattern: "bash: make *", Scope: "always"}})
	if len(deny.Rules) != 1 {
		t.Fatalf("after add: %+v", deny.Rules)
	}
	end := p.ended(p.ask("make it"))
	if len(end.Refused) != 1 || count[*wire.ConfirmationRequest](p) != 1 {
		t.Errorf("denied by rule: %+v", end)
	}
	if got := p.shell.ran(); len(got) != 2 {
		t.Errorf("ran %q", got)
	}
	if mode := p.policy(&wire.PolicyRequest{Op: "set_mode", Mode: "auto"}).Mode; mode != "auto" {
		t.Errorf("mode: %s", mode)
	}
	// A reload of the settings does not reset the mode.
	asking(r)
	if mode := p.policy(&wire.PolicyRequest{Op: "get"}).Mode; mode != "auto" {
		t.Errorf("mode after reload: %s", mode)
	}
}

// A changed mode or handling of secrets is announced to the other windows, with the session that it is of; so are rules, and accepted changes.
func TestPolicyIsAnnounced(t *testing.T) {
	r := newRig(t)
	p := r.dial()
	here, elsewhere := r.dial(inSession(p.session, 0)), r.dial()
	p.policy(&wire.PolicyRequest{Op: "set_mode", Mode: "auto"})
	p.policy(&wire.PolicyRequest{Op: "set_secrets", Secrets: "show"})
	p.policy(&wire.PolicyRequest{Op: "add", Rule: &wire.Rule{Decision: "deny", Pattern: "bash: make *", Scope: "always"}})
	p.policy(&wire.PolicyRequest{Op: "accept", Suspects: []string{"PAGER", "ls"}})
	for _, of := range []string{
		"mode of WHOSE: auto, by ", "secrets of WHOSE: show, by ", "rule added: deny bash: make * (always), by ",
		"changes of the shell accepted: PAGER ls, by ",
	} {
		for whose, other := range map[string]*peer{"this conversation": here, "session " + string(p.session): elsewhere} {
			n := await(other, func(m *wire.Notice) bool { return strings.HasPrefix(m.Text, strings.Replace(of, "WHOSE", whose, 1)) })
			if about := n.SessionID == p.session; about != strings.Contains(of, "WHOSE") {
				t.Errorf("%q: about the session %q", n.Text, n.SessionID)
			}
		}
	}
	if n := count[*wire.Notice](p); n != 0 {
		t.Errorf("%d notices to the window that made the changes", n)
	}
}

// A grant of the scope always holds in every other session, and says so when it is offered.
func TestAlwaysEverywhere(t *testing.T) {
	r := newRig(t, bash("make it", "make build"))
	asking(r)
	p := r.dial()
	id := p.ask("make it")
	q := question(p, anyQuestion)
	i := slices.IndexFunc(q.Grants, func(g wire.Grant) bool { return g.Scope == "always" })
	if i < 0 || !strings.Contains(q.Grants[i].Covers, "every folder and session") {
		t.Fatalf("got %+v, want one of the scope always that says what it covers", q.Grants)
	}
	p.answer(q, "allow_always", func(r *wire.ConfirmationResponse) { r.Grant = &q.Grants[i] })
	p.ended(id)
	other := r.dial() // a session of its own
	if end := other.ended(other.ask("make it")); end.Status != wire.StatusSuccess || count[*wire.ConfirmationRequest](other) != 0 {
		t.Errorf("in another session: %+v, %d questions", end, count[*wire.ConfirmationRequest](other))
	}
	if list := other.policy(&wire.PolicyRequest{Op: "list"}).Rules; len(list) != 1 || list[0].Scope != "always" || list[0].Subject != "" {
		t.Errorf("rules: %+v", list)
	}
}

func (p *peer) policy(r *wire.PolicyRequest) *wire.PolicyReply {
	p.t.Helper()
	r.RequestID = requestID()
	p.send(r)
	return await(p, func(m *wire.PolicyReply) bool { return m.RequestID == r.RequestID })
}

// Every decision and every execution is in the audit log, without secrets.
func TestAudit(t *testing.T) {
	r := newRig(t, bash("clean", "rm -rf build --token=ghp_0123456789abcdefghijklmnopqrstuvwxyz"))
	asking(r)
	p := r.dial()
	id := p.ask("clean")
	p.answer(question(p, anyQuestion), "allow")
	p.ended(id)
	f, err := os.Open(filepath.Join(r.dir, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var events []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e struct{ Event, Decision, Status, Command string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(e.Command, "ghp_0123") {
			t.Errorf("a secret in the audit log: %s", lines.Text())
		}
		events = append(events, e.Event+" "+e.Decision+e.Status)
	}
	if want := []string{"decision allow", "execution success"}; !slices.Equal(events, want) {
		t.Errorf("got %q, want %q", events, want)
	}
}

// what an agent's command changed in the shell without a person's word is told to the risk analysis, so that a later
// harmless command that it decides is asked for; what a person approved is not.
func TestPoisonedShell(t *testing.T) {
	for _, c := range []struct {
		change, named string
		approved      bool
	}{
		{"export PATH=/tmp/x:/usr/bin", "PATH", false},
		{"export PATH=/tmp/x:/usr/bin", "PATH", true},
		{"hash -p /bin/echo ls", "ls was changed", false},
		{"hash -p /bin/echo ls", "/bin/echo", true}, // allowed, and still another program: judged as that
	} {
		approved := c.approved
		r := newRig(t, bash("change", c.change), bash("list", "ls"))
		asking(r)
		p := r.dial()
		id := p.ask("change", func(r *wire.AgentRequest) {
			if !approved {
				r.Options.Mode = "full"
			}
		})
		if approved {
			p.answer(question(p, anyQuestion), "allow")
		}
		p.ended(id)
		id = p.ask("list")
		if approved && c.named == "PATH" {
			p.ended(id)
			continue
		}
		q := question(p, func(m *wire.ConfirmationRequest) bool { return m.Command == "ls" })
		if !slices.ContainsFunc(q.Verdict.Reasons, func(r wire.Reason) bool { return strings.Contains(r.Text, c.named) }) {
			t.Errorf("asked for another reason: %+v", q.Verdict)
		}
		p.answer(q, "deny")
		p.ended(id)
	}
}

// An agent that makes the same call with the same result again and again asks whether to go on, also in the mode that asks
// nothing else; where nobody can be asked its turn ends with an error.
func TestCirclingIsAsked(t *testing.T) {
	r := newRig(t, bash("poll", slices.Repeat([]string{"ls"}, 8)...))
	p := r.dial()
	id := p.ask("poll")
	q := question(p, anyQuestion)
	if q.Tool != wire.ToolContinue || q.Command != "" || !strings.Contains(q.Verdict.Reasons[0].Text, "5 times in a row") {
		t.Errorf("got %+v", q)
	}
	p.answer(q, wire.DecisionAllow)
	if end := p.ended(id); end.Status != wire.StatusSuccess {
		t.Errorf("allowed to go on: got %+v", end)
	}
	id = p.ask("poll")
	p.answer(question(p, func(m *wire.ConfirmationRequest) bool { return m.ConfirmationID != q.ConfirmationID }), wire.DecisionDeny)
	if e := p.refused(id); e.Code != wire.CodeModel || !strings.Contains(e.Message, "the same call of bash gave the same result 5 times in a row: {") || e.Hint == "" {
		t.Errorf("stopped: got %+v", e)
	}
	p.ended(id)
	id = p.ask("poll", func(r *wire.AgentRequest) { no := false; r.Options.RequireApproval = &no })
	p.refused(id)
	p.ended(id)
	if n := len(p.shell.ran()); n != 8+5+5 {
		t.Errorf("%d commands ran, want 18", n)
	}
}
