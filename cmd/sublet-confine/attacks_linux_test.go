package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

//go:embed testdata/attacks.txt
var attackTable string

// An attack is a row of testdata/attacks.txt, which says what it finds.
type attack struct {
	class, text string
	users       string // "root" or "user" only; "" = all
	readOnly    bool   // only with the reach read: project allows it
}

// attacks reads the table.
func attacks(t *testing.T) (list []attack) {
	var head attack
	var uses, at []string
	// flush has each use tried at the first most paths, and each path by the first each uses.
	flush := func(most, each int) {
		for i, use := range uses {
			for j, path := range at {
				if i < each || j < most {
					a := head
					a.text = strings.ReplaceAll(use, "@@", path)
					list = append(list, a)
				}
			}
		}
		uses, at = nil, nil
	}
	for line := range strings.Lines(attackTable) {
		line = strings.TrimSuffix(line, "\n")
		name, rest, _ := strings.Cut(line, " ")
		switch name {
		case "", "#":
		case "==":
			flush(2, 6)
			head = attack{}
			for _, word := range strings.Fields(rest) {
				switch word {
				case "[root]", "[user]":
					head.users = strings.Trim(word, "[]")
				case "[read]":
					head.readOnly = true
				default:
					head.class = strings.TrimSpace(head.class + " " + word)
				}
			}
		case "@write", "@read":
			uses = append(uses, rest)
		case "@path", "@secret":
			at = append(at, rest)
		default:
			if len(uses) > 0 { // of secrets
				flush(2, 5)
			}
			a := head
			a.text = line
			list = append(list, a)
		}
	}
	flush(2, 6)
	if len(list) < 400 {
		t.Fatalf("%d attacks", len(list))
	}
	return list
}

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

