package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/wire/citest"
)

// patience bounds every wait for something that another process does. It is long because these machines are slow under
// the race detector; nothing is ever slept for.
const patience = 2 * time.Minute

// A world is one user: a home, a project, runtime and state folders, settings, and the daemon, which the first command starts.
type world struct {
	t                          *testing.T
	root, home, project, state string
	env                        []string
}

// script is what the scripted model answers; see provider/scripted.
type script []scene

type scene struct {
	Match string `json:"match"`
	Steps []step `json:"steps"`
}

type step struct {
	Text       string `json:"text,omitempty"`
	Reasoning  string `json:"reasoning,omitempty"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	WaitFile   string `json:"wait_file,omitempty"`
	ChunkBytes int    `json:"chunk_bytes,omitempty"`
	Error      string `json:"error,omitempty"`
}

type call struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments"`
}

func bash(command string) call { return call{"bash", map[string]any{"command": command}} }

// newWorld makes a user whose bash start-up file holds bashrc and whose model plays s. settings are added to the
// settings file. The test goes on beside others, which have worlds of their own.
func newWorld(t *testing.T, bashrc string, s script, settings ...string) *world {
	t.Helper()
	return newWorldBelow(t, "/tmp", bashrc, s, settings...)
}

// newWorldBelow makes the world of newWorld below dir, which is short: a socket's path holds 104 bytes.
func newWorldBelow(t *testing.T, dir, bashrc string, s script, settings ...string) *world {
	t.Helper()
	t.Parallel()
	root, err := os.MkdirTemp(dir, "sl")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, root: root, home: filepath.Join(root, "home"), project: filepath.Join(root, "home", "project"), state: filepath.Join(root, "state")}
	for _, dir := range []string{w.home, w.project, filepath.Join(root, "run"), w.state} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.script(s)
	w.write(filepath.Join(root, "config.toml"), "model = \"test/m\"\n"+strings.Join(settings, "\n")+
		fmt.Sprintf("\n[provider.test]\nkind = \"scripted\"\nscript = %q\n", filepath.Join(root, "script.json")))
	w.env = []string{
		"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "USER=tester",
		"SUBLET_RUNTIME_DIR=" + filepath.Join(root, "run"), "SUBLET_STATE_DIR=" + w.state, "SUBLET_CONFIG=" + filepath.Join(root, "config.toml"),
		// A race found in the program under test must fail the test: it ends that program, at once, and is in its log.
		"GORACE=halt_on_error=1 atexit_sleep_ms=0 log_path=" + filepath.Join(root, "race"),
	}
	w.login("bash", bashrc)
	t.Cleanup(w.end)
	return w
}

// login makes zsh or fish the user's shell, with a start-up file that ends with rc, or adds rc to bash's.
func (w *world) login(shell, rc string) {
	w.t.Helper()
	path := citest.Program(w.t, shell)
	file := map[string][2]string{
		"bash": {".bashrc", "PS1='\\W$ '\n"}, "zsh": {".zshrc", "PS1='%1~$ '\n"},
		"fish": {".config/fish/config.fish", "function fish_prompt; echo -n (basename $PWD)'$ '; end\nset -g fish_greeting\n"},
	}[shell]
	w.write(filepath.Join(w.home, file[0]), file[1]+rc)
	w.write(filepath.Join(w.home, ".local/share/fish/generated_completions/none.fish"), "") // else fish makes some, for a minute
	w.env = append(w.env, "SHELL="+path)
}

func (w *world) script(s script) {
	w.t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join(w.root, "script.json"), string(raw))
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	// Renamed into place: the model reads its script while a test replaces it.
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.root, name) }

// command returns a command that runs the program with args in the project.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), binary, args...)
	cmd.Env, cmd.Dir = w.env, w.project
	return cmd
}

