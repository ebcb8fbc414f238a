package e2e

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// modesLeftOn returns the modes that were set and not reset: of the mouse, the focus, bracketed paste, synchronized output, graphemes and the
// alternate screen (xterm's ctlseqs), the kitty keyboard, and a hidden cursor.
func modesLeftOn(raw string) []string {
	on := map[string]bool{}
	for _, m := range regexp.MustCompile(`\x1b\[\?([0-9;]+)([hl])`).FindAllStringSubmatch(raw, -1) {
		for mode := range strings.SplitSeq(m[1], ";") {
			on[mode] = m[2] == "h"
		}
	}
	kitty := 0
	for _, m := range regexp.MustCompile(`\x1b\[([<>])[0-9;]*u`).FindAllStringSubmatch(raw, -1) {
		if m[1] == ">" {
			kitty++
		} else {
			kitty = max(0, kitty-1)
		}
	}
	var left []string
	for _, mode := range []string{"1000", "1002", "1003", "1006", "1004", "2004", "2026", "2027", "1049", "1047", "47"} {
		if on[mode] {
			left = append(left, mode)
		}
	}
	if on, seen := on["25"]; seen && !on {
		left = append(left, "cursor hidden")
	}
	if kitty > 0 {
		left = append(left, "kitty keyboard")
	}
	return left
}

// However the program ends, the terminal is as it was and no process is left (newWorld's end checks the latter).
func TestTerminalIsWholeAfterAnyEnd(t *testing.T) {
	ends := []struct {
		name string
		busy func(*terminal) // what runs when it ends
		end  func(*terminal)
		want int
	}{
		{"exit", nil, func(term *terminal) { term.send("exit", enter) }, 0},
		{"ctrl-d", nil, func(term *terminal) { term.send(ctrlD) }, 0},
		{"SIGTERM idle", nil, signal(syscall.SIGTERM), 143},
		{"SIGHUP idle", nil, signal(syscall.SIGHUP), 129},
		{"SIGKILL idle", nil, signal(syscall.SIGKILL), 137},
		{"SIGTERM in a user's command", userSleep, signal(syscall.SIGTERM), 143},
		{"SIGKILL in a user's command", userSleep, signal(syscall.SIGKILL), 137},
		{"SIGKILL in AI mode", func(term *terminal) { term.mode(true) }, signal(syscall.SIGKILL), 137},
		{"SIGTERM in an agent's command", agentSleep, signal(syscall.SIGTERM), 143},
		{"SIGKILL in an agent's command", agentSleep, signal(syscall.SIGKILL), 137},
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			w := newWorld(t, "", script{{Match: "long", Steps: []step{{ToolCalls: []call{bash("sleep 3000")}}}}}, "[policy]\nmode = \"auto\"")
			w.login(shell, "")
			for _, tc := range ends {
				if shell != "bash" && tc.want != 137 {
					continue // the shells differ where they cannot see the end coming
				}
				term := w.open()
				term.atPrompt()
				if tc.busy != nil {
					tc.busy(term)
				}
				tc.end(term)
				if got := term.wait(); got != tc.want {
					t.Errorf("%s: exit status %d, want %d", tc.name, got, tc.want)
				}
				w.await("the terminal to be as it was after "+tc.name, func() bool {
					return term.modes() == term.first && len(modesLeftOn(term.bytes())) == 0
				})
				w.await("the shell and what ran in it to be gone after "+tc.name, func() bool {
					left := w.processes()
					return !strings.Contains(left, "sleep") && !strings.Contains(left, " "+shell)
				})
			}
		})
	}
}

func signal(sig syscall.Signal) func(*terminal) {
	return func(term *terminal) {
		if err := term.cmd.Process.Signal(sig); err != nil {
			term.t.Fatal(err)
		}
	}
}

func userSleep(term *terminal) {
	term.atPrompt()
	term.send("sleep 4000", enter)
	term.w.await("sleep to run", func() bool { return strings.Contains(term.w.processes(), "sleep 4000") })
}

func agentSleep(term *terminal) {
	term.ask("long one please")
	term.w.await("the agent's sleep to run", func() bool { return strings.Contains(term.w.processes(), "sleep 3000") })
}

// A terminal that cannot move its cursor (an editor's shell window) is told apart before anything is drawn, and before a
// daemon or a shell is started.
func TestDumbTerminal(t *testing.T) {
	w := newWorld(t, "", nil)
	w.env = append(w.env, "TERM=dumb")
	term := w.open()
	if code := term.wait(); code != 2 {
		t.Errorf("exit %d, want 2", code)
	}
	term.see(`this terminal cannot \(TERM=dumb\)`)
	if got := term.bytes(); strings.Contains(got, "\x1b") {
		t.Errorf("it was sent control sequences: %q", got)
	}
	if _, _, code := w.sublet("daemon", "status"); code != 4 {
		t.Errorf("daemon status: exit %d, want 4: none was needed", code)
	}
}
