package shell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a command starts as another user (sudo) is out of reach of the shell's user. These tests are run by an ordinary
// user, with a program that makes root of whoever calls it, like sudo without its settings: where the tests run as root
// they leave that for a user that has no rights, and bring a set-uid copy of setpriv; where they do not, there must be a
// sudo that asks for no password, to make that copy.
const (
	envOrdinary = "SUBLET_TEST_ORDINARY" // the program that makes root, and its arguments
	nobody      = 65534
)

// asOrdinary runs the calling test as an ordinary user; for that user it returns the words before a command of root's.
func asOrdinary(t *testing.T) (root string) {
	t.Helper()
	if root := os.Getenv(envOrdinary); root != "" {
		return root
	}
	dir, err := os.MkdirTemp("", "sublet-ordinary") // not t.TempDir: its parents are root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	setpriv, err1 := exec.LookPath("setpriv")
	self, err2 := os.Executable()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	rooted, tests, tmp := filepath.Join(dir, "rooted"), filepath.Join(dir, "tests"), filepath.Join(dir, "tmp")
	const asRoot = " --reuid=0 --regid=0 --clear-groups"
	if os.Getuid() != 0 {
		if err := install("4711", setpriv, rooted, "sudo", "-n"); err != nil {
			why := fmt.Sprintf("neither root nor able to become root: %v", err)
			if os.Getenv("CI") != "" {
				t.Fatal(why + ": what becomes of another user's programs is untested")
			}
			t.Skip(why)
		}
		return rooted + asRoot
	}
	if err := errors.Join(os.Chown(dir, 0, nobody), os.Chmod(dir, 0o710), os.Mkdir(tmp, 0o700), os.Chown(tmp, nobody, nobody),
		install("4711", setpriv, rooted), install("755", self, tests)); err != nil {
		t.Fatal(err)
	}
	ordinary := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd := exec.CommandContext(t.Context(), tests, "-test.v", "-test.parallel=16", "-test.run=^"+t.Name()+"$", "-test.timeout=3m")
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), envOrdinary+"="+rooted+asRoot, "TMPDIR="+tmp, "HOME="+tmp)
	cmd.SysProcAttr = ordinary
	if bash := os.Getenv(envBash); bash != "" {
		try := exec.Command(bash, "--version")
		try.SysProcAttr = ordinary
		if err := try.Run(); err != nil { // it lies in root's home
			t.Logf("with the system's bash: %v", err)
			cmd.Env = append(cmd.Env, envBash+"=")
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
	return ""
}

// install copies a program. Had this process it open for writing, a child that another test starts meanwhile would too, and
// it could not be run.
func install(mode, from, to string, as ...string) error {
	args := append(as, "install", "-m", mode, from, to)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w: %s", args, err, out)
	}
	return nil
}

// killRooted kills as root, which the canceller cannot.
func killRooted(t *testing.T, root string, pid int) {
	t.Helper()
	args := append(strings.Fields(root), "kill", "-KILL", strconv.Itoa(pid))
	_ = exec.Command(args[0], args[1:]...).Run() // it may have ended
}

// vforksAtStop has a vfork from half a second before a cancel stops it to 0.2 s behind that: then it would not stop.
const vforksAtStop = `
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
	signal(SIGINT, SIG_IGN); signal(SIGQUIT, SIG_IGN); signal(SIGTERM, SIG_IGN);
	puts("go"); fflush(stdout);
	usleep(2500000);
	if (vfork() == 0) { usleep(700000); _exit(0); }
	for (;;) pause();
}
`

