package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// secret is in every file that is hidden.
const secret = "SECRET-7f3a9c51e0"

// A scene is what one attack finds. Everything in it is the attacker's.
type scene struct {
	t    *testing.T
	who  user
	dir  string
	mark string
	text string

	env      []string
	extra    []*os.File
	before   map[string]string
	patience time.Duration
	checks   []func() string // each returns the effect that it found, or ""
	cleanup  []func()
}

// prototypes has what every scene begins with, by user.
var prototypes sync.Map

func prototype(t *testing.T, who user) string {
	make := func() (string, error) {
		dir, err := os.MkdirTemp("/var/tmp", "sublet-attacks")
		if err != nil {
			return "", err
		}
		script := exec.Command("bash", "-ec", `
mkdir -p home/.ssh home/.aws home/.config/app home/.cache/go-build home/.cache/thumbs home/bin outside/d project/.vscode project/.husky project/.githooks project/ci project/build project/sub
for f in home/.ssh/id_ed25519 home/.aws/credentials home/.netrc project/.env; do echo "`+secret+`" >$f; done
for f in home/.bashrc home/.config/app/app.conf home/.cache/go-build/README home/.cache/thumbs/x home/bin/tool outside/f outside/d/g outside/held project/main.txt project/ci/workflow.yml project/.vscode/tasks.json project/.husky/pre-commit project/.githooks/pre-commit; do echo before >$f; done
printf 'made:\n\ttouch made\n' >project/Makefile
ln -s ci project/.github; ln -s ../outside/f project/out.txt; ln -s ../outside project/outdir; ln -s ../home/.ssh/id_ed25519 project/keylink
cd project
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git init -q --template= . && git config core.hooksPath .githooks && mkdir -p .git/hooks .git/info
git init -q --template= --bare .git/modules/m && mkdir -p .git/modules/m/hooks .git/worktrees/w
echo ../.. >.git/worktrees/w/commondir; echo /nowhere/.git >.git/worktrees/w/gitdir; cp .git/HEAD .git/worktrees/w/
git add main.txt && git -c user.name=x -c user.email=x@x commit -qm one`)
		script.Dir = dir
		if out, err := script.CombinedOutput(); err != nil {
			return "", fmt.Errorf("make a scene: %w\n%s", err, out)
		}
		if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", who.uid, who.gid), dir).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return dir, nil
	}
	once, _ := prototypes.LoadOrStore(who, sync.OnceValues(make))
	dir, err := once.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var named = regexp.MustCompile(`\$[POHM]\b`)

func newScene(t *testing.T, who user, text string) *scene {
	dir, err := os.MkdirTemp("/var/tmp", "sublet-attack")
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, who: who, dir: dir, mark: filepath.Base(dir) + "x"}
	at := map[string]string{"$P": s.at("project"), "$O": s.at("outside"), "$H": s.at("home"), "$M": s.mark}
	text = named.ReplaceAllStringFunc(text, func(name string) string { return at[name] }) // also within quotes
	s.text = text
	s.atEnd(func() { os.RemoveAll(dir) })
	if out, err := exec.Command("cp", "-a", prototype(t, who)+"/.", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path, err := exec.LookPath("node")
	if err == nil {
		path = filepath.Dir(path)
	}
	s.env = []string{
		"HOME=" + s.at("home"), "H=" + s.at("home"), "O=" + s.at("outside"), "P=" + s.at("project"), "M=" + s.mark,
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:" + path, "TERM=xterm", "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1",
	}
	for name, prepare := range props {
		if ok, _ := regexp.MatchString(`\b`+name+`\b`, text); ok {
			prepare(s)
		}
	}
	if strings.Contains(text, "&9") || strings.Contains(text, "fd/9") || strings.Contains(text, "fd/8") || strings.Contains(text, "=9") || strings.Contains(text, "=8") || strings.Contains(text, ",8)") {
		file, err := os.OpenFile(s.at("outside/f"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := os.Open(s.at("home/.ssh"))
		if err != nil {
			t.Fatal(err)
		}
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		s.extra = []*os.File{null, null, null, null, null, keys, file}
		s.atEnd(func() { file.Close(); keys.Close(); null.Close() })
	}
	for _, place := range []string{"/tmp/", "/var/tmp/", "/dev/shm/"} {
		path := place + s.mark
		s.checks = append(s.checks, func() string {
			if _, err := os.Lstat(path); err == nil {
				return "made " + path
			}
			return ""
		})
		s.atEnd(func() { os.RemoveAll(path) })
	}
	return s
}

func (s *scene) at(path string) string { return filepath.Join(s.dir, path) }
func (s *scene) atEnd(f func())        { s.cleanup = append(s.cleanup, f) }
func (s *scene) end() {
	slices.Reverse(s.cleanup)
	for _, f := range s.cleanup {
		f()
	}
}

func (s *scene) set(name string, value any) { s.env = append(s.env, fmt.Sprint(name, "=", value)) }
func (s *scene) own(path string) {
	if err := os.Lchown(path, s.who.uid, s.who.gid); err != nil {
		s.t.Fatal(err)
	}
}

// guarded are the names in the project that no reach changes; written out, not taken from what is tested.
var guarded = strings.Fields(`.git/config .git/hooks .git/config.worktree .git/info/attributes .git/commondir .git/modules/m/config .git/modules/m/hooks
.git/worktrees/w/commondir .git/worktrees/w/gitdir .git .github ci .githooks .vscode .idea .zed .helix .nvim.lua .nvimrc .exrc .vimrc .dir-locals.el .envrc .mise.toml
mise.toml mise.local.toml .dir-locals-2.el .qwen .opencode opencode.json .husky .devcontainer .claude .codex .gemini .mcp.json .sublet .sublet.toml .gitlab-ci.yml .circleci .travis.yml Jenkinsfile .woodpecker.yml .drone.yml
azure-pipelines.yml bitbucket-pipelines.yml .cursor .pre-commit-config.yaml lefthook.yml .hg .jj .gitea .forgejo .woodpecker .buildkite appveyor.yml
cloudbuild.yaml .env`)

// look returns what a reach may not change: all of the scene, or, with the reach project, all but what is free there.
func (s *scene) look(reach string) map[string]string {
	seen := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(path, s.dir+"/")
		name, inProject := strings.CutPrefix(rel, "project/")
		free := false
		if reach == confine.Project {
			guard := slices.ContainsFunc(guarded, func(g string) bool {
				return name == g || g != ".git" && strings.HasPrefix(name, g+"/")
			})
			free = inProject && !guard || rel == "home/.cache/go-build" || strings.HasPrefix(rel, "home/.cache/go-build/")
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || free {
			return nil
		}
		text := fmt.Sprintf("mode %o owner %d:%d", st.Mode, st.Uid, st.Gid)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			content, _ := os.ReadFile(path)
			text += fmt.Sprintf(" at %d %q", st.Mtim.Nano(), content)
		case unix.S_IFLNK:
			to, _ := os.Readlink(path)
			text += " to " + to
		}
		names := make([]byte, 500)
		if n, err := unix.Llistxattr(path, names); err == nil && n > 0 {
			text += fmt.Sprintf(" attributes %q", names[:n])
		}
		seen[rel] = text
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return seen
}

// run makes the attack, held to a reach unless that is "", and returns its effects beyond a reach and its output.
func (s *scene) run(program, held, reach string, inTerminal bool) (effects []string, output string) {
	argv := []string{"bash", "-c", s.text}
	if held != "" {
		spec := confine.Spec{
			Reach: held, Project: s.at("project"), Caches: []string{s.at("home/.cache/go-build")},
			Hidden: []string{s.at("home/.ssh"), s.at("home/.netrc"), s.at("home/.aws/credentials"), s.at("project/.env")},
		}
		file, err := os.CreateTemp(filepath.Dir(program), "spec")
		if err != nil {
			s.t.Fatal(err)
		}
		defer os.Remove(file.Name())
		_, werr := file.Write(spec.Encode())
		if err := errors.Join(werr, file.Chmod(0o644), file.Close()); err != nil {
			s.t.Fatal(err)
		}
		argv = append([]string{program, file.Name()}, argv...)
	}
	cmd := s.who.as(exec.Command(argv[0], argv[1:]...))
	cmd.Dir, cmd.Env, cmd.ExtraFiles = s.at("project"), s.env, s.extra
	if held == "" && s.who.uid == 0 {
		cmd.SysProcAttr.Unshareflags = unix.CLONE_NEWNS // what is mounted goes with it
	}
	if exe, err := exec.LookPath(argv[0]); err == nil {
		cmd.Path = exe
	}
	s.before = s.look(reach)
	if inTerminal {
		output = s.inTerminal(cmd)
	} else {
		output = s.inFiles(cmd, filepath.Dir(program))
	}
	for _, token := range []string{secret, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret)), "=")[:12]} {
		if strings.Contains(output, token) {
			effects = append(effects, "showed a secret")
		}
	}
	if strings.Contains(output, "EFFECT") {
		effects = append(effects, "a call was allowed")
	}
	effects = append(effects, s.changes(reach)...)
	// What is not held may need a moment: a process that was sent a signal, or that was only forked.
	for end := time.Now().Add(s.patience); ; time.Sleep(10 * time.Millisecond) {
		for _, check := range s.checks {
			if e := check(); e != "" {
				effects = append(effects, e)
			}
		}
		if held != "" || len(effects) > 0 || len(s.checks) == 3 || time.Now().After(end) {
			break
		}
	}
	return effects, output
}

