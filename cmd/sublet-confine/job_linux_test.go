package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sublet/wire/citest"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sublet/lease/confine"
)

// A typist is a bash in a terminal, and who types there.
type typist struct {
	t     *testing.T
	tty   *os.File
	shell int // its process group
	mu    sync.Mutex
	seen  []byte
}

func newTypist(t *testing.T, who user, dir string) *typist {
	cmd := who.as(exec.Command("bash", "--norc", "--noprofile", "--noediting"))
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "PS1=$ ", "HOME=" + dir, "TERM=xterm"}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 31, Cols: 97})
	if err != nil {
		t.Fatal(err)
	}
	ty := &typist{t: t, tty: tty, shell: cmd.Process.Pid}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			ty.mu.Lock()
			ty.seen = append(ty.seen, buf[:n]...)
			ty.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		tty.Close()
		<-done
	})
	ty.wants("$ ")
	return ty
}

// types types a text and waits until the screen shows what is wanted after it.
func (ty *typist) types(text string, want ...string) string {
	ty.t.Helper()
	ty.mu.Lock()
	ty.seen = nil
	ty.mu.Unlock()
	if _, err := ty.tty.WriteString(text); err != nil {
		ty.t.Fatal(err)
	}
	return ty.wants(want...)
}

// runs is types for what ends with the prompt.
func (ty *typist) runs(text, want string) string {
	ty.t.Helper()
	return ty.types(text, want, "$ ")
}

type process struct {
	state              string
	pid, parent, group int
}

func processes() (list []process) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range stats {
		text, _ := os.ReadFile(path) // it may be gone
		var p process
		p.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(path))) // by the pattern it is a number
		if _, err := fmt.Sscan(string(text[bytes.LastIndexByte(text, ')')+1:]), &p.state, &p.parent, &p.group); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// continued waits until a job has the terminal and no process of it is stopped.
func (ty *typist) continued() {
	ty.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		group, err := unix.IoctlGetInt(int(ty.tty.Fd()), unix.TIOCGPGRP)
		if err != nil {
			ty.t.Fatal(err)
		}
		members, stopped := 0, 0
		for _, p := range processes() {
			if p.group == group {
				members++
				if p.state == "T" {
					stopped++
				}
			}
		}
		if group != ty.shell && members > 0 && stopped == 0 {
			return
		}
		if time.Now().After(end) {
			ty.t.Fatalf("the job %d has %d processes, %d of them stopped", group, members, stopped)
		}
	}
}

// wants waits until the screen shows these texts one after the other.
func (ty *typist) wants(wants ...string) string {
	ty.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		ty.mu.Lock()
		seen := string(ty.seen)
		ty.mu.Unlock()
		rest, found := seen, true
		for _, want := range wants {
			_, after, ok := strings.Cut(rest, want)
			rest, found = after, found && ok
		}
		if found {
			return seen
		}
		if time.Now().After(end) {
			ty.t.Fatalf("want %q, have %q", wants, seen)
		}
	}
}

// place makes a folder that all users reach, with a spec in it, and returns the words that hold a command.
func placeOf(t *testing.T, who user, s confine.Spec) (dir, prefix string) {
	t.Helper()
	program := launcher(t, who)
	dir, err := os.MkdirTemp("/var/tmp", "sublet-job")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if s.Reach == confine.Project && s.Project == "" {
		s.Project = dir
	}
	spec := filepath.Join(filepath.Dir(program), fmt.Sprint("job", serial.Add(1)))
	if err := os.WriteFile(spec, s.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, who.uid, who.gid); err != nil {
		t.Fatal(err)
	}
	return dir, program + " " + spec + " "
}

