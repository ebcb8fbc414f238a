package confine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestLeaf keeps the package small enough for the launcher: it imports nothing else of ours.
func TestLeaf(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for pkg := range strings.Lines(string(out)) {
		if pkg = strings.TrimSpace(pkg); strings.HasPrefix(pkg, "sublet/") && pkg != "sublet/lease/confine" {
			t.Errorf("imports %s", pkg)
		}
	}
}

func TestSpecTravels(t *testing.T) {
	for _, s := range []Spec{
		{Reach: Read},
		{Reach: Read, Network: true},
		{Reach: Project, Project: "/home/u/a=b\nc", Dir: "/home/u/a=b\nc/d", Caches: []string{"/home/u/.cache/go-build", "/x"}, Hidden: []string{"/home/u/.ssh"}, Kept: []string{"/home/u/a/bin"}, Inert: []string{".idea"}, Proxy: "/run/p", Script: "/run/x"},
	} {
		got, err := Decode(s.Encode())
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v became %+v, %v", s, got, err)
		}
	}
}

// TestSpecRefused keeps a description that is cut off, or of another version, from holding less than was meant.
func TestSpecRefused(t *testing.T) {
	whole := string(Spec{Reach: Project, Project: "/p", Hidden: []string{"/h"}}.Encode())
	for _, text := range []string{
		"", "reach=read", whole[:len(whole)-1], "reach=free\x00", "reach=\x00", "reach=project\x00", "reach=project\x00project=/\x00",
		"reach=project\x00project=p\x00", "reach=read\x00hidden=/a/../b\x00", "reach=read\x00new=1\x00", "reach=read\x00network=some\x00", "reach=read\x00novalue\x00", "reach=read\x00proxy=/p\x00", "reach=project\x00project=/q\x00network=host\x00proxy=/p\x00", "reach=project\x00project=/q\x00proxy=p\x00",
	} {
		if s, err := Decode([]byte(text)); err == nil {
			t.Errorf("Decode(%q) = %+v, want an error", text, s)
		}
	}
}

