package secret

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSections(t *testing.T) {
	for _, section := range []string{"names", "ends", "home", "public", "public-ends", "system"} {
		if len(list(section)) == 0 {
			t.Errorf("secrets.txt has no section %s", section)
		}
	}
}

// The user's word counts more than the table, and of two words the nearer one.
func TestHolds(t *testing.T) {
	table := New("/h", []string{"~/vault", "/srv/x/", "~/certs/inner"}, []string{"~/certs", "~/vault/public", "~/.aws", "/etc/ssl/private"})
	for p, want := range map[string]bool{
		"/h/vault": true, "/h/vault/a": true, "/h/vault2": false, "/h/v*/a": true, "/h/vault/public/a": false, "/srv/x/a": true,
		"/h/certs/a.pem": false, "/h/certs/inner/a.txt": true, "/h/.aws/credentials": false, "/etc/ssl/private/k.key": false,
		"/h/.ssh/id_rsa": true, "/h/.ssh/known_hosts": false, "/srv/.env": true, "/etc/shadow": true, "/h/a.go": false, "/h": false,
	} {
		if got := table.Holds(p); got != want {
			t.Errorf("Holds(%q) = %v, want %v", p, got, want)
		}
	}
}

func TestMentioned(t *testing.T) {
	table := New("/h", []string{"~/vault"}, []string{"~/.netrc"})
	for text, want := range map[string]bool{
		"open('/h/vault/x').read()": true, "cat(\"~/vault\")": true, "join(home, '.ssh', name)": true, "File.read('../.kube/config')": true,
		"open('~/.netrc')": false, "print(x.key)": false, "open('notes.txt')": false, "open('/etc/shadow')": true,
	} {
		if got := table.Mentioned(text); got != want {
			t.Errorf("Mentioned(%q) = %v, want %v", text, got, want)
		}
	}
}

// What was taken out below a folder of the table stays to be seen, and no more of that folder.
func TestHiddenAround(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{".ssh/id_x", ".ssh/config", ".ssh/conf.d/a", ".ssh/conf.d/b", "real/k"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, p)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, p), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real", filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	hidden := New(home, []string{"~/link"}, []string{"~/.ssh/config", "~/.ssh/conf.d/a", "~/proj/.env"}).Hidden(home + "/proj")
	for p, want := range map[string]bool{
		".ssh": false, ".ssh/id_x": true, ".ssh/config": false, ".ssh/conf.d": false, ".ssh/conf.d/a": false, ".ssh/conf.d/b": true,
		"link": true, "real": true, ".aws": true, "proj/.env": false, "proj/.env.local": true,
	} {
		if got := slices.Contains(hidden, filepath.Join(home, p)); got != want {
			t.Errorf("%s hidden: %v, want %v", p, got, want)
		}
	}
	if !slices.Contains(hidden, "/etc/shadow") {
		t.Error("/etc/shadow is not hidden")
	}
}