// TestJob has a shell run held commands in a terminal: it sees what it would see of them unheld.
func TestJob(t *testing.T) {
	for _, who := range users(t) {
		t.Run(who.name, func(t *testing.T) {
			dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Read})
			ty := newTypist(t, who, dir)
			ty.runs(prefix+"bash -c 'exit 7'; echo \"<$?>\"\r", "\n<7>")
			ty.runs(prefix+"bash -c 'stty size; tty; ps -o pgid= $$ | tr -d \" \"; echo over'\r", "over\r")
			ty.runs(prefix+"bash -c 'stty size'\r", "\n31 97\r")
			ty.runs(prefix+"bash -c 'tty'\r", "\n/dev/pts/")
			ty.runs(prefix+"bash -c '[ $(ps -o pgid= $$) = $(ps -o tpgid= $$) ] && echo foreground'\r", "\nforeground")
			if seen := ty.runs(prefix+"bash -c 'kill -TERM $$'; echo \"<$?>\"\r", "\n<143>"); !strings.Contains(seen, "Terminated") {
				t.Errorf("ended by SIGTERM: %q", seen)
			}
			ty.runs(prefix+"bash -c 'kill -SEGV $$'; echo \"<$?>\"\r", "\n<139>")
			ty.types(prefix+"bash -c 'echo begun; sleep 1000'\r", "\nbegun")
			ty.types("\x03", "\n$ ")
			ty.runs("echo \"<$?>\"\r", "\n<130>")
			ty.types(prefix+"bash -c 'trap \"echo caught; exit 3\" INT; echo begun; while :; do sleep .01; done'; echo \"<$?>\"\r", "\nbegun")
			ty.runs("\x03", "\n<3>")
			for range 3 { // each stop is seen once
				ty.types(prefix+"bash -c 'echo begun; sleep 1000; echo not'\r", "\nbegun")
				ty.runs("\x1a", "Stopped")
				ty.types("fg\r", "sublet-confine")
				ty.continued() // a ^Z before that is the shell's, or is undone: so it is without the launcher, too
				ty.runs("\x1a", "Stopped")
				ty.runs("bg\r", "&")
				ty.runs("jobs; echo listed\r", "Running")
				ty.runs("kill %%; wait; echo \"ended\"\r", "\nended")
			}
			ty.types(prefix+"bash -c 'echo begun; read -sp pass: x; echo; echo got $x'\r", "pass:")
			ty.runs("hidden\r", "\ngot hidden")
			ty.runs(prefix+"bash -c 'echo one; kill -STOP $$; echo two'\r", "Stopped")
			ty.runs("fg\r", "\ntwo")
			if err := pty.Setsize(ty.tty, &pty.Winsize{Rows: 10, Cols: 20}); err != nil {
				t.Fatal(err)
			}
			ty.runs(prefix+"bash -c 'stty size'\r", "\n10 20\r")
		})
	}
}

// TestEarlyKeys types ^C or ^Z at every moment of a command's start, the first ones before there is a command: it gets them.
func TestEarlyKeys(t *testing.T) {
	who := users(t)[0]
	dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Read})
	ty := newTypist(t, who, dir)
	for i := range 60 {
		ty.types("\r", "$ ") // nothing is left over
		ty.mu.Lock()
		ty.seen = nil
		ty.mu.Unlock()
		if _, err := ty.tty.WriteString(prefix + "sleep 1000; echo \"<$?>\"\r"); err != nil {
			t.Fatal(err)
		}
		// Before it has a child the launcher is a program that starts, and loses keys as any other does.
		for begun, end := false, time.Now().Add(patience); !begun; {
			group, err := unix.IoctlGetInt(int(ty.tty.Fd()), unix.TIOCGPGRP)
			if err != nil || time.Now().After(end) {
				t.Fatal("the job does not get the terminal: ", err)
			}
			for _, p := range processes() {
				begun = begun || group != ty.shell && p.parent == group
			}
		}
		time.Sleep(time.Duration(i/2) * time.Millisecond)
		if i%2 == 0 {
			seen := ty.types("\x03", "\n$ ")
			if got := ty.runs("echo \"<$?>\"\r", ">\r\n"); !strings.Contains(got, "\n<130>") {
				t.Errorf("^C after %d ms: %q, then %q", i/2, seen, got)
			}
		} else {
			ty.runs("\x1a", "Stopped")
			ty.runs("kill -9 %%; wait; echo \"ended\"\r", "\nended")
		}
	}
}

