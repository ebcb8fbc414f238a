package risk

import (
	"strings"
	"testing"

	"sublet/daemon/internal/risk/secret"
)

// tracked is a project in version control, where kept.txt, run.sh and what lies in src can be had back.
func tracked(root string) Context {
	return Context{Cwd: root, Home: "/home/u", ProjectRoot: root, Tracked: func(p string) bool {
		return p == root+"/kept.txt" || p == root+"/run.sh" || under(p, root+"/src")
	}}
}

// TestTrackedFiles: what git can give back is no loss, and what it knows is not code out of nowhere; all else is (section
// 7: project tracked and untracked).
func TestTrackedFiles(t *testing.T) {
	for _, root := range []string{"/home/u/proj", "/tmp/proj", "/var/tmp/x/proj"} {
		c := tracked(root)
		exactly(t, Medium, c, "rm kept.txt", "rm src/a.go src/b.go", "./run.sh", "bash run.sh", ". ./run.sh", "rm ./kept.txt && ls")
		exactly(t, High, c, "rm loose.txt", "rm kept.txt loose.txt", "rm -r src", "./loose.sh", "sh loose.sh", "rm *.txt")
		exactly(t, Critical, c, "echo x > .git/hooks/pre-commit", "rm -rf .git", "rm -rf .")
		exactly(t, High, c, "cat .env")
		for _, text := range []string{"rm kept.txt", "sed -i s/a/b/ kept.txt"} {
			v := Analyze(text, c)
			why := v.Reasons[len(v.Reasons)-1].Text
			if !v.Reversible || v.UndoHint != "git checkout -- kept.txt" || !strings.HasSuffix(why, "kept.txt, which is in version control") {
				t.Errorf("%s: got reversible %v, hint %q, %q", text, v.Reversible, v.UndoHint, why)
			}
		}
	}
	// git reset --hard had the hint git reset HEAD@{1}, beside a reason that says what is lost.
	for text, hint := range map[string]string{"alias q=ls": "unalias", "git reset HEAD~1": "git reset HEAD@{1}", "git reset --hard": "", "git rm -f kept.txt": "", "git clean -f": ""} {
		if v := Analyze(text, here()); v.Reversible != (hint != "") || v.UndoHint != hint {
			t.Errorf("%s: got reversible %v, hint %q, want hint %q", text, v.Reversible, v.UndoHint, hint)
		}
	}
	c := tracked("/home/u/proj")
	c.Made = func(p string) bool { return p == c.ProjectRoot+"/made.txt" }
	exactly(t, Medium, c, "rm made.txt", "rm -f ./made.txt kept.txt")
	exactly(t, High, c, "rm made.txt loose.txt", "rm *.txt", "./made.txt", "rm -r made.txt")
	// Git is asked about a bounded number of files.
	asked := 0
	c.Made = nil
	c.Tracked = func(string) bool { asked++; return true }
	text := "rm"
	for range 100 {
		text += " src/x"
	}
	atLeast(t, Medium, c, text)
	if asked > MaxTracked {
		t.Errorf("git was asked %d times, want at most %d", asked, MaxTracked)
	}
}

// TestTemporary: a folder of temporary files is one, whatever lies in it, but for a home or a project in version control
// that was put there, and for keys, which are read in no folder unnoticed.
func TestTemporary(t *testing.T) {
	c := Context{Cwd: "/tmp/x", Home: "/home/u", ProjectRoot: "/tmp/x"}
	exactly(t, Medium, c, "rm notes.txt", "rm -rf build", "rm -rf /tmp/y/src", "echo x > f", "rm /tmp/old.pem")
	exactly(t, High, c, "cat .env", "cat /tmp/y/id_rsa", "rm -rf /tmp/*")
	c = Context{Cwd: "/tmp/u/w", Home: "/tmp/u", ProjectRoot: "/tmp/u/w"}
	exactly(t, Critical, c, "echo x >> ~/.bashrc", "rm -rf ~", "echo x > ~/.ssh/authorized_keys")
	exactly(t, High, c, "cat ~/.ssh/id_rsa")
	exactly(t, Medium, c, "rm /tmp/other", "echo x > f", "rm notes.txt")
	exactly(t, High, c, "echo x > ~/notes", "echo x > ~/a/b")
	exactly(t, Critical, c, "rm -rf ~/x") // medium, and a held one lost nothing and ended with 0
	for text, want := range map[string]Reach{"rm -rf ~/x": ReachFree, "rm /tmp/other": ReachRead, "echo x > f": ReachProject} {
		if got := Analyze(text, c).Reach; got != want {
			t.Errorf("%q needs %s, want %s", text, got, want)
		}
	}
}

// TestSecretsOfTheUser: what the user adds is secret, and what they take out is what it is besides: a file that runs by itself
// does so still.
func TestSecretsOfTheUser(t *testing.T) {
	c := tracked("/home/u/proj")
	c.Secrets = secret.New("/home/u", []string{"~/vault", "/home/u/proj/prod"}, []string{"~/certs", "~/.npmrc", "/home/u/proj/.env", "/home/u/proj/.envrc", "/tmp/k.pem"})
	exactly(t, High, c, "cat ~/vault/x", "cat ~/v*/x", "cp -r ~/vault /tmp/y", "cat prod/a", "cat ~/.ssh/id_rsa", "cat .env.local", "sed 1p ~/vault/x", "cat ~/certs/../vault/x")
	exactly(t, Low, c, "cat ~/certs/a.pem", "cat .env", "cat .envrc", "cat ~/.npmrc", "cat /tmp/k.pem")
	exactly(t, High, c, "echo x > .envrc", "python3 -c 'print(open(\"/home/u/vault/x\").read())'")
	exactly(t, Critical, c, "echo x > ~/.npmrc", "rm -rf ~/vault")
	if v := AnalyzeFile(FileAction{Reads: []string{"/home/u/vault/x"}}, c); v.Level != High || v.Reach != ReachFree {
		t.Errorf("a tool that reads a secret: got %v with reach %q", v.Level, v.Reach)
	}
	if v := AnalyzeFile(FileAction{Reads: []string{"/home/u/proj/.env"}}, c); v.Level != Low {
		t.Errorf("a tool that reads what is none: got %v", v.Level)
	}
}
