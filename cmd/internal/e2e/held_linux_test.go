package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/lease/procstat"
)

// What an agent runs in the user's shell without a question is held to its reach: none of these has its effect in mode auto, and
// each has it in a shell of the user's own.
func TestLeasedCommandsAreHeld(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			const secret = "KEY-93ab5f01"
			w := newWorld(t, "", nil, "[policy]\nmode = \"auto\"")
			w.login(shell, "")
			tcp, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			unix, err := net.Listen("unix", w.path("sock"))
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close()
			defer tcp.Close()
			victim := exec.Command("sleep", "1000")
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
			port, mark := tcp.Addr().(*net.TCPAddr).Port, filepath.Base(w.root)
			defer os.Remove("/var/tmp/" + mark)
			scripts := map[string]string{
				"start": "echo x >>" + w.home + "/.profile",
				"show":  "cat " + w.home + "/.ssh/id_rsa",
				"hook":  "echo x >>.git/hooks/pre-commit",
				"dial":  fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", port),
				"local": "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \"" + w.path("sock") + "\") or die'",
				"end":   fmt.Sprintf("kill %d", victim.Process.Pid),
				"stay":  "setsid sh -c 'sleep .3; touch /var/tmp/" + mark + "' >/dev/null 2>&1 &",
			}
			w.write(w.home+"/.ssh/id_rsa", secret+"\n")
			var steps []step
			for name, text := range scripts {
				w.write(w.project+"/tools/"+name+".sh", text+"\n")
				for _, reach := range []string{"", "project"} {
					c := bash("bash ./tools/" + name + ".sh")
					c.Arguments.(map[string]any)["reach"] = reach
					steps = append(steps, step{ToolCalls: []call{c}})
				}
			}
			w.script(script{{Match: "^attack", Steps: append(steps, step{Text: "Attacked."})}})
			git := exec.Command("bash", "-ec", "git init -q --template= . && mkdir -p .git/hooks && git add tools && git -c user.name=x -c user.email=x@x commit -qm one")
			git.Dir = w.project
			if out, err := git.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			has := func(path string) bool { _, err := os.Stat(path); return err == nil }
			accepted := func(l net.Listener) bool {
				_ = l.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(5 * time.Millisecond))
				c, err := l.Accept()
				if err == nil {
					c.Close()
				}
				return err == nil
			}
			output := ""
			effects := map[string]func() bool{
				"start": func() bool { return has(w.home + "/.profile") },
				"show":  func() bool { return strings.Contains(output, secret) },
				"hook":  func() bool { return has(w.project + "/.git/hooks/pre-commit") },
				"dial":  func() bool { return accepted(tcp) },
				"local": func() bool { return accepted(unix) },
				"end":   func() bool { st, err := procstat.Read(victim.Process.Pid); return err != nil || st.State == 'Z' },
				"stay": func() bool {
					return exec.Command("pgrep", "-f", "touch /var/tmp/"+mark).Run() == nil || has("/var/tmp/"+mark)
				},
			}
			term := w.openShell()
			term.run("echo begun", "^begun$")
			w.awaitWindows(1)
			term.ask("attack")
			term.see(`^Attacked`)
			output, _, _ = w.sublet("session", "show", "--json", w.lastSession())
			if n := strings.Count(output, `"kind":"CommandResult"`); n < len(steps) {
				t.Errorf("%d results of %d commands: %s", n, len(steps), output)
			}
			for name, effect := range effects {
				if effect() {
					t.Errorf("%s has its effect: %s", name, scripts[name])
				}
			}
			for name, effect := range effects {
				cmd := exec.Command("bash", "./tools/"+name+".sh")
				cmd.Dir = w.project
				out, _ := cmd.CombinedOutput()
				output = string(out)
				w.await("the effect of "+name+" where nothing holds it", effect)
			}
			w.await("the last process", func() bool { return has("/var/tmp/" + mark) })
		})
	}
}