// TestKilled kills what holds a command, as a cancel does in the end: nothing of the command outlives it.
func TestKilled(t *testing.T) {
	for _, who := range users(t) {
		for _, victim := range []string{"parent", "keeper", "group", "terminate"} {
			t.Run(who.name+" "+victim, func(t *testing.T) {
				dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Read})
				tag := fmt.Sprintf("700.%d", serial.Add(1))
				words := strings.Fields(prefix)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				cmd := who.as(exec.CommandContext(ctx, words[0], append(words[1:], "bash", "-c",
					"trap '' INT HUP; setsid sleep "+tag+" & (trap '' TERM; setsid sleep "+tag+" & ) & echo $PPID; kill -9 $PPID; kill -9 "+strconv.Itoa(os.Getpid())+"; echo begun; sleep "+tag)...))
				cmd.Dir = dir
				cmd.SysProcAttr.Setpgid = true
				out := &citest.Buffer{}
				cmd.Stdout, cmd.Stderr = out, out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				for !strings.Contains(out.String(), "begun") || len(running(tag)) < 4 {
					if ctx.Err() != nil {
						t.Fatalf("it did not begin: %q", out.String())
					}
					time.Sleep(5 * time.Millisecond)
				}
				keeper, err := strconv.Atoi(strings.Fields(out.String())[0])
				if err != nil {
					t.Fatal(err)
				}
				parent, sig := cmd.Process.Pid, syscall.SIGKILL
				switch victim {
				case "parent":
					err = syscall.Kill(parent, sig)
				case "keeper":
					err = syscall.Kill(keeper, sig)
				case "group":
					err = syscall.Kill(-parent, sig)
				case "terminate":
					err = syscall.Kill(parent, syscall.SIGTERM)
				}
				if err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // killed
				for len(running(tag)) > 0 {
					if ctx.Err() != nil {
						t.Fatalf("left: %v", running(tag))
					}
					time.Sleep(5 * time.Millisecond)
				}
				if victim == "terminate" && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
					t.Errorf("ended by %v", cmd.ProcessState)
				}
				if want := "\nsublet-confine: the keeper was killed (SIGKILL), and the command with it\n"; victim == "keeper" &&
					(cmd.ProcessState.ExitCode() != 128+int(sig) || !strings.HasSuffix(out.String(), want)) {
					t.Errorf("%v, %q; want %q", cmd.ProcessState, out.String(), want)
				}
			})
		}
	}
}

// TestLedToAndMissing: what a protected link leads to is protected where it does not exist and where the link leaves the project
// on the way, and so is a protected name in a folder that does not exist. Nothing is left of what stood for them.
func TestLedToAndMissing(t *testing.T) {
	for _, who := range users(t) {
		t.Run(who.name, func(t *testing.T) {
			dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project})
			alias := dir + "-alias"
			if err := os.Symlink(dir, alias); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Remove(alias) })
			setup := who.as(exec.Command("bash", "-ec", `git init -q --template= . && git config core.hooksPath tools/git/hooks && mkdir conf
ln -s conf/envrc .envrc; ln -s none/travis .travis.yml; ln -s `+alias+`/conf/mcp .mcp.json; ln -s `+alias+`/conf/claude .claude
echo before >conf/mcp`))
			setup.Dir = dir
			if out, err := setup.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			list := func() string {
				out, err := exec.Command("find", dir, "-not", "-path", "*/.git/*").Output()
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			}
			before := list()
			for _, text := range []string{
				"echo evil >conf/envrc", "mkdir -p none; echo evil >none/travis", "echo evil >conf/mcp", "mkdir conf/claude",
				"mkdir -p tools/git/hooks && touch tools/git/hooks/pre-commit", "mkdir -p .git/info; echo '* filter=x' >.git/info/attributes",
				"rm conf/mcp", "mv conf c2",
			} {
				if out, err := who.run(t, dir, prefix, text); err == nil {
					t.Errorf("%s: works: %s", text, out)
				}
			}
			if out, err := who.run(t, dir, prefix, "touch conf/x && rm conf/x && git add conf && git gc -q && git status --short"); err != nil {
				t.Errorf("what is allowed fails: %v: %s", err, out)
			}
			if after := list(); after != before {
				t.Errorf("the project had %s and has %s", before, after)
			}
		})
	}
}

// TestKilledEarly kills the keeper before it starts the command, while it waits for its part of the spec.
func TestKilledEarly(t *testing.T) {
	who := users(t)[0]
	dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Read})
	words, spec := strings.Fields(prefix), filepath.Join(dir, "spec")
	if err := unix.Mkfifo(spec, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := who.as(exec.Command(words[0], spec, "touch", filepath.Join(dir, "ran")))
	out := &citest.Buffer{}
	cmd.Dir, cmd.Stderr = dir, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(spec, confine.Spec{Reach: confine.Read}.Encode(), 0); err != nil { // read by the parent
		t.Fatal(err)
	}
	for end, killed := time.Now().Add(patience), false; !killed; time.Sleep(time.Millisecond) {
		for _, p := range processes() {
			killed = killed || p.parent == cmd.Process.Pid && syscall.Kill(p.pid, syscall.SIGKILL) == nil
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill() // it may have ended
			t.Fatalf("it has no keeper: %q", out.String())
		}
	}
	_ = cmd.Wait() // the state says more
	want := "sublet-confine: the command was not run: the keeper ended before it started the command (SIGKILL)\n"
	if cmd.ProcessState.ExitCode() != confine.NotConfined || out.String() != want {
		t.Errorf("%v, %q; want %q", cmd.ProcessState, out.String(), want)
	}
}

