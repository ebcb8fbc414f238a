package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
)

// A script that an agent wrote is judged by its text, as long as the file holds that: also while a question is open.
func TestWrittenScriptIsJudgedByItsText(t *testing.T) {
	write := func(match, name, text string) scripted.Script {
		args, err := json.Marshal(map[string]string{"path": name, "content": text})
		if err != nil {
			t.Fatal(err)
		}
		return scripted.Script{Match: match, Steps: []scripted.Step{{ToolCalls: []scripted.Call{{Name: "write", Arguments: args}}}, {Text: "written"}}}
	}
	r := newRig(t, write("write-look", "look.sh", "ls\n"), write("write-make", "make.sh", "touch made\n"), bash("run-look", "bash look.sh"), bash("run-make", "bash make.sh"))
	asking(r)
	p := r.dial(func(e *wire.EnvSnapshot) { e.Cwd = wire.OSString(r.dir) })
	asked := map[wire.ConfirmationID]bool{}
	next := func() *wire.ConfirmationRequest {
		q := question(p, func(m *wire.ConfirmationRequest) bool { return !asked[m.ConfirmationID] })
		asked[q.ConfirmationID] = true
		return q
	}
	for _, file := range []string{"write-look", "write-make"} {
		id := p.ask(file)
		p.answer(next(), wire.DecisionAllow)
		p.ended(id)
	}
	p.ended(p.ask("run-look"))
	if got := p.shell.ran(); len(got) != 1 || len(asked) != 2 {
		t.Errorf("ran %q, want it run without a question", got)
	}
	// Somebody else's text is not known, whatever it is.
	if err := os.WriteFile(filepath.Join(r.dir, "look.sh"), []byte("ls -l\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := p.ask("run-look")
	if q := next(); q.Verdict.Level != "high" {
		t.Errorf("a changed script: asked with %s", q.Verdict.Level)
	} else {
		p.answer(q, wire.DecisionDeny)
	}
	p.ended(id)
	id = p.ask("run-make")
	q := next()
	if q.Verdict.Level != "medium" {
		t.Errorf("asked with %s, want what touch is", q.Verdict.Level)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "make.sh"), []byte("rm -rf ~\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.answer(q, wire.DecisionAllow)
	if again := next(); again.Verdict.Level != "high" {
		t.Errorf("asked again with %s", again.Verdict.Level)
	} else {
		p.answer(again, wire.DecisionDeny)
	}
	p.ended(id)
	if got := p.shell.ran(); len(got) != 1 {
		t.Errorf("ran %q", got)
	}
}