// A cancelled command of another user ends by what the terminal may send it. One that is deaf to that is stopped, and the
// shell is free; what stops for nobody is hung up on with the shell, which is started again where it was. What is left is
// listed with whose it is. T2a, T6a, T6d.
func TestCancelAnotherUsers(t *testing.T) {
	t.Parallel()
	root := asOrdinary(t)
	if root == "" {
		return
	}
	const soon, quit, stop, replaced = time.Second, 3 * time.Second, 5 * time.Second, 6 * time.Second
	sh := func(trap, rest string) string {
		return fmt.Sprintf(`%s sh -c 'trap "" %s; echo go; while :; do sleep 0.1; done %s'`, root, trap, rest)
	}
	type test struct {
		name, text string
		within     time.Duration
		left       string // in the command line of what is left; it is root's
		respawned  bool
	}
	cases := []test{
		{"listens", root + " sh -c 'echo go; exec sleep 1000'", soon, "", false},
		{"in a list", root + " sh -c 'echo go; exec sleep 1000'; echo after", soon, "", false},
		{"in a pipeline", root + " sh -c 'echo go; exec sleep 1000' | cat", soon, "", false},
		{"raw terminal", root + ` sh -c 'stty raw -echo; echo go; exec sleep 1000'`, soon, "", false},
		{"deaf to INT", sh("INT TERM", ""), quit, "", false},
		{"deaf to INT, in a pipeline", sh("INT TERM", "") + " | cat", quit, "", false},
		{"in a substitution", "x=$(" + root + " sh -c 'echo go >/dev/tty; exec sleep 1000')", soon, "", false},
		{"deaf to INT, in a substitution", "x=$(" + sh("INT TERM", "") + " >/dev/tty)", quit, "", false},
		{"takes its time over QUIT", root + ` sh -c 'trap "" INT TERM; trap "sleep 0.5; exit" QUIT; echo go; while :; do sleep 0.1; done'`, quit, "", false},
		{"deaf to INT and QUIT", sh("INT TERM QUIT", ""), stop, "trap", false},
		{"deaf to INT and QUIT, in a pipeline behind a cd", "cd /usr && " + sh("INT TERM QUIT", "") + " | cat && echo after", stop, "trap", false},
		{"deaf to INT and QUIT, in a list", sh("INT TERM QUIT", "") + "; echo after", replaced, "", true},
		{"deaf to INT and QUIT, in a loop", "while true; do " + sh("INT TERM QUIT", "") + "; echo after; done", replaced, "", true},
		{"stops for nobody", sh("INT TERM QUIT TSTP", ""), replaced, "", true},
		{"deaf to all", sh("INT TERM QUIT TSTP HUP", ""), replaced, "trap", true},
	}
	if _, err := exec.LookPath("cc"); err == nil || os.Getenv("CI") != "" {
		vforks := compiled(t, t.TempDir(), vforksAtStop)
		cases = append(cases, test{"deaf to INT and QUIT, in a vfork", root + " " + vforks + " # echo go", stop, "compiled", false})
	} else {
		t.Log("no C compiler: a program that is stopped in its vfork is untested")
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			do(t, s, user("cd /usr; export KEPT=1"))
			pid := s.PID()
			res, took := cancelled(t, s, leased(c.text))
			t.Cleanup(func() {
				for _, p := range res.Leftovers {
					killRooted(t, root, p.PID)
				}
				eachProcess(inSession(pid), func(st procStat) {
					if st.PID != pid {
						killRooted(t, root, st.PID)
					}
				})
			})
			if res.Status != "cancelled" && !(c.respawned && res.Status == "shell_exited") || took > c.within+slack {
				t.Errorf("got %s after %v, want cancelled within %v", res.Status, took, c.within)
			}
			if (s.PID() != pid) != c.respawned || res.Respawned != c.respawned {
				t.Errorf("got pid %d, was %d, respawned %v: %q", s.PID(), pid, res.Respawned, res.Notes)
			}
			if strings.Contains(string(res.Output), "after") {
				t.Errorf("the list went on: %q", res.Output)
			}
			var left []string
			for _, p := range res.Leftovers {
				left = append(left, p.Command)
				if p.User != "root" {
					t.Errorf("left over: %+v is not told as root's", p)
				}
			}
			if noted := strings.Contains(strings.Join(res.Notes, "\n"), "another user's"); noted != (c.left != "") {
				t.Errorf("got notes %q", res.Notes)
			}
			if got := strings.Join(left, "\n"); !strings.Contains(got, c.left) || c.left == "" && got != "" {
				t.Errorf("left over: got %q, want %q", got, c.left)
			}
			if r := do(t, s, user("jobs")); strings.Contains(string(r.Output), "Stopped") != (c.left != "" && !c.respawned) {
				t.Errorf("then the jobs are %q", r.Output)
			}
			if r := do(t, s, user(`echo "$KEPT $PWD"`)); string(r.Output) != "1 /usr\n" {
				t.Errorf("then got %q", r.Output)
			}
		})
	}
}

// What another user's program waits in cannot be seen; that it asks, and waits, can. `sudo apt install` asks so, and under
// sudo's own terminal (use_pty) ours is raw. T6a.
func TestHandOverToAnotherUsers(t *testing.T) {
	t.Parallel()
	root := asOrdinary(t)
	if root == "" {
		return
	}
	cases := []struct {
		name, text, typed, out string
		want                   []string
	}{
		{"question", root + ` sh -c 'printf "continue? [Y/n] "; read x; echo "got $x"'`, "y\n", "got y", []string{"input", ""}},
		{"question on a raw terminal", root + ` sh -c 'stty raw -echo; printf "continue? [Y/n] "; dd bs=1 count=1 2>/dev/null | od -An -c; stty sane'`, "y", "y", []string{"input", ""}},
		{"password", root + ` bash -c 'read -rsp "Password: " x; echo; echo "${#x} letters"'`, "hunter2\n", "7 letters", []string{"password", ""}},
		{"none", root + ` sh -c 'printf "building... "; sleep 0.7; echo done'`, "", "done", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			var got []string
			cmd := leased(c.text)
			cmd.Keyboard = func(why string) {
				got = append(got, why)
				if why != "" {
					if _, err := s.Write([]byte(c.typed)); err != nil {
						t.Error(err)
					}
				}
			}
			r := do(t, s, cmd)
			if !slices.Equal(got, c.want) || !strings.Contains(string(r.Output), c.out) || exit(r) != 0 {
				t.Errorf("told %q, want %q; exit %d, %q, want %q", got, c.want, exit(r), r.Output, c.out)
			}
		})
	}
}