func (u user) run(t *testing.T, dir, prefix, text string) (string, error) {
	t.Helper()
	words := strings.Fields(prefix)
	cmd := u.as(exec.Command(words[0], append(words[1:], "bash", "-c", text)...))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestPlaces runs commands in a project at the same time: the end of one, be it the first or the last that began, does not
// give another what none may make, and in the end nothing is left.
func TestPlaces(t *testing.T) {
	who := users(t)[0]
	dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project})
	words := strings.Fields(prefix)
	begin := func(text string) (end func()) {
		cmd := who.as(exec.Command(words[0], append(words[1:], "bash", "-c", "echo begun; read x; "+text)...))
		cmd.Dir = dir
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		return func() {
			in.Close()
			_ = cmd.Wait() // the last of what it does may be denied, or not
		}
	}
	const evil = "echo evil >.envrc; echo evil >.git/config; mkdir .vscode && touch .vscode/x"
	first := begin("true")
	second := begin(evil + "; touch made")
	first()
	if out, err := who.run(t, dir, prefix, "echo third; git status"); !strings.Contains(out, "not a git repository") {
		t.Errorf("git in no repository: %q, %v", out, err)
	}
	second()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 || list[0].Name() != "made" {
		t.Errorf("the project holds %v, %v", list, err)
	}
	if out, err := who.run(t, dir, prefix, "ln -s / .vscode"); err == nil {
		t.Errorf("made a link in a place: %s", out)
	}
}

// TestMountsBelowTmp: an ordinary user cannot have an overlay over /tmp while something is mounted below it.
func TestMountsBelowTmp(t *testing.T) {
	if os.Getuid() != 0 {
		citest.Skip(t, "not root")
	}
	below, err := os.MkdirTemp("", "sublet-mount")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(below)
	project, err := os.MkdirTemp("", "sublet-project")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(project)
	if err := os.Chown(project, ordinary.uid, ordinary.gid); err != nil {
		t.Fatal(err)
	}
	read, inProject := map[user]string{}, map[user]string{}
	for _, who := range users(t) { // which finds out what is held here
		_, read[who] = placeOf(t, who, confine.Spec{Reach: confine.Read})
		_, inProject[who] = placeOf(t, who, confine.Spec{Reach: confine.Project, Project: project})
	}
	if err := unix.Mount("tmpfs", below, "tmpfs", 0, "size=4k"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(below, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	for _, who := range users(t) {
		if out, err := who.run(t, project, read[who], "touch /tmp/x$$ && echo fine; touch y || pwd"); !strings.HasPrefix(out, "fine\n") || !strings.HasSuffix(out, project+"\n") {
			t.Errorf("%s, read: %q, %v", who.name, out, err)
		}
		if out, err := who.run(t, project, inProject[who], "touch /tmp/x$$ made && echo fine; rm made"); out != "fine\n" {
			t.Errorf("%s, project: %q, %v", who.name, out, err)
		}
	}
}

// TestCaches: a cache that a command replaced by a link out of its project, or out of another cache, is none.
func TestCaches(t *testing.T) {
	who := users(t)[0]
	out, _ := placeOf(t, who, confine.Spec{Reach: confine.Read})
	base, _ := placeOf(t, who, confine.Spec{Reach: confine.Read})
	for _, dir := range []string{"project", "cache", "real"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(base, dir), who.uid, who.gid); err != nil {
			t.Fatal(err)
		}
	}
	links := []string{filepath.Join(base, "project/c"), filepath.Join(base, "cache/c")}
	for _, link := range links {
		if err := os.Symlink(out, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real", filepath.Join(base, "users")); err != nil { // one that the user made is one
		t.Fatal(err)
	}
	alias := base + "-alias" // as of a home that is reached by a link
	if err := os.Symlink(base, alias); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(alias) })
	links = append(links, filepath.Join(alias, "project/c"), filepath.Join(alias, "cache/c"))
	project := filepath.Join(base, "project")
	_, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project, Project: project, Caches: append(links, filepath.Join(base, "cache"), filepath.Join(alias, "cache"), filepath.Join(base, "users"))})
	if text, err := who.run(t, project, prefix, "touch "+out+"/evil; touch ../cache/x ../users/x x && echo fine"); !strings.HasSuffix(text, "fine\n") {
		t.Errorf("%q, %v", text, err)
	}
	if list, err := os.ReadDir(out); err != nil || len(list) > 0 {
		t.Errorf("written out of the project: %v, %v", list, err)
	}
}

