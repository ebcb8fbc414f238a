package server_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
)

// repository is a real one in a temporary folder, with one committed file and one that was never added.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kept.txt", "run.sh", "loose.txt"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("x\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "kept.txt", "run.sh"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "x"}} {
		cmd := exec.Command("git", append([]string{"-C", root}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return root
}

// What git can give back is medium to delete or to run, what it cannot is high (section 7: project tracked, untracked).
func TestTrackedFiles(t *testing.T) {
	root := repository(t)
	commands := map[string]string{"rm kept.txt": "medium", "rm loose.txt": "high", "./run.sh": "medium", "./loose.txt": "high"}
	var list []string
	for c := range commands {
		list = append(list, c)
	}
	r := newRig(t, bash("go", list...))
	asking(r)
	p := r.dial(func(env *wire.EnvSnapshot) { env.Cwd = wire.OSString(root) })
	id := p.ask("go")
	for _, c := range list {
		q := question(p, func(m *wire.ConfirmationRequest) bool { return string(m.Command) == c })
		if q.Verdict.Level != commands[c] {
			t.Errorf("%q: got %s, want %s: %+v", c, q.Verdict.Level, commands[c], q.Verdict.Reasons)
		}
		p.answer(q, "deny")
	}
	p.ended(id)
}

// a home that is reached through a link is the same home: what is written there is judged where it lies.
func TestFileToolsBehindALinkedHome(t *testing.T) {
	home := filepath.Join(t.TempDir(), "disk", "u")
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "u")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"~/.bashrc", link + "/.ssh/authorized_keys", link + "/x/../.bashrc"} {
		args, err := json.Marshal(map[string]string{"path": strings.Replace(path, "~", link, 1), "content": "x"})
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, scripted.Script{Match: "go", Steps: []scripted.Step{
			{ToolCalls: []scripted.Call{{Name: "write", Arguments: args}}}, {Text: "done"},
		}})
		p := r.dial(func(env *wire.EnvSnapshot) { env.Env["HOME"], env.Cwd = wire.OSString(link), wire.OSString(link) })
		id := p.ask("go")
		if q := question(p, anyQuestion); q.Verdict.Level != "critical" {
			t.Errorf("write %s: got %s, want critical: %+v", path, q.Verdict.Level, q.Verdict.Reasons)
		} else {
			p.answer(q, "deny")
		}
		p.ended(id)
	}
}

// In a shell of the daemon's own: what an agent's command left there counts for what comes later, as it does in
// the user's, until a person allowed it.
func TestPrivateShellRemembers(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  string
		later   string
		mode    string // of the turn that changes
		answer  bool   // a person allows the change
		asked   string // level of the later command's question; "" = none
		because string
	}{
		{"a poisoned path", "export PATH=/tmp/x:$PATH", "ls", "full", false, "high", "PATH"},
		{"one that was allowed", "export PATH=/tmp/x:$PATH", "ls", "ask", true, "", ""},
		{"an alias", "alias show='rm -rf src'", "show", "full", false, "medium", "deletes src"},
		{"a function", "show() { rm -rf src; }", "show", "full", false, "high", "show was changed"},
		{"another file by that name", "hash -p /nowhere/ls ls", "ls", "full", false, "high", "ls was changed"},
		{"a builtin switched off", "enable -n test", "test -f x", "full", false, "high", "test was changed"},
		{"a harmless variable", "export NODE_ENV=test", "ls", "full", false, "", ""},
		{"nothing", "true", "ls", "full", false, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, bash("change", c.change), bash("later", c.later))
			p := r.dial(withoutShell, func(env *wire.EnvSnapshot) {
				env.Cwd, env.Env["HOME"] = wire.OSString(t.TempDir()), wire.OSString(t.TempDir())
			})
			id := p.ask("change", func(r *wire.AgentRequest) { r.Options.Mode = c.mode })
			if c.answer {
				p.answer(question(p, anyQuestion), "allow")
			}
			p.ended(id)
			asking(r)
			id = p.ask("later")
			if c.asked == "" {
				if end := p.ended(id); end.Status != wire.StatusSuccess || len(end.Refused) > 0 {
					t.Errorf("end: %+v\n%s", end, p.story())
				}
				return
			}
			q := question(p, func(m *wire.ConfirmationRequest) bool { return string(m.Command) == c.later })
			told := ""
			for _, reason := range q.Verdict.Reasons {
				told += reason.Text + "\n"
			}
			if q.Verdict.Level != c.asked || !strings.Contains(told, c.because) {
				t.Errorf("asked at %s for\n%swant %s for %s", q.Verdict.Level, told, c.asked, c.because)
			}
			p.answer(q, "deny")
			p.ended(id)
		})
	}
}