func TestDenied(t *testing.T) {
	read := Spec{Reach: Read, Project: "/p", Hidden: []string{"/home/u/.ssh"}}
	project := Spec{Reach: Project, Project: "/p"}
	for _, row := range []struct {
		spec   Spec
		output string
		want   []Denial
	}{
		{read, "touch: cannot touch 'x': Read-only file system\n", []Denial{{"writing /p/sub/x", Project}}},
		{read, "mkdir: cannot create directory ‘/etc/x’: Read-only file system\n", []Denial{{"writing /etc/x", ""}}},
		{read, "bash: line 3: out.txt: Read-only file system\n", []Denial{{"writing /p/sub/out.txt", Project}}},
		{read, "OSError: [Errno 30] Read-only file system: '/p/y'\n", []Denial{{"writing /p/y", Project}}},
		{read, "open /p/z: read-only file system\n", []Denial{{"writing /p/z", Project}}},
		{read, "Error: EROFS: read-only file system, open '/p/a.js'\n", []Denial{{"writing /p/a.js", Project}}},
		{project, "touch: cannot touch '/p/.git/hooks/x': Read-only file system\n", []Denial{{"writing /p/.git/hooks/x", ""}}},
		{read, "touch: cannot touch '/p/.envrc/x': Read-only file system\n", []Denial{{"writing /p/.envrc/x", ""}}},
		{project, "bash: line 1: ../.envrc: No such device or address\n", []Denial{{"writing /p/.envrc", ""}}},
		{project, "bash: line 1: ../.envrc: Permission denied\n", []Denial{{"writing /p/.envrc", ""}}},
		{project, "touch: cannot touch '/p/.vscode/x': Not a directory\n", []Denial{{"writing /p/.vscode/x", ""}}},
		{project, "OSError: [Errno 6] No such device or address: '/p/.mise.toml'\n", []Denial{{"writing /p/.mise.toml", ""}}},
		{project, "open /p/Jenkinsfile: no such device or address\n", []Denial{{"writing /p/Jenkinsfile", ""}}},
		{project, "error: could not write config file /p/.git/config: Device or resource busy\nSwitched to branch 'x'\n", []Denial{{"writing /p/.git/config", ""}}},
		{read, "Error: ENOENT: no such file or directory, mkdir 'dist'\n", []Denial{{"writing /p/sub/dist", Project}}}, // node, recursive
		{project, "Error: ENOENT: no such file or directory, mkdir 'a/b'\n", nil},
		{read, "Error: connect ENETUNREACH 127.0.0.1:36429 - Local (0.0.0.0:0)\n", []Denial{{"connecting to a port", Project}}},
		{project, "dial tcp 127.0.0.1:5432: connect: connection refused\n", []Denial{{"connecting to a port that it does not listen on itself", ""}}}, // the user's database
		{project, "cat: main.go/x: Not a directory\n", nil},
		{read, "curl: (6) Could not resolve host: example.com\n", []Denial{{"the network", ""}}},
		{read, "cat: /home/u/.ssh/id: Permission denied\n", []Denial{{"reading /home/u/.ssh", ""}}},
		{project, "touch: cannot touch '/p/.venv/bin/ls': Read-only file system\n", []Denial{{"writing /p/.venv/bin/ls", ""}}},
		{read, "Error: attempt to write a readonly database\n", []Denial{{"writing a database", Project}}},
		{read, "Error: in prepare, unable to open database file (14)\n", []Denial{{"writing a database", Project}}},
		{project, "Error: unable to open database \"x/y.db\": unable to open database file\n", nil},
		{read, "strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted\n", []Denial{{"watching another program", ""}}},
		{read, "PermissionError: [Errno 13] bind: permission denied\n", []Denial{{"listening on a port", Project}}},
		{read, "listen tcp 127.0.0.1:0: bind: permission denied\n", []Denial{{"listening on a port", Project}}},
		{read, "Error: listen EACCES: permission denied 127.0.0.1\n", []Denial{{"listening on a port", Project}}},
		{read, "bash: kill: (1) - Operation not permitted\n", []Denial{{"a signal to another program", ""}}},
		{read, "touch: " + strings.Repeat("Ⱥ", 99) + ": Read-only file system\n", []Denial{{"writing /p/sub/" + strings.Repeat("Ⱥ", 99), Project}}}, // longer in lower case
		{read, "touch: \xff\xff\xff\xff: Read-only file system\n", []Denial{{"writing /p/sub/\xff\xff\xff\xff", Project}}},
		{read, "zsh:kill:1: kill 1 failed: operation not permitted\n", []Denial{{"a signal to another program", ""}}},
		{read, "pkill: killing pid 1 failed: Operation not permitted\n", []Denial{{"a signal to another program", ""}}},
		{read, "mount: /mnt: permission denied.\n       dmesg(1) may have more information after failed mount system call.\n", []Denial{{"mounts and namespaces", ""}}},
		{read, "umount: /proc: must be superuser to unmount.\n", []Denial{{"mounts and namespaces", ""}}},
		{project, "unshare: unshare failed: Operation not permitted\n", []Denial{{"mounts and namespaces", ""}}},
		{read, "sudo: The \"no new privileges\" flag is set, which prevents sudo from running as root.\n", []Denial{{"another user's rights", ""}}},
		{read, "su: System error\n", []Denial{{"another user's rights", ""}}},
		{read, "umount: /mnt: not mounted.\n", nil},
		{read, "ls: cannot open directory mount: Permission denied\n", nil},
		{read, "cat: skills/x.md: No such file or directory\n", nil},
		{read, "chown: skill: Operation not permitted\n", nil},
		{read, "cat: kill: Permission denied\n", nil},
		{project, "sublet-confine: denied: \"example.com:443\"\n", []Denial{{`the host "example.com:443"`, Hosts}}},
		{read, "cat: /root/x: Permission denied\nall is well\n", nil},
		{read, strings.Repeat("touch: cannot touch 'x': Read-only file system\n", 9), []Denial{{"writing /p/sub/x", Project}}},
	} {
		if got := Denied(row.spec, "/p/sub", []byte(row.output)); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %q: got %+v, want %+v", row.spec.Reach, row.output, got, row.want)
		}
	}
}