// props are what an attack finds if it names it.
var props = map[string]func(*scene){
	"VICTIM": func(s *scene) {
		tag := serial.Add(1)
		cmd := s.who.as(exec.Command("sleep", fmt.Sprintf("1000.%d", tag)))
		cmd.Dir, cmd.Env = s.at("home/.ssh"), []string{"TOKEN=" + secret}
		cmd.SysProcAttr.Setpgid = true
		held, err := os.Open(s.at("outside/held"))
		if err != nil {
			s.t.Fatal(err)
		}
		keys, err := os.Open(s.at("home/.ssh/id_ed25519"))
		if err != nil {
			s.t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{held, held, keys}
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		held.Close()
		keys.Close()
		pid := cmd.Process.Pid
		s.set("VICTIM", pid)
		s.set("VICTIMTAG", tag)
		was := about(pid)
		s.checks = append(s.checks, func() string {
			if now := about(pid); now != was {
				return fmt.Sprintf("the other process was %s, is %s", was, now)
			}
			return ""
		})
		s.atEnd(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	},
	"SLEEP": func(s *scene) {
		time := fmt.Sprintf("600.%d", serial.Add(1))
		s.set("SLEEP", time)
		s.checks = append(s.checks, func() string {
			if list := running(time); len(list) > 0 {
				return fmt.Sprintf("left %d processes", len(list))
			}
			return ""
		})
		s.atEnd(func() {
			for list := running(time); len(list) > 0; list = running(time) {
				for _, pid := range list {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		})
	},
	"TCP":   func(s *scene) { s.listen("TCP", "tcp", "127.0.0.1:0") },
	"TCP6":  func(s *scene) { s.listen("TCP6", "tcp", "[::1]:0") },
	"UDP":   func(s *scene) { s.listenPacket("UDP", "udp", "127.0.0.1:0") },
	"SOCK":  func(s *scene) { s.listen("SOCK", "unix", s.at("outside/sock")) },
	"DGRAM": func(s *scene) { s.listenPacket("DGRAM", "unixgram", s.at("outside/dgram")) },
	"ABS":   func(s *scene) { s.listen("ABS", "unix", "@"+s.mark) },
	"ABSD":  func(s *scene) { s.listenPacket("ABSD", "unixgram", "@"+s.mark+"d") },
	"FIFO": func(s *scene) {
		path := s.at("outside/fifo")
		if err := unix.Mkfifo(path, 0o666); err != nil {
			s.t.Fatal(err)
		}
		s.own(path)
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		s.set("FIFO", path)
		s.checks = append(s.checks, func() string {
			if n, _ := unix.Read(fd, make([]byte, 10)); n > 0 {
				return "wrote into a pipe"
			}
			return ""
		})
		s.atEnd(func() { unix.Close(fd) })
	},
	"SHM": func(s *scene) {
		id, err := unix.SysvShmGet(0, 4096, unix.IPC_CREAT|0o666)
		if err != nil {
			s.t.Fatal(err)
		}
		shared, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		var d unix.SysvShmDesc
		if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &d); err != nil {
			s.t.Fatal(err)
		}
		d.Perm.Uid, d.Perm.Gid = uint32(s.who.uid), uint32(s.who.gid)
		if _, err := unix.SysvShmCtl(id, unix.IPC_SET, &d); err != nil {
			s.t.Fatal(err)
		}
		s.set("SHM", id)
		s.checks = append(s.checks, func() string {
			if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &d); err != nil || d.Perm.Mode&0o1000 != 0 || shared[0] != 0 {
				return "changed shared memory"
			}
			return ""
		})
		s.atEnd(func() { _ = unix.SysvShmDetach(shared); _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	},
	"MSGQ": func(s *scene) {
		out, err := s.who.as(exec.Command("ipcmk", "-Q", "-p", "0666")).Output()
		if err != nil {
			s.t.Fatal(err)
		}
		id := strings.TrimSpace(string(out[bytes.LastIndexByte(out, ' ')+1:]))
		s.set("MSGQ", id)
		s.checks = append(s.checks, func() string {
			if out, err := exec.Command("ipcs", "-q", "-i", id).Output(); err != nil || !bytes.Contains(out, []byte("qnum=0")) {
				return "changed a message queue"
			}
			return ""
		})
		s.atEnd(func() { _ = exec.Command("ipcrm", "-q", id).Run() })
	},
	"SUID": func(s *scene) {
		if os.Getuid() != 0 {
			s.set("SUID", "/nowhere")
			return
		}
		path := s.at("outside/suid")
		if out, err := exec.Command("install", "-m", "4755", "/usr/bin/id", path).CombinedOutput(); err != nil {
			s.t.Fatalf("%v: %s", err, out)
		}
		s.set("SUID", path)
	},
	"TTY2": func(s *scene) {
		master, slave, err := pty.Open()
		if err != nil {
			s.t.Fatal(err)
		}
		s.own(slave.Name())
		s.set("TTY2", slave.Name())
		check := terminalChecks(s.t, slave)
		s.checks = append(s.checks, func() string {
			if n, _ := unix.IoctlGetInt(int(master.Fd()), unix.TIOCINQ); n > 0 {
				return "wrote to another terminal"
			}
			return check()
		})
		s.atEnd(func() { master.Close(); slave.Close() })
	},
}

// terminalChecks returns a check that a terminal is as it was.
func terminalChecks(t *testing.T, tty *os.File) func() string {
	look := func() (string, int) {
		var st unix.Stat_t
		if err := unix.Fstat(int(tty.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		modes, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		excl, _ := unix.IoctlGetInt(int(tty.Fd()), 0x80045440) // TIOCGEXCL
		n, _ := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCINQ)
		return fmt.Sprintf("mode %o, %x, exclusive %d", st.Mode, modes.Lflag, excl), n
	}
	was, _ := look()
	return func() string {
		switch now, typed := look(); {
		case typed > 0:
			return "typed into a terminal"
		case now != was:
			return fmt.Sprintf("a terminal was %s, is %s", was, now)
		}
		return ""
	}
}

func (s *scene) listen(name, network, address string) {
	l, err := net.Listen(network, address)
	if err != nil && name == "TCP6" {
		s.set(name, 1) // no IPv6 here
		return
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.set(name, s.address(l.Addr()))
	s.checks = append(s.checks, func() string {
		_ = l.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(5 * time.Millisecond))
		if c, err := l.Accept(); err == nil {
			c.Close()
			return "connected to " + name
		}
		return ""
	})
	s.atEnd(func() { l.Close() })
}

func (s *scene) listenPacket(name, network, address string) {
	l, err := net.ListenPacket(network, address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.set(name, s.address(l.LocalAddr()))
	s.checks = append(s.checks, func() string {
		_ = l.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		if n, _, err := l.ReadFrom(make([]byte, 10)); err == nil && n > 0 {
			return "sent to " + name
		}
		return ""
	})
	s.atEnd(func() { l.Close() })
}

func (s *scene) address(a net.Addr) string {
	if _, port, err := net.SplitHostPort(a.String()); err == nil {
		return port
	}
	if !strings.HasPrefix(a.String(), "@") {
		s.own(a.String())
	}
	return strings.TrimPrefix(a.String(), "@")
}

// about returns what can be done to a process from outside.
func about(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "gone"
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	limits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	score, _ := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	io, _, _ := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0)
	var line []string
	for l := range strings.Lines(string(status)) {
		if strings.HasPrefix(l, "Cpus_allowed_list") || strings.HasPrefix(l, "TracerPid") || strings.HasPrefix(l, "ShdPnd") || strings.HasPrefix(l, "SigPnd") {
			line = append(line, strings.TrimSpace(l))
		}
	}
	for l := range strings.Lines(string(limits)) {
		if strings.HasPrefix(l, "Max open files") {
			line = append(line, strings.Join(strings.Fields(l), " "))
		}
	}
	state := fields[0]
	if state == "R" {
		state = "S"
	}
	return fmt.Sprintf("%s, nice %s, class %s, io %d, oom %s, %s", state, fields[16], fields[38], io, bytes.TrimSpace(score), strings.Join(line, ", "))
}

// guarded are the names in the project that no reach changes; written out, not taken from what is tested.
var guarded = strings.Fields(`.git/config .git/hooks .git/config.worktree .git/info/attributes .git/commondir .git/modules/m/config .git/modules/m/hooks
.git/worktrees/w/commondir .git/worktrees/w/gitdir .git .github ci .githooks .vscode .idea .zed .helix .nvim.lua .nvimrc .exrc .vimrc .dir-locals.el .envrc .mise.toml
mise.toml .husky .devcontainer .claude .codex .gemini .mcp.json .sublet .sublet.toml .gitlab-ci.yml .circleci .travis.yml Jenkinsfile .woodpecker.yml .drone.yml
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

// batch is how many attacks are made in one held command where they do not disturb each other.
const batch = 25

// disturbs reports whether an attack may change what another one finds even if it is held.
func (a attack) disturbs(reach string) bool {
	return a.class == "terminal" || reach == confine.Project && (a.class == "links" || a.class == "protected")
}

// together returns attacks as one command.
func together(list []attack) string {
	var text strings.Builder
	for _, a := range list {
		fmt.Fprintf(&text, "(%s\n)\n", a.text)
	}
	return text.String()
}

var only = flag.String("attacks", "", "make only the attacks whose class and text contain this")

var every = flag.Bool("every", false, "make every attack also where nothing holds it, not one in five")

// sample is the share of the attacks that is made with -short, and unheld without -every: one in so many.
const sample = 5

// A trial is a number of attacks that are made as one held command.
type trial struct {
	who   user
	reach string
	list  []attack
}

// A campaign is all attacks on a launcher.
type campaign struct {
	t       *testing.T
	program string
	users   []user

	mu      sync.Mutex
	works   map[attack]bool   // has its effect where nothing holds it
	lacking map[string]bool   // programs
	counts  map[string]*count // by class
}

type count struct{ attacks, held, effects int }

// TestAttacks makes every attack held to each reach by each user, which must have no effect; and unheld, which must have one, with
// -every: that is most of the time, and changes with the table only.
func TestAttacks(t *testing.T) {
	all := users(t)
	c := &campaign{t: t, program: launcher(t, all[0]), users: all, works: map[attack]bool{}, lacking: map[string]bool{}, counts: map[string]*count{}}
	t.Cleanup(func() {
		prototypes.Range(func(_, once any) bool {
			if dir, err := once.(func() (string, error))(); err == nil {
				os.RemoveAll(dir)
			}
			return true
		})
	})
	begin := time.Now()
	var alone, rest []attack
	for i, a := range attacks(t) {
		if *only == "" && testing.Short() && i%sample != 0 || !strings.Contains(a.class+": "+a.text, *only) {
			continue
		}
		if a.class == "all of the user's" {
			alone = append(alone, a)
		} else {
			rest = append(rest, a)
		}
	}
	tried := func(list []attack) (some []attack) {
		for i, a := range list {
			if *every || *only != "" || testing.Short() || i%sample == 0 {
				some = append(some, a)
			} else if c.unheldBy(a) != nil && missingProgram(a.text) == "" {
				c.works[a] = true
			}
		}
		return some
	}
	parallel(tried(rest), c.unheld)
	for _, a := range tried(alone) {
		c.unheld(a)
	}
	t.Logf("unheld: %v", time.Since(begin))
	begin = time.Now()
	parallel(c.trials(), c.held)
	t.Logf("held: %v", time.Since(begin))
	for a := range c.works {
		c.counts[a.class].attacks++
	}
	total := 0
	for _, class := range slices.Sorted(maps.Keys(c.counts)) {
		n := c.counts[class]
		total += n.attacks
		t.Logf("%-16s %4d attacks, held %4d times, %d effects", class, n.attacks, n.held, n.effects)
	}
	t.Logf("%d attacks", total)
	if total < 400 && *only == "" && !testing.Short() {
		t.Error("too few attacks have an effect here where nothing holds them")
	}
	if len(c.lacking) > 0 {
		t.Logf("without the attacks that need what is not installed: %s", strings.Join(slices.Sorted(maps.Keys(c.lacking)), " "))
	}
}

// try makes a scene for an attack and runs a text there.
func (c *campaign) try(who user, a attack, text, held, reach string) ([]string, string) {
	s := newScene(c.t, who, text)
	defer s.end()
	s.patience = patience * time.Duration(1+strings.Count(text, "\n")/10)
	effects, output := s.run(c.program, held, reach, a.class == "terminal")
	if strings.Contains(output, "the command was not run") {
		effects = append(effects, "was not run")
	}
	return effects, output
}

// unheldBy returns who can make an attack where nothing holds it, or nil.
func (c *campaign) unheldBy(a attack) *user {
	i := slices.IndexFunc(c.users, func(u user) bool { return a.users == "" || a.users == u.name })
	if i < 0 || a.users == "user" && os.Getuid() != 0 { // there is no program of another user's
		return nil
	}
	return &c.users[i]
}

// unheld makes an attack where nothing holds it.
func (c *campaign) unheld(a attack) {
	who := c.unheldBy(a)
	if who == nil {
		return
	}
	judged := confine.Project
	if a.readOnly {
		judged = confine.Read
	}
	effects, output := c.try(*who, a, a.text, "", judged)
	name := missingProgram(a.text)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(effects) > 0:
		c.works[a] = true
	case name != "":
		c.lacking[name] = true
	default:
		c.t.Errorf("%s: %s: has no effect where nothing holds it\n%s", a.class, a.text, output)
	}
}

// trials returns the attacks that work, in batches.
func (c *campaign) trials() (list []trial) {
	for _, who := range c.users {
		for _, reach := range []string{confine.Read, confine.Project} {
			now := map[string][]attack{}
			for _, a := range attacks(c.t) {
				if !c.works[a] || a.users != "" && a.users != who.name || a.readOnly && reach == confine.Project {
					continue
				}
				if c.counts[a.class] == nil {
					c.counts[a.class] = &count{}
				}
				c.counts[a.class].held++
				now[a.class] = append(now[a.class], a)
				if a.disturbs(reach) || len(now[a.class]) == batch {
					list = append(list, trial{who, reach, now[a.class]})
					now[a.class] = nil
				}
			}
			for _, class := range slices.Sorted(maps.Keys(now)) {
				if len(now[class]) > 0 {
					list = append(list, trial{who, reach, now[class]})
				}
			}
		}
	}
	return list
}

// held makes attacks as one held command; where that has an effect, also each by itself to find out which it was.
func (c *campaign) held(tr trial) {
	effects, output := c.try(tr.who, tr.list[0], together(tr.list), tr.reach, tr.reach)
	if len(effects) == 0 {
		return
	}
	found := 0
	for _, a := range tr.list {
		if effects, output := c.try(tr.who, a, a.text, tr.reach, tr.reach); len(effects) > 0 {
			found++
			c.t.Errorf("%s as %s, held to %s: %s: %s\n%s", a.class, tr.who.name, tr.reach, a.text, strings.Join(effects, "; "), output)
		}
	}
	if found == 0 {
		c.t.Errorf("%s as %s, held to %s, together: %s\n%s\n%s", tr.list[0].class, tr.who.name, tr.reach, strings.Join(effects, "; "), together(tr.list), output)
	}
	c.mu.Lock()
	c.counts[tr.list[0].class].effects += max(found, 1)
	c.mu.Unlock()
}

// parallel calls f for each of a list, some at the same time.
func parallel[T any](list []T, f func(T)) {
	work := make(chan T)
	var workers sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		workers.Go(func() {
			for v := range work {
				done := make(chan struct{})
				go func() { // which t.Fatal ends
					defer close(done)
					f(v)
				}()
				<-done
			}
		})
	}
	for _, v := range list {
		work <- v
	}
	close(work)
	workers.Wait()
}

// missingProgram returns a program of an attack that is not installed, or "".
func missingProgram(text string) string {
	for _, name := range strings.Fields("node curl wget git gcc gdb strace sqlite3 vim ed xxd openssl make tclsh ssh-keygen ssh ssh-add ssh-agent man jq fuser script docker tmux logger start-stop-daemon python3 perl ip unshare less more strings tar npm ipcrm") {
		if strings.Contains(" "+text, " "+name+" ") {
			if _, err := exec.LookPath(name); err != nil {
				return name
			}
		}
	}
	return ""
}