// TestMoves: files go from one folder of a project to another without being copied, as compilers have them.
func TestMoves(t *testing.T) {
	for _, who := range users(t) {
		project, _ := placeOf(t, who, confine.Spec{Reach: confine.Read})
		_, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project, Project: project})
		if text, err := who.run(t, project, prefix, "mkdir a b && touch a/x && ln a/x b/y && echo fine"); text != "fine\n" { // mv would copy
			t.Errorf("%s: %q, %v", who.name, text, err)
		}
	}
}

// TestKept: what is to stay as it is in a project cannot be written, moved or removed.
func TestKept(t *testing.T) {
	for _, who := range users(t) {
		project, _ := placeOf(t, who, confine.Spec{Reach: confine.Read})
		_, plain := placeOf(t, who, confine.Spec{Reach: confine.Project, Project: project})
		if text, err := who.run(t, project, plain, "mkdir -p .venv/bin && touch .venv/bin/tool && echo fine"); text != "fine\n" {
			t.Fatalf("%s: %q, %v", who.name, text, err)
		}
		_, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project, Project: project, Kept: []string{filepath.Join(project, ".venv/bin"), filepath.Join(project, "absent"), "/usr/bin"}})
		text, err := who.run(t, project, prefix, "{ touch .venv/bin/ls; mv .venv .other; rm -f .venv/bin/tool; } 2>/dev/null; ls .venv/bin; touch .venv/x && echo fine")
		if text != "tool\nfine\n" {
			t.Errorf("%s: %q, %v", who.name, text, err)
		}
	}
}

// TestScript: the command's text is a copy of it.
func TestScript(t *testing.T) {
	who := users(t)[0]
	dir, _ := placeOf(t, who, confine.Spec{Reach: confine.Read})
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("echo $((6*7))\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(script, who.uid, who.gid); err != nil {
		t.Fatal(err)
	}
	_, prefix := placeOf(t, who, confine.Spec{Reach: confine.Read, Script: script, Hidden: []string{dir}})
	out, err := who.run(t, "/", prefix, ". /dev/fd/3; chmod 777 /dev/fd/3; echo evil >/dev/fd/3; ls -A "+dir)
	if text, rerr := os.ReadFile(script); !strings.HasPrefix(out, "42\n") || rerr != nil || string(text) != "echo $((6*7))\n" {
		t.Errorf("%q, %v; the script is %q, %v", out, err, text, rerr)
	}
	if st, err := os.Stat(script); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", st, err)
	}
}

// TestProject runs what has to work in a project.
func TestProject(t *testing.T) {
	for _, who := range users(t) {
		t.Run(who.name, func(t *testing.T) {
			dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project})
			setup := who.as(exec.Command("bash", "-ec", "git init -q -b main; mkdir d ci .vscode; echo x | tee d/f >ci/f; ln -s ci .github; git add -A; git -c user.name=x -c user.email=x@x commit -qm one"))
			setup.Dir = dir
			setup.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
			if out, err := setup.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, text := range []string{
				"echo y >>d/f; git add -A && git commit -qm two",
				"echo z >>d/f; git stash -q && git stash pop -q",
				"git checkout -qb other && git checkout -q main && git merge -q other && git tag v1 && git branch -d other",
				"git gc -q && git fsck && git log --oneline | grep -q two",
				"mv d/f d/g && git mv -f d/g d/f 2>/dev/null || git checkout -q . && git status --short",
				"cp -r . /tmp/copy$$ && tar cf /tmp/$$.tar . && find . -type f -exec cat {} + >/dev/null && grep -rq x .",
				"mkdir -p build/sub && touch build/sub/o && mv build out && rm -r out",
				"mkfifo p && { echo x >p & read -r x <p && [ \"$x\" = x ]; } && rm p",
				`perl -MIO::Socket -e '$l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die $@; IO::Socket::INET->new("127.0.0.1:".$l->sockport) or die $@'`,
				`perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die $!'`,
				"touch /tmp/x$$ /dev/shm/x$$ && [ \"$TMPDIR\" = /tmp ] && mktemp >/dev/null",
				"nice -n 1 true && kill -0 $$ && { sleep 100 & kill $!; }",
			} {
				if out, err := who.run(t, dir, prefix, "export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=x GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=x@x HOME=/tmp\n"+text); err != nil {
					t.Errorf("%s: %v: %s", text, err, out)
				}
			}
		})
	}
}
