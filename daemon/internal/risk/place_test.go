package risk

import "testing"

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
		if v := Analyze("rm kept.txt", c); !v.Reversible || v.UndoHint != "git checkout -- kept.txt" {
			t.Errorf("rm kept.txt: got reversible %v, hint %q", v.Reversible, v.UndoHint)
		}
	}
	// Git is asked about a bounded number of files.
	asked := 0
	c := tracked("/home/u/proj")
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
	exactly(t, Medium, c, "rm /tmp/other", "echo x > f", "rm notes.txt", "echo x > ~/notes")
}
