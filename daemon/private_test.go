package daemon

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sublet/lease/confine/confinetest"
	"sublet/wire"
)

// An invasion is what an agent in a private shell tries, and how its effect is seen.
type invasion struct {
	text    string // in the project, with $HOME, $OUT, $PORT, $SOCK and $PID
	effect  func(w *privateWorld, output string) bool
	allowed string // the role whose bound allows it
}

const privateSecret = "KEY-5d1c7e90ab"

var invasions = []invasion{
	{text: `echo x >>$HOME/.bashrc`, effect: grew("home/.bashrc")},
	{text: `sh -c 'echo x >>$HOME/.bashrc'`, effect: grew("home/.bashrc")},
	{text: `. ./tools/start.sh`, effect: grew("home/.bashrc")},
	{text: `export X=$(sh ./tools/start.sh)`, effect: grew("home/.bashrc")},
	{text: `echo x >$OUT/f`, effect: grew("outside/f")},
	{text: `sh ./tools/show.sh`, effect: func(_ *privateWorld, output string) bool { return strings.Contains(output, privateSecret) }},
	{text: `sh ./tools/hook.sh`, effect: grew("project/.git/hooks/pre-commit")},
	{text: `bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT'`, effect: func(w *privateWorld, _ string) bool { return accepted(w.tcp) }},
	{text: `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => $ENV{SOCK}) or die'`, effect: func(w *privateWorld, _ string) bool { return accepted(w.unix) }},
	{text: `sh -c 'kill $PID'`, effect: func(w *privateWorld, _ string) bool { return zombie(w.victim.Process.Pid) }},
	{text: `sh ./tools/stay.sh`, effect: func(w *privateWorld, _ string) bool { return len(left(w.dir)) > 0 }},
	{text: `touch /tmp/$MARK`, effect: func(w *privateWorld, _ string) bool { return exists("/tmp/" + filepath.Base(w.dir)) }},
	{text: `echo x >>main.txt`, effect: grew("project/main.txt"), allowed: "engineer"},
}

// A privateWorld is a home, a project and what else an invasion finds.
type privateWorld struct {
	dir       string
	tcp, unix net.Listener
	victim    *exec.Cmd
	settings  string
}

func grew(path string) func(*privateWorld, string) bool {
	return func(w *privateWorld, _ string) bool {
		b, err := os.ReadFile(filepath.Join(w.dir, path))
		return err == nil && len(b) > 0
	}
}

func accepted(l net.Listener) bool {
	_ = l.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(5 * time.Millisecond))
	c, err := l.Accept()
	if err == nil {
		c.Close()
	}
	return err == nil
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// left returns the processes that carry a world's mark in their arguments.
func left(dir string) (pids []int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		if b, err := os.ReadFile(line); err == nil && strings.Contains(string(b), "stay-"+filepath.Base(dir)) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line))); err == nil && !zombie(pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func newPrivateWorld(t *testing.T) *privateWorld {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sublet-private")
	if err != nil {
		t.Fatal(err)
	}
	w := &privateWorld{dir: dir}
	t.Cleanup(func() { os.RemoveAll(dir); os.Remove("/tmp/" + filepath.Base(dir)) })
	script := exec.Command("bash", "-ec", `
mkdir -p home/.ssh project/tools outside
echo `+privateSecret+` >home/.ssh/id_rsa; : >home/.bashrc; : >outside/f; : >project/main.txt
cd project; git init -q --template= .; mkdir -p .git/hooks; : >.git/hooks/pre-commit
echo 'echo x >>$HOME/.bashrc' >tools/start.sh
echo 'cat $HOME/.ssh/*' >tools/show.sh
echo 'echo x >>.git/hooks/pre-commit' >tools/hook.sh
echo 'curl -s http://other.invalid/' >tools/fetch.sh
echo 'setsid sh -c "sleep 30; : stay-$MARK" >/dev/null 2>&1 &' >tools/stay.sh
git add . && git -c user.name=x -c user.email=x@x commit -qm one`)
	script.Dir = dir
	script.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if w.tcp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if w.unix, err = net.Listen("unix", filepath.Join(dir, "sock")); err != nil {
		t.Fatal(err)
	}
	w.victim = exec.Command("sleep", "1000")
	if err := w.victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.tcp.Close()
		w.unix.Close()
		_ = w.victim.Process.Kill()
		_ = w.victim.Wait()
		for _, pid := range left(dir) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	})
	return w
}

// env is what commands find in their environment.
func (w *privateWorld) env() map[string]wire.OSString {
	_, port, _ := net.SplitHostPort(w.tcp.Addr().String())
	env := map[string]wire.OSString{}
	for name, value := range map[string]string{
		"HOME": w.dir + "/home", "OUT": w.dir + "/outside", "PORT": port, "SOCK": w.dir + "/sock", "PID": strconv.Itoa(w.victim.Process.Pid),
		"MARK": filepath.Base(w.dir), "PATH": os.Getenv("PATH"),
	} {
		env[name] = wire.OSString(value)
	}
	return env
}

