package e2e

import (
	"strings"
	"syscall"
	"testing"
)

// A background job of an agent is one of the user's own shell. It outlives its turn, the daemon's kill -9 and the window; the
// next daemon finds it again, its end wakes the agent, and `sublet job` shows and ends it.
func TestJob(t *testing.T) {
	for _, shell := range []string{"bash", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			background := func(command string) call {
				return call{"bash", map[string]any{"command": command, "background": true, "wake": true}}
			}
			w := newWorld(t, "", script{
				{Match: "^serve", Steps: []step{
					{ToolCalls: []call{background("touch begun; echo up on 80; sleep 1000")}},
					{ToolCalls: []call{{"jobs", map[string]any{"id": "j1", "until": "up"}}}},
					{Text: "It serves."},
				}},
				{Match: "job j1 .*ended", Steps: []step{
					{ToolCalls: []call{{"jobs", map[string]any{"id": "j1"}}}},
					{Text: "It went down."},
				}},
				{Match: "^again", Steps: []step{{ToolCalls: []call{background("sleep 1000")}}, {Text: "It sleeps."}}},
			}, "[policy]\nmode = \"auto\"")
			w.login(shell, "")
			term := w.openShell()
			term.run("git init -q && mkdir sub && cd sub && echo there", "^there$")
			term.ask("serve")
			term.allow("the answer", func() bool { return term.sees(`It serves`) })
			term.see(`a line matched: up on 80`)
			term.mode(false)
			term.run("jobs", `unning +sublet_job '?touch begun`)
			// The job keeps names of the project, .git in this folder among them, from being made.
			if out, errs, _ := w.sublet("policy", "test", "--cwd", w.project+"/sub", "touch ../again"); !strings.Contains(out, "* auto  runs") {
				t.Errorf("beside the held job: %s%s", out, errs)
			}
			if err := syscall.Kill(w.daemonPID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			w.awaitWindows(1)
			if out, _, _ := w.sublet("job", "ls", "--json"); !strings.Contains(out, `"state":"running"`) || !strings.Contains(out, "found again by a new daemon") {
				t.Errorf("after kill -9 of the daemon: %s", out)
			}
			if out, _, _ := w.sublet("job", "ls"); !strings.Contains(out, "… (found again by a new daemon)\n") {
				t.Errorf("the table after kill -9 of the daemon: %s", out)
			}
			term.run("kill %sublet_job", `.*`)
			term.see(`sent by sublet, not by the user.* job j1`)
			term.see(`It went down`)
			if out, _, status := w.sublet("job", "attach", "j1"); out != "up on 80\n" || status == 0 {
				t.Errorf("attach: %q, exit %d", out, status)
			}

			term.ask("again")
			term.allow("the answer", func() bool { return term.sees(`It sleeps`) })
			term.mode(false)
			if term.send("exit\r"); shell == "zsh" { // which says first that there are jobs
				term.see(`you have running jobs`)
				term.send("exit\r")
			}
			term.wait()
			if out, _, _ := w.sublet("job", "ls"); !strings.Contains(out, "running") || !strings.Contains(out, "sleep 1000") {
				t.Errorf("behind the window: %s", out)
			}
			if out, errs, status := w.sublet("job", "kill", "j2"); status != 0 || !strings.Contains(out, "ended by client") {
				t.Errorf("kill: %s %s", out, errs)
			}
		})
	}
}

// A command in the user's own shell becomes a job of that shell when its time has passed, or at Ctrl-B: the prompt is back, `jobs` lists it,
// it outlives the daemon's kill -9, and the shell's kill ends it. Its agent waits for its end, and learns that its output is not known.
func TestCommandInYourShellGoesOnAsAJob(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			w := newWorld(t, "", script{
				{Match: "^slow", Steps: []step{
					{ToolCalls: []call{{"bash", map[string]any{"command": "sleep 1000", "timeout_ms": 400}}}},
					{ToolCalls: []call{{"jobs", map[string]any{"id": "j1", "until": "up"}}}},
					{Text: "It goes on."},
				}},
				{Match: "^by hand", Steps: []step{
					{ToolCalls: []call{{"bash", map[string]any{"command": "sleep 1001"}}}},
					{Text: "So it does."},
				}},
			}, "[policy]\nmode = \"auto\"")
			w.login(shell, "")
			term := w.openShell()
			term.ask("slow")
			term.allow("the answer", func() bool { return term.sees(`It goes on`) })
			term.see(`none of its later lines is known`)
			term.mode(false)
			term.run("jobs", `unning .*sublet-confine`)
			if err := syscall.Kill(w.daemonPID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			w.awaitWindows(1)
			if out, _, _ := w.sublet("job", "ls", "--json"); !strings.Contains(out, `"state":"running"`) || !strings.Contains(out, `"terminal":true`) {
				t.Errorf("after kill -9 of the daemon: %s", out)
			}
			end := "kill %%"
			if shell == "fish" {
				end = "kill %1"
			}
			term.run(end, `.*`)
			if _, _, status := w.sublet("job", "attach", "j1"); status == 0 {
				t.Error("attach: the status that is not known is 0")
			}

			term.ask("by hand")
			term.see(`sleep 1001`)
			term.allow("the job", func() bool { term.send("\x02"); return term.sees(`it goes on as the job j2: a job of your shell`) })
			term.see(`So it does`)
			term.mode(false)
			term.run("jobs", `unning .*sublet-confine`)
			if out, errs, status := w.sublet("job", "kill", "j2"); status != 0 {
				t.Errorf("kill: %s %s", out, errs)
			}
		})
	}
}
