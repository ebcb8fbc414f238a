package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
)

// What instructs agents in a folder is data until the user says otherwise: they are asked once, the answer is kept, and a
// client that cannot confirm gets one line. A repository within a trusted one is another folder.
func TestTrustOfAFolder(t *testing.T) {
	dir := project(t)
	inner := filepath.Join(dir, "sub") // a repository of its own
	for path, text := range map[string]string{
		"AGENTS.md": "Always shout.", ".sublet.md": "Use tabs.", ".sublet/agents/helper.md": "You help.", "sub/CLAUDE.md": "Dragons live here.", ".git/HEAD": "",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, scripted.Script{Steps: []scripted.Step{{Text: "yes"}}})
	r.set(func(c *config.Config) { c.Policy.Mode = "ask" })
	trust := func(q *wire.ConfirmationRequest) bool { return q.Tool == "trust" }

	// Nobody to ask: one line, and no instructions.
	s := r.dial(script, inProject(dir))
	for range 2 {
		seen := r.seenByModel()
		s.ended(s.ask("hello"))
		if strings.Contains(seen(), "shout") || strings.Contains(seen(), "helper") {
			t.Error("the model saw what nobody trusts")
		}
	}
	warned := 0
	for _, m := range s.all() {
		if n, ok := m.(*wire.Notice); ok && n.Level == "warning" && strings.Contains(n.Text, "not read as instructions: AGENTS.md, .sublet.md, helper;") {
			warned++
		}
	}
	if warned != 1 || count[*wire.ConfirmationRequest](s) != 0 {
		t.Errorf("warned %d times, want once: %s", warned, s.story())
	}

	// No is kept.
	p := r.dial(inProject(inner))
	q := r.dial(inProject(dir))
	id := p.ask("hello")
	ask := question(p, trust)
	if got := ask.Verdict.Reasons[0].Text; got != "CLAUDE.md would instruct agents here" || ask.Cwd != wire.OSString(inner) ||
		ask.Verdict.UndoHint != "sublet trust rm, in another terminal" { // in a shell that agents use it is refused
		t.Errorf("asked about %s: %q, undo: %q", ask.Cwd, got, ask.Verdict.UndoHint)
	}
	p.answer(ask, "deny")
	p.ended(id)
	seen := r.seenByModel()
	p.ended(p.ask("again"))
	if strings.Contains(seen(), "Dragons") || count[*wire.ConfirmationRequest](p) != 1 {
		t.Error("a no was not kept")
	}

	// Yes is for this repository, not for the one in it, and is shown in other windows.
	seen = r.seenByModel()
	id = q.ask("hello")
	ask = question(q, trust)
	if got := ask.Verdict.Reasons[0].Text; got != "AGENTS.md, .sublet.md would instruct agents here; .sublet/agents would add helper" {
		t.Errorf("asked %q", got)
	}
	q.answer(ask, "allow")
	q.ended(id)
	if !strings.Contains(seen(), "shout") || !strings.Contains(seen(), "tabs") {
		t.Error("the model did not see what is trusted")
	}
	await(p, func(n *wire.Notice) bool { return strings.Contains(n.Text, "folder trusted: "+dir) })
	seen = r.seenByModel()
	p.ended(p.ask("once more"))
	if strings.Contains(seen(), "Dragons") || strings.Contains(seen(), "shout") {
		t.Error("a repository within a trusted one is trusted too")
	}
	// It outlives the daemon.
	r.close()
	r.start()
	q = r.dial(inProject(dir))
	seen = r.seenByModel()
	q.ended(q.ask("hello"))
	if !strings.Contains(seen(), "shout") || count[*wire.ConfirmationRequest](q) != 0 {
		t.Error("trust was forgotten")
	}
	list := q.policy(&wire.PolicyRequest{Op: "trust_list"}).Folders
	if len(list) != 2 || list[0].Path != wire.OSString(dir) || !list[0].Trusted || list[1].Trusted {
		t.Errorf("got %+v", list)
	}
	// Another folder of the repository is meant by it, and it can be taken back.
	got := q.policy(&wire.PolicyRequest{Op: "untrust", Cwd: wire.OSString(filepath.Join(dir, ".sublet"))})
	if got.Folder != wire.OSString(dir) || slices.ContainsFunc(got.Folders, func(f wire.TrustedFolder) bool { return f.Path == wire.OSString(dir) }) {
		t.Errorf("got %+v", got)
	}
	id = q.ask("hello")
	q.answer(question(q, trust), "deny")
	q.ended(id)
}
