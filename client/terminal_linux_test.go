package client

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/termios"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sublet/client/internal/tui/screentest"
	"sublet/lease/procstat"
	"sublet/wire/citest"
)

// terminal is a client on a terminal of its own.
type terminal struct {
	t      *testing.T
	master *os.File
	tty    *os.File // kept open, so that the modes can be read after everybody has gone
	cmd    *exec.Cmd
	before unix.Termios
	read   sync.WaitGroup

	mu  sync.Mutex
	out bytes.Buffer // guarded by mu
}

// start runs the client in a terminal: as the session's leader, or as the child of a sh that stays.
func start(t *testing.T, w *world, below bool, env ...string) *terminal {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, master: master, tty: tty}
	before, err := termios.GetTermios(int(tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	x.before = *before
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x.cmd = exec.Command(exe)
	if below {
		x.cmd = exec.Command("/bin/sh", "-c", `trap : INT; "$0"; echo "left with $?"; read -r line`, exe)
	}
	x.cmd.Env = append(append(w.env[:len(w.env):len(w.env)], asClient+"=1"), env...)
	x.cmd.Dir = w.dir
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = tty, tty, tty
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x.read.Go(func() { // ends with the master
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			x.mu.Lock()
			x.out.Write(buf[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("screen: %q", x.screen())
			log, _ := os.ReadFile(filepath.Join(w.dir, "s", "client.log"))
			t.Logf("log: %s", log)
		}
		_ = x.cmd.Process.Kill() // gone already in most tests
		_ = x.cmd.Wait()
		tty.Close()
		master.Close()
		x.read.Wait()
	})
	return x
}

func (x *terminal) screen() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String()
}

func (x *terminal) sees(text string) {
	x.t.Helper()
	eventually(x.t, "the screen shows "+strconv.Quote(text), func() bool { return strings.Contains(x.screen(), text) })
}

// seesPrompt waits until there is a prompt after n commands: what is typed before belongs to the program that runs.
func (x *terminal) seesPrompt(n int) {
	x.t.Helper()
	eventually(x.t, "a prompt after command "+strconv.Itoa(n), func() bool { return strings.Count(x.screen(), ready) > n })
}

func (x *terminal) keys(text string) {
	x.t.Helper()
	if _, err := x.master.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// client is the pid of the terminal program.
func (x *terminal) client() int {
	x.t.Helper()
	if len(x.cmd.Args) == 1 {
		return x.cmd.Process.Pid
	}
	pid := 0
	eventually(x.t, "the client runs", func() bool {
		for _, child := range children(x.cmd.Process.Pid) {
			pid = child
		}
		return pid != 0
	})
	return pid
}

// children are the processes whose parent is pid.
func children(pid int) (found []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		child, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if st, err := procstat.Read(child); err == nil && st.Parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// family are all processes below pid, the daemon left out: it is to stay.
func family(pid, daemon int) (all []int) {
	for _, child := range children(pid) {
		if child != daemon {
			all = append(append(all, child), family(child, daemon)...)
		}
	}
	return all
}

// asBefore checks that the terminal is what it was before the client.
func (x *terminal) asBefore() {
	x.t.Helper()
	eventually(x.t, "the terminal's modes are back", func() bool {
		now, err := termios.GetTermios(int(x.tty.Fd()))
		if err != nil { // hung up with its session's leader: its name still leads to it
			again, err := os.OpenFile(ttyName(x.tty), os.O_RDWR|unix.O_NOCTTY, 0)
			if err != nil {
				return false
			}
			defer again.Close()
			now, err = termios.GetTermios(int(again.Fd()))
			return err == nil && *now == x.before
		}
		return *now == x.before
	})
}

const ready = "PROMPT> "

func withPrompt(t *testing.T, w *world) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "h", ".bashrc"), []byte("PS1='PROMPT> '\nalias hi='echo hello from the rc'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// SIGKILL of the client leaves the terminal as it was and no process behind.
func TestKilledClient(t *testing.T) {
	tests := []struct {
		name  string
		below bool
		keys  string
	}{
		{"leads its session", false, "sleep 1000\r"},
		{"below a shell", true, "sleep 1000\r"},
		{"idle", true, ""},
		{"in AI mode", true, "\t"},
		{"with a program that ignores hang-ups of its own accord", true, "trap '' HUP; sleep 1000\r"},
	}
	const below = "list the conversations" // below the question line; it stayed below the prompt of the shell outside, and beside it
	drawn := func(x *terminal) string {
		s := screentest.New(100, 30)
		_, _ = s.Write([]byte(x.screen()))
		return s.Text()
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			withPrompt(t, w)
			x := start(t, w, tt.below)
			x.sees(ready)
			eventually(t, "the daemon runs", func() bool { return w.daemon() != 0 })
			daemon, pid := w.daemon(), x.client()
			var all []int
			switch tt.keys {
			case "":
				all = family(pid, daemon)
			case "\t":
				all = family(pid, daemon)
				x.keys(tt.keys)
				x.sees("ask an agent")
				x.keys("/")
				x.sees(below)
			default:
				x.keys(tt.keys)
				eventually(t, "sleep runs", func() bool {
					all = family(pid, daemon)
					// A fork of bash's that is not sleep yet does not have the terminal, and no bash hangs it up.
					return len(all) == 3 && slices.ContainsFunc(all, func(p int) bool { // guard, bash, sleep
						st, err := procstat.Read(p)
						return err == nil && st.Name == "sleep"
					})
				})
			}
			if now, err := termios.GetTermios(int(x.tty.Fd())); err != nil || *now == x.before {
				t.Fatalf("the terminal is not raw while the client runs: %v", err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if !tt.below {
				_ = x.cmd.Wait()
			}
			x.asBefore()
			for _, p := range all {
				if st, err := procstat.Read(p); err == nil && st.Name == "sleep" && strings.HasPrefix(tt.keys, "trap") {
					kill(t, p) // it asked to outlive its terminal
					continue
				}
				eventually(t, "process "+strconv.Itoa(p)+" is gone", func() bool { return !alive(p) })
			}
			if left, _ := filepath.Glob(filepath.Join(w.dir, "r", "client-*")); len(left) > 0 {
				t.Errorf("got %v left behind", left)
			}
			if tt.below {
				x.sees("left with 137")
			}
			eventually(t, "what was drawn below the cursor is gone", func() bool { return !strings.Contains(drawn(x), below) })
			if !alive(daemon) {
				t.Error("the daemon went with the client")
			}
		})
	}
}

// Each shell that can be lent is the user's own; a client that is killed takes it along, and its exit ends the client.
func TestEachShell(t *testing.T) {
	for _, name := range []string{"bash", "zsh", "fish"} {
		t.Run(name, func(t *testing.T) {
			path := citest.Program(t, name)
			w := newWorld(t)
			for file, text := range map[string]string{
				".bashrc": "PS1='PROMPT> '", ".zshrc": "PS1='PROMPT> '", "fish/config.fish": "function fish_prompt; echo -n 'PROMPT> '; end; set -g fish_greeting",
			} {
				file = filepath.Join(w.dir, "h", file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := []string{"SHELL=" + path, "XDG_CONFIG_HOME=" + w.dir + "/h", "XDG_DATA_HOME=" + w.dir + "/h"}
			x := start(t, w, true, env...)
			x.seesPrompt(0)
			x.keys("test 40 -lt 42 && echo sh''ell\r")
			x.sees("shell\r\n")
			x.keys("exit 3\r")
			x.sees("left with 3")
			x.asBefore()
			y := start(t, w, true, env...)
			y.seesPrompt(0)
			eventually(t, "the daemon runs", func() bool { return w.daemon() != 0 })
			all := family(y.client(), w.daemon())
			if err := syscall.Kill(y.client(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			y.sees("left with 137")
			y.asBefore()
			for _, p := range all {
				eventually(t, "process "+strconv.Itoa(p)+" is gone", func() bool { return !alive(p) })
			}
		})
	}
}

// A shell that is killed is started again, and the guard knows the new one.
func TestKilledShell(t *testing.T) {
	w := newWorld(t)
	withPrompt(t, w)
	x := start(t, w, true)
	x.seesPrompt(0)
	x.keys("kill -9 $$\r")
	x.sees("started again")
	x.keys("hi\r")
	x.sees("hello from the rc")
	eventually(t, "the daemon runs", func() bool { return w.daemon() != 0 })
	all := family(x.client(), w.daemon())
	if err := syscall.Kill(x.client(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	x.sees("left with 137")
	x.asBefore()
	for _, p := range all {
		eventually(t, "process "+strconv.Itoa(p)+" is gone", func() bool { return !alive(p) })
	}
}

func TestOrderedEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(x *terminal)
		want int
	}{
		{"exit", func(x *terminal) { x.keys("exit 3\r") }, 3},
		{"SIGTERM", func(x *terminal) { _ = syscall.Kill(x.client(), syscall.SIGTERM) }, 143},
		{"SIGHUP", func(x *terminal) { _ = syscall.Kill(x.client(), syscall.SIGHUP) }, 129},
		{"SIGQUIT", func(x *terminal) { _ = syscall.Kill(x.client(), syscall.SIGQUIT) }, 131},
		{"SIGINT", func(x *terminal) { _ = syscall.Kill(x.client(), syscall.SIGINT) }, 130},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			withPrompt(t, w)
			x := start(t, w, true)
			x.sees(ready)
			x.keys("hi\r")
			x.sees("hello from the rc")
			x.seesPrompt(1)
			eventually(t, "the daemon runs", func() bool { return w.daemon() != 0 })
			daemon := w.daemon()
			all := family(x.client(), daemon)
			tt.end(x)
			x.sees("left with " + strconv.Itoa(tt.want))
			x.asBefore()
			for _, p := range all {
				if alive(p) {
					t.Errorf("process %d is left", p)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(w.dir, "r", "client-*")); len(left) > 0 {
				t.Errorf("got %v left behind", left)
			}
			if info, err := os.Stat(filepath.Join(w.dir, "s", "client.log")); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("got log %v, %v, want mode 0600", info, err)
			}
		})
	}
}

// The first prompt does not wait for the daemon, not even for one that never answers.
func TestPromptBeforeDaemon(t *testing.T) {
	w := newWorld(t)
	withPrompt(t, w)
	began := time.Now()
	x := start(t, w, true, "TEST_DAEMON=wedged")
	x.sees(ready)
	// Long, for a machine that runs other tests beside this one under the race detector; a daemon is given up after 15 s.
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("got a prompt after %v: it waited for the daemon", took)
	}
	x.keys("hi\r")
	x.sees("hello from the rc")
	x.seesPrompt(1)
	pids := children(x.client())
	x.keys("exit\r")
	x.sees("left with 0")
	for _, p := range pids {
		if alive(p) {
			kill(t, p) // the wedged daemon
		}
	}
}

// A start-up file has the user's keyboard: what it asks is answered, and what hangs is interrupted, as in any terminal.
func TestStartFileThatAsks(t *testing.T) {
	w := newWorld(t)
	rc := "read -p 'which one? ' which\necho \"the $which one\"\nsleep 1000\nPS1='PROMPT> '\n"
	if err := os.WriteFile(filepath.Join(w.dir, "h", ".bashrc"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	x := start(t, w, true)
	x.sees("which one? ")
	x.keys("second\r")
	x.sees("the second one")
	eventually(t, "the daemon runs, though there is no prompt", func() bool { return w.daemon() != 0 })
	x.keys("\x03")
	x.sees("^C")
	x.keys("echo $((40+2))\r")
	x.sees("42")
	x.keys("exit\r")
	x.sees("left with 0")
	x.asBefore()
}

// A sublet called by the start-up file of the shell it lends steps aside; one called by the user in there becomes a
// plain bash.
func TestInsideItself(t *testing.T) {
	w := newWorld(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rc := asClient + "=1 " + exe + "\nPS1='PROMPT> '\n"
	if err := os.WriteFile(filepath.Join(w.dir, "h", ".bashrc"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	x := start(t, w, true)
	x.sees(ready)
	x.keys(asClient + "=1 " + exe + "\r")
	x.sees("this is a plain bash")
	x.seesPrompt(1)
	x.keys("echo depth $SHLVL $((40+2))\r")
	x.sees(" 42")
	x.seesPrompt(2)
	x.keys("exit 5\r")
	x.seesPrompt(3)
	x.keys("exit $?\r")
	x.sees("left with 5")
	x.asBefore()
}
