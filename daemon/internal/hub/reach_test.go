package hub

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sublet/daemon/config"
	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
)

// A home, its folders of settings and the system are no projects: a grant for one would let a command write where programs
// start from.
func TestIsProject(t *testing.T) {
	for root, want := range map[string]bool{
		"/home/u/src/app": true, "/home/u/app/.hidden": true, "/srv/app": true, "/tmp/app": true, "/home/user2/app": true,
		"/": false, "/home": false, "/home/u": false, "/home/u/.config": false, "/home/u/.config/fish": false, "/etc": false, "/etc/app": false,
		"/usr/local/bin": false, "relative": false,
	} {
		if got := isProject(root, "/home/u"); got != want {
			t.Errorf("isProject(%q) = %v, want %v", root, got, want)
		}
	}
}

// What an agent sets in a shell changes neither which secrets are hidden nor where a command may write.
func TestConfinementIsTheDaemonsOwn(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	t.Setenv("GOCACHE", "/c/go")
	h := &Hub{opts: Options{Config: config.Default}}
	s := h.confinement("project", "/srv/app")
	if !slices.Contains(s.Hidden, "/home/u/.ssh") || !slices.Contains(s.Caches, "/c/go") {
		t.Errorf("got %+v", s)
	}
}

// A held command reads of the user's secrets and of the built-in ones what the settings in force let it.
func TestHeldCommandReadsNoSecretOfTheSettings(t *testing.T) {
	launcher := confinetest.Need(t)
	home, err := os.MkdirTemp("/var/tmp", "sublet-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("HOME", home)
	files := []string{".aws/credentials", ".ssh/config", ".ssh/id_x", "vault/a", "proj/.env", "proj/data/prod.yml", "proj/main.go"}
	for _, name := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	settings := config.Default()
	h := &Hub{opts: Options{Config: func() config.Config { return settings }}}
	for _, tc := range []struct {
		policy config.Policy
		want   string
	}{
		{config.Policy{}, "vault/a proj/data/prod.yml proj/main.go"},
		{config.Policy{Secrets: []string{"~/vault", home + "/proj/data"}, NotSecrets: []string{"~/.ssh/config", "~/proj/.env"}}, ".ssh/config proj/.env proj/main.go"},
		{config.Policy{NotSecrets: []string{"~/.aws", "~/.ssh"}}, ".aws/credentials .ssh/config .ssh/id_x vault/a proj/data/prod.yml proj/main.go"},
	} {
		settings.Policy = tc.policy // as a reload does
		for _, reach := range []string{confine.Read, confine.Project} {
			spec := filepath.Join(t.TempDir(), "spec")
			if err := os.WriteFile(spec, h.confinement(reach, home+"/proj").Encode(), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(launcher, append([]string{spec, "cat"}, files...)...)
			cmd.Dir, cmd.SysProcAttr = home, &syscall.SysProcAttr{Setpgid: true}
			out, _ := cmd.Output() // cat fails for what is hidden
			if got := strings.Join(strings.Fields(string(out)), " "); got != tc.want {
				t.Errorf("%s with %+v: read %q, want %q", reach, tc.policy, got, tc.want)
			}
		}
	}
}
