package reach

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/mcp"
	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
)

// A home, its folders of settings and the system are no projects: a grant for one would let a command write where programs
// start from.
// A link makes no project of a folder that is none, and what is held to a project is held to the folder that was judged.
func TestLinkedProject(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, app := filepath.Join(dir, "u"), filepath.Join(dir, "u/app")
	for _, at := range []string{".git", ".config/nvim/.git", "app/.git", "other/.git"} {
		if err := os.MkdirAll(filepath.Join(home, at), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"home": home, "nvim": home + "/.config/nvim", "other": home + "/other", "etc": "/etc"} {
		if err := os.Symlink(to, filepath.Join(app, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(home, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{home, filepath.Join(dir, "link")} { // the home may itself be a link
		for link, want := range map[string]bool{"": true, "home": false, "nvim": false, "other": true, "etc": false} {
			if got := IsProject(filepath.Join(base, "app", link), base); got != want {
				t.Errorf("%s/app/%s: %v, want %v", base, link, got, want)
			}
		}
	}
	// The home has its settings in a repository.
	for link, to := range map[string]string{".vim": "other", ".zshrc": "app/zshrc", ".profile": "app/.git/profile"} {
		if err := os.Symlink(to, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(app, "zshrc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	if other := filepath.Join(home, "other"); IsProject(other, home) || IsProject(other+"/sub", home) || !IsProject(app, home) || len(Writable([]string{other, app})) > 0 {
		t.Error("a folder is a project, or may be written in, that is the home's .vim or has its .zshrc")
	}
	if s := Confinement(config.Policy{}, "", confine.Project, filepath.Join(app, "other")); s.Project != home+"/other" {
		t.Errorf("held to %s", s.Project)
	}
}

func TestIsProject(t *testing.T) {
	for root, want := range map[string]bool{
		"/home/u/src/app": true, "/home/u/app/.hidden": true, "/srv/app": true, "/tmp/app": true, "/home/user2/app": true,
		"/": false, "/home": false, "/home/u": false, "/home/u/.config": false, "/home/u/.config/fish": false, "/etc": false, "/etc/app": false,
		"/usr/local/bin": false, "relative": false,
	} {
		if got := IsProject(root, "/home/u"); got != want {
			t.Errorf("isProject(%q) = %v, want %v", root, got, want)
		}
	}
}

// What an agent sets in a shell changes neither which secrets are hidden nor where a command may write.
func TestConfinementIsTheDaemonsOwn(t *testing.T) {
	home, cache := t.TempDir(), filepath.Join(t.TempDir(), "never used")
	t.Setenv("HOME", home)
	t.Setenv("GOCACHE", cache)
	s := Confinement(config.Default().Policy, "", "project", "/srv/app")
	if !slices.Contains(s.Hidden, filepath.Join(home, ".ssh")) || !slices.Contains(s.Caches, cache) {
		t.Errorf("got %+v", s)
	}
	// Go fails without its cache, and a command could not make it: the tests of whoever never used Go here would not run.
	if _, err := os.Stat(cache); err != nil {
		t.Error(err)
	}
}

func TestCheckSettings(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	for p, want := range map[string]string{
		"~/.cache/bazel": "", "~/shared": "", "/srv/cache": "", "~/.local/share/tool": "", "/home/u2/x": "",
		"/home": "your home folder", "/etc/tool": "operating system", "/var": "operating system", "/usr/local": "operating system",
		"~/app/.git/hooks": ".git starts by itself", "/srv/app/.vscode/x": ".vscode starts by itself", "~/.config": "something in it",
		"~/.config/fish/functions": "something in it", "~/.ssh": "something in it", "~/.local": "something in it", "~/bin": "something in it", "~/.aws/x": "something in it",
	} {
		c := config.Config{}
		c.Policy.Project.Write = []string{p}
		if err := CheckSettings(&c); (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "policy.project.write: ")) {
			t.Errorf("%s: got %v, want %q", p, err, want)
		}
	}
}

// A held command writes in the folders that the settings open, unless something starts by itself there.
func TestHeldCommandWritesWhereTheSettingsSay(t *testing.T) {
	launcher := confinetest.Need(t)
	home, err := os.MkdirTemp("/var/tmp", "sublet-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("HOME", home)
	for _, dir := range []string{"proj", ".cache/tool", "open", "closed", "repo/.git", ".config"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".config", filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	settings := config.Default()
	settings.Policy.Project.Write = []string{"~/.cache/tool", home + "/open/", "~/repo", "~/link", "~/none"}
	for reach, want := range map[string]string{confine.Project: "proj .cache/tool open", confine.Read: ""} {
		spec := filepath.Join(t.TempDir(), "spec")
		if err := os.WriteFile(spec, Confinement(settings.Policy, "", reach, home+"/proj").Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		dirs := []string{"proj", ".cache/tool", "open", "closed", "repo", ".config"}
		cmd := exec.Command(launcher, append([]string{spec, "bash", "-c", "for d; do touch $d/made; done", "bash"}, dirs...)...)
		cmd.Dir, cmd.SysProcAttr = home, &syscall.SysProcAttr{Setpgid: true}
		out, _ := cmd.CombinedOutput() // touch fails elsewhere
		var made []string
		for _, dir := range dirs {
			if os.Remove(filepath.Join(home, dir, "made")) == nil {
				made = append(made, dir)
			}
		}
		if got := strings.Join(made, " "); got != want {
			t.Errorf("%s: wrote in %q, want %q\n%s", reach, got, want, out)
		}
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
			if err := os.WriteFile(spec, Confinement(settings.Policy, "", reach, home+"/proj").Encode(), 0o600); err != nil {
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

// A server of the settings is held to project unless they, or what it is, say otherwise.
func TestHold(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.MkdirAll(filepath.Join(home, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	can := Confiner{Launcher: "/l", Support: confine.Support{How: "namespaces"}}
	cannot := Confiner{Support: confine.Support{Missing: "no Landlock"}}
	for _, tc := range []struct {
		c             Confiner
		command, says string
		want          string // reach; "" = free
		fails         bool
	}{
		{can, "npx", "", confine.Project, false},
		{can, "/opt/x", "read", confine.Read, false},
		{can, "npx", "free", "", false},
		{can, "docker", "", "", false},
		{can, "docker", "project", confine.Project, false},
		{cannot, "npx", "", "", false},
		{cannot, "npx", "free", "", false},
		{cannot, "npx", "project", "", true},
		{cannot, "npx", "read", "", true},
	} {
		launcher, to, err := Hold(tc.c, mcp.Spec{Command: tc.command, Reach: tc.says, Write: []string{"~/notes"}, Secrets: []string{"~/vault"}})
		if (err != nil) != tc.fails || to.Reach != tc.want || (launcher != "") != (tc.want != "") || to.Network != (tc.want != "") {
			t.Errorf("%s with reach %q: got %q, %+v, %v", tc.command, tc.says, launcher, to, err)
		}
		if tc.want != "" && (!slices.Contains(to.Hidden, home+"/vault") || !slices.Contains(to.Hidden, home+"/.ssh") || !slices.Contains(to.Caches, home+"/notes")) {
			t.Errorf("%s: got %+v", tc.command, to)
		}
		if got := slices.Contains(to.Caches, home+"/.npm/_npx"); got != (tc.command == "npx" && tc.want != "") {
			t.Errorf("%s with reach %q: may write what npx fetched: %v", tc.command, tc.says, got)
		}
	}
}

// An agent of another program that is held to its project is not started where it could write in a whole home.
func TestHoldAgent(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	can := Confiner{Launcher: "/l", Support: confine.Support{How: "namespaces"}}
	for _, tc := range []struct {
		reach, cwd string
		held       bool
	}{
		{confine.Project, home + "/app", true},
		{confine.Read, home, true},
		{confine.Project, home, false},
		{confine.Project, home + "/.config", false},
		{confine.Project, "/etc", false},
	} {
		if err := os.MkdirAll(tc.cwd, 0o700); err != nil {
			t.Fatal(err)
		}
		launcher, to, err := HoldAgent(can, config.Agent{Reach: tc.reach}, config.Policy{}, tc.cwd)
		if (err == nil) != tc.held || (launcher != "") != tc.held {
			t.Errorf("%s in %s: launcher %q, held to %s, %v", tc.reach, tc.cwd, launcher, to.Project, err)
		}
	}
}