// inTerminal runs a command in a terminal of its own, and returns what is seen there.
func (s *scene) inTerminal(cmd *exec.Cmd) string {
	master, slave, err := pty.Open()
	if err != nil {
		s.t.Fatal(err)
	}
	s.atEnd(func() { slave.Close(); master.Close() }) // after the checks
	s.own(slave.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	s.checks = append(s.checks, terminalChecks(s.t, slave))
	s.wait(cmd)
	fd := int(master.Fd()) // which makes it blocking
	if err := unix.SetNonblock(fd, true); err != nil {
		s.t.Fatal(err)
	}
	buf := make([]byte, 1<<16)
	n, _ := unix.Read(fd, buf) // it may have printed nothing
	return string(buf[:max(n, 0)])
}

// inFiles runs a command whose output goes to a file: what it leaves behind would hold a pipe open.
func (s *scene) inFiles(cmd *exec.Cmd, dir string) string {
	file, err := os.CreateTemp(dir, "out")
	if err != nil {
		s.t.Fatal(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	s.wait(cmd)
	text, err := os.ReadFile(file.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *scene) wait(cmd *exec.Cmd) {
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	kill := time.AfterFunc(s.patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // an attack that fails is one
	kill.Stop()
}

// changes returns what is not as it was before.
func (s *scene) changes(reach string) (effects []string) {
	after := s.look(reach)
	for _, path := range slices.Sorted(maps.Keys(s.before)) {
		if now, ok := after[path]; !ok {
			effects = append(effects, "removed "+path)
		} else if now != s.before[path] {
			effects = append(effects, fmt.Sprintf("changed %s: %s, was %s", path, now, s.before[path]))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if _, ok := s.before[path]; !ok {
			effects = append(effects, "made "+path)
		}
	}
	return effects
}