// sublet runs a command of the program and returns what it printed and its exit status.
func (w *world) sublet(args ...string) (stdout, stderr string, status int) {
	w.t.Helper()
	var out, errs bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		w.t.Fatalf("sublet %q: %v", args, err)
	} else if ok {
		status = exit.ExitCode()
	}
	return out.String(), errs.String(), status
}

// daemonPID returns the pid that the daemon reports; 0 = none runs.
func (w *world) daemonPID() int {
	w.t.Helper()
	out, _, status := w.sublet("daemon", "status", "--json")
	if status != 0 {
		return 0
	}
	var reply struct{ PID int }
	if err := json.Unmarshal([]byte(out), &reply); err != nil {
		w.t.Fatalf("daemon status: %v in %q", err, out)
	}
	return reply.PID
}

// status is `daemon status --json`, decoded.
func (w *world) status() map[string]any {
	w.t.Helper()
	out, errs, code := w.sublet("daemon", "status", "--json")
	var reply map[string]any
	if err := json.Unmarshal([]byte(out), &reply); err != nil {
		w.t.Fatalf("daemon status: exit %d, %v in %q %q", code, err, out, errs)
	}
	return reply
}

// await polls until ok returns true, for at most patience.
func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited %v for %s\nprocesses:\n%s\ndaemon log:\n%s", patience, what, w.processes(), w.logTail())
		}
	}
}

// processes lists the processes with this world's folder in their environment or command line.
func (w *world) processes() string {
	var list []string
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return "" // not Linux: nothing to list, and the tests that need it say so
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		cmdline, err1 := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		environ, err2 := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err1 != nil || err2 != nil || len(cmdline) == 0 {
			continue // it ended meanwhile, or is a zombie
		}
		if bytes.Contains(cmdline, []byte(w.root)) || bytes.Contains(environ, []byte(w.root)) {
			list = append(list, fmt.Sprintf("%d %s", pid, bytes.Map(oneLine, cmdline)))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

func (w *world) logTail() string {
	raw, err := os.ReadFile(filepath.Join(w.state, "daemon.log"))
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-4000):])
}

// clientLog is what the windows have logged, "" where there was none.
func (w *world) clientLog() string {
	raw, err := os.ReadFile(filepath.Join(w.state, "client.log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Error(err)
	}
	return string(raw)
}

// awaitWindows waits until so many windows are connected to the daemon and lend a shell.
func (w *world) awaitWindows(windows int) {
	w.t.Helper()
	w.await("the windows to be at the daemon", func() bool {
		out, _, _ := w.sublet("lease", "ls", "--json")
		return strings.Count(out, `"client_pid"`) == windows
	})
}

// end stops the daemon and fails the test when a process or a race report is left behind.
func (w *world) end() {
	cmd := exec.Command(binary, "daemon", "stop")
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 4) { // 4: no daemon
		w.t.Errorf("daemon stop: %v: %s", err, out)
	}
	left := ""
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if left = w.processes(); left == "" || time.Now().After(deadline) {
			break
		}
	}
	if left != "" {
		w.t.Errorf("processes left behind:\n%s", left)
		for line := range strings.Lines(left) {
			if pid, err := strconv.Atoi(strings.Fields(line)[0]); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // may have ended meanwhile
			}
		}
	}
	races, _ := filepath.Glob(w.path("race.*")) // the pattern is constant: no error
	for _, r := range races {
		raw, err := os.ReadFile(r)
		w.t.Errorf("data race: %v\n%s", err, raw)
	}
	if w.t.Failed() {
		w.t.Logf("daemon log:\n%s", w.logTail())
		raw := w.clientLog()
		w.t.Logf("client log:\n%s", raw[max(0, len(raw)-4000):])
	}
	if err := os.RemoveAll(w.root); err != nil {
		w.t.Error(err)
	}
}

// oneLine is for bytes.Map: a command line without its NULs and line ends.
func oneLine(r rune) rune {
	if r == 0 || r == '\n' {
		return ' '
	}
	return r
}
