package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/daemon/config"
	"sublet/wire"
)

// inProject is a client whose shell stands in dir.
func inProject(dir string) func(*wire.EnvSnapshot) {
	return func(env *wire.EnvSnapshot) {
		env.Cwd = wire.OSString(dir)
		env.Env["HOME"] = wire.OSString(filepath.Dir(dir))
	}
}

func projectFile(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, config.ProjectFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func project(t *testing.T) string {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "project")
	if err := os.MkdirAll(filepath.Join(dir, "sub", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A project's file forbids, asks and narrows the mode; it is read again when it changed, and leaving the folder or making
// a repository below it does not get an agent out of it.
func TestProjectFileTightens(t *testing.T) {
	dir := project(t)
	r := newRig(t, bash("^make", "touch made"), bash("^list", "ls"), bash("^away", "cd /tmp && touch made"))
	r.set(func(c *config.Config) { c.Policy.Mode, c.Policy.Allow = "full", []string{"bash: touch *"} })
	p := r.dial(inProject(filepath.Join(dir, "sub")))
	reply := func(prompt string) *wire.CommandResult {
		t.Helper()
		id := p.ask(prompt)
		p.ended(id)
		return await(p, func(m *wire.CommandResult) bool { return m.RequestID == id })
	}
	if got := reply("make 1"); got.Status != "success" {
		t.Fatalf("without a file: got %s", got.Status)
	}
	for _, c := range []struct{ name, text, prompt, status string }{
		{"deny", "[policy]\ndeny = [\"bash: touch *\"]\n", "make 2", "denied"},
		{"deny, then leave", "[policy]\ndeny = [\"bash: touch *\"]\n", "away", "denied"},
		{"plan", "[policy]\nmode = \"plan\"\n", "make 3", "denied"},
		{"plan still reads", "[policy]\nmode = \"plan\"\n", "list", "success"},
		{"no longer", "", "make 4", "success"},
	} {
		projectFile(t, dir, c.text)
		if got := reply(c.prompt); got.Status != c.status {
			t.Errorf("%s: got %s, want %s\n%s", c.name, got.Status, c.status, got.Output)
		}
	}
	projectFile(t, dir, "[policy]\nask = [\"bash: touch *\"]\nmode = \"auto\"\n")
	id := p.ask("make 5")
	p.answer(question(p, anyQuestion), "deny")
	p.ended(id)

	// What is in force is shown: the stricter mode, and the rules with where they come from.
	pr := wire.RequestID("policy")
	p.send(&wire.PolicyRequest{RequestID: pr, Op: "get"})
	got := await(p, func(m *wire.PolicyReply) bool { return m.RequestID == pr })
	last := got.Rules[len(got.Rules)-1]
	if got.Mode != "auto" || last.Source != "project file" || last.Decision != "ask" {
		t.Errorf("policy: got mode %s, rule %+v", got.Mode, last)
	}
	if other := r.dial(inProject(dir)); other.ready.Mode != "auto" {
		t.Errorf("Ready: got mode %s, want the project's", other.ready.Mode)
	}
}

// A project's file cannot loosen: its mode counts only where it is the stricter one, and one that tries to permit
// something, or cannot be read, makes everything asked that is not low.
func TestProjectFileCannotLoosen(t *testing.T) {
	dir := project(t)
	r := newRig(t, bash("^make", "touch made"), bash("^list", "ls"))
	r.set(func(c *config.Config) { c.Policy.Mode = "plan" })
	projectFile(t, dir, "[policy]\nmode = \"auto\"\n")
	p := r.dial(inProject(dir))
	id := p.ask("make 1")
	p.ended(id)
	if res := await(p, func(m *wire.CommandResult) bool { return m.RequestID == id }); res.Status != "denied" {
		t.Errorf("the user's plan mode: got %s, want denied", res.Status)
	}
	r.set(func(c *config.Config) { c.Policy.Mode, c.Policy.Allow = "full", []string{"bash: touch *"} })
	for i, text := range []string{
		"[policy]\nallow = [\"bash: touch *\"]\n", "[policy]\ndeny = [\"bsh: touch\"]\n", "[policy\n", "model = \"evil/x\"\n",
	} {
		projectFile(t, dir, text+strings.Repeat("#", i)) // another size: the clock of the file system may be coarse
		id := p.ask("make 2")
		q := question(p, func(q *wire.ConfirmationRequest) bool { return q.RequestID == id })
		p.answer(q, "deny")
		p.ended(id)
		id = p.ask("list")
		p.ended(id)
		if res := await(p, func(m *wire.CommandResult) bool { return m.RequestID == id }); res.Status != "success" {
			t.Errorf("%q: reading got %s, want success unasked", text, res.Status)
		}
		place := filepath.Join(dir, config.ProjectFile) + ":" // and the line
		if n := count[*wire.Notice](p); n != i+1 {
			t.Errorf("%q: got %d notices, want %d: one for each fault", text, n, i+1)
		}
		if !has(p, func(n *wire.Notice) bool { return strings.Contains(n.Text, place) && n.Hint != "" }) {
			t.Errorf("%q: no notice names %s\n%s", text, place, p.story())
		}
	}
}

// A rule of a project's file is held to its examples whenever the file is read: one that does not do what they say is told
// with its place, shown with its fault, and still forbids.
func TestProjectRuleExamples(t *testing.T) {
	dir := project(t)
	r := newRig(t, bash("^make", "touch made"))
	r.set(func(c *config.Config) { c.Policy.Mode = "full" })
	rule := "[[policy.rules]]\ndecision = \"deny\"\npattern = \"bash: touch *\"\nmatch = [\"touch x\", \"ls; touch y\"]\nno_match = [\"ls\"]\n"
	projectFile(t, dir, rule)
	p := r.dial(inProject(dir))
	denied := func(prompt string) {
		t.Helper()
		id := p.ask(prompt)
		p.ended(id)
		if res := await(p, func(m *wire.CommandResult) bool { return m.RequestID == id }); res.Status != "denied" {
			t.Errorf("got %s, want denied", res.Status)
		}
	}
	denied("make 1")
	if list := p.policy(&wire.PolicyRequest{Op: "list"}).Rules; len(list) != 1 || list[0].Fault != "" || len(list[0].Match) != 2 || len(list[0].NoMatch) != 1 {
		t.Errorf("got %+v, want the rule with its examples", list)
	}
	if n := count[*wire.Notice](p); n != 0 {
		t.Errorf("got %d notices for a rule that does what it says\n%s", n, p.story())
	}
	projectFile(t, dir, strings.Replace(rule, `"touch x"`, `"mkdir x"`, 1))
	denied("make 2")
	place := filepath.Join(dir, config.ProjectFile) + ":3:12: "
	if !has(p, func(n *wire.Notice) bool {
		return strings.Contains(n.Text, place) && strings.Contains(n.Text, "mkdir x") && n.Hint != ""
	}) {
		t.Errorf("no notice names %s\n%s", place, p.story())
	}
	if list := p.policy(&wire.PolicyRequest{Op: "list"}).Rules; len(list) != 1 || !strings.Contains(list[0].Fault, "mkdir x") {
		t.Errorf("got %+v, want the fault", list)
	}
}