// Whatever an agent runs in its private shell is held to its role's bound in every mode, also where the user says yes to all
// that is asked, and where the agent asks for more. In mode full nothing held a private shell.
func TestPrivateShellsAreHeld(t *testing.T) {
	confinetest.Beside(t)
	for _, a := range invasions { // each is one
		w := newPrivateWorld(t)
		cmd := exec.Command("bash", "-c", a.text)
		cmd.Dir = w.dir + "/project"
		for name, value := range w.env() {
			cmd.Env = append(cmd.Env, name+"="+string(value))
		}
		out, _ := cmd.CombinedOutput() // it may end with an error
		had := a.effect(w, string(out))
		for end := time.Now().Add(2 * time.Second); !had && time.Now().Before(end); had = a.effect(w, string(out)) { // a signal takes a moment
			time.Sleep(5 * time.Millisecond)
		}
		if !had {
			t.Errorf("%s: has no effect where nothing holds it: %s", a.text, out)
		}
	}
	for _, role := range []string{"engineer", "reviewer"} {
		for _, mode := range []string{"ask", "auto", "full"} {
			t.Run(role+" "+mode, func(t *testing.T) {
				w := newPrivateWorld(t)
				var calls []map[string]any
				for _, a := range invasions {
					for _, reach := range []string{"", "free"} {
						calls = append(calls, map[string]any{"name": "bash", "arguments": map[string]any{"command": a.text, "reach": reach}})
					}
				}
				output := w.agent(t, role, mode, nil, calls...)
				for _, a := range invasions {
					if got := a.effect(w, output); got != (a.allowed == role) {
						t.Errorf("%s: has its effect: %v", a.text, got)
					}
				}
			})
		}
	}
}

// Where the launcher is gone, or holds nothing any more, a private shell runs nothing and says why.
func TestPrivateShellWithoutItsLauncher(t *testing.T) {
	for what, launcher := range map[string]string{"there is no program": "", "the command was not run: no": "#!/bin/sh\necho 'sublet-confine: the command was not run: no' >&2\nexit 126\n"} {
		t.Run(what, func(t *testing.T) {
			path := confinetest.Beside(t)
			t.Cleanup(func() { os.Remove(path) }) // the next one is built
			w := newPrivateWorld(t)
			output := w.agent(t, "engineer", "ask", func() {
				if err := os.Remove(path); err != nil {
					t.Error(err)
				}
				if launcher == "" {
					return
				}
				if err := os.WriteFile(path, []byte(launcher), 0o700); err != nil {
					t.Error(err)
				}
			}, map[string]any{"name": "bash", "arguments": map[string]any{"command": "true"}}, map[string]any{"name": "bash", "arguments": map[string]any{"command": "echo x >>main.txt; sh ./tools/start.sh"}})
			if grew("project/main.txt")(w, "") || grew("home/.bashrc")(w, "") || !strings.Contains(output, what) {
				t.Errorf("ran, or did not say why: %s", output)
			}
		})
	}
}

// A held command reaches the proxy of the hosts that the settings allow, and is refused others by name.
func TestHeldCommandIsToldOfHosts(t *testing.T) {
	confinetest.Beside(t)
	w := newPrivateWorld(t)
	w.settings = "[policy.project]\nhosts = [\"allowed.invalid\"]\n"
	output := w.agent(t, "engineer", "auto", nil, map[string]any{"name": "bash", "arguments": map[string]any{"command": "sh ./tools/fetch.sh; false", "reach": "project"}})
	for _, want := range []string{`"other.invalid:80" is not among the hosts`, `denied by its reach, project: the host "other.invalid:80"; the user can allow it by hosts under [policy.project]`} {
		if !strings.Contains(output, want) {
			t.Errorf("got %s\nwant %s", output, want)
		}
	}
}

// agent has an agent of a role make calls in its private shell, with every question answered by yes, and returns what they
// printed. first, if any, is called before the first answer.
func (w *privateWorld) agent(t *testing.T, role, mode string, first func(), calls ...map[string]any) string {
	t.Helper()
	t.Setenv("HOME", w.dir+"/home")
	p := home(t, "")
	script := filepath.Join(filepath.Dir(p.Config), "script.json")
	var steps []any
	for _, c := range calls {
		steps = append(steps, map[string]any{"tool_calls": []any{c}})
	}
	text, err := json.Marshal([]any{map[string]any{"match": "go", "steps": slices.Concat(steps, []any{map[string]any{"text": "done"}})}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, script, string(text))
	write(t, p.Config, "model = \"test/m\"\n[provider.test]\nkind = \"scripted\"\nscript = \""+script+"\"\n"+w.settings)
	stop, ended := run(t, Options{Paths: p})
	defer func() {
		stop()
		if err := over(t, ended); err != nil {
			t.Error(err)
		}
	}()
	c := client(t, p, func(m *wire.EnvSnapshot) {
		m.Cwd, m.Env = wire.OSString(w.dir+"/project"), w.env()
	})
	if err := c.Send(&wire.AgentRequest{RequestID: "r", Prompt: "go", Agent: role, Context: wire.RequestContext{Cwd: wire.OSString(w.dir + "/project")}, Options: wire.RequestOptions{Mode: mode}}); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	guard := time.AfterFunc(6*patience, func() { c.Close() })
	defer guard.Stop()
	for {
		m, err := c.Receive()
		if err != nil {
			t.Fatalf("%v, after\n%s", err, output.String())
		}
		switch m := m.(type) {
		case *wire.ConfirmationRequest:
			if first != nil {
				first()
				first = nil
			}
			if err := c.Send(&wire.ConfirmationResponse{ConfirmationID: m.ConfirmationID, Decision: wire.DecisionAllow}); err != nil {
				t.Fatal(err)
			}
		case *wire.CommandResult:
			fmt.Fprintf(&output, "%s\n%s\n", m.Command, m.Output)
		case *wire.AgentComplete:
			return output.String()
		}
	}
}