// Seatbelt has one error for all that it denies.
func TestDeniedBySeatbelt(t *testing.T) {
	read := Spec{Reach: Read, Project: "/p"}
	for line, want := range map[string]Denial{
		"touch: x: Operation not permitted":                          {"writing /p/x", Project},
		"bash: /etc/x: Operation not permitted":                      {"writing /etc/x", ""},
		"PermissionError: [Errno 1] Operation not permitted: '/p/y'": {"writing /p/y", Project},
		"bash: kill: (1) - Operation not permitted":                  {"a signal to another program", ""},
	} {
		if got, ok := denial(read, "/p", line, true); !ok || got != want {
			t.Errorf("%q: got %+v, want %+v", line, got, want)
		}
	}
	if got, ok := denial(read, "/p", "chown: x: Operation not permitted", false); ok {
		t.Errorf("elsewhere: got %+v", got)
	}
}

func TestCaches(t *testing.T) {
	env := map[string]string{"GOCACHE": "/c/go", "GOPATH": "/g:/h", "CARGO_HOME": "relative"}
	got := Caches("/home/u", func(name string) string { return env[name] })
	for _, want := range []string{"/c/go", "/g/pkg", "/home/u/.cargo/registry", "/home/u/.cache/pip", "/home/u/.npm/_cacache"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %v", want, got)
		}
	}
	env["GOCACHE"], env["GOMODCACHE"] = "/home", "/home/u"
	got = append(got, Caches("/home/u", func(name string) string { return env[name] })...)
	for _, dir := range got {
		if dir == "/home" || dir == "/home/u" || dir == "/" || !strings.HasPrefix(dir, "/") {
			t.Errorf("%q is no cache", dir)
		}
	}
}

// A command could write in the user's start-up files where these are kept in its project, and links of the home lead there.
func TestKeptHome(t *testing.T) {
	home := t.TempDir()
	for link, to := range map[string]string{
		".bashrc": "dotfiles/bashrc", ".vim/vimrc": "../dotfiles/vim/vimrc", ".config/app/x.toml": "../../dotfiles/app.toml", "notes": "dotfiles/notes", ".zshrc": "elsewhere", ".none": "dotfiles/none",
	} {
		at := filepath.Join(home, link)
		target := filepath.Join(filepath.Dir(at), to)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.MkdirAll(filepath.Dir(target), 0o700), os.Symlink(to, at)); err != nil {
			t.Fatal(err)
		}
		if link != ".none" {
			if err := os.WriteFile(target, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{home} // which is below /tmp
	if !Within(home, "/tmp") {
		want = nil
	}
	for _, name := range []string{"bashrc", "vim/vimrc", "app.toml"} {
		want = append(want, filepath.Join(home, "dotfiles", name))
	}
	if got := KeptHome(home, filepath.Join(home, "dotfiles")); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What the user's home shows no use of is inert, and what needs no program of the user's is not.
func TestInert(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "settings"))
	for _, dir := range []string{".vscode-server", "settings/zed", ".config/helix", ".hgrc"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	list := Inert(home)
	for name, want := range map[string]bool{
		".vscode": false, ".devcontainer": false, ".zed": false, ".hg/hgrc": false, ".github": false, ".gitlab-ci.yml": false, ".sublet.toml": false,
		".helix": true, ".idea": true, ".envrc": true, "Jenkinsfile": true, ".husky": true,
	} {
		if slices.Contains(list, name) != want {
			t.Errorf("%s: inert is %v", name, !want)
		}
	}
	for _, name := range list {
		if !slices.Contains(Protected, name) {
			t.Errorf("%s is not protected anyway", name)
		}
	}
	if err := os.MkdirAll(filepath.Join(home, "settings/Google/AndroidStudio2025.1"), 0o755); err != nil { // it is a JetBrains IDE by another name
		t.Fatal(err)
	}
	if slices.Contains(Inert(home), ".idea") {
		t.Error(".idea is inert for a user of Android Studio")
	}
}
