package judge

import (
	"os"
	"path/filepath"
	"testing"
)

// a program's name is looked up as the shell does, and told where a folder that agents write to comes first.
func TestShadow(t *testing.T) {
	root := t.TempDir()
	place := func(name string, mode os.FileMode) string {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	home, project := filepath.Join(root, "home"), filepath.Join(root, "home", "proj")
	for _, name := range []string{"home/proj/bin/ls", "home/bin/ls", "home/bin/git", "usr/ls", "usr/git", "usr/cat", "home/proj/bin/cat"} {
		place(name, 0o755)
	}
	place("home/proj/bin/wc", 0o644) // cannot be run
	for link, to := range map[string]string{"usr-link": "home/proj/bin", "proj-link": "home/proj"} {
		if err := os.Symlink(filepath.Join(root, to), filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	in := func(dirs ...string) string {
		path := ""
		for i, d := range dirs {
			if i > 0 {
				path += ":"
			}
			path += filepath.Join(root, d)
		}
		return path
	}
	for _, tt := range []struct {
		path, name, want string
	}{
		{in("home/proj/bin", "usr"), "ls", "home/proj/bin/ls"},
		{in("home/proj/bin", "usr"), "git", ""},
		{in("home/proj/bin", "usr"), "wc", ""},
		{in("home/proj/bin", "usr"), "none", ""},
		{in("usr", "home/proj/bin"), "ls", ""},
		{in("usr", "home/proj/bin"), "cat", ""},
		{in("home/bin", "home/proj/bin"), "cat", "home/proj/bin/cat"},
		{in("usr-link", "usr"), "ls", "home/proj/bin/ls"}, // only the folder's name was compared
	} {
		want := ""
		if tt.want != "" {
			want = filepath.Join(root, tt.want)
		}
		// The folder of the test is a temporary one, so "temporary" is set to elsewhere inside it.
		if got := shadowIn(tt.path, project, home, nil)(tt.name); got != want {
			t.Errorf("%s along %s: got %q, want %q", tt.name, tt.path, got, want)
		}
	}
	for path, want := range map[string]string{".:" + in("usr"): "./ls", in("usr") + ":": ""} {
		if got := shadowIn(path, project, home, nil)("ls"); got != want {
			t.Errorf("ls along %s: got %q, want %q", path, got, want)
		}
	}
	if got := shadowIn(in("home/proj/bin"), filepath.Join(root, "proj-link"), home, nil); got == nil || got("ls") == "" {
		t.Error("a folder of a project that the shell entered through a link is taken for another")
	}
	if shadowIn(in("usr", "home/bin"), project, home, nil) != nil || shadowIn("", project, home, nil) != nil {
		t.Error("a PATH of the system's and the user's own folders is looked at")
	}
	if shadowIn(in("home/bin"), home, home, nil) != nil || shadowIn(in("home/bin"), root, home, nil) != nil {
		t.Error("a shell that stands at home or above it makes ~/bin a project's")
	}
	if got := shadowIn(in("home/bin", "usr"), project, home, []string{"", filepath.Join(root, "home", "bin")})("git"); got != filepath.Join(root, "home/bin/git") {
		t.Errorf("a temporary folder: got %q", got)
	}
	if shadow("/tmp/x:/usr/bin", project, home, "") == nil || shadow("/usr/bin:/bin", project, home, "") != nil {
		t.Error("/tmp is not taken for a temporary folder, or /usr/bin for one")
	}
}
